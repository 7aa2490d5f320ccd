//! The time in which a load measures. Loads that run beside one another share it, so that all of
//! them measure the same time, and none while another one still starts.

use rustix::thread::{ClockId, clock_nanosleep_absolute};
use rustix::time::Timespec;
use serde::Serialize;

use crate::LoadError;
use crate::latencies::NS_PER_S;

/// Longest time until the end of a window.
const LONGEST_NS: u64 = 86_400 * NS_PER_S;

/// A time on the monotonic clock.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Window {
    /// Its first moment.
    pub begin_ns: u64,
    /// The first moment after it.
    pub end_ns: u64,
}

impl Window {
    /// Refuses an empty window, one that is over at `now_ns`, and one that ends too late.
    pub(crate) fn check(self, now_ns: u64) -> Result<(), LoadError> {
        let Self { begin_ns, end_ns } = self;
        if begin_ns >= end_ns || end_ns.saturating_sub(now_ns) > LONGEST_NS {
            return Err(LoadError::Window { begin_ns, end_ns });
        }
        match now_ns < end_ns {
            true => Ok(()),
            false => Err(LoadError::Over { end_ns }),
        }
    }

    /// Whether a time is in the window.
    pub fn contains(self, at_ns: u64) -> bool {
        (self.begin_ns..self.end_ns).contains(&at_ns)
    }
}

/// Sleeps until a time on the monotonic clock.
pub(crate) fn sleep_until(due_ns: u64) -> std::io::Result<()> {
    let due = Timespec {
        tv_sec: (due_ns / NS_PER_S) as i64,
        tv_nsec: (due_ns % NS_PER_S) as _,
    };
    loop {
        match clock_nanosleep_absolute(ClockId::Monotonic, &due) {
            Err(rustix::io::Errno::INTR) => {}
            ended => return Ok(ended?),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_is_ahead_and_not_too_long() {
        let of = |begin_ns, end_ns| Window { begin_ns, end_ns };
        assert!(of(5, 20).check(10).is_ok(), "it has begun");
        assert!(of(30, 40).check(10).is_ok());
        for window in [of(20, 20), of(20, 15), of(20, u64::MAX)] {
            let refused = window.check(10);
            assert!(
                matches!(refused, Err(LoadError::Window { .. })),
                "{window:?}"
            );
        }
        assert!(matches!(
            of(5, 10).check(10),
            Err(LoadError::Over { end_ns: 10 })
        ));
        let window = of(5, 20);
        assert_eq!(
            [4, 5, 19, 20].map(|at| window.contains(at)),
            [false, true, true, false]
        );
    }
}
