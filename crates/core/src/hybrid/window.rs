//! CPU time that a client received and deserved in the last ten seconds (1999, 3.3
//! and 4.1).
//!
//! The window is ten slots of a second, the present one included, so it reaches back
//! nine to ten seconds. A client deserves time while it sleeps, too. After a sleep of
//! ten seconds nothing of its use is left in the window, as in the paper.

use super::boost::{FRACTION_ONE, boost, fraction};
use super::due::DueRate;

/// Slots of the window.
pub const SLOTS: usize = 10;
/// Length of a slot.
pub const SLOT_NS: u64 = 1_000_000_000;
/// A client that is younger has no boost: each short-lived program would have the
/// greatest.
pub const YOUTH_NS: u64 = SLOT_NS;

/// A client's account of the last ten seconds.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct UseWindow {
    /// By the second modulo [`SLOTS`].
    received_ns: [u64; SLOTS],
    deserved_ns: [u64; SLOTS],
    /// When the client first competed.
    since_ns: u64,
    /// Up to when the account is worked out.
    until_ns: u64,
}

impl UseWindow {
    /// Of a client that competes for the first time.
    pub fn new(now_ns: u64) -> Self {
        Self {
            received_ns: [0; SLOTS],
            deserved_ns: [0; SLOTS],
            since_ns: now_ns,
            until_ns: now_ns,
        }
    }

    /// Works the account out up to `now_ns`: the client was due so much since the last
    /// time. Returns the time that has passed, nothing if `now_ns` is not later.
    ///
    /// Cost: O(seconds that passed), at most [`SLOTS`].
    pub fn advance(&mut self, now_ns: u64, rate: DueRate) -> u64 {
        let passed_ns = now_ns.saturating_sub(self.until_ns);
        if passed_ns == 0 {
            return 0;
        }
        let last = now_ns / SLOT_NS;
        let mut slot = self.until_ns / SLOT_NS;
        if slot + (SLOTS as u64) <= last {
            // All that is known is out of the window.
            self.received_ns = [0; SLOTS];
            self.deserved_ns = [0; SLOTS];
            slot = last + 1 - SLOTS as u64;
            self.until_ns = slot * SLOT_NS;
        }
        while slot < last {
            let end_ns = (slot + 1) * SLOT_NS;
            self.deserved_ns[place(slot)] += rate.due_ns(end_ns - self.until_ns);
            self.until_ns = end_ns;
            slot += 1;
            self.received_ns[place(slot)] = 0;
            self.deserved_ns[place(slot)] = 0;
        }
        self.deserved_ns[place(slot)] += rate.due_ns(now_ns - self.until_ns);
        self.until_ns = now_ns;
        passed_ns
    }

    /// The client used CPU time, up to the moment that the account is worked out to.
    pub fn receive(&mut self, used_ns: u64) {
        self.received_ns[place(self.until_ns / SLOT_NS)] += used_ns;
    }

    /// CPU time received in the window.
    pub fn received_ns(&self) -> u64 {
        self.received_ns.iter().sum()
    }

    /// CPU time deserved in the window.
    pub fn deserved_ns(&self) -> u64 {
        self.deserved_ns.iter().sum()
    }

    /// The fraction `f` of what was deserved that was received, see [`fraction`]; one for
    /// a client younger than [`YOUTH_NS`].
    pub fn fraction(&self) -> u32 {
        match self.until_ns - self.since_ns < YOUTH_NS {
            true => FRACTION_ONE,
            false => fraction(self.received_ns(), self.deserved_ns()),
        }
    }

    /// The boost of a client that received less than it deserved, see [`boost`].
    pub fn boost(&self) -> Option<u32> {
        let is_below = self.fraction() < FRACTION_ONE;
        is_below.then(|| boost(self.received_ns(), self.deserved_ns()))
    }
}

