//! CPU time of children that have ended.
//!
//! The clock of a living process is exact. The time between its last sample and its end shows
//! only in its parent's sum over waited children, rounded down to clock ticks. That sum holds
//! both the time that the child was charged for while it lived and the rest. Children that no
//! sample showed appear only there.

use crate::procfs::TICK_NS;

/// By how much the sum may lag behind the truth: user and system time are
/// each rounded down.
const ROUNDING_NS: u64 = 2 * TICK_NS;

/// Account of one process's ended children.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct Waited {
    /// The sum when the account was opened.
    opening_ns: u64,
    /// Time in the sum that was charged while the children lived.
    charged_alive_ns: u64,
    /// Further time in the sum that was charged when it appeared there. Never
    /// falls.
    charged_after_ns: u64,
    /// The sum at the last reading.
    last_ns: u64,
    /// The next growth is not charged.
    forgives: bool,
}

impl Waited {
    /// Opens an account. Time that the sum holds by now is not charged.
    pub(crate) fn since(opening_ns: u64) -> Self {
        Self {
            opening_ns,
            last_ns: opening_ns,
            ..Self::default()
        }
    }

    /// Whether children have been waited for since the last reading, as far as the sum shows.
    pub(crate) fn has_grown(&self, sum_ns: u64) -> bool {
        sum_ns > self.last_ns
    }

    /// A child is gone whose use is not known and not to be charged. It is in the next growth.
    pub(crate) fn forgive(&mut self) {
        self.forgives = true;
    }

    /// A child is gone, of which `life_ns` are accounted for.
    pub(crate) fn child_gone(&mut self, life_ns: u64) {
        self.charged_alive_ns += life_ns;
    }

    /// Takes a reading of the sum, which must be newer than all calls of
    /// [`child_gone`](Self::child_gone). Returns time in it that is still to be charged.
    pub(crate) fn read(&mut self, sum_ns: u64) -> u64 {
        let grown_ns = sum_ns.saturating_sub(self.opening_ns);
        // Children without a wait never get into the sum. Their charged time must not hide time
        // of others.
        self.charged_alive_ns = self.charged_alive_ns.min(grown_ns + ROUNDING_NS);
        let unseen_ns = grown_ns.saturating_sub(self.charged_alive_ns);
        let new_ns = unseen_ns.saturating_sub(self.charged_after_ns);
        self.charged_after_ns += new_ns;
        self.last_ns = sum_ns.max(self.last_ns);
        match std::mem::take(&mut self.forgives) {
            true => 0,
            false => new_ns,
        }
    }

    /// All time in the sum that has been accounted for.
    pub(crate) fn accounted_ns(&self) -> u64 {
        self.opening_ns + self.charged_alive_ns + self.charged_after_ns
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As the kernel rounds.
    fn rounded(true_ns: u64) -> u64 {
        true_ns / TICK_NS * TICK_NS
    }

    #[test]
    fn unseen_children_are_charged_once_and_within_rounding() {
        let mut waited = Waited::since(50 * TICK_NS);
        let (mut truth_ns, mut charged_ns) = (50 * TICK_NS, 0);
        for child_ns in (0..1000).map(|i| 700_000 + i * 12_345) {
            truth_ns += child_ns;
            charged_ns += waited.read(rounded(truth_ns));
        }
        let used_ns = truth_ns - 50 * TICK_NS;
        assert!(charged_ns <= used_ns && used_ns - charged_ns < ROUNDING_NS);
    }

    #[test]
    fn time_charged_alive_is_not_charged_again() {
        let mut waited = Waited::since(0);
        let (mut truth_ns, mut charged_ns) = (0, 0);
        for child in 0..1000u64 {
            // Two thirds of each child are seen while it lives.
            let child_ns = 30_000_000 + child * 1001;
            charged_ns += child_ns * 2 / 3;
            truth_ns += child_ns;
            waited.child_gone(child_ns * 2 / 3);
            charged_ns += waited.read(rounded(truth_ns));
            assert!(
                charged_ns <= truth_ns && truth_ns - charged_ns < ROUNDING_NS,
                "{child}"
            );
        }
    }

    #[test]
    fn growth_shows_once_and_a_stranger_in_it_is_not_charged() {
        let mut waited = Waited::since(7 * TICK_NS);
        assert!(!waited.has_grown(7 * TICK_NS) && waited.has_grown(8 * TICK_NS));
        assert_eq!(waited.read(8 * TICK_NS), TICK_NS);
        assert!(!waited.has_grown(8 * TICK_NS));
        waited.forgive();
        assert_eq!(waited.read(100 * TICK_NS), 0);
        assert_eq!(waited.read(103 * TICK_NS), 3 * TICK_NS);
        assert_eq!(waited.accounted_ns(), 103 * TICK_NS);
    }

    #[test]
    fn children_without_a_wait_do_not_hide_others() {
        let mut waited = Waited::since(0);
        for _ in 0..100 {
            waited.child_gone(40 * TICK_NS);
            assert_eq!(waited.read(0), 0);
        }
        let late_ns = waited.read(100 * TICK_NS);
        assert!(late_ns >= 100 * TICK_NS - ROUNDING_NS, "{late_ns}");
    }
}
