//! Sweeps: runs over a grid of settings and seeds, on all cores.

use std::num::NonZero;
use std::path::Path;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::Result;
use prorata_scenario::Scenario;
use prorata_sim::sweep::{Axis, Sweep};

use crate::args::sim::{Many, SimArgs};
use crate::output;
use crate::terminal::ProgressLine;

/// `prorata sim FILE --sweep`.
pub fn sweep(args: &SimArgs, path: &Path) -> Result<ExitCode> {
    let axes = args.many.sweep.iter().map(|text| Axis::parse(text));
    let axes = axes.collect::<Result<Vec<_>, _>>()?;
    let seeds = match &args.many.seeds {
        Some(seeds) => seeds.clone(),
        None => {
            let seed = args.seed.map_or_else(|| own_seed(path), Ok)?;
            seed..=seed
        }
    };
    let sweep = Sweep::new(path, axes, seeds)?;
    let results = match &args.many.results {
        Some(results) => results.clone(),
        None => path.with_extension("results"),
    };
    let mut progress = ProgressBar::new();
    let summary = sweep.run(&results, threads(&args.many), |done, total| {
        progress.tell(done, total);
    })?;
    progress.end();
    if args.format.json {
        output::json(&summary)?;
    } else {
        output::line(&format!(
            "{} runs in {}; an assertion fails in {} of them",
            summary.runs,
            results.display(),
            summary.fail
        ))?;
    }
    Ok(super::verdict(summary.fail == 0))
}

fn own_seed(path: &Path) -> Result<u64> {
    Ok(Scenario::read(path)?.seed.into())
}

/// The chosen number of threads, or one per CPU.
pub fn threads(many: &Many) -> NonZero<usize> {
    let cpus = || std::thread::available_parallelism().unwrap_or(NonZero::<usize>::MIN);
    many.threads.unwrap_or_else(cpus)
}

/// A progress bar on standard error, if that is a terminal.
pub struct ProgressBar {
    line: ProgressLine,
    began: Instant,
    /// Runs done at the start, which do not count for the estimate.
    done_before: Option<usize>,
    last: Option<Instant>,
}

/// Width of the bar.
const COLUMNS: usize = 40;

/// Least time between two updates.
const REFRESH: Duration = Duration::from_millis(100);

impl ProgressBar {
    /// A bar that is not shown yet.
    pub fn new() -> ProgressBar {
        ProgressBar {
            line: ProgressLine::new(),
            began: Instant::now(),
            done_before: None,
            last: None,
        }
    }

    /// Shows that `done` of `total` are done.
    pub fn tell(&mut self, done: usize, total: usize) {
        let before = *self.done_before.get_or_insert(done);
        let recent = self.last.is_some_and(|last| last.elapsed() < REFRESH);
        if recent && done < total {
            return;
        }
        self.last = Some(Instant::now());
        let left = match done - before {
            0 => String::new(),
            here => {
                let each_s = self.began.elapsed().as_secs_f64() / here as f64;
                format!(", {:.0} s left", each_s * (total - done) as f64)
            }
        };
        self.line
            .show(&format!("{} {done}/{total}{left}", bar(done, total)));
    }

    pub fn end(&self) {
        self.line.clear();
    }
}

fn bar(done: usize, total: usize) -> String {
    let full = done * COLUMNS / total.max(1);
    format!("[{}{}]", "#".repeat(full), "-".repeat(COLUMNS - full))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bar_is_full_exactly_at_the_end() {
        assert_eq!(bar(0, 3), format!("[{}]", "-".repeat(40)));
        assert_eq!(bar(3, 3), format!("[{}]", "#".repeat(40)));
        assert!(bar(9_999, 10_000).ends_with("-]"));
    }
}
