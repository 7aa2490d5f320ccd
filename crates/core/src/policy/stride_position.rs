//! The positions of clients: passes, strides and remains (1995, Figures 3 and 5).
//!
//! A pass is kept as a whole number and a remainder over the tickets, so that
//! it is exact as long as the tickets stay the same. What the paper calls
//! `remain` is kept in units of service instead of passes, that is multiplied
//! by the tickets: then the scaling of Figure 5 is no operation at all, and
//! "the fraction of the stride remaining" of section 3.1 needs no tickets.

use super::ClientIndex;
use super::queue::Entry;
use super::queue_fifos::FifoIndex;
use super::stride_ahead::Ahead;
use super::stride_service::{LONGEST_WAIT, PartUnit, STRIDE1};

/// The aggregate of all clients that compete: their tickets, and the pass
/// that they are on average at (1995, 2.2).
#[derive(Clone, Copy, Debug)]
pub(super) struct GlobalPass {
    /// Wraps around.
    pub(super) pass: u64,
    /// Part of a pass, in units of 2^-64. Not in those of `1 / tickets`: so it
    /// stays as it is when tickets change, and a client that leaves and comes
    /// back at once finds exactly its old pass.
    part: u64,
    /// Sum over all competing clients: at most 2^24 of 2^32 tickets.
    tickets: u64,
    /// `STRIDE1 / divided_by` in units of 2^-64, rounded down; zero without
    /// tickets.
    stride: u128,
    /// The tickets for which `stride` was worked out: they change more often
    /// than it is needed.
    divided_by: u64,
    ahead: Ahead,
}

impl GlobalPass {
    pub(super) fn starting_at(pass: u64) -> Self {
        Self {
            pass,
            part: 0,
            tickets: 0,
            stride: 0,
            divided_by: 0,
            ahead: Ahead::default(),
        }
    }

    pub(super) const fn tickets(&self) -> u64 {
        self.tickets
    }

    /// Clients have used `uncharged` of a `quantum` for which they are not charged: time passes
    /// for that now (1995, Figure 3: `global_pass_update`).
    pub(super) fn pass_time(&mut self, uncharged: u64, quantum: u64) {
        let service = self.ahead.pass(uncharged, quantum);
        self.advance(service);
    }

    /// Time passes, because a client is charged for `service`.
    #[inline]
    pub(super) fn charge(&mut self, service: u64) {
        let service = self.ahead.charge(service);
        self.advance(service);
    }

    /// Time passes for `service`. Without tickets the pass stands still.
    /// Rounding: less than 2^-63 of a pass for each quantum and each call.
    #[inline]
    fn advance(&mut self, service: u64) {
        const QUANTUM_BITS: u32 = STRIDE1.ilog2();
        if self.divided_by != self.tickets {
            self.divide();
        }
        let step = if service == STRIDE1 {
            self.stride
        } else {
            let service = u128::from(service);
            let (whole, part) = (self.stride >> 64, self.stride & u128::from(u64::MAX));
            ((service * whole) << (64 - QUANTUM_BITS)) + ((service * part) >> QUANTUM_BITS)
        };
        let pass = (u128::from(self.pass) << 64 | u128::from(self.part)).wrapping_add(step);
        self.pass = (pass >> 64) as u64;
        self.part = pass as u64;
    }

    /// Moves back by what would advance it for `service`, rounded down to whole passes.
    pub(super) fn retreat(&mut self, service: u128) {
        let passes = service.checked_div(self.tickets.into()).unwrap_or(0);
        self.pass = self
            .pass
            .wrapping_sub(passes.min(LONGEST_WAIT as u128) as u64);
    }

    /// Moves on to `pass`, and drops the part of a pass.
    pub(super) fn follow(&mut self, pass: u64) {
        self.pass = pass;
        self.part = 0;
    }

    /// Tickets come or go.
    pub(super) fn change_tickets(&mut self, from: u32, to: u32) {
        self.tickets = self.tickets - u64::from(from) + u64::from(to);
    }

    fn divide(&mut self) {
        self.divided_by = self.tickets;
        self.stride = (u128::from(STRIDE1) << 64)
            .checked_div(self.tickets.into())
            .unwrap_or(0);
    }

    /// The part of a pass as service of a client, rounded down.
    fn part(&self, tickets: u32) -> i128 {
        ((u128::from(self.part) * u128::from(tickets)) >> 64) as i128
    }
}

/// Service that a client is still to wait for until its next turn: the
/// paper's `remain` times the tickets. [`STRIDE1`] is a whole stride; negative
/// for a client that is overdue.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Remain(pub(super) i128);

/// What a client does in the competition.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Participation {
    /// Never joined, or forgotten.
    Unknown,
    /// Left; its remain is remembered.
    Left,
    /// Joined, but without tickets; its remain stands still (1995, 3.1).
    Ticketless,
    /// Taken, and without tickets.
    TicketlessTaken,
    /// Joined with tickets; waits in the queue.
    Waiting,
    /// Joined with tickets; runs.
    Taken,
}

