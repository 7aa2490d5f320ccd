//! Lottery scheduling without a queue (1994): the client that runs next is drawn
//! by lot, with chances in proportion to tickets.
//!
//! A [`Lottery`] has the rules, the same for all lotteries: which clients
//! compete, what counts, what is refused, what is compensated. Its [`Selector`]
//! has the clients' seats and draws among them:
//!
//! | lottery | pick | change | paper |
//! |---|---|---|---|
//! | [`ListLottery`] | O(n), few if sorted | O(n), O(1) for the last winner | 1994, 4.2 and Figure 1 |
//! | [`TreeLottery`] | O(lg n) | O(lg n) | 1994, 4.2 |
//! | [`ClassLottery`] | O(1) expected | O(1) | |
//!
//! All three give every client exactly the chance `w / W` of its weight `w` in
//! the sum `W`, independently of the past, as far as the generator's draws are
//! uniform and independent.

mod class;
mod column;
mod list;
mod partial_sums;
mod seat;
mod tree;
mod weight;

pub use class::{ClassLottery, Classes};
pub use list::{List, ListLottery, ListOrder};
pub(super) use partial_sums::PartialSums;
use rand_core::Rng;
pub(super) use seat::Seats;
pub use seat::{Presence, Seat};
pub use tree::{Tree, TreeLottery};
pub use weight::{Compensation, Weight};

use super::{ClientIndex, MAX_CLIENTS, Policy, PolicyError};

/// Keeps the clients' seats and draws among them.
pub trait Selector {
    /// Whether using less or more than a quantum changes a client's chances.
    const COMPENSATES: bool = true;

    /// The seat of `client`; the default one if it was never set.
    fn seat(&self, client: ClientIndex) -> Seat;

    /// Replaces the seat `from` of `client` by `to`. The index is below
    /// [`MAX_CLIENTS`]; a new highest one grows the tables.
    fn reseat(&mut self, client: ClientIndex, from: Seat, to: Seat);

    /// Drops what is known of `client` beside its seat, which is the default.
    fn forget(&mut self, _client: ClientIndex) {}

    /// A client that waits, at random; none if there is none to draw.
    fn draw<R: Rng>(&mut self, rng: &mut R) -> Option<ClientIndex>;
}

/// A lottery policy over a selector `S`, drawing from its own generator `R`
/// (1994, 2 and 4.2), with compensation tickets (1994, 3.4; 1999, 3.1).
///
/// A client's [`Compensation`] is set by each `charge` and lasts to the next,
/// across `leave` and `join`.
#[derive(Clone, Debug)]
pub struct Lottery<S, R> {
    selector: S,
    rng: R,
    /// Sum of the tickets of all seats that compete; below 2^56.
    total_tickets: u64,
    /// Number of seats that compete.
    len: usize,
}

impl<S: Selector, R: Rng> Lottery<S, R> {
    /// An empty lottery over an empty selector.
    pub(super) fn over(selector: S, rng: R) -> Self {
        Lottery {
            selector,
            rng,
            total_tickets: 0,
            len: 0,
        }
    }

    pub(super) fn selector(&self) -> &S {
        &self.selector
    }

    pub(super) fn parts(&mut self) -> (&mut S, &mut R) {
        (&mut self.selector, &mut self.rng)
    }

    /// The tickets of `client` with its compensation, as they count in the
    /// next lottery unless it is taken; zero if it does not compete. O(1).
    pub fn effective_tickets(&self, client: ClientIndex) -> Weight {
        self.selector.seat(client).effective()
    }

    /// The seat of a client that must compete.
    #[inline]
    pub(super) fn competing(&self, client: ClientIndex) -> Result<Seat, PolicyError> {
        let seat = self.selector.seat(client);
        if seat.competes() {
            Ok(seat)
        } else {
            Err(PolicyError::NotJoined(client))
        }
    }

    /// What a client has earned by using so much of a quantum.
    #[inline]
    fn earned(client: ClientIndex, used: u64, quantum: u64) -> Result<Compensation, PolicyError> {
        if quantum == 0 {
            return Err(PolicyError::ZeroQuantum(client));
        }
        Ok(if S::COMPENSATES {
            Compensation::earned(used, quantum)
        } else {
            Compensation::NONE
        })
    }

    /// The only place where seats and sums change, so that they stay in step.
    #[inline]
    fn reseat(&mut self, client: ClientIndex, from: Seat, to: Seat) {
        self.selector.reseat(client, from, to);
        self.total_tickets = self.total_tickets - u64::from(from.tickets) + u64::from(to.tickets);
        self.len = self.len - usize::from(from.competes()) + usize::from(to.competes());
    }
}

