//! The loads of a demo of slots: to their end, broken off, and at their limits.

use prorata_load::controller::{self, ControllerSettings};
use prorata_load::gang::{self, GangSettings};
use prorata_load::jobs::{self, JobsSettings};
use prorata_load::{LoadError, Watch, Window};
use rustix::time::{ClockId, clock_gettime};

const MS: u64 = 1_000_000;

/// Long enough that threads have begun by then on a busy host.
const LONG_MS: u64 = 1_000;

/// Over in a day: only a watch ends a load before.
const FOR_EVER_MS: u64 = 80_000_000;

fn now_ns() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

/// From now on.
fn window(length_ms: u64) -> Window {
    let begin_ns = now_ns();
    Window {
        begin_ns,
        end_ns: begin_ns + length_ms * MS,
    }
}

fn small_controller(window: Window) -> ControllerSettings {
    ControllerSettings {
        origin_ns: window.begin_ns,
        period_ns: 10 * MS,
        work_ns: MS,
        window,
        exposure: window,
        reservation: None,
    }
}

fn small_gang(window: Window) -> GangSettings {
    GangSettings {
        threads: 2,
        work_ns: 100_000,
        window,
        exposure: window,
        reservation: None,
    }
}

#[test]
fn every_period_of_a_controller_counts_once() {
    let report = controller::run(&small_controller(window(LONG_MS)), &mut ()).unwrap();
    // The thread may have started late.
    assert!((1..=100).contains(&report.periods), "{report:?}");
    assert!(report.skipped <= report.missed && report.missed <= report.periods);
    let worked = report.periods > report.skipped;
    assert_eq!(worked, report.longest_ns >= MS, "{report:?}");
    assert_eq!(report.worst_late_ns > 0, report.missed > report.skipped);
    let ran = |segment: &prorata_load::Segment| segment.from_ns <= segment.to_ns;
    assert!(report.segments.iter().all(ran) && !report.segments.is_empty());
}

#[test]
fn no_gang_passes_more_barriers_than_its_work_permits() {
    let report = gang::run(&small_gang(window(LONG_MS)), &mut ()).unwrap();
    assert!(report.barriers > 0, "{report:?}");
    // Two threads work 0.1 ms each for a barrier. What one of them did before the first is not told.
    let most = report.cpu_ns / 200_000 + 1;
    assert!(report.barriers <= most, "{report:?}");
    assert!(!report.segments.is_empty());
}

#[test]
fn jobs_compute_until_their_window_ends() {
    let window = window(50);
    let settings = JobsSettings { threads: 3, window };
    let report = jobs::run(&settings, &mut ()).unwrap();
    assert!(report.cpu_ns > 0 && now_ns() >= window.end_ns, "{report:?}");
}

/// Ends a load at the second look.
struct Impatient(u32);

impl Watch for Impatient {
    fn progress(&mut self, done: u64, of: u64) {
        assert!(done <= of, "{done} of {of}");
    }

    fn is_over(&mut self) -> bool {
        self.0 += 1;
        self.0 > 1
    }
}

#[test]
fn a_watch_can_end_each_of_them() {
    let window = window(FOR_EVER_MS);
    let ends = [
        controller::run(&small_controller(window), &mut Impatient(0)).map(drop),
        gang::run(&small_gang(window), &mut Impatient(0)).map(drop),
        jobs::run(&JobsSettings { threads: 2, window }, &mut Impatient(0)).map(drop),
    ];
    for ended in ends {
        assert!(matches!(ended, Err(LoadError::Interrupted)), "{ended:?}");
    }
}

#[test]
fn settings_beyond_the_limits_are_refused() {
    let over = Window {
        begin_ns: 1,
        end_ns: 2,
    };
    let refused = |ended: Result<(), LoadError>, why: &str| {
        let found = ended.unwrap_err().to_string();
        assert!(found.contains(why), "{found}");
    };
    let controller = |change: fn(&mut ControllerSettings)| {
        let mut settings = small_controller(window(FOR_EVER_MS));
        change(&mut settings);
        controller::run(&settings, &mut ()).map(drop)
    };
    refused(
        controller(|s| s.period_ns = MS - 1),
        "period 999999 is out of range",
    );
    refused(
        controller(|s| s.work_ns = s.period_ns),
        "work 10000000 is out of range: give 0 to 9999999",
    );
    refused(
        controller(|s| s.window.end_ns = 1),
        "lies ahead on the monotonic clock",
    );
    let gang = |change: fn(&mut GangSettings)| {
        let mut settings = small_gang(window(FOR_EVER_MS));
        change(&mut settings);
        gang::run(&settings, &mut ()).map(drop)
    };
    refused(
        gang(|s| s.threads = 1),
        "threads 1 is out of range: give 2 to",
    );
    refused(gang(|s| s.work_ns = 9_999), "work 9999 is out of range");
    let jobs = |threads, window| jobs::run(&JobsSettings { threads, window }, &mut ()).map(drop);
    refused(jobs(0, window(FOR_EVER_MS)), "threads 0 is out of range");
    refused(jobs(1, over), "the time to 2 is over");
}
