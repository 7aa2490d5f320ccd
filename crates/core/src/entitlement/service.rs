//! CPU time due to each ticket of a pool.

/// Fractional bits of the service that one ticket is due: enough that what a
/// reading loses, multiplied by 2^32 tickets, is below 2^-24 ns, and few
/// enough that 10^5 years of CPU time fit.
pub(super) const SERVICE_BITS: u32 = 56;

/// CPU time due to each ticket of the clients that compete, since the start.
///
/// Like the global pass (1995, 2.2) it advances with every charge by what was
/// used over the sum of all tickets, so that a client's ideal share is found
/// from two readings, without a visit to any other client. The division is
/// made once a change of that sum, not once a charge.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct Service {
    /// In nanoseconds with [`SERVICE_BITS`] fractional bits.
    per_ticket: u128,
    /// Charged since the sum of the tickets changed last, and so not yet in
    /// `per_ticket`. Below zero where time passed before clients were charged.
    undivided_ns: i64,
}

/// A reading of [`Service`], in its units.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct Reading(pub(super) u128);

impl Service {
    /// Accounts for `used_ns` dispensed among all competing clients.
    pub(super) fn dispense(&mut self, used_ns: u64) {
        self.undivided_ns += used_ns as i64;
    }

    /// CPU time that each ticket is due now. Time dispensed while no client
    /// holds tickets is due to none.
    pub(super) fn read(&self, total_tickets: u64) -> Reading {
        self.after(self.undivided_ns, total_tickets)
    }

    /// To be called before the sum of the tickets changes.
    pub(super) fn settle(&mut self, total_tickets: u64) -> Reading {
        self.pass_time(0, total_tickets);
        Reading(self.per_ticket)
    }

    /// Clients have used `uncharged_ns` in all for which they are not charged: it is dispensed
    /// now, and the charges to come do not dispense it again. Returns whether it is more than
    /// was dispensed before.
    pub(super) fn pass_time(&mut self, uncharged_ns: u64, total_tickets: u64) -> bool {
        let dispensed_ns = self.undivided_ns + uncharged_ns as i64;
        let passes = dispensed_ns > 0;
        if passes {
            self.per_ticket = self.after(dispensed_ns, total_tickets).0;
            self.undivided_ns = -(uncharged_ns as i64);
        }
        passes
    }

    fn after(&self, dispensed_ns: i64, total_tickets: u64) -> Reading {
        let dispensed = (dispensed_ns.max(0) as u128) << SERVICE_BITS;
        let due = dispensed.checked_div(total_tickets.into());
        Reading(self.per_ticket + due.unwrap_or(0))
    }
}
