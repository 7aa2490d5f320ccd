//! Controller: a thread with the same work in every period, which must be done by the period's end.
//!
//! The work is CPU time of the thread, so it is the same whatever else the machine does. A period
//! that is over before its work has begun is skipped, as a control loop does that acts on what it
//! sees now, and counts as missed.

use std::io;
use std::num::NonZeroU64;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use rustix::thread::set_current_timer_slack;
use serde::{Deserialize, Serialize};

use crate::compute::Worker;
use crate::crew::{self, Job, Running};
use crate::deadline::DeadlineReservation;
use crate::latencies::now_ns;
use crate::limits::in_range;
use crate::segments::{Doing, Segment, Segments};
use crate::window::{Window, sleep_until};
use crate::{LoadError, Watch};

/// The size of the load.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct ControllerSettings {
    /// When the first period begins, on the monotonic clock.
    pub origin_ns: u64,
    /// A period, 1 ms to 10 s.
    pub period_ns: u64,
    /// CPU time of the work in each period; less than a period.
    pub work_ns: u64,
    /// Periods that begin in it count. The controller runs before, too.
    pub window: Window,
    /// The part of the window in which segments are noted.
    pub exposure: Window,
    /// Linux's own reservation, if any.
    pub reservation: Option<DeadlineReservation>,
}

impl ControllerSettings {
    fn check(&self) -> Result<(), LoadError> {
        in_range("period", self.period_ns, 1_000_000..=10_000_000_000)?;
        in_range("work", self.work_ns, 0..=self.period_ns - 1)?;
        self.window.check(now_ns())
    }
}

/// The result.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct ControllerReport {
    /// Periods that counted.
    pub periods: u64,
    /// Those whose work was not done in time, or not at all.
    pub missed: u64,
    /// Those whose work was not done at all.
    pub skipped: u64,
    /// The longest time from a deadline to the end of the work; 0 if none was missed.
    pub worst_late_ns: u64,
    /// The longest time from a period's beginning to the end of its work.
    pub longest_ns: u64,
    /// When the first period began.
    pub origin_ns: u64,
    /// Where and when the thread ran, in the exposure.
    pub segments: Vec<Segment>,
}

/// Runs the controller until its window ends.
///
/// # Errors
/// Settings beyond the limits, before the thread starts; a refusal of the system.
pub fn run(
    settings: &ControllerSettings,
    watch: &mut dyn Watch,
) -> Result<ControllerReport, LoadError> {
    settings.check()?;
    let controller = Controller {
        settings: *settings,
        done: AtomicU64::new(0),
        stopped: AtomicBool::new(false),
    };
    let worker = Worker::calibrate();
    let job: Job<'_, ControllerReport> = Box::new(|| {
        let report = controller.perform(worker);
        report.map_err(|error| LoadError::Broken("the controller", error))
    });
    let mut finished = crew::run(&controller, vec![job], watch)?;
    finished.results.pop().ok_or(LoadError::Interrupted)
}

struct Controller {
    settings: ControllerSettings,
    done: AtomicU64,
    stopped: AtomicBool,
}

impl Controller {
    fn perform(&self, worker: Worker) -> io::Result<ControllerReport> {
        let settings = &self.settings;
        // Timers of an ordinary thread may be 50 us late otherwise.
        set_current_timer_slack(NonZeroU64::new(1))?;
        settings.reservation.map_or(Ok(()), |it| it.take())?;
        let mut segments = Segments::new(settings.exposure);
        let mut periods = Periods::new(settings, now_ns());
        while let Some(begin_ns) = periods.next_ns() {
            if self.stopped.load(Ordering::Relaxed) {
                break;
            }
            if now_ns() < begin_ns {
                sleep_until(begin_ns)?;
            }
            worker.work(settings.work_ns, |now_ns| {
                segments.note(now_ns, Doing::Work)
            });
            periods.end(now_ns());
            self.done.store(periods.tally.periods, Ordering::Relaxed);
        }
        let mut report = periods.tally;
        report.segments = segments.found();
        Ok(report)
    }
}

impl Running for Controller {
    fn done(&self) -> u64 {
        self.done.load(Ordering::Relaxed)
    }

    fn total(&self) -> u64 {
        let Window { begin_ns, end_ns } = self.settings.window;
        (end_ns - begin_ns) / self.settings.period_ns
    }

