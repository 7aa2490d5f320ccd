//! `reproduce`: repeats the papers' experiments and prints the verdicts.

use std::fs;
use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context as _, Result};
use nix::sys::signal::Signal;
use prorata_reproduce::{
    Engine, Figure, Parameter, ReproduceError, Reproduction, Settings, Verdict, Watch,
    beyond_table, find, page, papers, reproduce as run, table,
};

use crate::args::values::AnyEngine;
use crate::args::{WrongUsage, reproduce};
use crate::output;
use crate::terminal::ProgressLine;
use crate::wrapper::signals::{CLEARING, Interruption};

pub fn reproduce(args: &reproduce::ReproduceArgs) -> Result<ExitCode> {
    let engines = engines(args);
    let runs = runs(args, &engines)?;
    if let Some(path) = &args.html {
        output::check_writable(path)?;
    }
    let on_processes = engines.iter().any(|engine| *engine != Engine::Sim);
    let held: &[Signal] = if on_processes {
        &CLEARING
    } else {
        // A simulation leaves nothing to clean up.
        &[]
    };
    let mut progress = FigureProgress::new(runs.len(), Interruption::block(held)?);
    let mut done = Vec::new();
    let mut printed = 0;
    for (place, (figure, engine)) in runs.iter().enumerate() {
        progress.begin(figure);
        let settings = Settings {
            engine: *engine,
            full: args.full,
            seed: args.seed,
            beyond: true,
        };
        match run(figure, settings, &mut progress) {
            Err(ReproduceError::Interrupted) => return Ok(progress.interrupted()),
            reproduced => done.push(reproduced?),
        }
        progress.line.clear();
        let next = runs.get(place + 1);
        let goes_on = next.is_some_and(|next| of_paper(next) == of_paper(&runs[place]));
        // A paper begins with its headlines, so its figures are printed together.
        if !args.format.json && !goes_on {
            print_papers(&done[printed..])?;
            printed = done.len();
        }
    }
    if let Some(directory) = &args.svg {
        write_drawings(directory, &done)?;
    }
    if let Some(path) = &args.html {
        output::document(path, &page(&done))?;
    }
    if args.format.json {
        output::json(&papers(&done))?;
    } else {
        output::line(&closing(&done))?;
    }
    Ok(exit_code(&done))
}

/// Year of the paper, and engine.
fn of_paper((figure, engine): &(Figure, Engine)) -> (u32, Engine) {
    (figure.paper(), *engine)
}

/// `53 figures: 30 reproduced, 23 differ, 0 failed`.
fn closing(done: &[Reproduction]) -> String {
    let count = |verdict| done.iter().filter(|r| r.verdict == verdict).count();
    format!(
        "{}: {} reproduced, {} differ, {} failed",
        output::count(done.len() as u64, "figure"),
        count(Verdict::Reproduced),
        count(Verdict::Differs),
        count(Verdict::Failed)
    )
}

/// Success means that every number came out as the paper prints it.
fn exit_code(done: &[Reproduction]) -> ExitCode {
    match done.iter().map(|reproduction| reproduction.verdict).max() {
        None | Some(Verdict::Reproduced) => ExitCode::SUCCESS,
        Some(Verdict::Differs) => ExitCode::from(DIFFERS),
        Some(Verdict::Failed) => ExitCode::FAILURE,
    }
}

/// Exit code if some number differs and none fails. 2 is wrong usage.
const DIFFERS: u8 = 3;

/// The chosen engines without repeats.
fn engines(args: &reproduce::ReproduceArgs) -> Vec<Engine> {
    let mut engines = args.engine.clone();
    engines.sort_unstable();
    engines.dedup();
    let engines = engines.into_iter().map(|engine| match engine {
        AnyEngine::Sim => Engine::Sim,
        AnyEngine::User => Engine::User,
        AnyEngine::Kernel => Engine::Kernel,
    });
    engines.collect()
}

