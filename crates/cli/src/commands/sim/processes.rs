//! A scenario on real processes.

use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context as _, Result};
use nix::sys::signal::Signal;
use prorata_scenario::{Plan, Scenario};
use prorata_stage::{EngineKind, KERNEL, StageError, USER, Watch, check};

use super::sweep::Progress;
use crate::args::WrongUsage;
use crate::args::sim::{Engine, Sim};
use crate::wrapper::ending::Ending;
use crate::wrapper::signals::{CLEARING, Signals};

/// `prorata sim FILE --engine` with an engine for processes.
pub fn run(args: &Sim, path: &Path) -> Result<ExitCode> {
    let kind: &'static EngineKind = match args.engine {
        Engine::Sim => unreachable!("the simulator has no processes"),
        Engine::User => &USER,
        Engine::Kernel => &KERNEL,
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
    // Whatever ends us early, everything is cleared away first.
    let signals = Signals::block(&CLEARING).context("cannot handle signals")?;
    let mut wait = Wait {
        signals,
        signal: None,
        progress: Progress::new(),
    };
    let run = prorata_stage::run(&scenario, seed, kind, &mut wait);
    wait.progress.end();
    let report = match (run, wait.signal) {
        (Err(StageError::Interrupted), Some(signal)) => {
            return Ok(Ending::Killed(signal).pass_on());
        }
        (run, _) => run?,
    };
    let plan = Plan::new(&scenario)?;
    let groups = plan.groups.iter();
    let groups: Vec<_> = groups
        .map(|group| (group.name.as_str(), group.clients.clone()))
        .collect();
    super::give_out(args, &report, None, &groups)
}

/// Shows how far it is, until a signal comes.
struct Wait {
    signals: Signals,
    signal: Option<Signal>,
    progress: Progress,
}

impl Watch for Wait {
    fn goes_on(&mut self, now_ns: u64, end_ns: u64) -> bool {
        let ms = |ns: u64| (ns / 1_000_000) as usize;
        self.progress.tell(ms(now_ns), ms(end_ns).max(1));
        self.signal = self.signal.or_else(|| self.signals.next_to_end());
        self.signal.is_none()
    }
}
