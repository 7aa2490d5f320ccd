//! Random durations. They are the same on every machine: computed with integers, basic IEEE
//! operations, and transcendental functions in software.

use std::f64::consts::TAU;

use prorata_core::rng::{Rng, below};
use rand_xoshiro::SplitMix64;
use serde::{Deserialize, Serialize};

use crate::file::Time;

/// A source of durations in nanoseconds, ready to draw from.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub enum Draw {
    /// Always the same.
    Fixed(u64),
    /// From the first to the second, both included.
    Uniform(u64, u64),
    /// With this mean.
    Exponential(f64),
    /// With this mean and standard deviation, zero where it would be negative.
    Normal(f64, f64),
    /// The times in order; after the last comes the first again.
    Trace {
        /// At least one.
        times_ns: Box<[u64]>,
        /// The thread's register that counts them.
        register: u8,
    },
}

impl Draw {
    /// The next duration, at most [`Time::MAX`].
    pub fn next(&self, rng: &mut SplitMix64, registers: &mut [u32]) -> u64 {
        match self {
            Draw::Fixed(ns) => *ns,
            Draw::Uniform(low, high) => low + below(rng, high - low + 1),
            Draw::Exponential(mean) => whole_ns(-libm::log(unit(rng)) * mean),
            Draw::Normal(mean, deviation) => {
                let (radius, angle) = (libm::sqrt(-2.0 * libm::log(unit(rng))), TAU * unit(rng));
                whole_ns(mean + deviation * radius * libm::cos(angle))
            }
            Draw::Trace { times_ns, register } => {
                let place = &mut registers[usize::from(*register)];
                let time_ns = times_ns[*place as usize];
                *place = (*place + 1) % times_ns.len() as u32;
                time_ns
            }
        }
    }
}

/// Uniform strictly between 0 and 1, with 53 bits.
fn unit(rng: &mut SplitMix64) -> f64 {
    ((rng.next_u64() >> 11) as f64 + 0.5) / (1u64 << 53) as f64
}

/// Rounds to the nearest nanosecond. The conversion takes negative values to zero.
fn whole_ns(ns: f64) -> u64 {
    ((ns + 0.5) as u64).min(Time::MAX.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stream::{Purpose, small_stream};

    fn draw_all(draw: &Draw, count: usize) -> Vec<u64> {
        let mut rng = small_stream(1995, Purpose::Durations, 0);
        let mut registers = [0];
        (0..count)
            .map(|_| draw.next(&mut rng, &mut registers))
            .collect()
    }

    fn mean_and_deviation(times: &[u64]) -> (f64, f64) {
        let n = times.len() as f64;
        let mean = times.iter().map(|&t| t as f64).sum::<f64>() / n;
        let variance = times
            .iter()
            .map(|&t| (t as f64 - mean).powi(2))
            .sum::<f64>()
            / n;
        (mean, variance.sqrt())
    }

    /// Asserts that mean and deviation are within `within` of the expected ones.
    fn assert_moments(draw: &Draw, mean: f64, deviation: f64, within: f64) {
        let (is_mean, is_deviation) = mean_and_deviation(&draw_all(draw, 100_000));
        assert!(
            (is_mean / mean - 1.0).abs() < within,
            "{draw:?}: mean {is_mean}"
        );
        assert!(
            (is_deviation / deviation - 1.0).abs() < within,
            "{draw:?}: deviation {is_deviation}"
        );
    }

    #[test]
    fn draws_have_the_moments_of_their_distributions() {
        assert_moments(&Draw::Exponential(1e6), 1e6, 1e6, 0.02);
        assert_moments(&Draw::Normal(1e6, 2e5), 1e6, 2e5, 0.02);
        assert_moments(
            &Draw::Uniform(0, 12_000),
            6_000.0,
            12_001.0 / 12f64.sqrt(),
            0.02,
        );
    }

    #[test]
    fn both_ends_of_a_uniform_draw_occur() {
        let times = draw_all(&Draw::Uniform(3, 5), 1000);
        assert!((3..=5).all(|t| times.contains(&t)));
        assert!(times.iter().all(|t| (3..=5).contains(t)));
        assert_eq!(draw_all(&Draw::Uniform(7, 7), 3), [7; 3]);
    }

    #[test]
    fn a_normal_draw_is_never_negative_nor_past_the_longest_time() {
        assert!(draw_all(&Draw::Normal(0.0, 1e6), 1000).contains(&0));
        let longest = Draw::Normal(Time::MAX.0 as f64, 1e18);
        assert!(draw_all(&longest, 1000).iter().all(|&t| t <= Time::MAX.0));
    }

    #[test]
    fn a_trace_begins_again_after_its_last_time() {
        let trace = Draw::Trace {
            times_ns: [1, 2, 3].into(),
            register: 0,
        };
        assert_eq!(draw_all(&trace, 7), [1, 2, 3, 1, 2, 3, 1]);
    }

    #[test]
    fn draws_are_the_same_for_ever() {
        // Computed separately, in Python.
        let exponential = draw_all(&Draw::Exponential(1e9), 3);
        assert_eq!(exponential, [482_810_541, 1_001_526_022, 23_539_266]);
        let normal = draw_all(&Draw::Normal(1e9, 1e9), 3);
        assert_eq!(normal, [339_486_767, 1_012_096_423, 1_434_983_113]);
        let uniform = draw_all(&Draw::Uniform(0, 1_000_000_000), 3);
        assert_eq!(uniform, [617_046_717, 367_318_477, 976_735_622]);
    }
}