impl Participation {
    pub(super) const fn joined(self) -> bool {
        !matches!(self, Self::Unknown | Self::Left)
    }

    pub(super) const fn has_tickets(self) -> bool {
        matches!(self, Self::Waiting | Self::Taken)
    }

    pub(super) const fn is_taken(self) -> bool {
        matches!(self, Self::TicketlessTaken | Self::Taken)
    }

    /// Of a client that has joined with so many tickets.
    pub(super) const fn untaken(tickets: u32) -> Self {
        if tickets == 0 {
            Self::Ticketless
        } else {
            Self::Waiting
        }
    }

    /// Of a client that has joined, when it is taken.
    pub(super) const fn taken(self) -> Self {
        if self.has_tickets() {
            Self::Taken
        } else {
            Self::TicketlessTaken
        }
    }
}

/// A client's position: 40 bytes.
#[derive(Clone, Debug)]
pub(super) struct Position {
    /// The next turn's pass, which wraps around, while competing; else the
    /// whole passes that remain (an `i64`).
    pub(super) pass: u64,
    /// Service that is too little to be counted.
    pub(super) part_unit: PartUnit,
    /// The tickets while competing, the last ones above zero else.
    tickets: u32,
    /// Part of a pass, in `1 / tickets`; below `tickets`.
    rest: u32,
    pub(super) participation: Participation,
    /// Where its equals wait; of use while competing.
    pub(super) fifo: FifoIndex,
}

impl Position {
    pub(super) const UNKNOWN: Self = Self {
        pass: 0,
        part_unit: PartUnit::NONE,
        tickets: 1,
        rest: 0,
        participation: Participation::Unknown,
        fifo: FifoIndex::NONE,
    };

    /// The client's entry in the queue.
    #[inline]
    pub(super) const fn entry(&self, client: ClientIndex) -> Entry {
        Entry {
            pass: self.pass,
            client,
        }
    }

    /// Tickets that count.
    pub(super) const fn tickets(&self) -> u32 {
        if self.participation.has_tickets() {
            self.tickets
        } else {
            0
        }
    }

    /// Puts off the next turn by `service`; also where the position is a remain,
    /// which needs no other arithmetic (1995, Figure 3: `allocate`).
    #[inline]
    pub(super) fn advance(&mut self, service: u64) {
        let dividend = u64::from(self.rest) + service;
        self.rest = (dividend % u64::from(self.tickets)) as u32;
        self.pass = self.pass.wrapping_add(dividend / u64::from(self.tickets));
    }

    /// The pass with its part, of a client that competes with tickets.
    pub(super) fn exact_pass(&self) -> Option<f64> {
        let part = f64::from(self.rest) / f64::from(self.tickets);
        let competes = self.participation.has_tickets();
        competes.then_some(self.pass as f64 + part)
    }

    /// Whole passes ahead of the global pass.
    #[inline]
    pub(super) const fn lead(&self, global: &GlobalPass) -> i64 {
        self.pass.wrapping_sub(global.pass) as i64
    }

    /// Moves to `lead` whole passes ahead of the global pass.
    pub(super) fn set_lead(&mut self, lead: i64, global: &GlobalPass) {
        self.pass = global.pass.wrapping_add_signed(lead);
        self.rest = 0;
    }

    /// What remains, whether competing or not (1995, Figure 3:
    /// `client_leave`). Rounding: less than one unit of service.
    pub(super) fn remain(&self, global: &GlobalPass) -> Remain {
        let (passes, part) = if self.participation.has_tickets() {
            (self.lead(global), global.part(self.tickets))
        } else {
            (self.pass as i64, 0)
        };
        Remain(i128::from(passes) * i128::from(self.tickets) + i128::from(self.rest) - part)
    }

    /// Competes no longer with tickets; `remain` is kept.
    pub(super) fn withdraw(&mut self, participation: Participation, remain: Remain) {
        self.participation = participation;
        self.set_passes(remain.0);
    }

    /// Competes with `tickets`, at least 1 (1995, Figure 3: `client_join`, and
    /// Figure 5). Rounding: less than one unit of service.
    pub(super) fn compete(
        &mut self,
        participation: Participation,
        tickets: u32,
        remain: Remain,
        global: &GlobalPass,
    ) {
        self.participation = participation;
        self.tickets = tickets;
        self.set_passes(remain.0 + global.part(tickets));
        self.pass = self.pass.wrapping_add(global.pass);
    }

    /// Divides service into whole passes and the rest.
    fn set_passes(&mut self, service: i128) {
        let longest = i128::from(LONGEST_WAIT);
        let tickets = i128::from(self.tickets);
        let service = service.clamp(-longest * tickets, longest * tickets);
        let (passes, rest) = match i64::try_from(service) {
            Ok(service) => {
                let tickets = i64::from(self.tickets);
                (service.div_euclid(tickets), service.rem_euclid(tickets))
            }
            Err(_) => (
                service.div_euclid(tickets) as i64,
                service.rem_euclid(tickets) as i64,
            ),
        };
        self.pass = passes as u64;
        self.rest = rest as u32;
    }
}
