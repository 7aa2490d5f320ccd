//! Runs a scenario on real processes.

use std::path::Path;
use std::process::ExitCode;

use anyhow::Result;
use prorata_scenario::{Plan, Scenario};
use prorata_stage::{KERNEL, ProcessEngine, StageError, USER, Watch, check};

use super::sweep::ProgressBar;
use crate::args::WrongUsage;
use crate::args::sim::SimArgs;
use crate::args::values::AnyEngine;
use crate::wrapper::signals::{CLEARING, Interruption};

/// `prorata sim FILE --engine user` and `--engine kernel`.
pub fn run(args: &SimArgs, path: &Path) -> Result<ExitCode> {
    let kind: &'static ProcessEngine = match args.engine {
        AnyEngine::Sim => unreachable!("the simulator has no processes"),
        AnyEngine::User => &USER,
        AnyEngine::Kernel => &KERNEL,
    };
    let files = &args.files;
    if args.step || files.perfetto.is_some() || files.record.is_some() {
        let only = "--step, --record and --perfetto are for the simulator: leave --engine out";
        return Err(WrongUsage(only.to_owned()).into());
    }
    let mut scenario = Scenario::read_for(path, |scenario| check(scenario, kind))?;
    let seed = args.seed.unwrap_or(scenario.seed.into());
    super::keep_scenario(path, files)?;
    super::ask_for_series(files, &mut scenario);
    // These signals end the run, which then cleans up.
    let mut wait = RunProgress {
        interruption: Interruption::block(&CLEARING)?,
        progress: ProgressBar::new(),
    };
    let run = prorata_stage::run(&scenario, seed, kind, &mut wait);
    wait.progress.end();
    let report = match run {
        Err(StageError::Interrupted) => return Ok(wait.interruption.pass_on()),
        run => run?,
    };
    let plan = Plan::new(&scenario)?;
    let groups = plan.groups.iter();
    let groups: Vec<_> = groups
        .map(|group| (group.name.as_str(), group.clients.clone()))
        .collect();
    super::give_out(args, &report, None, &groups)
}

/// Shows the progress until a signal ends the run.
struct RunProgress {
    interruption: Interruption,
    progress: ProgressBar,
}

impl Watch for RunProgress {
    fn goes_on(&mut self, now_ns: u64, end_ns: u64) -> bool {
        let ms = |ns: u64| (ns / 1_000_000) as usize;
        self.progress.tell(ms(now_ns), ms(end_ns).max(1));
        self.interruption.signal().is_none()
    }
}
