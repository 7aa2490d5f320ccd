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
    /// number to divide by. Their errors are those that halves of the runs show.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalogue;
    use crate::error::ReproduceError;
    use crate::reproduction::Engine;

    /// Counts steps, and lets a run know at its first step that all is over, if it is.
    struct Counting {
        steps: u32,
        ends: bool,
    }

    impl Watch for Counting {
        fn step(&mut self, _: &str) {
            self.steps += 1;
        }

        fn is_over(&mut self) -> bool {
            self.ends && self.steps > 0
        }
    }

    const RUNS: NonZeroU32 = NonZeroU32::new(9).unwrap();

    fn over_runs(
        watch: &mut Counting,
        one: impl Fn(&mut Context<'_>) -> Result<Findings> + Sync,
    ) -> Result<Findings> {
        let figures = catalogue::find(&["2001/figure-1".to_owned()])?;
        let mut context = Context {
            figure: &figures[0],
            expectations: &[],
            run: 0,
            engine: Engine::Sim,
            full: false,
            policy: None,
            watch,
        };
        context.over_runs(RUNS, one, double)
    }

    fn double(findings: &mut Findings) {
        findings.add("double", 2.0 * findings.value("number"), "");
    }

    fn findings_of(run: u32) -> Findings {
        let mut findings = Findings::default();
        // Another order of summands would give another sum.
        findings.add("number", 1e17 / f64::from(run + 1) + f64::from(run), "");
        findings
    }

    #[test]
    fn runs_side_by_side_come_to_what_they_do_one_after_another() {
        let mut watch = Counting {
            steps: 0,
            ends: false,
        };
        let together = over_runs(&mut watch, |context| {
            context.watch.step("run");
            // The first runs end last.
            thread::sleep(Duration::from_millis(u64::from(9 - context.run)));
            Ok(findings_of(context.run))
        });
        let serial = Findings::derived((0..RUNS.get()).map(findings_of).collect(), double);
        assert_eq!(together.ok(), Some(serial));
        assert_eq!(watch.steps, RUNS.get());
    }

    /// All other runs learn of an error, and of an interruption: they would wait for ever.
    #[test]
    fn an_error_and_an_interruption_end_all_runs() {
        for ends in [false, true] {
            let mut watch = Counting { steps: 0, ends };
            let ended = over_runs(&mut watch, |context| {
                context.watch.step("run");
                while ends || context.run > 0 {
                    if context.watch.is_over() {
                        return Err(ReproduceError::Interrupted);
                    }
                    thread::sleep(Duration::from_millis(1));
                }
                Err(ReproduceError::NoPaper("a run".to_owned()))
            });
            match ended {
                Err(ReproduceError::Interrupted) => assert!(ends),
                Err(ReproduceError::NoPaper(_)) => assert!(!ends),
                other => panic!("{other:?}"),
            }
        }
    }
}
