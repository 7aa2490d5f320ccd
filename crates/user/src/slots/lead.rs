//! How long before a boundary a keeper wakes.
//!
//! A thread runs some time after its timer was due, and the changes take some more. A keeper that
//! wakes that much earlier is done at the boundary. Meanwhile it has the CPU, so no schedulee runs in
//! another one's slot: the one that ends loses this time, at most a fiftieth of a slot.

use crate::time::monotonic_ns;

const LONGEST_NS: u64 = 60_000;
/// Of a slot.
const MOST_PART: u64 = 50;

/// How much longer or shorter the lead gets by a boundary that was missed or met: half of them are
/// missed, most by little. The schedulee that ends loses more by a longer lead.
const STEP_NS: u64 = 1_000;

#[derive(Clone, Copy, Debug)]
pub(super) struct Lead {
    ns: u64,
    longest_ns: u64,
}

impl Lead {
    pub(super) const NONE: Lead = Lead {
        ns: 0,
        longest_ns: 0,
    };

    /// In slots of this length.
    pub(super) fn new(slot_ns: u64) -> Self {
        let longest_ns = LONGEST_NS.min(slot_ns / MOST_PART);
        Self {
            ns: longest_ns / 2,
            longest_ns,
        }
    }

    pub(super) fn ns(&self) -> u64 {
        self.ns
    }

    /// All is done for this boundary: waits for it, and learns from the time that is left.
    pub(super) fn await_boundary(&mut self, begin_ns: u64) {
        let done_ns = monotonic_ns();
        self.learn(done_ns > begin_ns);
        if done_ns + self.longest_ns < begin_ns {
            return;
        }
        while monotonic_ns() < begin_ns {
            std::hint::spin_loop();
        }
    }

    fn learn(&mut self, was_late: bool) {
        self.ns = match was_late {
            true => (self.ns + STEP_NS).min(self.longest_ns),
            false => self.ns.saturating_sub(STEP_NS),
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_of_the_boundaries_are_met() {
        let mut lead = Lead::new(100_000_000);
        let (mut late, mut state) = (0, 1u64);
        for boundary in 0..10_000 {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            // It takes 10 to 50 us.
            let takes_ns = 10_000 + (state >> 33) % 40_000;
            let was_late = takes_ns > lead.ns();
            late += u32::from(was_late && boundary >= 1_000);
            lead.learn(was_late);
        }
        assert!((4_400..4_600).contains(&late), "{late}");
    }

    #[test]
    fn a_short_slot_loses_a_fiftieth_at_most() {
        let mut lead = Lead::new(1_000_000);
        (0..100).for_each(|_| lead.learn(true));
        assert_eq!(lead.ns(), 20_000);
        (0..100).for_each(|_| lead.learn(false));
        assert_eq!(lead.ns(), 0);
    }
}