impl<S: Selector, R: Rng> Policy for Lottery<S, R> {
    fn join(&mut self, client: ClientIndex, tickets: u32) -> Result<(), PolicyError> {
        if client.0 >= MAX_CLIENTS {
            return Err(PolicyError::TooManyClients(client));
        }
        let from = self.selector.seat(client);
        if from.competes() {
            return Err(PolicyError::AlreadyJoined(client));
        }
        let to = Seat {
            tickets,
            presence: Presence::Waiting,
            ..from
        };
        self.reseat(client, from, to);
        Ok(())
    }

    fn leave(&mut self, client: ClientIndex) -> Result<(), PolicyError> {
        let from = self.competing(client)?;
        let to = Seat {
            tickets: 0,
            presence: Presence::Away,
            ..from
        };
        self.reseat(client, from, to);
        Ok(())
    }

    fn forget(&mut self, client: ClientIndex) {
        let from = self.selector.seat(client);
        if from != Seat::default() {
            self.reseat(client, from, Seat::default());
        }
        self.selector.forget(client);
    }

    #[inline]
    fn set_tickets(&mut self, client: ClientIndex, tickets: u32) -> Result<(), PolicyError> {
        let from = self.competing(client)?;
        self.reseat(client, from, Seat { tickets, ..from });
        Ok(())
    }

    #[inline]
    fn pick(&mut self) -> Option<ClientIndex> {
        self.selector.draw(&mut self.rng)
    }

    #[inline]
    fn take(&mut self, client: ClientIndex) -> Result<(), PolicyError> {
        let from = self.competing(client)?;
        let to = Seat {
            presence: Presence::Taken,
            ..from
        };
        self.reseat(client, from, to);
        Ok(())
    }

    fn untake(&mut self, client: ClientIndex) -> Result<(), PolicyError> {
        let from = self.competing(client)?;
        let to = Seat {
            presence: Presence::Waiting,
            ..from
        };
        self.reseat(client, from, to);
        Ok(())
    }

    #[inline]
    fn charge(&mut self, client: ClientIndex, used: u64, quantum: u64) -> Result<(), PolicyError> {
        let from = self.competing(client)?;
        let to = Seat {
            compensation: Self::earned(client, used, quantum)?,
            boosted: false,
            presence: Presence::Waiting,
            ..from
        };
        self.reseat(client, from, to);
        Ok(())
    }

    #[inline]
    fn charge_and_leave(
        &mut self,
        client: ClientIndex,
        used: u64,
        quantum: u64,
    ) -> Result<(), PolicyError> {
        let from = self.competing(client)?;
        let to = Seat {
            compensation: Self::earned(client, used, quantum)?,
            boosted: false,
            tickets: 0,
            presence: Presence::Away,
        };
        self.reseat(client, from, to);
        Ok(())
    }

    /// The compensation of the turn's two pieces together.
    fn charge_more(
        &mut self,
        client: ClientIndex,
        before: u64,
        used: u64,
        quantum: u64,
    ) -> Result<(), PolicyError> {
        self.charge(client, before.saturating_add(used), quantum)
    }

    /// Only negative compensation is a debt.
    fn run_off(&mut self, client: ClientIndex, lead: u64, quantum: u64) {
        let from = self.selector.seat(client);
        if let Ok(least) = Self::earned(client, lead.max(quantum), quantum)
            && !from.competes()
        {
            let compensation = from.compensation.max(least);
            self.reseat(
                client,
                from,
                Seat {
                    compensation,
                    ..from
                },
            );
        }
    }

    fn set_boost(&mut self, client: ClientIndex, boost: Option<u32>) {
        let from = self.selector.seat(client);
        let compensation = match boost {
            Some(boost) => Compensation::boosted(boost),
            None if from.boosted => Compensation::NONE,
            None => return,
        };
        if S::COMPENSATES && from.competes() {
            let to = Seat {
                compensation,
                boosted: boost.is_some(),
                ..from
            };
            self.reseat(client, from, to);
        }
    }

    /// Each charge earns compensation for a turn of its own.
    fn charges_add_up(&self) -> bool {
        false
    }

    fn carries_debt(&self) -> bool {
        false
    }

    fn total_tickets(&self) -> u64 {
        self.total_tickets
    }

    fn len(&self) -> usize {
        self.len
    }
}
