//! What a lottery knows of one client.

use alloc::vec::Vec;

use super::weight::{Compensation, Weight};
use crate::policy::ClientIndex;

/// Where a client stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Presence {
    /// Does not compete: never joined, or left.
    #[default]
    Away,
    /// Competes and may be picked.
    Waiting,
    /// Competes, but runs now and is not picked.
    Taken,
}

/// A client's tickets, compensation and presence. The default is that of a
/// client never seen.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Seat {
    /// Outlives `Presence::Away`: a client that left takes it up again.
    pub compensation: Compensation,
    /// Whether it is a boost instead (1999, 4.1). Without meaning where the factor is one.
    pub boosted: bool,
    /// Zero while away.
    pub tickets: u32,
    /// Where the client stands.
    pub presence: Presence,
}

impl Seat {
    /// What the client's tickets weigh with its compensation, whether or not
    /// it can be picked.
    #[inline]
    pub fn effective(self) -> Weight {
        self.compensation.weigh(self.tickets)
    }

    /// What they weigh in the next lottery: nothing if it cannot be picked.
    #[inline]
    pub fn weight(self) -> Weight {
        match self.presence {
            Presence::Waiting => self.effective(),
            Presence::Away | Presence::Taken => Weight::ZERO,
        }
    }

    /// Whether the client competes, running or not.
    #[inline]
    pub fn competes(self) -> bool {
        self.presence != Presence::Away
    }
}

/// Seats by client index. 16 bytes a client.
#[derive(Clone, Debug, Default)]
pub(crate) struct Seats(Vec<Seat>);

impl Seats {
    #[inline]
    pub(crate) fn get(&self, client: ClientIndex) -> Seat {
        self.0.get(client.0 as usize).copied().unwrap_or_default()
    }

    /// Grows the table if need be.
    #[inline]
    pub(crate) fn set(&mut self, client: ClientIndex, seat: Seat) {
        let index = client.0 as usize;
        if index >= self.0.len() {
            self.0.resize(index + 1, Seat::default());
        }
        self.0[index] = seat;
    }
}
