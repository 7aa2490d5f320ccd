//! Computing for a given time.

use std::hint::black_box;
use std::time::Instant;

/// Steps of a trial, which takes some tens of microseconds.
const TRIAL: u64 = 20_000;

/// Trials. The fastest was not interrupted.
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
            let begin = Instant::now();
            trial.perform();
            begin.elapsed().as_nanos()
        });
        let trial_ns = fastest.min().unwrap_or(0).max(1);
        let steps = u128::from(ns) * u128::from(TRIAL) / trial_ns;
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_takes_many_steps_and_no_time_takes_none() {
        assert_eq!(Compute::calibrate(0).steps, 0);
        // On any machine a second of computing is a thousand steps at least.
        assert!(Compute::calibrate(1_000_000_000).steps > 1_000);
    }
}
