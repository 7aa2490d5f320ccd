//! Fault mode over many seeds.

use std::process::ExitCode;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc;
use std::thread;

use anyhow::{Context as _, Result, ensure};
use prorata_sim::fault::{Failure, Survived, trial};
use prorata_sim::trace::Recorder;

use super::sweep::{ProgressBar, threads};
use super::verdict;
use crate::args::sim::SimArgs;
use crate::output::{self, cannot_write, create};

/// Trials without `--seeds`.
const TRIALS: u64 = 1000;

/// `prorata sim --faults`.
pub fn faults(args: &SimArgs) -> Result<ExitCode> {
    let seeds = match (&args.many.seeds, args.seed) {
        (Some(seeds), _) => seeds.clone(),
        (None, Some(seed)) => seed..=seed,
        (None, None) => 1..=TRIALS,
    };
    let (first, last) = (*seeds.start(), *seeds.end());
    if let Some(path) = &args.files.record {
        ensure!(
            first == last,
            "--record takes a single trial: give its seed with --seed N"
        );
        let (recorder, _) = trial(first, Recorder::new(create(path)?));
        recorder.finish().with_context(|| cannot_write(path))?;
    }
    let count = usize::try_from(last - first)
        .unwrap_or(usize::MAX)
        .saturating_add(1);
    let (survived, failures) = all(first, count, threads(&args.many).get());
    if args.format.json {
        let failures: Vec<_> = failures
            .iter()
            .map(|f| serde_json::json!({ "seed": f.seed, "what": f.to_string() }))
            .collect();
        output::json(
            &serde_json::json!({ "trials": count, "total": survived, "failures": failures }),
        )?;
    } else {
        for failure in &failures {
            output::line(&failure.to_string())?;
            let seed = failure.seed;
            output::line(&format!(
                "  repeat it with `prorata sim --faults --seed {seed} --record trial{seed}.trace`"
            ))?;
        }
        output::line(&format!(
            "{count} trials, {} failed: {} events, {} faults, {} refused",
            failures.len(),
            survived.events,
            survived.faults,
            survived.refused
        ))?;
    }
    Ok(verdict(failures.is_empty()))
}

/// Runs the trials. Returns the totals of those that survived, and the failures
/// in the order of their seeds.
fn all(first: u64, count: usize, threads: usize) -> (Survived, Vec<Failure>) {
    let next = AtomicU64::new(0);
    let (sender, receiver) = mpsc::channel();
    let (mut total, mut failures) = (Survived::default(), Vec::new());
    let mut progress = ProgressBar::new();
    thread::scope(|scope| {
        for _ in 0..threads.min(count) {
            let (sender, next) = (sender.clone(), &next);
            scope.spawn(move || {
                loop {
                    let place = next.fetch_add(1, Ordering::Relaxed);
                    if place >= count as u64 {
                        return;
                    }
                    if sender.send(trial(first + place, ()).1).is_err() {
                        return;
                    }
                }
            });
        }
        drop(sender);
        for (done, result) in receiver.iter().enumerate() {
            progress.tell(done + 1, count);
            match result {
                Ok(survived) => {
                    total.events += survived.events;
                    total.faults += survived.faults;
                    total.refused += survived.refused;
                }
                Err(failure) => failures.push(failure),
            }
        }
    });
    progress.end();
    failures.sort_by_key(|failure| failure.seed);
    (total, failures)
}
