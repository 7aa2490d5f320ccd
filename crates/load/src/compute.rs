//! Computing for a given time.

use std::hint::black_box;

use rustix::time::{ClockId, clock_gettime};

use crate::latencies::{NS_PER_S, now_ns};

/// Steps of a trial, which takes some tens of microseconds.
const TRIAL: u64 = 20_000;

/// Trials. The fastest was not slowed down by an interrupt.
const TRIALS: u32 = 20;

/// So many steps of computing.
#[derive(Clone, Copy, Debug)]
pub struct Compute {
    steps: u64,
}

impl Compute {
    /// As many steps as take `ns` of CPU time here and now.
    pub fn calibrate(ns: u64) -> Self {
        if ns == 0 {
            return Self { steps: 0 };
        }
        let trial = Self { steps: TRIAL };
        let fastest = (0..TRIALS).map(|_| {
            let begin_ns = used_ns();
            trial.perform();
            used_ns() - begin_ns
        });
        let trial_ns = fastest.min().unwrap_or(0).max(1);
        let steps = u128::from(ns) * u128::from(TRIAL) / u128::from(trial_ns);
        Self {
            steps: u64::try_from(steps).unwrap_or(u64::MAX),
        }
    }

    #[inline]
    pub fn perform(self) {
        let mut value = self.steps;
        for step in 0..self.steps {
            // Each step waits for the one before.
            value = black_box(value.wrapping_mul(6_364_136_223_846_793_005) ^ step);
        }
        black_box(value);
    }
}

/// CPU time between two looks at a thread's clock: little beside what is measured, and long beside
/// the call.
const LOOK_NS: u64 = 5_000;

/// Works until the thread has used so much CPU time, however fast the CPU is meanwhile.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Worker {
    look: Compute,
}

impl Worker {
    pub(crate) fn calibrate() -> Self {
        let look = Compute::calibrate(LOOK_NS);
        Self { look }
    }

    /// Uses `ns` of CPU time, and calls `note` with the time every few microseconds.
    pub(crate) fn work(self, ns: u64, mut note: impl FnMut(u64)) {
        let until_ns = used_ns() + ns;
        while used_ns() < until_ns {
            self.look.perform();
            note(now_ns());
        }
    }
}

/// CPU time of this thread. (A slow machine may be so busy that no trial is left alone.)
fn used_ns() -> u64 {
    let used = clock_gettime(ClockId::ThreadCPUTime);
    used.tv_sec as u64 * NS_PER_S + used.tv_nsec as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_takes_many_steps_and_no_time_takes_none() {
        assert_eq!(Compute::calibrate(0).steps, 0);
        // On any machine a second of computing is a thousand steps at least.
        assert!(Compute::calibrate(1_000_000_000).steps > 1_000);
    }

    #[test]
    fn work_takes_its_cpu_time_and_notes_the_time() {
        let (begin_ns, before_ns) = (now_ns(), used_ns());
        let mut last_ns = 0;
        Worker::calibrate().work(2_000_000, |now_ns| last_ns = now_ns);
        assert!(used_ns() - before_ns >= 2_000_000);
        assert!((begin_ns..=now_ns()).contains(&last_ns));
    }
}
