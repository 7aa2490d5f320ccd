//! Reflex (2001, 5.3): tokens that go round in rings of threads.
//!
//! The threads of an *active set* pass a token around by blocking reads and
//! writes on pipes. The thread with the token performs rounds. A round is some
//! computing and then a yield; the last round passes the token on instead, and the
//! thread blocks until the token comes again. So one thread of each active set is
//! runnable. Yields call `schedule()`, and tokens wake threads
//! (`reschedule_idle()`).
//!
//! The account: the token carries the rounds that are left to it. The thread that
//! performs the last round closes its pipe. The next thread sees that and closes its
//! own, and so all end. The rounds of all threads must add up.

mod ring;

use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use serde::Serialize;

use self::ring::{Stop, Tally};
use crate::compute::Compute;
use crate::crew::{self, Job, Running};
use crate::limits::{in_range, make_room_for_files, threads};
use crate::{LoadError, Performance, Watch};

/// Descriptors of a thread: an end of either pipe, and a file to read its
/// statistics from.
const FILES: u64 = 3;

/// The size of the load.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct ReflexSettings {
    /// Active sets, 1 or more: as many threads are runnable at a time.
    pub active_sets: u64,
    /// Threads of each active set, 2 or more.
    pub threads: u64,
    /// Rounds of each active set, 1 to a billion.
    pub rounds: u64,
    /// Probability, after each round, of yielding and not passing the token;
    /// 0 to 1. At 0.5 yields are as frequent as tokens passed.
    pub yield_probability: f64,
    /// Computing in each round, 0 to 1,000,000,000.
    pub compute_ns: u64,
}

impl ReflexSettings {
    fn all_threads(&self) -> u64 {
        self.active_sets.saturating_mul(self.threads)
    }

    fn all_rounds(&self) -> u64 {
        self.active_sets * self.rounds
    }

    fn check(&self) -> Result<(), LoadError> {
        in_range("active sets", self.active_sets, 1..=u64::from(u32::MAX))?;
        in_range("threads", self.threads, 2..=u64::from(u32::MAX))?;
        in_range("rounds", self.rounds, 1..=1_000_000_000)?;
        in_range("compute", self.compute_ns, 0..=1_000_000_000)?;
        if !(0.0..=1.0).contains(&self.yield_probability) {
            return Err(LoadError::NoProbability(self.yield_probability));
        }
        threads(self.all_threads(), "active sets or threads")
    }
}

/// The result.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct ReflexReport {
    /// The size of the load.
    #[serde(flatten)]
    pub settings: ReflexSettings,
    /// Threads of all active sets.
    pub all_threads: u64,
    /// Rounds of all threads.
    pub all_rounds: u64,
    /// Rounds that ended with a yield.
    pub yields: u64,
    /// Rounds that ended with the token passed on. The last round of a token is
    /// neither.
    pub passes: u64,
    /// Time per round: that of the run over the rounds of all threads (2001,
    /// Figures 6 and 7).
    pub round_ns: f64,
    /// What the kernel counted.
    #[serde(flatten)]
    pub performance: Performance,
}

/// Lets all tokens go round until their rounds are over. Each thread yields after the
/// same rounds in every run.
///
/// # Errors
/// Settings beyond the limits, before any thread starts; a refusal of the system;
/// missing rounds.
pub fn run(settings: &ReflexSettings, watch: &mut dyn Watch) -> Result<ReflexReport, LoadError> {
    settings.check()?;
    let count = settings.all_threads();
    make_room_for_files(count * FILES, "active sets or threads")?;
    let reflex = Reflex {
        done: (0..settings.active_sets)
            .map(|_| AtomicU64::new(0))
            .collect(),
        total: settings.all_rounds(),
        stopped: AtomicBool::new(false),
    };
    let compute = Compute::calibrate(settings.compute_ns);
    let jobs =
        jobs(settings, compute, &reflex).map_err(|error| LoadError::Channel("pipes", error))?;
    let finished = crew::run(&reflex, jobs, watch)?;
    let mut sum = Tally::default();
    for tally in finished.results {
        sum += tally;
    }
    if sum.rounds != reflex.total {
        return Err(LoadError::Lost {
            what: "rounds",
            lost: reflex.total.abs_diff(sum.rounds),
            of: reflex.total,
        });
    }
    Ok(ReflexReport {
        settings: *settings,
        all_threads: count,
        all_rounds: sum.rounds,
        yields: sum.yields,
        passes: sum.passes,
        round_ns: finished.performance.elapsed_ns as f64 / sum.rounds as f64,
        performance: finished.performance,
    })
}

/// The work of all threads, with a token in each ring.
fn jobs<'env>(
    settings: &ReflexSettings,
    compute: Compute,
    reflex: &'env Reflex,
) -> io::Result<Vec<Job<'env, Tally>>> {
    let mut jobs: Vec<Job<'_, Tally>> = Vec::new();
    for (done, set) in reflex.done.iter().zip(0..) {
        for mut stop in Stop::ring(settings.threads, settings.rounds)? {
            let probability = settings.yield_probability;
            let seed = set * settings.threads + stop.number;
            jobs.push(Box::new(move || {
                let rounds = stop.perform(probability, seed, compute, done, &reflex.stopped);
                rounds.map_err(|error| LoadError::Broken("a pipe", error))
            }));
        }
    }
    Ok(jobs)
}

struct Reflex {
    /// Rounds of each active set, written by the thread with the token.
    done: Vec<AtomicU64>,
    total: u64,
    /// Tokens are to end.
    stopped: AtomicBool,
}

impl Running for Reflex {
    fn done(&self) -> u64 {
        let rounds = |set: &AtomicU64| set.load(Ordering::Relaxed);
        self.done.iter().map(rounds).sum()
    }

    fn total(&self) -> u64 {
        self.total
    }

    fn stop(&self) {
        self.stopped.store(true, Ordering::Relaxed);
    }
}
