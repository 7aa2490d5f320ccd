//! Wake: a thread that is due at fixed times, and the time that passes until it runs.
//!
//! The loop is open: each latency counts from the time at which the wake was due, even if the
//! work of an earlier wake ended later. So a long wait delays, and counts for, all wakes that
//! were due meanwhile. (A loop that slept after its work would leave those out.)

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::{io, num::NonZeroU64};

use hdrhistogram::Histogram;
use rustix::thread::set_current_timer_slack;
use serde::Serialize;

use crate::compute::Compute;
use crate::crew::{self, Job, Running};
use crate::latencies::{histogram, now_ns};
use crate::limits::in_range;
use crate::window::sleep_until;
use crate::{Latencies, LoadError, Performance, Watch};

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
