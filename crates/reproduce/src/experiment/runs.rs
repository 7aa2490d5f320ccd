//! Several runs of an experiment, side by side on this machine's CPUs.

use std::num::{NonZeroU32, NonZeroUsize};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::mpsc::{RecvTimeoutError, SyncSender, sync_channel};
use std::thread;
use std::time::Duration;

use super::{Context, Result};
use crate::finding::Findings;
use crate::reproduction::Watch;

/// Steps and results that may wait for the thread that watches.
const WAITING: usize = 64;

/// Longest time between two looks whether all is over.
const LOOK: Duration = Duration::from_millis(100);

/// What a thread tells the one that watches.
enum Message {
    Step(String),
    Ended(u32, Result<Findings>),
}

/// Passes the steps of a run on to the thread that watches, and learns whether all is over.
struct RunWatch<'a> {
    sender: &'a SyncSender<Message>,
    is_over: &'a AtomicBool,
}

impl Watch for RunWatch<'_> {
    fn step(&mut self, what: &str) {
        // Without a receiver all is over, and the run learns that next.
        let _ = self.sender.send(Message::Step(what.to_owned()));
    }

    fn is_over(&mut self) -> bool {
        self.is_over.load(Ordering::Relaxed)
    }
}

impl Context<'_> {
    /// Means and errors of several runs, each with a seed of its own. `derive` computes
    /// quotients and peaks from these means, because an event that a run lacks leaves no
    /// number to divide by. Their errors are those of the jackknife.
    ///
    /// # Errors
    ///
    /// The first error that arrives. It stops the other runs.
    pub fn over_runs(
        &mut self,
        runs: NonZeroU32,
        one: impl Fn(&mut Context<'_>) -> Result<Findings> + Sync,
        derive: impl Fn(&mut Findings),
    ) -> Result<Findings> {
        let mut all: Vec<Option<Findings>> = (0..runs.get()).map(|_| None).collect();
        let mut failure = None;
        let (next, is_over) = (AtomicU32::new(0), AtomicBool::new(false));
        let cpus = thread::available_parallelism().map_or(1, NonZeroUsize::get);
        thread::scope(|scope| {
            let (sender, receiver) = sync_channel(WAITING);
            for _ in 0..cpus.min(all.len()) {
                let sender = sender.clone();
                let (next, is_over, one) = (&next, &is_over, &one);
                let Context {
                    figure,
                    expectations,
                    engine,
                    full,
                    policy,
                    ..
                } = *self;
                scope.spawn(move || {
                    let numbers = std::iter::repeat_with(|| next.fetch_add(1, Ordering::Relaxed));
                    for run in numbers.take_while(|run| *run < runs.get()) {
                        let relay = &mut RunWatch {
                            sender: &sender,
                            is_over,
                        };
                        let mut context = Context {
                            figure,
                            expectations,
                            run,
                            engine,
                            full,
                            policy,
                            watch: relay,
                        };
                        let ended = Message::Ended(run, one(&mut context));
                        if sender.send(ended).is_err() {
                            return;
                        }
                    }
                });
            }
            drop(sender);
            loop {
                match receiver.recv_timeout(LOOK) {
                    Ok(Message::Step(what)) => self.watch.step(&what),
                    Ok(Message::Ended(run, Ok(findings))) => all[run as usize] = Some(findings),
                    Ok(Message::Ended(_, Err(error))) => {
                        failure.get_or_insert(error);
                    }
                    Err(RecvTimeoutError::Timeout) => {}
                    Err(RecvTimeoutError::Disconnected) => break,
                }
                if failure.is_some() || self.watch.is_over() {
                    is_over.store(true, Ordering::Relaxed);
                }
            }
        });
        match failure {
            Some(error) => Err(error),
            None => Ok(Findings::derived(
                all.into_iter().flatten().collect(),
                derive,
            )),
        }
    }
}
