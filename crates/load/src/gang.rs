//! Gang: threads that work for a while and spin at a barrier until all of them have done so.
//!
//! A thread that waits for one without a CPU spins in vain. So the number of barriers in a second of
//! the gang's CPU time tells how often its threads ran at the same time.

use std::hint::spin_loop;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

use rustix::time::{ClockId, clock_gettime};
use serde::{Deserialize, Serialize};

use crate::compute::Worker;
use crate::crew::{self, Job, Running};
use crate::deadline::DeadlineReservation;
use crate::latencies::{NS_PER_S, now_ns};
use crate::limits::{self, in_range};
use crate::segments::{Doing, Segment, Segments};
use crate::window::Window;
use crate::{LoadError, Watch};

/// Looks at the barrier between two notes of what a thread does: some microseconds.
const LOOKS: u32 = 256;

/// The size of the load.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct GangSettings {
    /// Threads, at least 2.
    pub threads: u32,
    /// CPU time of a thread between two barriers, 10 us to 1 s.
    pub work_ns: u64,
    /// Barriers that are passed in it count. The gang runs before, too.
    pub window: Window,
    /// The part of the window in which segments are noted.
    pub exposure: Window,
    /// Linux's own reservation of each thread, if any.
    pub reservation: Option<DeadlineReservation>,
}

impl GangSettings {
    fn check(&self) -> Result<(), LoadError> {
        in_range("threads", self.threads.into(), 2..=limits::MAX_THREADS)?;
        in_range("work", self.work_ns, 10_000..=1_000_000_000)?;
        self.window.check(now_ns())
    }
}

/// The result.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct GangReport {
    /// Barriers that were passed in the window.
    pub barriers: u64,
    /// CPU time of all threads meanwhile.
    pub cpu_ns: u64,
    /// Barriers in a second of that CPU time.
    pub barriers_per_cpu_second: f64,
    /// Where and when each thread ran, in the exposure.
    pub segments: Vec<Segment>,
}

/// Runs the gang until its window ends.
///
/// # Errors
/// Settings beyond the limits, before a thread starts; a refusal of the system.
pub fn run(settings: &GangSettings, watch: &mut dyn Watch) -> Result<GangReport, LoadError> {
    settings.check()?;
    let gang = Gang {
        settings: *settings,
        barrier: Barrier::new(settings.threads),
        marks: [OnceLock::new(), OnceLock::new()],
        stopped: AtomicBool::new(false),
    };
    let worker = Worker::calibrate();
    let thread = |_| -> Job<'_, Vec<Segment>> { Box::new(|| gang.perform(worker)) };
    let jobs = (0..settings.threads).map(thread).collect();
    let finished = crew::run(&gang, jobs, watch)?;
    let [first, last] = gang.marks.each_ref().map(OnceLock::get);
    let (first, last) = first.zip(last).ok_or(LoadError::Interrupted)?;
    let segments = finished.results.concat();
    Ok(report(*first, *last, segments))
}

fn report(first: Mark, last: Mark, segments: Vec<Segment>) -> GangReport {
    let barriers = last.barriers - first.barriers;
    let cpu_ns = last.cpu_ns - first.cpu_ns;
    GangReport {
        barriers,
        cpu_ns,
        barriers_per_cpu_second: barriers as f64 * NS_PER_S as f64 / cpu_ns.max(1) as f64,
        segments,
    }
}

/// What was done by the first barrier past a time.
#[derive(Clone, Copy, Debug)]
struct Mark {
    barriers: u64,
    cpu_ns: u64,
}

struct Gang {
    settings: GangSettings,
    barrier: Barrier,
    /// At the window's beginning and end.
    marks: [OnceLock<Mark>; 2],
    stopped: AtomicBool,
}

impl Gang {
    fn perform(&self, worker: Worker) -> Result<Vec<Segment>, LoadError> {
        let settings = &self.settings;
        let reserved = settings.reservation.map_or(Ok(()), |it| it.take());
        reserved.map_err(|error| LoadError::Broken("SCHED_DEADLINE", error))?;
        let mut segments = Segments::new(settings.exposure);
        while !self.stopped.load(Ordering::Relaxed) {
            worker.work(settings.work_ns, |now_ns| {
                segments.note(now_ns, Doing::Work)
            });
            let spins = || segments.note(now_ns(), Doing::Spin);
            self.barrier
                .pass(|passed| self.mark(passed), spins, &self.stopped);
        }
        Ok(segments.found())
    }

