//! Wake: a thread that is due at fixed times, and the time that passes until it runs.
//!
//! The loop is open: each latency counts from the time at which the wake was due, even if the
//! work of an earlier wake ended later. So a long wait delays, and counts for, all wakes that
//! were due meanwhile. (A loop that slept after its work would leave those out.)

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::{io, num::NonZeroU64};

use hdrhistogram::Histogram;
use rustix::thread::{ClockId, clock_nanosleep_absolute, set_current_timer_slack};
use rustix::time::{Timespec, clock_gettime};
use serde::Serialize;

use crate::compute::Compute;
use crate::crew::{self, Job, Running};
use crate::limits::in_range;
use crate::{LoadError, Performance, Watch};

/// Significant decimal digits of a latency.
const DIGITS: u8 = 3;

const NS_PER_S: u64 = 1_000_000_000;

/// The size of the load.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct WakeSettings {
    /// Time between two wakes, 1 us to 10 s.
    pub period_ns: u64,
    /// Computing after each wake, 0 to 1 s.
    pub work_ns: u64,
    /// Wakes, 1 to 10,000,000.
    pub wakes: u64,
}

impl WakeSettings {
    fn check(&self) -> Result<(), LoadError> {
        in_range("period", self.period_ns, 1_000..=10_000_000_000)?;
        in_range("work", self.work_ns, 0..=1_000_000_000)?;
        in_range("wakes", self.wakes, 1..=10_000_000)
    }
}

/// Latencies, in nanoseconds to three digits.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Latencies {
    /// The mean.
    pub mean_ns: f64,
    /// Half of the wakes waited no longer.
    pub p50_ns: u64,
    /// 90 of 100 wakes waited no longer.
    pub p90_ns: u64,
    /// 99 of 100 wakes waited no longer.
    pub p99_ns: u64,
    /// 999 of 1,000 wakes waited no longer.
    pub p999_ns: u64,
    /// The longest.
    pub max_ns: u64,
}

impl Latencies {
    fn of(histogram: &Histogram<u64>) -> Self {
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

/// The result.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct WakeReport {
    /// The size of the load.
    #[serde(flatten)]
    pub settings: WakeSettings,
    /// From the time at which a wake was due to the time at which the thread ran.
    pub latencies: Latencies,
    /// Wakes that were due before the work of the one before had ended.
    pub late: u64,
    /// What the kernel counted.
    #[serde(flatten)]
    pub performance: Performance,
}

/// Wakes as often as the settings say. Each latency is recorded without an allocation.
///
/// # Errors
/// Settings beyond the limits, before the thread starts; a refusal of the system.
pub fn run(settings: &WakeSettings, watch: &mut dyn Watch) -> Result<WakeReport, LoadError> {
    settings.check()?;
    let compute = Compute::calibrate(settings.work_ns);
    let wake = Wake {
        settings: *settings,
        done: AtomicU64::new(0),
        stopped: AtomicBool::new(false),
    };
    let job: Job<'_, Tally> = Box::new(|| {
        let tally = wake.perform(compute);
        tally.map_err(|error| LoadError::Broken("a timer", error))
    });
    let mut finished = crew::run(&wake, vec![job], watch)?;
    let tally = finished.results.pop().ok_or(LoadError::Interrupted)?;
    Ok(WakeReport {
        settings: *settings,
        latencies: Latencies::of(&tally.latencies),
        late: tally.late,
        performance: finished.performance,
    })
}

struct Wake {
    settings: WakeSettings,
    /// Written by the thread that wakes.
    done: AtomicU64,
    stopped: AtomicBool,
}

/// What the thread found.
struct Tally {
    latencies: Histogram<u64>,
    late: u64,
}

impl Wake {
    fn perform(&self, compute: Compute) -> io::Result<Tally> {
        let WakeSettings {
            period_ns, wakes, ..
        } = self.settings;
        let mut tally = Tally {
            latencies: histogram(),
            late: 0,
        };
        // Timers of an ordinary thread may be 50 us late otherwise.
        set_current_timer_slack(NonZeroU64::new(1))?;
        let begin_ns = now_ns();
        for wake in 1..=wakes {
            if self.stopped.load(Ordering::Relaxed) {
                break;
            }
            let due_ns = begin_ns + wake * period_ns;
            match now_ns() < due_ns {
                true => sleep_until(due_ns)?,
                false => tally.late += 1,
            }
            tally.latencies.saturating_record(now_ns() - due_ns);
            compute.perform();
            self.done.store(wake, Ordering::Relaxed);
        }
        Ok(tally)
    }
}

impl Running for Wake {
    fn done(&self) -> u64 {
        self.done.load(Ordering::Relaxed)
    }

    fn total(&self) -> u64 {
        self.settings.wakes
    }

    fn stop(&self) {
        self.stopped.store(true, Ordering::Relaxed);
    }
}

/// With room for an hour: a longer latency counts as one.
fn histogram() -> Histogram<u64> {
    let bounds = Histogram::new_with_bounds(1, 3600 * NS_PER_S, DIGITS);
    bounds.expect("the bounds are in order, and there are at most five digits")
}

fn now_ns() -> u64 {
    let now = clock_gettime(rustix::time::ClockId::Monotonic);
    now.tv_sec as u64 * NS_PER_S + now.tv_nsec as u64
}

fn sleep_until(due_ns: u64) -> io::Result<()> {
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
