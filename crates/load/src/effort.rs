//! What the kernel counted while a load ran.

use std::fs;
use std::ops::{AddAssign, Sub};

use nix::sys::resource::{Usage, UsageWho, getrusage};
use nix::sys::time::TimeValLike as _;
use serde::Serialize;

/// What the kernel counted of a whole load.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Performance {
    /// From the common beginning of all threads to the end of the last.
    pub elapsed_ns: u64,
    /// What all threads of the process used.
    #[serde(flatten)]
    pub effort: Effort,
    /// Times on the run queue, where the kernel counts them.
    pub run_queue: Option<RunQueueTimes>,
    /// Mean length of the run queue, running threads included.
    pub mean_run_queue_length: Option<f64>,
}

impl Performance {
    pub(crate) fn new(elapsed_ns: u64, effort: Effort, run_queue: Option<RunQueueTimes>) -> Self {
        let length = |turns: RunQueueTimes| turns.mean_run_queue_length(elapsed_ns);
        Self {
            elapsed_ns,
            effort,
            run_queue,
            mean_run_queue_length: run_queue.map(length),
        }
    }
}

/// What all threads of the process used together.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Effort {
    /// Context switches because a thread blocked or yielded
    /// (`ru_nvcsw`, getrusage(2)).
    pub voluntary_switches: u64,
    /// Context switches because a thread was preempted (`ru_nivcsw`).
    pub involuntary_switches: u64,
    /// CPU time in user mode.
    pub user_ns: u64,
    /// CPU time in the kernel.
    pub system_ns: u64,
}

impl Effort {
    /// The effort of the process so far.
    pub(crate) fn so_far() -> Self {
        // The call fails for unknown arguments only.
        let usage: Usage = getrusage(UsageWho::RUSAGE_SELF).expect("the process has a usage");
        let count = |number: i64| u64::try_from(number).unwrap_or(0);
        Self {
            voluntary_switches: count(usage.voluntary_context_switches()),
            involuntary_switches: count(usage.involuntary_context_switches()),
            user_ns: count(usage.user_time().num_nanoseconds()),
            system_ns: count(usage.system_time().num_nanoseconds()),
        }
    }
}

impl Sub for Effort {
    type Output = Self;

    fn sub(self, before: Self) -> Self {
        Self {
            voluntary_switches: self.voluntary_switches - before.voluntary_switches,
            involuntary_switches: self.involuntary_switches - before.involuntary_switches,
            // The sum never falls, but the split is an estimate.
            user_ns: self.user_ns.saturating_sub(before.user_ns),
            system_ns: self.system_ns.saturating_sub(before.system_ns),
        }
    }
}

/// Times of threads on the run queue (`/proc/.../schedstat`).
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct RunQueueTimes {
    /// Time on a CPU.
    pub ran_ns: u64,
    /// Time runnable but without a CPU.
    pub waited_ns: u64,
    /// How often a thread got a CPU.
    pub turns: u64,
}

impl RunQueueTimes {
    /// Those of the calling thread; none where the kernel does not count.
    pub(crate) fn of_this_thread() -> Option<Self> {
        Self::parse(&fs::read_to_string("/proc/thread-self/schedstat").ok()?)
    }

    fn parse(line: &str) -> Option<Self> {
        let mut numbers = line.split_whitespace().map(|number| number.parse().ok());
        Some(Self {
            ran_ns: numbers.next()??,
            waited_ns: numbers.next()??,
            turns: numbers.next()??,
        })
    }

    /// Mean wait before a turn.
    pub fn mean_wait_ns(&self) -> f64 {
        self.waited_ns as f64 / self.turns.max(1) as f64
    }

    /// Mean number of threads on the run queue over `elapsed_ns`, running threads
    /// included. The paper counts the same (2001, Table 4) at each call of
    /// `schedule()` and not over time.
    pub fn mean_run_queue_length(&self, elapsed_ns: u64) -> f64 {
        (self.ran_ns + self.waited_ns) as f64 / elapsed_ns.max(1) as f64
    }
}

impl Sub for RunQueueTimes {
    type Output = Self;

    fn sub(self, before: Self) -> Self {
        Self {
            ran_ns: self.ran_ns - before.ran_ns,
            waited_ns: self.waited_ns - before.waited_ns,
            turns: self.turns - before.turns,
        }
    }
}

impl AddAssign for RunQueueTimes {
    fn add_assign(&mut self, other: Self) {
        self.ran_ns += other.ran_ns;
        self.waited_ns += other.waited_ns;
        self.turns += other.turns;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn schedstat_is_read_whole_or_not_at_all() {
        let turns = RunQueueTimes {
            ran_ns: 61_474,
            waited_ns: 159_554,
            turns: 2,
        };
        assert_eq!(RunQueueTimes::parse("61474 159554 2\n"), Some(turns));
        assert_eq!(RunQueueTimes::parse("61474 159554\n"), None);
        assert_eq!(RunQueueTimes::parse("61474 x 2\n"), None);
        assert_eq!(turns.mean_wait_ns(), 79_777.0);
        assert_eq!(turns.mean_run_queue_length(221_028), 1.0);
    }

    #[test]
    fn a_sleep_counts_as_a_voluntary_switch() {
        let before = Effort::so_far();
        std::thread::sleep(std::time::Duration::from_millis(1));
        assert!((Effort::so_far() - before).voluntary_switches > 0);
    }
}
