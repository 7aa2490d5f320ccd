//! Threads that begin together, are watched, and are all waited for.

use std::sync::OnceLock;
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread::{Builder, Scope, scope};
use std::time::{Duration, Instant};

use crate::{Effort, LoadError, Performance, Turns, Watch};

/// Room for a thread's calls; none goes deep.
const STACK_BYTES: usize = 128 << 10;

/// Between two looks of who watches.
const LOOK: Duration = Duration::from_millis(100);

/// What a thread does, to its end; on an error everything ends.
pub(crate) type Job<'env, T> = Box<dyn FnOnce() -> Result<T, LoadError> + Send + 'env>;

/// A load that runs.
pub(crate) trait Running: Sync {
    /// So much is done by now.
    fn done(&self) -> u64;
    /// So much will be done in the end.
    fn total(&self) -> u64;
    /// Lets all threads come to an end soon, wherever they wait.
    fn stop(&self);
}

/// A load that came to its end.
pub(crate) struct Finished<T> {
    /// What each job gave, in no order.
    pub results: Vec<T>,
    /// How it went.
    pub performance: Performance,
}

/// A job's end, as its thread tells it.
struct End<T> {
    result: Result<T, LoadError>,
    at: Instant,
    turns: Option<Turns>,
}

/// Runs all jobs, a thread each. They begin when the last thread is there.
pub(crate) fn run<T: Send>(
    load: &impl Running,
    jobs: Vec<Job<'_, T>>,
    watch: &mut dyn Watch,
) -> Result<Finished<T>, LoadError> {
    // Whether to begin, once that is known.
    let gate = OnceLock::new();
    let (ends, told) = mpsc::channel();
    scope(|scope| {
        let of = jobs.len();
        for (job, number) in jobs.into_iter().zip(1..) {
            if let Err(cause) = hire(scope, &gate, ends.clone(), job) {
                gate.set(false).expect("nobody else opens the gate");
                return Err(LoadError::Thread { number, of, cause });
            }
        }
        drop(ends);
        let (begin, before) = (Instant::now(), Effort::so_far());
        gate.set(true).expect("nobody else opens the gate");
        let mut results = Vec::with_capacity(of);
        let (mut last, mut turns, mut failure) = (begin, Some(Turns::default()), None);
        loop {
            match told.recv_timeout(LOOK) {
                Ok(end) => {
                    last = last.max(end.at);
                    turns = turns.zip(end.turns).map(|(mut sum, turns)| {
                        sum += turns;
                        sum
                    });
                    match end.result {
                        Ok(result) => results.push(result),
                        // What fails after the first is its consequence.
                        Err(error) if failure.is_none() => {
                            failure = Some(error);
                            load.stop();
                        }
                        Err(_) => {}
                    }
                }
                Err(RecvTimeoutError::Timeout) => {
                    watch.progress(load.done(), load.total());
                    if failure.is_none() && watch.is_over() {
                        failure = Some(LoadError::Interrupted);
                        load.stop();
                    }
                }
                Err(RecvTimeoutError::Disconnected) => break,
            }
        }
        failure.map_or(Ok(()), Err)?;
        let elapsed_ns = (last - begin).as_nanos() as u64;
        Ok(Finished {
            results,
            performance: Performance::new(elapsed_ns, Effort::so_far() - before, turns),
        })
    })
}

fn hire<'scope, 'env, T: Send + 'scope>(
    scope: &'scope Scope<'scope, 'env>,
    gate: &'scope OnceLock<bool>,
    ends: Sender<End<T>>,
    job: Job<'scope, T>,
) -> std::io::Result<()> {
    let work = move || {
        let before = Turns::of_this_thread();
        if !gate.wait() {
            return;
        }
        let result = job();
        let at = Instant::now();
        let turns = Turns::of_this_thread().zip(before);
        let turns = turns.map(|(now, before)| now - before);
        // Whoever listens waits for all.
        let _ = ends.send(End { result, at, turns });
    };
    let builder = Builder::new().stack_size(STACK_BYTES);
    builder.spawn_scoped(scope, work).map(drop)
}
