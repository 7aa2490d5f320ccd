//! The inverse lottery (1994, 6.2): which client gives up a unit of a resource.

use alloc::vec::Vec;
use core::ops::{Add, Sub};

use rand_core::Rng;

use super::lottery::{Lottery, PartialSums, Presence, Seat, Seats, Selector};
use super::{ClientIndex, PolicyError};
use crate::rng::{below, below_wide};

/// Picks losers: with n clients and T tickets in all, a client that holds t
/// tickets is picked with probability exactly `(1 - t/T) / (n - 1)`
/// (1994, 6.2).
///
/// The trait [`Policy`](super::Policy) is read from the loser's side. `pick`
/// names the client that gives up a unit. A client without tickets is not
/// spared: it is the likeliest loser. A taken client (one that is giving up a
/// unit just now) is not picked; among the others the chances stay in
/// proportion to `T - t`. `charge` only puts it back: there is nothing to
/// compensate.
///
/// Where the formula is 0/0 the choice is still made: a single client always
/// loses, and if no client holds tickets all lose equally often.
///
/// `pick` costs O(1): a client is drawn uniformly and loses with probability
/// `1 - t/T`, else the draw is repeated; at most two draws are expected.
/// Changes and [`InverseLottery::pick_victim`] cost O(lg n). 90 to 160 bytes a
/// client.
pub type InverseLottery<R> = Lottery<Inverse, R>;

/// The selector of [`InverseLottery`].
#[derive(Clone, Debug)]
pub struct Inverse {
    seats: Seats,
    /// Sum of the tickets of all seats.
    total_tickets: u64,
    /// The clients that wait, in no order.
    waiting: Vec<ClientIndex>,
    /// By client index, as far as `seats` goes.
    holders: Vec<Holder>,
    /// Leaf i is the holding of client i, zero unless it waits.
    holdings: PartialSums<Holding>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Holder {
    /// Place in `waiting`.
    place: u32,
    /// Units of the resource held.
    units: u32,
}

/// Sums over clients: below 2^56 and 2^88.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Holding {
    units: u64,
    /// Units times the holder's tickets.
    unit_tickets: u128,
}

impl Add for Holding {
    type Output = Holding;

    fn add(self, other: Holding) -> Holding {
        Holding {
            units: self.units + other.units,
            unit_tickets: self.unit_tickets + other.unit_tickets,
        }
    }
}

impl Sub for Holding {
    type Output = Holding;

    fn sub(self, other: Holding) -> Holding {
        Holding {
            units: self.units - other.units,
            unit_tickets: self.unit_tickets - other.unit_tickets,
        }
    }
}

impl Holding {
    fn of(seat: Seat, units: u32) -> Holding {
        match seat.presence {
            Presence::Waiting => Holding {
                units: u64::from(units),
                unit_tickets: u128::from(units) * u128::from(seat.tickets),
            },
            Presence::Away | Presence::Taken => Holding::default(),
        }
    }

    /// The sum of `(T - t) * units`, below 2^112.
    fn at_stake(self, total_tickets: u64) -> u128 {
        u128::from(total_tickets) * u128::from(self.units) - self.unit_tickets
    }
}

impl<R: Rng> InverseLottery<R> {
    /// An empty inverse lottery that draws from `rng`.
    pub fn new(rng: R) -> Self {
        let inverse = Inverse {
            seats: Seats::default(),
            total_tickets: 0,
            waiting: Vec::new(),
            holders: Vec::new(),
            holdings: PartialSums::new(),
        };
        Lottery::over(inverse, rng)
    }

    /// Says how many units of the resource `client` holds: pages, say. None
    /// until told; remembered by `leave`. O(lg n).
    ///
    /// # Errors
    /// [`PolicyError::NotJoined`].
    pub fn set_holding(&mut self, client: ClientIndex, units: u32) -> Result<(), PolicyError> {
        let seat = self.competing(client)?;
        let (inverse, _) = self.parts();
        let holder = &mut inverse.holders[client.0 as usize];
        let from = Holding::of(seat, holder.units);
        let to = Holding::of(seat, units);
        holder.units = units;
        inverse.holdings.replace(client.0 as usize, from, to);
        Ok(())
    }

    /// The client from which a page, or any unit, is to be taken: with
    /// probability proportional to both `1 - t/T` and the fraction of all units
    /// that it holds (1994, 6.2). None if no client holds any. O(lg n).
    ///
    /// If that leaves no client a chance (the only holder has all tickets, or
    /// no client has tickets), by holding alone.
    pub fn pick_victim(&mut self) -> Option<ClientIndex> {
        let (inverse, rng) = self.parts();
        inverse.draw_victim(rng)
    }
}

impl Inverse {
    fn draw_victim<R: Rng>(&self, rng: &mut R) -> Option<ClientIndex> {
        let total = self.holdings.total();
        if total.units == 0 {
            return None;
        }
        let stake = |holding: Holding| match total.at_stake(self.total_tickets) {
            0 => u128::from(holding.units),
            _ => holding.at_stake(self.total_tickets),
        };
        let mut losing = below_wide(rng, stake(total));
        let leaf = self.holdings.find(|left| {
            let left = stake(left);
            let goes_right = losing >= left;
            if goes_right {
                losing -= left;
            }
            goes_right
        });
        Some(ClientIndex(leaf as u32))
    }

    fn start_waiting(&mut self, client: ClientIndex) {
        self.holders[client.0 as usize].place = self.waiting.len() as u32;
        self.waiting.push(client);
    }

    fn stop_waiting(&mut self, client: ClientIndex) {
        let place = self.holders[client.0 as usize].place;
        self.waiting.swap_remove(place as usize);
        if let Some(moved) = self.waiting.get(place as usize) {
            self.holders[moved.0 as usize].place = place;
        }
    }
}

impl Selector for Inverse {
    const COMPENSATES: bool = false;

    fn seat(&self, client: ClientIndex) -> Seat {
        self.seats.get(client)
    }

    fn reseat(&mut self, client: ClientIndex, from: Seat, to: Seat) {
        self.seats.set(client, to);
        self.total_tickets = self.total_tickets - u64::from(from.tickets) + u64::from(to.tickets);
        let index = client.0 as usize;
        if index >= self.holders.len() {
            self.holders.resize(index + 1, Holder::default());
        }
        match (from.presence, to.presence) {
            (Presence::Waiting, Presence::Waiting) => {}
            (Presence::Waiting, _) => self.stop_waiting(client),
            (_, Presence::Waiting) => self.start_waiting(client),
            (_, _) => {}
        }
        let units = self.holders[index].units;
        let (before, after) = (Holding::of(from, units), Holding::of(to, units));
        if before != after {
            self.holdings.replace(index, before, after);
        }
    }

    fn forget(&mut self, client: ClientIndex) {
        if let Some(holder) = self.holders.get_mut(client.0 as usize) {
            holder.units = 0;
        }
    }

    fn draw<R: Rng>(&mut self, rng: &mut R) -> Option<ClientIndex> {
        match self.waiting[..] {
            [] => None,
            [only] => Some(only),
            ref waiting => loop {
                let drawn = waiting[below(rng, waiting.len() as u64) as usize];
                let tickets = u64::from(self.seats.get(drawn).tickets);
                if self.total_tickets == 0 || below(rng, self.total_tickets) >= tickets {
                    return Some(drawn);
                }
            },
        }
    }
}
