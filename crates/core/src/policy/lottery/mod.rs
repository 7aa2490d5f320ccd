//! Lottery scheduling without a queue (1994): who runs next is drawn by lot,
//! with chances in proportion to tickets.
//!
//! A [`Lottery`] is one set of books, which knows tickets, standing and
//! compensation of every client, over a [`Selector`], which knows weights and
//! draws. Three selectors:
//!
//! | lottery | pick | change | paper |
//! |---|---|---|---|
//! | [`ListLottery`] | O(n), few if sorted | O(n), O(1) for the last winner | 1994, 4.2 and Figure 1 |
//! | [`TreeLottery`] | O(lg n) | O(lg n) | 1994, 4.2 |
//! | [`ClassLottery`] | O(1) | O(1) | |
//!
//! All three give every client exactly the chance `w / W` of its weight `w` in
//! the sum `W`, independently of the past, as far as the generator's draws are
//! uniform and independent.

mod class;
mod list;
mod partial_sums;
mod roster;
mod tree;
mod weight;

pub use class::{ClassLottery, Classes};
pub use list::{List, ListLottery, ListOrder};
pub(super) use partial_sums::PartialSums;
use rand_core::Rng;
use roster::Change;
pub(super) use roster::{Roster, Seat, Standing};
pub use tree::{Tree, TreeLottery};
pub use weight::{Compensation, Weight};

use super::{ClientIndex, Policy, PolicyError};

/// Draws clients in proportion to weights.
pub trait Selector {
    /// Changes the weight of `client`. `from` is the weight of the last call
    /// for it, zero if there was none; zero weights are never drawn.
    fn reweigh(&mut self, client: ClientIndex, from: Weight, to: Weight);

    /// A client, each with the chance of its weight in the sum of all; none if
    /// that sum is zero.
    fn draw<R: Rng>(&mut self, rng: &mut R) -> Option<ClientIndex>;
}

/// A lottery policy over a selector `S`, drawing from its own generator `R`
/// (1994, 2 and 4.2), with compensation tickets (1994, 3.4; 1999, 3.1).
///
/// A client's [`Compensation`] is set by each `charge` and lasts to the next,
/// across `leave` and `join`.
#[derive(Clone, Debug)]
pub struct Lottery<S, R> {
    roster: Roster,
    /// Holds for every client the weight that its seat has.
    selector: S,
    rng: R,
}

impl<S: Selector, R: Rng> Lottery<S, R> {
    /// An empty lottery over an empty selector.
    fn over(selector: S, rng: R) -> Self {
        Lottery {
            roster: Roster::default(),
            selector,
            rng,
        }
    }

    fn selector(&self) -> &S {
        &self.selector
    }

    /// The tickets of `client` with its compensation, as they count in the
    /// next lottery unless it is taken; zero if it does not compete. O(1).
    pub fn effective_tickets(&self, client: ClientIndex) -> Weight {
        self.roster.seat(client).effective()
    }

    #[inline]
    fn follow(&mut self, change: Change) {
        let (from, to) = (change.from.weight(), change.to.weight());
        if from != to {
            self.selector.reweigh(change.client, from, to);
        }
    }
}

impl<S: Selector, R: Rng> Policy for Lottery<S, R> {
    fn join(&mut self, client: ClientIndex, tickets: u32) -> Result<(), PolicyError> {
        let change = self.roster.join(client, tickets)?;
        self.follow(change);
        Ok(())
    }

    fn leave(&mut self, client: ClientIndex) -> Result<(), PolicyError> {
        let change = self.roster.leave(client)?;
        self.follow(change);
        Ok(())
    }

    fn forget(&mut self, client: ClientIndex) {
        if let Some(change) = self.roster.forget(client) {
            self.follow(change);
        }
    }

    #[inline]
    fn set_tickets(&mut self, client: ClientIndex, tickets: u32) -> Result<(), PolicyError> {
        let change = self.roster.set_tickets(client, tickets)?;
        self.follow(change);
        Ok(())
    }

    #[inline]
    fn pick(&mut self) -> Option<ClientIndex> {
        self.selector.draw(&mut self.rng)
    }

    fn take(&mut self, client: ClientIndex) -> Result<(), PolicyError> {
        let change = self.roster.take(client)?;
        self.follow(change);
        Ok(())
    }

    #[inline]
    fn charge(&mut self, client: ClientIndex, used: u64, quantum: u64) -> Result<(), PolicyError> {
        let change = self.roster.charge(client, used, quantum)?;
        self.follow(change);
        Ok(())
    }

    /// Each charge earns compensation for a turn of its own.
    fn charges_add_up(&self) -> bool {
        false
    }

    fn total_tickets(&self) -> u64 {
        self.roster.total_tickets()
    }

    fn len(&self) -> usize {
        self.roster.len()
    }
}