fn place(slot: u64) -> usize {
    (slot % SLOTS as u64) as usize
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hybrid::boost::MAX_BOOST;
    use crate::hybrid::due::due_rate;
    use alloc::vec::Vec;
    use proptest::prelude::*;

    const HALF: (u32, u64) = (1, 2);

    fn rate((value, total): (u32, u64)) -> DueRate {
        due_rate(value, total, 1, 1)
    }

    #[test]
    fn a_client_that_uses_what_it_is_due_has_a_fraction_of_one() {
        let mut window = UseWindow::new(0);
        for ms in 1..=60_000 {
            window.advance(ms * 1_000_000, rate(HALF));
            window.receive(500_000);
        }
        assert_eq!(window.fraction(), FRACTION_ONE);
        // The use that ends with a slot counts in the next.
        assert_eq!(window.received_ns(), window.deserved_ns() + 500_000);
    }

    #[test]
    fn the_window_forgets_after_ten_seconds() {
        let mut window = UseWindow::new(0);
        window.advance(SLOT_NS - 1, rate(HALF));
        window.receive(400_000_000);
        window.advance(10 * SLOT_NS - 1, rate(HALF));
        assert_eq!(window.received_ns(), 400_000_000);
        window.advance(10 * SLOT_NS, rate(HALF));
        assert_eq!(window.received_ns(), 0);
        assert_eq!(
            window.deserved_ns(),
            9 * SLOT_NS / 2 - 1,
            "each piece rounds down"
        );
    }

    #[test]
    fn a_client_deserves_time_from_its_start() {
        let mut window = UseWindow::new(5 * SLOT_NS);
        window.advance(5 * SLOT_NS + YOUTH_NS - 1, rate(HALF));
        assert_eq!(window.fraction(), FRACTION_ONE, "too young for a boost");
        assert_eq!(window.boost(), None);
        window.advance(5 * SLOT_NS + YOUTH_NS, rate(HALF));
        assert_eq!(window.fraction(), 0);
        assert_eq!(window.boost(), Some(MAX_BOOST));
        assert_eq!(
            window.deserved_ns(),
            SLOT_NS / 2 - 1,
            "each piece rounds down"
        );
    }

    #[test]
    fn a_time_that_is_not_later_changes_nothing() {
        let mut window = UseWindow::new(SLOT_NS);
        window.advance(2 * SLOT_NS, rate(HALF));
        let before = window.clone();
        assert_eq!(window.advance(SLOT_NS, rate(HALF)), 0);
        assert_eq!(window.advance(2 * SLOT_NS, rate(HALF)), 0);
        assert_eq!(window, before);
    }

    /// All events of a history, to add up afterwards.
    struct Naive(Vec<(u64, u64, u64, u64)>);

    impl Naive {
        /// Received and deserved in the slots of the window that ends at `now_ns`, the
        /// latter within a nanosecond a piece.
        fn sums(&self, now_ns: u64) -> (u64, u64) {
            let start_ns = (now_ns / SLOT_NS).saturating_sub(SLOTS as u64 - 1) * SLOT_NS;
            let mut sums = (0, 0);
            for &(from_ns, to_ns, parts, used_ns) in &self.0 {
                if to_ns >= start_ns {
                    sums.0 += used_ns;
                    let elapsed_ns = to_ns - from_ns.max(start_ns);
                    sums.1 += ((u128::from(elapsed_ns) * u128::from(parts)) >> 30) as u64;
                }
            }
            sums
        }
    }

    proptest! {
        #[test]
        fn the_window_is_the_sum_of_its_slots(
            history in prop::collection::vec(
                (0..3 * SLOT_NS, 1u32..=100, 0u64..1_000_000_000, 0..40u8),
                1..60,
            ),
        ) {
            let mut window = UseWindow::new(0);
            let mut naive = Naive(Vec::new());
            let mut now_ns = 0;
            for (passed_ns, value, used_ns, long) in history {
                let from_ns = now_ns;
                now_ns += passed_ns + u64::from(long / 39) * 20 * SLOT_NS;
                let rate = rate((value, 100));
                prop_assert_eq!(window.advance(now_ns, rate), now_ns - from_ns);
                window.receive(used_ns);
                naive.0.push((from_ns, now_ns, rate.parts(), used_ns));
                let (received_ns, deserved_ns) = naive.sums(now_ns);
                prop_assert_eq!(window.received_ns(), received_ns);
                let lost_ns = deserved_ns - window.deserved_ns();
                prop_assert!(lost_ns <= (naive.0.len() + SLOTS) as u64, "{}", lost_ns);
            }
        }
    }
}
