//! Time that passes before the clients that used it are charged.
//!
//! A turn is charged as a whole when it ends. A client that joins in the middle of the turn must
//! not share what the turn used before, so time has to pass for that first (1995, Figure 3:
//! `global_pass_update`). Then the charge counts only what remains.

use super::stride_service::{MAX_SERVICE, PartUnit, STRIDE1};

/// Service for which time has passed, but no client has been charged.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct Ahead(u64);

impl Ahead {
    /// Clients have used `uncharged` of a `quantum` for which they are not charged. Returns the
    /// service for which time has to pass now.
    pub(super) fn pass(&mut self, uncharged: u64, quantum: u64) -> u64 {
        let quantum = quantum.max(1);
        // In whole quanta and the rest, which 64 bits suffice to divide.
        let quanta = (uncharged / quantum).min(MAX_SERVICE / STRIDE1);
        let part = PartUnit::of(quantum).service(uncharged % quantum, quantum);
        let service = (quanta * STRIDE1 + part).min(MAX_SERVICE);
        let passes = service.saturating_sub(self.0);
        self.0 += passes;
        passes
    }

    /// A client is charged for `service`. Returns the service for which time has to pass now.
    #[inline]
    pub(super) fn charge(&mut self, service: u64) -> u64 {
        match self.0 {
            0 => service,
            _ => self.charge_less(service),
        }
    }

    #[cold]
    fn charge_less(&mut self, service: u64) -> u64 {
        let passed = self.0.min(service);
        self.0 -= passed;
        service - passed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_passes_once_for_each_use() {
        let mut ahead = Ahead::default();
        assert_eq!(ahead.charge(STRIDE1), STRIDE1, "nothing has passed before");
        assert_eq!(ahead.pass(3, 4), STRIDE1 * 3 / 4);
        assert_eq!(ahead.pass(3, 4), 0, "nothing was used in between");
        assert_eq!(ahead.pass(5, 4), STRIDE1 / 2);
        assert_eq!(ahead.pass(2, 4), 0, "time never goes back");
        assert_eq!(ahead.charge(STRIDE1), 0);
        assert_eq!(ahead.charge(STRIDE1), STRIDE1 * 3 / 4);
        assert_eq!(ahead.charge(STRIDE1), STRIDE1);
    }

    #[test]
    fn time_passes_for_the_largest_service_at_most() {
        let mut ahead = Ahead::default();
        assert_eq!(ahead.pass(u64::MAX, 1), MAX_SERVICE);
        assert_eq!(ahead.pass(u64::MAX, 0), 0);
        assert_eq!(ahead.charge(MAX_SERVICE), 0);
        assert_eq!(ahead.charge(1), 1);
    }
}
