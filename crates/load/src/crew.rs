//! Threads that begin together and are watched until all have ended.

use std::sync::OnceLock;
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread::{Builder, Scope, scope};
use std::time::{Duration, Instant};

use crate::{Effort, LoadError, Performance, RunQueueTimes, Watch};

/// The stack of a thread. No thread calls deep.
const STACK_BYTES: usize = 128 << 10;

/// Between two calls of the watch.
const LOOK: Duration = Duration::from_millis(100);

/// The work of a thread. An error ends all threads.
pub(crate) type Job<'env, T> = Box<dyn FnOnce() -> Result<T, LoadError> + Send + 'env>;

pub(crate) trait Running: Sync {
    /// Messages, rounds, wakes or keys done so far.
    fn done(&self) -> u64;
    /// Messages, rounds, wakes or keys in all.
    fn total(&self) -> u64;
    /// Has all threads end soon, wherever they wait.
    fn stop(&self);
}

pub(crate) struct Finished<T> {
    /// The result of each job, in no order.
    pub results: Vec<T>,
    /// What the kernel counted.
    pub performance: Performance,
}

/// A job's end, as its thread tells it.
struct JobEnd<T> {
    result: Result<T, LoadError>,
    at: Instant,
    turns: Option<RunQueueTimes>,
}

/// Runs all jobs, a thread each. The jobs begin when the last thread is there.
pub(crate) fn run<T: Send>(
    load: &impl Running,
    jobs: Vec<Job<'_, T>>,
    watch: &mut dyn Watch,
) -> Result<Finished<T>, LoadError> {
    // Whether to begin, once all threads are there or one is refused.
    let gate = OnceLock::new();
    let (ends, told) = mpsc::channel();
    scope(|scope| {
        let of = jobs.len();
        for (job, number) in jobs.into_iter().zip(1..) {
            if let Err(cause) = hire(scope, &gate, ends.clone(), job) {
                gate.set(false).expect("the gate is opened once");
                return Err(LoadError::Thread { number, of, cause });
            }
        }
        drop(ends);
        let (begin, before) = (Instant::now(), Effort::so_far());
        gate.set(true).expect("the gate is opened once");
        let mut results = Vec::with_capacity(of);
        let (mut last, mut turns, mut failure) = (begin, Some(RunQueueTimes::default()), None);
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
                        // Later failures follow from the first.
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
    ends: Sender<JobEnd<T>>,
    job: Job<'scope, T>,
) -> std::io::Result<()> {
    let work = move || {
        let before = RunQueueTimes::of_this_thread();
        if !gate.wait() {
            return;
        }
        let result = job();
        let at = Instant::now();
        let turns = RunQueueTimes::of_this_thread().zip(before);
        let turns = turns.map(|(now, before)| now - before);
        // The receiver waits for all jobs.
        let _ = ends.send(JobEnd { result, at, turns });
    };
    let builder = Builder::new().stack_size(STACK_BYTES);
    builder.spawn_scoped(scope, work).map(drop)
}
