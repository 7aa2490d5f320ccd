//! The list lottery (1994, 4.2 and Figure 1).

use alloc::vec::Vec;

use rand_core::Rng;

use super::{Lottery, Seat, Seats, Selector, Weight};
use crate::policy::ClientIndex;
use crate::rng::below_wide;

/// A lottery that searches a list of clients, accumulating tickets until the
/// winning one is reached (1994, 4.2 and Figure 1).
///
/// `pick` examines O(n) clients at worst, few if large holders are near the
/// front. A change of a client's tickets, `take` and `charge` cost O(n) at
/// worst; with [`ListOrder::MoveToFront`] they cost O(1) for the last winner.
/// 32 bytes a client.
pub type ListLottery<R> = Lottery<List, R>;

/// How a list lottery keeps its list (1994, 4.2).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ListOrder {
    /// A winner moves to the front, and so does a client that starts to
    /// compete: frequent winners gather there.
    MoveToFront,
    /// Decreasing tickets, compensation included; among equals, decreasing
    /// index.
    Sorted,
}

/// The selector of [`ListLottery`].
#[derive(Clone, Debug)]
pub struct List {
    order: ListOrder,
    seats: Seats,
    /// The clients that can win; the last element is the front of the list,
    /// where clients come and go at no cost.
    ///
    /// Invariant: no weight is zero. Under `ListOrder::Sorted`, increasing by
    /// (weight, client).
    clients: Vec<(Weight, ClientIndex)>,
    /// Sum of the weights, below 2^88.
    total: u128,
    /// See [`ListLottery::examined`].
    examined: u64,
}

impl<R: Rng> ListLottery<R> {
    /// An empty lottery with a list kept in this order, that draws from `rng`.
    pub fn new(order: ListOrder, rng: R) -> Self {
        let list = List {
            order,
            seats: Seats::default(),
            clients: Vec::new(),
            total: 0,
            examined: 0,
        };
        Lottery::over(list, rng)
    }

    /// How many clients all searches together have examined: the cost of this
    /// order, against the other's. Wraps around.
    pub fn examined(&self) -> u64 {
        self.selector().examined
    }
}

impl List {
    /// The place in `clients` of the client that holds unit `winning` of the
    /// total weight, counted from zero at the front.
    fn holder(&self, winning: u128) -> Option<usize> {
        let mut sum = 0;
        self.clients.iter().rposition(|(weight, _)| {
            sum += u128::from(weight.units());
            sum > winning
        })
    }

    fn place_of(&self, weight: Weight, client: ClientIndex) -> Option<usize> {
        match self.order {
            ListOrder::MoveToFront => self.clients.iter().rposition(|&(_, other)| other == client),
            ListOrder::Sorted => self.clients.binary_search(&(weight, client)).ok(),
        }
    }

    fn insert(&mut self, weight: Weight, client: ClientIndex) {
        let place = match self.order {
            ListOrder::MoveToFront => self.clients.len(),
            ListOrder::Sorted => self
                .clients
                .partition_point(|&other| other < (weight, client)),
        };
        self.clients.insert(place, (weight, client));
    }

    /// Changes the weight of a client; weights of zero are not in the list.
    fn reweigh(&mut self, client: ClientIndex, from: Weight, to: Weight) {
        self.total = self.total - u128::from(from.units()) + u128::from(to.units());
        let place = if from.is_zero() {
            None
        } else {
            self.place_of(from, client)
        };
        match place {
            Some(place) if self.order == ListOrder::MoveToFront && !to.is_zero() => {
                self.clients[place].0 = to;
                return;
            }
            Some(place) => {
                self.clients.remove(place);
            }
            None => {}
        }
        if !to.is_zero() {
            self.insert(to, client);
        }
    }
}

impl Selector for List {
    fn seat(&self, client: ClientIndex) -> Seat {
        self.seats.get(client)
    }

    fn reseat(&mut self, client: ClientIndex, from: Seat, to: Seat) {
        self.seats.set(client, to);
        if from.weight() != to.weight() {
            self.reweigh(client, from.weight(), to.weight());
        }
    }

    fn draw<R: Rng>(&mut self, rng: &mut R) -> Option<ClientIndex> {
        if self.total == 0 {
            return None;
        }
        let place = self.holder(below_wide(rng, self.total))?;
        let (_, winner) = self.clients[place];
        let searched = &mut self.clients[place..];
        self.examined = self.examined.wrapping_add(searched.len() as u64);
        if self.order == ListOrder::MoveToFront {
            searched.rotate_left(1);
        }
        Some(winner)
    }
}