    fn stop(&self) {
        self.stopped.store(true, Ordering::Relaxed);
    }
}

/// The account of the periods.
#[derive(Debug)]
struct Periods {
    origin_ns: u64,
    period_ns: u64,
    window: Window,
    /// The period whose work is next.
    next: u64,
    tally: ControllerReport,
}

impl Periods {
    /// Begins with the first period that has not begun at `now_ns`.
    fn new(settings: &ControllerSettings, now_ns: u64) -> Self {
        let &ControllerSettings {
            origin_ns,
            period_ns,
            window,
            ..
        } = settings;
        Self {
            origin_ns,
            period_ns,
            window,
            next: now_ns.saturating_sub(origin_ns).div_ceil(period_ns),
            tally: ControllerReport {
                periods: 0,
                missed: 0,
                skipped: 0,
                worst_late_ns: 0,
                longest_ns: 0,
                origin_ns,
                segments: Vec::new(),
            },
        }
    }

    fn begin_ns(&self, period: u64) -> u64 {
        self.origin_ns + period * self.period_ns
    }

    /// When the next period begins; it may have begun. `None` when the window is over.
    fn next_ns(&self) -> Option<u64> {
        let begin_ns = self.begin_ns(self.next);
        (begin_ns < self.window.end_ns).then_some(begin_ns)
    }

    /// The work of the next period is done now.
    fn end(&mut self, now_ns: u64) {
        let begin_ns = self.begin_ns(self.next);
        let deadline_ns = self.begin_ns(self.next + 1);
        if self.window.contains(begin_ns) {
            self.tally.periods += 1;
            self.tally.missed += u64::from(now_ns > deadline_ns);
            self.tally.worst_late_ns =
                (self.tally.worst_late_ns).max(now_ns.saturating_sub(deadline_ns));
            self.tally.longest_ns = self.tally.longest_ns.max(now_ns - begin_ns);
        }
        // The period that is under way may still be met. Those before it are over.
        let present = now_ns.saturating_sub(self.origin_ns) / self.period_ns;
        let next = present.max(self.next + 1);
        for skipped in self.next + 1..next {
            if self.window.contains(self.begin_ns(skipped)) {
                self.tally.periods += 1;
                self.tally.missed += 1;
                self.tally.skipped += 1;
            }
        }
        self.next = next;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    /// Periods of 20 ms from 100 ms on; those from 140 ms to 300 ms count.
    fn settings() -> ControllerSettings {
        let window = Window {
            begin_ns: 140 * MS,
            end_ns: 300 * MS,
        };
        ControllerSettings {
            origin_ns: 100 * MS,
            period_ns: 20 * MS,
            work_ns: 4 * MS,
            window,
            exposure: window,
            reservation: None,
        }
    }

    /// Periods, missed and skipped ones, and the worst lateness in ms, after work that ended at these
    /// times in ms.
    fn after(ends: &[u64]) -> (u64, u64, u64, u64) {
        let mut periods = Periods::new(&settings(), 0);
        for end in ends {
            periods.next_ns().expect("the window is not over");
            periods.end(end * MS);
        }
        let tally = periods.tally;
        (
            tally.periods,
            tally.missed,
            tally.skipped,
            tally.worst_late_ns / MS,
        )
    }

    #[test]
    fn work_that_ends_by_the_deadline_is_not_missed() {
        // The first two do not count.
        assert_eq!(after(&[119, 140, 144, 180, 185]), (3, 0, 0, 0));
    }

    #[test]
    fn the_work_after_a_late_one_may_still_be_in_time() {
        assert_eq!(after(&[104, 124, 163, 170, 184]), (3, 1, 0, 3));
    }

    #[test]
    fn periods_that_are_over_are_skipped_and_missed() {
        // The period of 140 ends in that of 200: those of 160 and 180 are over.
        assert_eq!(after(&[104, 124, 205, 219]), (4, 3, 2, 45));
    }

    #[test]
    fn all_periods_of_the_window_count_once_and_no_other_one() {
        let mut periods = Periods::new(&settings(), 0);
        while let Some(begin_ns) = periods.next_ns() {
            periods.end(begin_ns + 33 * MS);
        }
        assert_eq!(periods.tally.periods, 8);
        let late = Periods::new(&settings(), 141 * MS);
        assert_eq!(
            late.next_ns(),
            Some(160 * MS),
            "a period is not begun in its midst"
        );
    }
}
