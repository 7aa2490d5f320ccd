//! Where clients stand: passes, strides and remains (1995, Figures 3 and 5).
//!
//! A pass is kept as a whole number and a remainder over the tickets, so that
//! it is exact as long as the tickets stay the same. What the paper calls
//! `remain` is kept in units of service instead of passes, that is multiplied
//! by the tickets: then the scaling of Figure 5 is no operation at all, and
//! "the fraction of the stride remaining" of section 3.1 needs no tickets.

use super::stride_service::{LONGEST_WAIT, STRIDE1};

/// The aggregate of all clients that compete: their tickets, and the pass
/// that they are on average at (1995, 2.2).
#[derive(Clone, Copy, Debug)]
pub(super) struct GlobalPass {
    /// Wraps around.
    pub(super) pass: u64,
    /// Part of a pass, in `1 / tickets`; below `tickets`, or zero.
    rest: u64,
    /// Sum over all who compete: below 2^24 clients of 2^32 tickets.
    tickets: u64,
    /// `STRIDE1 / tickets` and its remainder; zero without tickets.
    stride: u64,
    stride_rest: u64,
}

impl GlobalPass {
    pub(super) const fn starting_at(pass: u64) -> Self {
        Self {
            pass,
            rest: 0,
            tickets: 0,
            stride: 0,
            stride_rest: 0,
        }
    }

    pub(super) const fn tickets(&self) -> u64 {
        self.tickets
    }

    /// Time passes: somebody used `service`. Without tickets it stands still.
    #[inline]
    pub(super) fn advance(&mut self, service: u64) {
        if self.tickets == 0 {
            return;
        }
        if service == STRIDE1 {
            self.pass = self.pass.wrapping_add(self.stride);
            self.rest += self.stride_rest;
            if self.rest >= self.tickets {
                self.rest -= self.tickets;
                self.pass = self.pass.wrapping_add(1);
            }
        } else {
            let dividend = self.rest + service;
            self.pass = self.pass.wrapping_add(dividend / self.tickets);
            self.rest = dividend % self.tickets;
        }
    }

    /// Moves on to `pass` and drops the part of a pass.
    pub(super) fn follow(&mut self, pass: u64) {
        self.pass = pass;
        self.rest = 0;
    }

    /// Tickets come or go. Loses less than one unit of service for all the
    /// clients together.
    pub(super) fn change_tickets(&mut self, from: u32, to: u32) {
        let tickets = self.tickets - u64::from(from) + u64::from(to);
        self.rest = self.part(tickets);
        self.tickets = tickets;
        self.stride = STRIDE1.checked_div(tickets).unwrap_or(0);
        self.stride_rest = STRIDE1.checked_rem(tickets).unwrap_or(0);
    }

    /// Part of a pass in `1 / tickets` of other tickets, rounded down.
    fn part(&self, tickets: u64) -> u64 {
        if self.rest == 0 {
            return 0;
        }
        (u128::from(self.rest) * u128::from(tickets) / u128::from(self.tickets)) as u64
    }
}

/// Service that a client is still to wait for until its next turn: the
/// paper's `remain` times the tickets. [`STRIDE1`] is a whole stride; negative
/// for a client that is overdue.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Remain(pub(super) i128);

/// What a client does in the competition.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Standing {
    /// Never joined, or forgotten.
    Unknown,
    /// Left; its remain is remembered.
    Left,
    /// Joined, but without tickets; its remain stands still (1995, 3.1).
    Ticketless,
    /// Joined with tickets.
    Competing,
}

/// A client's place: 32 bytes, two to a cache line.
#[derive(Clone, Debug)]
pub(super) struct Place {
    /// The next turn's pass, which wraps around, while competing; else the
    /// whole passes that remain (an `i64`).
    pub(super) pass: u64,
    /// `STRIDE1 / tickets`.
    stride: u64,
    /// `STRIDE1 % tickets`.
    stride_rest: u32,
    /// The tickets while competing, the last ones above zero else.
    tickets: u32,
    /// Part of a pass, in `1 / tickets`; below `tickets`.
    rest: u32,
    pub(super) standing: Standing,
    /// Whether it runs; only while joined.
    pub(super) taken: bool,
}

impl Place {
    pub(super) const UNKNOWN: Self = Self {
        pass: 0,
        stride: STRIDE1,
        stride_rest: 0,
        tickets: 1,
        rest: 0,
        standing: Standing::Unknown,
        taken: false,
    };

    pub(super) const fn joined(&self) -> bool {
        matches!(self.standing, Standing::Ticketless | Standing::Competing)
    }

    /// Whether it waits in the queue: it can be picked.
    pub(super) const fn queued(&self) -> bool {
        matches!(self.standing, Standing::Competing) && !self.taken
    }

    /// Tickets that count.
    pub(super) const fn tickets(&self) -> u32 {
        match self.standing {
            Standing::Competing => self.tickets,
            _ => 0,
        }
    }

    /// Puts off the next turn by `service`; also where the place is a remain,
    /// which needs no other arithmetic (1995, Figure 3: `allocate`).
    #[inline]
    pub(super) fn advance(&mut self, service: u64) {
        let whole = if service == STRIDE1 {
            let rest = u64::from(self.rest) + u64::from(self.stride_rest);
            let tickets = u64::from(self.tickets);
            let carry = rest >= tickets;
            self.rest = (if carry { rest - tickets } else { rest }) as u32;
            self.stride + u64::from(carry)
        } else {
            let dividend = u64::from(self.rest) + service;
            self.rest = (dividend % u64::from(self.tickets)) as u32;
            dividend / u64::from(self.tickets)
        };
        self.pass = self.pass.wrapping_add(whole);
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
        let (passes, part) = match self.standing {
            Standing::Competing => (self.lead(global), global.part(self.tickets.into())),
            _ => (self.pass as i64, 0),
        };
        Remain(
            i128::from(passes) * i128::from(self.tickets) + i128::from(self.rest)
                - i128::from(part),
        )
    }

    /// Goes off with what remains.
    pub(super) fn withdraw(&mut self, standing: Standing, remain: Remain) {
        self.standing = standing;
        self.set_passes(remain.0);
    }

    /// Competes with `tickets`, at least 1 (1995, Figure 3: `client_join`, and
    /// Figure 5). Rounding: less than one unit of service.
    pub(super) fn compete(&mut self, tickets: u32, remain: Remain, global: &GlobalPass) {
        self.standing = Standing::Competing;
        self.tickets = tickets;
        self.stride = STRIDE1 / u64::from(tickets);
        self.stride_rest = (STRIDE1 % u64::from(tickets)) as u32;
        self.set_passes(remain.0 + i128::from(global.part(tickets.into())));
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