    /// Marks a barrier that all threads have reached and none has left.
    fn mark(&self, passed: u64) {
        let now_ns = now_ns();
        let Window { begin_ns, end_ns } = self.settings.window;
        for (mark, at_ns) in self.marks.iter().zip([begin_ns, end_ns]) {
            if now_ns >= at_ns {
                mark.get_or_init(|| Mark {
                    barriers: passed,
                    cpu_ns: used_ns(),
                });
            }
        }
        if now_ns >= end_ns {
            self.stop();
        }
    }
}

impl Running for Gang {
    fn done(&self) -> u64 {
        now_ns()
            .saturating_sub(self.settings.window.begin_ns)
            .min(self.total())
    }

    fn total(&self) -> u64 {
        let Window { begin_ns, end_ns } = self.settings.window;
        end_ns - begin_ns
    }

    fn stop(&self) {
        self.stopped.store(true, Ordering::Relaxed);
    }
}

/// CPU time of this process.
fn used_ns() -> u64 {
    let used = clock_gettime(ClockId::ProcessCPUTime);
    used.tv_sec as u64 * NS_PER_S + used.tv_nsec as u64
}

/// A barrier at which threads spin.
///
/// The last thread that arrives resets `arrived` before it counts `passed`. The others wait for
/// `passed` with `Acquire`, so that they see the reset before they arrive again.
struct Barrier {
    threads: u32,
    arrived: AtomicU32,
    passed: AtomicU64,
}

impl Barrier {
    fn new(threads: u32) -> Self {
        Self {
            threads,
            arrived: AtomicU32::new(0),
            passed: AtomicU64::new(0),
        }
    }

    /// Waits for all threads. The last one calls `complete` with the number of barriers passed, this
    /// one included, before any leaves. Once `given_up`, no thread waits any longer.
    fn pass(&self, complete: impl FnOnce(u64), mut spins: impl FnMut(), given_up: &AtomicBool) {
        // No thread passes another barrier before this one has arrived here.
        let before = self.passed.load(Ordering::Relaxed);
        if self.arrived.fetch_add(1, Ordering::AcqRel) + 1 == self.threads {
            complete(before + 1);
            self.arrived.store(0, Ordering::Relaxed);
            self.passed.store(before + 1, Ordering::Release);
            return;
        }
        let mut looks = 0_u32;
        while self.passed.load(Ordering::Acquire) == before {
            looks = looks.wrapping_add(1);
            if looks.is_multiple_of(LOOKS) {
                spins();
                if given_up.load(Ordering::Relaxed) {
                    return;
                }
            }
            spin_loop();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_thread_passes_a_barrier_before_all_have_arrived() {
        const ROUNDS: u64 = 200;
        let barrier = Barrier::new(3);
        let arrivals = AtomicU64::new(0);
        let completed = AtomicU64::new(0);
        let never = AtomicBool::new(false);
        std::thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| {
                    for round in 1..=ROUNDS {
                        arrivals.fetch_add(1, Ordering::SeqCst);
                        let complete = |passed| {
                            assert_eq!(passed, round);
                            assert_eq!(arrivals.load(Ordering::SeqCst), 3 * round);
                            completed.fetch_add(1, Ordering::SeqCst);
                        };
                        // On a host with one CPU a thread must let the others arrive.
                        barrier.pass(complete, std::thread::yield_now, &never);
                        assert!(completed.load(Ordering::SeqCst) >= round);
                    }
                });
            }
        });
        assert_eq!(completed.into_inner(), ROUNDS);
    }

    #[test]
    fn a_thread_that_waits_in_vain_can_give_up() {
        let barrier = Barrier::new(2);
        let given_up = AtomicBool::new(false);
        let spins = || given_up.store(true, Ordering::Relaxed);
        barrier.pass(|_| unreachable!("one is missing"), spins, &given_up);
    }

    #[test]
    fn barriers_are_told_by_a_second_of_cpu_time() {
        let mark = |barriers, cpu_ns| Mark { barriers, cpu_ns };
        let found = report(mark(10, NS_PER_S), mark(1010, 3 * NS_PER_S), Vec::new());
        assert_eq!((found.barriers, found.cpu_ns), (1000, 2 * NS_PER_S));
        assert_eq!(found.barriers_per_cpu_second, 500.0);
    }
}
