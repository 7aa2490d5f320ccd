//! Jobs: threads that only compute, as compile jobs do.

use std::sync::atomic::{AtomicBool, Ordering};

use serde::{Deserialize, Serialize};

use crate::compute::Worker;
use crate::crew::{self, Job, Running};
use crate::latencies::now_ns;
use crate::limits::{self, in_range};
use crate::window::Window;
use crate::{LoadError, Watch};

/// CPU time between two looks at the clock.
const STEP_NS: u64 = 1_000_000;

/// The size of the load.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct JobsSettings {
    /// Threads.
    pub threads: u32,
    /// The jobs end with it.
    pub window: Window,
}

/// The result.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct JobsReport {
    /// CPU time of all threads, from their beginning to their end.
    pub cpu_ns: u64,
}

/// Computes until the window ends.
///
/// # Errors
/// Settings beyond the limits, before a thread starts; a refusal of the system.
pub fn run(settings: &JobsSettings, watch: &mut dyn Watch) -> Result<JobsReport, LoadError> {
    in_range("threads", settings.threads.into(), 1..=limits::MAX_THREADS)?;
    settings.window.check(now_ns())?;
    let crowd = Crowd {
        window: settings.window,
        stopped: AtomicBool::new(false),
    };
    let worker = Worker::calibrate();
    let compute = || {
        while now_ns() < crowd.window.end_ns && !crowd.stopped.load(Ordering::Relaxed) {
            worker.work(STEP_NS, |_| {});
        }
        Ok(())
    };
    let job = |_| -> Job<'_, ()> { Box::new(compute) };
    let finished = crew::run(&crowd, (0..settings.threads).map(job).collect(), watch)?;
    let effort = finished.performance.effort;
    Ok(JobsReport {
        cpu_ns: effort.user_ns + effort.system_ns,
    })
}

struct Crowd {
    window: Window,
    stopped: AtomicBool,
}

impl Running for Crowd {
    fn done(&self) -> u64 {
        now_ns()
            .saturating_sub(self.window.begin_ns)
            .min(self.total())
    }

    fn total(&self) -> u64 {
        self.window.end_ns - self.window.begin_ns
    }

    fn stop(&self) {
        self.stopped.store(true, Ordering::Relaxed);
    }
}
