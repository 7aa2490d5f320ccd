//! Times that a load waited, and their percentiles.

use hdrhistogram::Histogram;
use rustix::time::{ClockId, clock_gettime};
use serde::Serialize;

/// Significant decimal digits of a latency.
const DIGITS: u8 = 3;

pub(crate) const NS_PER_S: u64 = 1_000_000_000;

/// Latencies, in nanoseconds to three digits.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Latencies {
    /// The mean.
    pub mean_ns: f64,
    /// Half of the waits were no longer.
    pub p50_ns: u64,
    /// 90 of 100 were no longer.
    pub p90_ns: u64,
    /// 99 of 100 were no longer.
    pub p99_ns: u64,
    /// 999 of 1,000 were no longer.
    pub p999_ns: u64,
    /// The longest.
    pub max_ns: u64,
}

impl Latencies {
    pub(crate) fn of(histogram: &Histogram<u64>) -> Self {
        Self {
            mean_ns: histogram.mean(),
            p50_ns: histogram.value_at_quantile(0.5),
            p90_ns: histogram.value_at_quantile(0.9),
            p99_ns: histogram.value_at_quantile(0.99),
            p999_ns: histogram.value_at_quantile(0.999),
            max_ns: histogram.max(),
        }
    }
}

/// With room for an hour: a longer latency counts as one.
pub(crate) fn histogram() -> Histogram<u64> {
    let bounds = Histogram::new_with_bounds(1, 3600 * NS_PER_S, DIGITS);
    bounds.expect("the bounds are in order, and there are at most five digits")
}

pub(crate) fn now_ns() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    now.tv_sec as u64 * NS_PER_S + now.tv_nsec as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_those_of_the_recorded_latencies() {
        let mut latencies = histogram();
        for number in 1..=1000 {
            latencies.record(number * 1_000_000).unwrap();
        }
        let found = Latencies::of(&latencies);
        let near = |found: u64, ms: u64| {
            let exact = ms * 1_000_000;
            assert!(found.abs_diff(exact) <= exact / 1000, "{found} for {exact}");
        };
        near(found.p50_ns, 500);
        near(found.p90_ns, 900);
        near(found.p99_ns, 990);
        near(found.p999_ns, 999);
        near(found.max_ns, 1000);
        assert!((found.mean_ns / 1e6 - 500.5).abs() < 0.5, "{found:?}");
    }

    #[test]
    fn a_latency_beyond_the_histogram_counts_as_its_largest() {
        let mut latencies = histogram();
        latencies.saturating_record(u64::MAX);
        assert!(Latencies::of(&latencies).max_ns >= 3600 * NS_PER_S);
    }
}
