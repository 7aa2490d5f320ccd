//! `demo`: three real programs share one CPU by tickets, or four have slots of a timetable.

mod programs;
mod record;
mod show;
mod slots;

use std::fs::File;
use std::process::ExitCode;

use anyhow::{Context as _, Result};
use prorata_scenario::Scenario;
use prorata_scenario::measure::PointReport;
use prorata_stage::{Cast, KERNEL, Stage, StageError, USER, Watch, own_cpus, run_cast};

use self::programs::Program;
use self::record::Record;
use self::show::Show;
use crate::args::daemon::DemoArgs;
use crate::args::values::DaemonEngine;
use crate::output;
use crate::wrapper::signals::{CLEARING, Interruption};

/// The programs and their initial tickets, 3:2:1.
const PROGRAMS: [(&str, u32); 3] = [("first", 3), ("second", 2), ("third", 1)];

/// Tickets of the last program in the second half.
const INFLATED: u32 = 4;

/// The quantum; the policy is the default.
const QUANTUM_NS: u64 = 20_000_000;

pub fn demo(args: &DemoArgs) -> Result<ExitCode> {
    if args.slots {
        return slots::demo(args);
    }
    let interruption = Interruption::block(&CLEARING)?;
    let program = Program::find()?;
    let cpus = own_cpus().context("cannot find out our CPUs")?;
    let cpu = *cpus.last().context("there is no CPU to share")?;
    let kind = match args.engine {
        DaemonEngine::User => &USER,
        DaemonEngine::Kernel => &KERNEL,
    };
    let mut wait = Wait {
        interruption,
        show: Show::new(args, &program.line(), cpu)?,
        record: Record::new(program.line(), cpu, args.seconds),
        shown: Ok(()),
    };
    let scenario = scenario(args.seconds)?;
    let cast = cast(program).context("cannot open /dev/null")?;
    let run = run_cast(&scenario, 0, kind, Some(cast), &mut wait);
    let Wait {
        mut interruption,
        show,
        record,
        shown,
    } = wait;
    drop(show);
    if matches!(run, Err(StageError::Interrupted)) && interruption.signal().is_some() {
        return Ok(interruption.pass_on());
    }
    shown?;
    let report = run?;
    let mechanism = report.mechanism.unwrap_or_default();
    let summary = record.summary(report.policy, report.engine, mechanism);
    if args.format.json {
        output::json(&summary)?;
    } else {
        show::summary(&summary)
            .iter()
            .try_for_each(|line| output::line(line))?;
    }
    if let Some(path) = &args.svg {
        output::document(path, &record.plot(&summary).svg())?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Three programs on one CPU; half-way the last one is inflated.
fn scenario(seconds: u32) -> Result<Scenario> {
    let mut text = format!(
        "title = \"Three programs share one CPU by tickets\"\n\
         duration = \"{seconds}s\"\n\
         [machine]\nquantum = \"{QUANTUM_NS}ns\"\n\
         [measure]\nevery = \"100ms\"\n"
    );
    for (name, tickets) in PROGRAMS {
        text.push_str(&format!(
            "[[client]]\nname = \"{name}\"\ntickets = {tickets}\n"
        ));
    }
    let (last, _) = PROGRAMS[PROGRAMS.len() - 1];
    let half_ms = seconds * 500;
    text.push_str(&format!(
        "[[at]]\ntime = \"{half_ms}ms\"\n\
         do = {{ set-tickets = {{ of = \"{last}\", tickets = {INFLATED} }} }}\n"
    ));
    Ok(Scenario::parse("demo".as_ref(), text)?)
}

fn cast(program: Program) -> std::io::Result<Cast> {
    let outputs = PROGRAMS.map(|_| File::options().write(true).open("/dev/null"));
    let words = std::iter::once(&program.name).chain(program.arguments);
    Ok(Cast {
        program: program.name.to_owned(),
        arguments: words.map(|word| (*word).to_owned()).collect(),
        outputs: outputs.into_iter().collect::<Result<_, _>>()?,
    })
}

/// Records and shows the run until a signal comes.
struct Wait {
    interruption: Interruption,
    show: Show,
    record: Record,
    /// An error once our output has no reader.
    shown: Result<()>,
}

impl Watch for Wait {
    fn goes_on(&mut self, _: u64, _: u64) -> bool {
        self.interruption.signal().is_none() && self.shown.is_ok()
    }

    fn sampled(&mut self, stage: &Stage, real_ns: u64, point: &PointReport) {
        self.record.add(point, real_ns, stage.status().own_cpu_ns);
        if self.shown.is_ok() {
            self.shown = self.show.update(&self.record);
        }
    }
}
