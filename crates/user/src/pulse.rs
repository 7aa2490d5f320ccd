//! Whether the guardian still works. It wakes four times a second and uses some CPU time then.

use crate::procfs::Stat;
use crate::time::SECOND_NS;

/// A guardian that sleeps for so long without using any CPU time has hung. One that waits for a
/// CPU has not, however busy the machine.
const LONGEST_SLEEP_NS: u64 = 10 * SECOND_NS;

/// What looks at a guardian have shown.
#[derive(Debug)]
pub(crate) struct Pulse {
    cpu_ns: u64,
    /// When it last was found to have used CPU time, or to wait for a CPU or a disk, on the
    /// monotonic clock.
    alive_ns: u64,
    /// It was stopped at the last look.
    stopped: bool,
}

impl Pulse {
    pub(crate) fn new(now_ns: u64) -> Self {
        Self {
            cpu_ns: 0,
            alive_ns: now_ns,
            stopped: false,
        }
    }

    /// Takes note of a look. Returns whether it has hung: it is stopped at two looks, or has slept
    /// on for long.
    pub(crate) fn has_stopped(&mut self, now_ns: u64, stat: &Stat, cpu_ns: u64) -> bool {
        if cpu_ns > self.cpu_ns || !stat.is_asleep() {
            self.alive_ns = now_ns;
            self.cpu_ns = cpu_ns;
        }
        let was_stopped = std::mem::replace(&mut self.stopped, stat.is_stopped());
        was_stopped && self.stopped || now_ns - self.alive_ns > LONGEST_SLEEP_NS
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// After how many looks, one each second, a guardian counts as hung. A look shows its state and
    /// its CPU time.
    fn hangs_after(look: impl Fn(u64) -> (u8, u64)) -> Option<u64> {
        let mut pulse = Pulse::new(0);
        (1..=100).find(|&second| {
            let (state, cpu_ns) = look(second);
            let stat = Stat::in_state(state);
            pulse.has_stopped(second * SECOND_NS, &stat, cpu_ns)
        })
    }

    #[test]
    fn a_guardian_that_wakes_or_waits_for_a_cpu_or_a_disk_works() {
        assert_eq!(hangs_after(|second| (b'S', second)), None);
        assert_eq!(hangs_after(|second| (b'S', second / 10)), None);
        assert_eq!(hangs_after(|_| (b'R', 5)), None);
        assert_eq!(hangs_after(|_| (b'D', 5)), None);
    }

    #[test]
    fn a_guardian_that_sleeps_on_has_hung() {
        assert_eq!(hangs_after(|_| (b'S', 5)), Some(12));
        assert_eq!(hangs_after(|second| (b'S', second / 20)), Some(11));
    }

    #[test]
    fn a_guardian_that_stays_stopped_has_hung() {
        assert_eq!(hangs_after(|_| (b'T', 5)), Some(2));
        let continued = |second| (if second % 2 == 0 { b'T' } else { b'S' }, second);
        assert_eq!(hangs_after(continued), None);
    }
}
