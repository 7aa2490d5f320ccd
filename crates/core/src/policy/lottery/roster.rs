//! Who competes, with how many tickets and what compensation: the books that
//! every lottery keeps alike.

use alloc::vec::Vec;

use super::weight::{Compensation, Weight};
use crate::policy::{ClientIndex, MAX_CLIENTS, PolicyError};

/// Where a client stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) enum Standing {
    /// Does not compete: never joined, or left.
    #[default]
    Away,
    /// Competes and may be picked.
    Waiting,
    /// Competes, but runs now and is not picked.
    Taken,
}

/// One client's entry.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Seat {
    /// Outlives `Away`: a client that left takes it up again.
    compensation: Compensation,
    /// Zero while `Away`.
    pub(crate) tickets: u32,
    pub(crate) standing: Standing,
}

impl Seat {
    /// Tickets in the next lottery; zero for a client that cannot be picked.
    #[inline]
    pub(crate) fn weight(self) -> Weight {
        match self.standing {
            Standing::Waiting => self.effective(),
            Standing::Away | Standing::Taken => Weight::ZERO,
        }
    }

    /// Tickets with compensation, whether or not the client can be picked.
    #[inline]
    pub(crate) fn effective(self) -> Weight {
        self.compensation.weigh(self.tickets)
    }

    #[inline]
    pub(crate) fn competes(self) -> bool {
        self.standing != Standing::Away
    }
}

/// A client's seat before and after a call.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Change {
    pub(crate) client: ClientIndex,
    pub(crate) from: Seat,
    pub(crate) to: Seat,
}

/// The seats of all clients, by index.
///
/// Every method costs O(1); `join` of a new highest index grows the table.
#[derive(Clone, Debug, Default)]
pub(crate) struct Roster {
    seats: Vec<Seat>,
    /// Sum of `tickets` over the seats that compete; below 2^56.
    total_tickets: u64,
    /// Number of seats that compete.
    len: usize,
}

impl Roster {
    pub(crate) fn total_tickets(&self) -> u64 {
        self.total_tickets
    }

    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// The seat of `client`, an empty one if it was never seen.
    pub(crate) fn seat(&self, client: ClientIndex) -> Seat {
        self.seats
            .get(client.0 as usize)
            .copied()
            .unwrap_or_default()
    }

    pub(crate) fn join(
        &mut self,
        client: ClientIndex,
        tickets: u32,
    ) -> Result<Change, PolicyError> {
        if client.0 >= MAX_CLIENTS {
            return Err(PolicyError::TooManyClients(client));
        }
        let from = self.seat(client);
        if from.competes() {
            return Err(PolicyError::AlreadyJoined(client));
        }
        let index = client.0 as usize;
        if index >= self.seats.len() {
            self.seats.resize(index + 1, Seat::default());
        }
        let to = Seat {
            tickets,
            standing: Standing::Waiting,
            ..from
        };
        Ok(self.change(client, from, to))
    }

    pub(crate) fn leave(&mut self, client: ClientIndex) -> Result<Change, PolicyError> {
        let from = self.competing(client)?;
        let to = Seat {
            tickets: 0,
            standing: Standing::Away,
            ..from
        };
        Ok(self.change(client, from, to))
    }

    /// Nothing if the client was never seen.
    pub(crate) fn forget(&mut self, client: ClientIndex) -> Option<Change> {
        let from = *self.seats.get(client.0 as usize)?;
        Some(self.change(client, from, Seat::default()))
    }

    pub(crate) fn set_tickets(
        &mut self,
        client: ClientIndex,
        tickets: u32,
    ) -> Result<Change, PolicyError> {
        let from = self.competing(client)?;
        Ok(self.change(client, from, Seat { tickets, ..from }))
    }

    pub(crate) fn take(&mut self, client: ClientIndex) -> Result<Change, PolicyError> {
        let from = self.competing(client)?;
        let to = Seat {
            standing: Standing::Taken,
            ..from
        };
        Ok(self.change(client, from, to))
    }

    /// Puts the client back and grants the compensation it earned.
    pub(crate) fn charge(
        &mut self,
        client: ClientIndex,
        used: u64,
        quantum: u64,
    ) -> Result<Change, PolicyError> {
        let from = self.competing(client)?;
        if quantum == 0 {
            return Err(PolicyError::ZeroQuantum(client));
        }
        let to = Seat {
            compensation: Compensation::earned(used, quantum),
            standing: Standing::Waiting,
            ..from
        };
        Ok(self.change(client, from, to))
    }

    #[inline]
    fn competing(&self, client: ClientIndex) -> Result<Seat, PolicyError> {
        match self.seats.get(client.0 as usize) {
            Some(seat) if seat.competes() => Ok(*seat),
            _ => Err(PolicyError::NotJoined(client)),
        }
    }

    /// The only place where seats and sums change, so that they stay in step.
    #[inline]
    fn change(&mut self, client: ClientIndex, from: Seat, to: Seat) -> Change {
        self.seats[client.0 as usize] = to;
        self.total_tickets = self.total_tickets - u64::from(from.tickets) + u64::from(to.tickets);
        self.len = self.len - usize::from(from.competes()) + usize::from(to.competes());
        Change { client, from, to }
    }
}