/// The figures to run on each engine. Without names these are all figures that
/// the engine supports; a named figure that it does not support is an error.
fn runs(args: &reproduce::ReproduceArgs, engines: &[Engine]) -> Result<Vec<(Figure, Engine)>> {
    let mut runs = Vec::new();
    for &engine in engines {
        let mut figures = find(&args.ids).map_err(|error| match error {
            ReproduceError::Unknown { .. } => WrongUsage(error.to_string()).into(),
            error => anyhow::Error::from(error),
        })?;
        // A year means those of its figures that the engine can run.
        let is_run = match engine {
            Engine::Sim => Figure::by_simulation,
            Engine::User | Engine::Kernel => Figure::on_processes,
        };
        let is_named = |figure: &Figure| {
            let mut names = args.ids.iter().map(|id| id.trim_end_matches(".toml"));
            names.any(|name| name == figure.id)
        };
        if figures.iter().any(is_run) {
            figures.retain(|figure| is_run(figure) || is_named(figure));
        }
        figures.sort_by_key(Figure::paper);
        runs.extend(figures.into_iter().map(|figure| (figure, engine)));
    }
    let goes_further =
        |(figure, engine): &(Figure, Engine)| *engine != Engine::Sim || figure.has_more_in_full();
    if args.full && !runs.iter().any(goes_further) {
        let mut longer = find(&[])?;
        longer.retain(Figure::has_more_in_full);
        let longer: Vec<String> = longer.into_iter().map(|figure| figure.id).collect();
        let only = format!(
            "--full does not change these simulated figures: \
             add --engine user or kernel, or name one of {}",
            longer.join(", ")
        );
        return Err(WrongUsage(only).into());
    }
    Ok(runs)
}

fn print_papers(reproductions: &[Reproduction]) -> Result<()> {
    for paper in papers(reproductions) {
        output::line(&paper.summary())?;
        output::line(&paper.by_source())?;
        output::line("")?;
        paper.figures.iter().try_for_each(print)?;
    }
    Ok(())
}

fn print(reproduction: &Reproduction) -> Result<()> {
    output::line(&format!("{} [{}]", reproduction.heading(), reproduction.id))?;
    output::table(&table(reproduction), "nothing was measured")?;
    output::line(&reproduction.summary())?;
    for (because, metrics) in reproduction.reasons() {
        output::line(&format!("{} differ: {because}", metrics.len()))?;
    }
    for Parameter { what, origin, how } in &reproduction.parameters {
        output::line(&format!("parameter, {}: {what}; {how}", origin.words()))?;
    }
    let beyond = beyond_table(reproduction);
    if !beyond.is_empty() {
        output::line("Beyond the paper, the same under other policies:")?;
        output::table(&beyond, "")?;
    }
    output::line("")
}

fn write_drawings(directory: &Path, reproductions: &[Reproduction]) -> Result<()> {
    fs::create_dir_all(directory)
        .with_context(|| format!("cannot make {}", directory.display()))?;
    for reproduction in reproductions {
        for drawing in &reproduction.drawings {
            let mut name = reproduction.id.clone();
            name.push_str(match reproduction.engine {
                Engine::Sim => "",
                Engine::User => "-on-processes",
                Engine::Kernel => "-in-the-kernel",
            });
            if !drawing.panel.is_empty() {
                name.push('-');
                name.push_str(&drawing.panel);
            }
            let name = name.replace([' ', '/'], "-");
            output::document(&directory.join(format!("{name}.svg")), &drawing.svg)?;
        }
    }
    Ok(())
}

/// The progress line, and the signal that ends the run early.
struct FigureProgress {
    figures: usize,
    begun: usize,
    figure: String,
    line: ProgressLine,
    interruption: Interruption,
}

impl FigureProgress {
    fn new(figures: usize, interruption: Interruption) -> FigureProgress {
        FigureProgress {
            figures,
            begun: 0,
            figure: String::new(),
            line: ProgressLine::new(),
            interruption,
        }
    }

    fn begin(&mut self, figure: &Figure) {
        self.begun += 1;
        self.figure = figure.id.clone();
        self.show("");
    }

    fn show(&self, what: &str) {
        let Self {
            begun,
            figures,
            figure,
            ..
        } = self;
        self.line
            .show(&format!("[{begun}/{figures}] {figure} {what}"));
    }

    fn interrupted(&self) -> ExitCode {
        self.line.clear();
        self.interruption.pass_on()
    }
}

impl Watch for FigureProgress {
    fn step(&mut self, what: &str) {
        if !what.is_empty() {
            self.show(what);
        }
    }

    fn is_over(&mut self) -> bool {
        self.interruption.signal().is_some()
    }
}
