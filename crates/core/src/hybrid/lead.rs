//! How far a client's use is ahead of what it is due: a leaky bucket.
//!
//! The lead rises by what the client uses, and drains at its due rate, awake or asleep. So
//! a client that is early only while its lead is within a bound `A` receives, over any
//! interval, at most its due, `A` and one quantum.

use super::due::DueRate;
use super::window::{SLOT_NS, SLOTS};

/// The bound of an early client's lead: the paper's quantum, and below what people
/// discern (1999, 5.2).
pub const LEAD_BOUND_NS: u64 = 100_000_000;
/// A lead counts for at most so much, ten seconds of a CPU: a client that had a CPU of
/// which no other client wanted a part is not kept back for longer than the window.
pub const MAX_LEAD_NS: u64 = SLOTS as u64 * SLOT_NS;

/// The bound under a quantum: [`LEAD_BOUND_NS`], or the quantum if that is longer.
pub fn lead_bound_ns(quantum_ns: u64) -> u64 {
    LEAD_BOUND_NS.max(quantum_ns)
}

/// CPU time that a client used beyond what it was due.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Debug)]
pub struct Lead(u64);

impl Lead {
    /// In nanoseconds, at most [`MAX_LEAD_NS`].
    pub fn ns(self) -> u64 {
        self.0
    }

    /// Time passes. A lead never falls below zero: time that a client leaves unused is not
    /// saved up.
    pub fn drain(&mut self, elapsed_ns: u64, rate: DueRate) {
        self.0 = self.0.saturating_sub(rate.due_ns(elapsed_ns));
    }

    /// The client used CPU time.
    pub fn rise(&mut self, used_ns: u64) {
        self.0 = self.0.saturating_add(used_ns).min(MAX_LEAD_NS);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hybrid::due::due_rate;
    use alloc::vec::Vec;
    use proptest::prelude::*;

    #[test]
    fn use_at_the_due_rate_leaves_no_lead() {
        let mut lead = Lead::default();
        for _ in 0..1_000 {
            lead.rise(10);
            lead.drain(20, due_rate(1, 2, 1, 1));
        }
        assert_eq!(lead, Lead(0));
    }

    #[test]
    fn a_lead_stays_within_its_limits() {
        let mut lead = Lead::default();
        lead.rise(MAX_LEAD_NS - 1);
        lead.rise(1);
        assert_eq!(lead.ns(), MAX_LEAD_NS);
        lead.rise(1);
        assert_eq!(lead.ns(), MAX_LEAD_NS);
        lead.drain(u64::MAX, due_rate(1, 1, 1, 1));
        assert_eq!(lead.ns(), 0);
        lead.drain(1, due_rate(1, 1, 1, 1));
        assert_eq!(lead.ns(), 0);
    }

    #[test]
    fn a_long_quantum_is_the_bound() {
        assert_eq!(lead_bound_ns(20_000_000), LEAD_BOUND_NS);
        assert_eq!(lead_bound_ns(LEAD_BOUND_NS), LEAD_BOUND_NS);
        assert_eq!(lead_bound_ns(LEAD_BOUND_NS + 1), LEAD_BOUND_NS + 1);
    }

    proptest! {
        /// The guarantee of this file, over every interval of a random history.
        #[test]
        fn early_use_is_bounded_by_due_and_bound_and_quantum(
            history in prop::collection::vec((1u64..50_000_000, 0..300_000_000u64), 1..80),
            value in 1u32..=9,
        ) {
            let (rate, quantum_ns) = (due_rate(value, 10, 1, 1), 20_000_000);
            let mut lead = Lead::default();
            // Of each step: use, and what was due.
            let mut steps = Vec::new();
            for (used_ns, slept_ns) in history {
                let early = lead.ns() <= lead_bound_ns(quantum_ns);
                let used_ns = if early { used_ns.min(quantum_ns) } else { 0 };
                lead.rise(used_ns);
                lead.drain(used_ns + slept_ns, rate);
                steps.push((used_ns, rate.due_ns(used_ns + slept_ns)));
            }
            for from in 0..steps.len() {
                let (mut received_ns, mut due_ns) = (0, 0);
                for (used_ns, step_due_ns) in &steps[from..] {
                    received_ns += used_ns;
                    prop_assert!(received_ns <= due_ns + LEAD_BOUND_NS + quantum_ns);
                    due_ns += step_due_ns;
                }
            }
        }
    }
}
