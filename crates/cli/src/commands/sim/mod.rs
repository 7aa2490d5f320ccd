//! `sim`: runs scenarios, on the simulated machine or on real processes.

mod faults;
mod figures;
mod plot;
mod processes;
mod step;
mod sweep;

use std::io::{self, Write};
use std::ops::Range;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context as _, Result, bail};
use prorata_scenario::file::Time;
use prorata_scenario::{Plan, Report, Scenario};
use prorata_sim::perfetto::Perfetto;
use prorata_sim::trace::Recorder;
use prorata_sim::{Measures, Simulation, report};

use crate::args::sim::{Files, SimArgs};
use crate::args::values::AnyEngine;
use crate::output::{self, cannot_write, create};

/// Points of a time series if an output file needs one and the scenario has
/// none.
const POINTS: u64 = 200;

pub fn sim(args: &SimArgs) -> Result<ExitCode> {
    if args.schema {
        output::line(&format!("{:#}", prorata_reproduce::schema()))?;
        return Ok(ExitCode::SUCCESS);
    }
    if args.many.faults {
        return faults::faults(args);
    }
    let path = args.scenario.as_deref().expect("the arguments ask for one");
    if !args.many.sweep.is_empty() || args.many.seeds.is_some() {
        return sweep::sweep(args, path);
    }
    if args.engine != AnyEngine::Sim {
        return processes::run(args, path);
    }
    let mut scenario = Scenario::read(path)?;
    let seed = args.seed.unwrap_or(scenario.seed.into());
    if args.step {
        return step::step(&scenario, seed);
    }
    keep_scenario(path, &args.files)?;
    ask_for_series(&args.files, &mut scenario);
    run(args, &scenario, seed)
}

/// Adds a time series to the scenario if an output file needs one.
fn ask_for_series(files: &Files, scenario: &mut Scenario) {
    let needs_series = files.csv.is_some() || files.svg.is_some();
    if needs_series && scenario.measure.every.is_none() {
        scenario.measure.every = Some(Time((scenario.duration.0 / POINTS).max(1)));
    }
}

fn run(args: &SimArgs, scenario: &Scenario, seed: u64) -> Result<ExitCode> {
    let files = &args.files;
    // A refused scenario must not truncate the output files.
    let plan = Plan::new(scenario)?;
    let recorder = files.record.as_deref().map(create).transpose()?;
    let perfetto = files.perfetto.as_deref().map(create).transpose()?;
    let watch = (
        Measures::new(),
        (recorder.map(Recorder::new), perfetto.map(Perfetto::new)),
    );
    let mut simulation = Simulation::of(plan, seed, watch);
    simulation.run()?;
    let (machine, (measures, (recorder, perfetto))) = simulation.into_parts();
    if let (Some(recorder), Some(path)) = (recorder, &files.record) {
        recorder.finish().with_context(|| cannot_write(path))?;
    }
    if let (Some(perfetto), Some(path)) = (perfetto, &files.perfetto) {
        perfetto.finish().with_context(|| cannot_write(path))?;
    }
    let report = report(scenario, seed, &machine, &measures);
    let groups: Vec<_> = machine.groups().collect();
    give_out(args, &report, Some(&measures), &groups)
}

/// Prints the report of a run and writes its files.
fn give_out(
    args: &SimArgs,
    report: &Report,
    measures: Option<&Measures>,
    groups: &[(&str, Range<u32>)],
) -> Result<ExitCode> {
    let files = &args.files;
    if let Some(path) = &files.svg {
        let drawing = plot::all(report, measures, groups).finish();
        output::document(path, &drawing)?;
    }
    match files.csv.as_deref() {
        Some(path) if path.as_os_str() == "-" => report.write_csv(io::stdout().lock())?,
        Some(path) => {
            let mut file = create(path)?;
            let written = report.write_csv(&mut file).and_then(|()| file.flush());
            written.with_context(|| cannot_write(path))?;
            figures::print(report, args.format)?;
        }
        None => figures::print(report, args.format)?,
    }
    Ok(verdict(report.holds()))
}

/// Refuses an output file that is the scenario file, under any name.
fn keep_scenario(scenario: &Path, files: &Files) -> Result<()> {
    let inode = |path: &Path| path.metadata().ok().map(|file| (file.dev(), file.ino()));
    let Some(kept) = inode(scenario) else {
        return Ok(());
    };
    for (option, path) in [
        ("--csv", &files.csv),
        ("--svg", &files.svg),
        ("--perfetto", &files.perfetto),
        ("--record", &files.record),
    ] {
        if let Some(path) = path
            && inode(path) == Some(kept)
        {
            let path = path.display();
            bail!("{option} {path} is the scenario itself: name another file");
        }
    }
    Ok(())
}

fn verdict(holds: bool) -> ExitCode {
    if holds {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}
