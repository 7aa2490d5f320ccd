//! Sweeps: one scenario under a grid of settings and seeds, over all cores.
//!
//! Each run that ends adds its result to a file as a line of JSON. An interrupted sweep
//! resumes where it stopped: runs that have a line do not repeat.

mod results;
mod setting;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::{self, Write};
use std::num::NonZero;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;
use std::thread;

use prorata_scenario::RunError;
use prorata_scenario::file::{ReadError, Scenario};
use serde::{Deserialize, Serialize};
use toml::{Table, Value};

use crate::machine::Simulation;
use crate::measures::Measures;
use crate::report::report;
use crate::trace::Fingerprint;
use results::{Line, key, take_up};
pub use setting::Axis;
use setting::{place, set};

/// Most runs of a sweep.
pub const MAX_RUNS: usize = 1 << 24;

/// A scenario with axes and seeds.
#[derive(Clone, Debug)]
pub struct Sweep {
    path: PathBuf,
    scenario: Table,
    /// See [`fingerprint`].
    fingerprint: String,
    /// Each of another setting.
    axes: Vec<Axis>,
    /// By settings, the fingerprint of the scenario with them: their values may
    /// name traces.
    fingerprints: BTreeMap<BTreeMap<String, String>, String>,
    seeds: RangeInclusive<u64>,
}

/// One run of a sweep.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct GridPoint {
    /// Values by setting, as they stand in TOML.
    pub settings: BTreeMap<String, String>,
    /// All that chance comes from.
    pub seed: u64,
}

/// A sweep that is done.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct Done {
    /// Its runs.
    pub runs: usize,
    /// Those in which an assertion does not hold.
    pub fail: usize,
}

/// A sweep that cannot be run or taken up.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the messages explain the variants")]
pub enum SweepError {
    #[error(transparent)]
    Scenario(#[from] ReadError),
    #[error("there is no place {setting} in the scenario: {segment} is {why}")]
    Setting {
        setting: String,
        segment: String,
        why: &'static str,
    },
    #[error(
        "{0} is no list of values: write them as in TOML, with commas between them, text in quotes or without spaces"
    )]
    Values(String),
    #[error("the sweep has more than {MAX_RUNS} runs: leave out settings or seeds")]
    TooManyRuns,
    #[error(
        "{setting} is swept twice, the second time as {again}: write all its values in one list, with commas between them"
    )]
    Twice {
        setting: String,
        /// As it, or what it is part of, is named again.
        again: String,
    },
    #[error(
        "{} holds results of another scenario, trace or version of prorata: name another file", .0.display()
    )]
    OtherScenario(PathBuf),
    #[error("{} holds something else than results of a sweep: name another file", .0.display())]
    NoResults(PathBuf),
    #[error("{}: {error}", path.display())]
    File { path: PathBuf, error: io::Error },
    #[error("seed {seed}: {error}")]
    Run { seed: u64, error: RunError },
}

impl Sweep {
    /// A sweep of the scenario at `path`, whose first point is checked.
    ///
    /// # Errors
    ///
    /// If the scenario is refused, or a setting stands nowhere in it or is
    /// named twice.
    pub fn new(
        path: &Path,
        axes: Vec<Axis>,
        seeds: RangeInclusive<u64>,
    ) -> Result<Sweep, SweepError> {
        let text = std::fs::read_to_string(path).map_err(|error| SweepError::File {
            path: path.to_owned(),
            error,
        })?;
        let without_settings = fingerprint(&Scenario::parse(path, text.clone())?);
        let scenario: Table = toml::from_str(&text).expect("it was read already");
        check_twins(&scenario, &axes)?;
        let mut sweep = Sweep {
            path: path.to_owned(),
            scenario,
            fingerprint: without_settings,
            axes,
            fingerprints: BTreeMap::new(),
            seeds,
        };
        let seeds = sweep
            .seeds
            .end()
            .saturating_sub(*sweep.seeds.start())
            .saturating_add(1);
        let runs = sweep.axes.iter().map(|axis| axis.values.len() as u64);
        if runs.fold(seeds, u64::saturating_mul) > MAX_RUNS as u64 {
            return Err(SweepError::TooManyRuns);
        }
        for settings in sweep.settings() {
            let with_settings = fingerprint(&sweep.scenario(&settings)?);
            sweep.fingerprints.insert(settings, with_settings);
        }
        Ok(sweep)
    }

    /// All runs: the first axis changes slowest, the seed fastest.
    pub fn points(&self) -> Vec<GridPoint> {
        let points = self.settings().into_iter().flat_map(|settings| {
            self.seeds.clone().map(move |seed| GridPoint {
                settings: settings.clone(),
                seed,
            })
        });
        points.collect()
    }

    /// All points but for their seeds.
    fn settings(&self) -> Vec<BTreeMap<String, String>> {
        let mut settings = vec![BTreeMap::new()];
        for axis in &self.axes {
            let with = |point: &BTreeMap<String, String>, value: &Value| {
                let mut point = point.clone();
                point.insert(axis.setting.clone(), value.to_string());
                point
            };
            let points = settings.iter();
            settings = points
                .flat_map(|point| axis.values.iter().map(move |value| with(point, value)))
                .collect();
        }
        settings
    }

    /// The scenario with a point's settings.
    fn scenario(&self, settings: &BTreeMap<String, String>) -> Result<Scenario, SweepError> {
        let mut table = self.scenario.clone();
        for (axis, value) in settings.iter().map(|(setting, text)| {
            let axis = self.axes.iter().find(|axis| axis.setting == *setting);
            let axis = axis.expect("points are made of axes");
            (
                axis,
                axis.values.iter().find(|value| value.to_string() == *text),
            )
        }) {
            let value = value.expect("points are made of values").clone();
            set(&mut table, &axis.setting, value)?;
        }
        Ok(Scenario::parse(&self.path, table.to_string())?)
    }

    /// Makes all runs whose results are not in the file at `results`, on as
    /// many threads, and tells how many are done of how many each time one is.
    ///
    /// # Errors
    ///
    /// The first error of a run or of the file; what was done stays there.
    pub fn run(
        &self,
        results: &Path,
        threads: NonZero<usize>,
        mut progress: impl FnMut(usize, usize),
    ) -> Result<Done, SweepError> {
        let file_error = |error| SweepError::File {
            path: results.to_owned(),
            error,
        };
        let (mut file, done) = take_up(results, &self.fingerprint)?;
        let points = self.points();
        for point in &points {
            let kept = done.get(&key(point));
            if kept.is_some_and(|kept| kept.scenario != self.fingerprints[&point.settings]) {
                return Err(SweepError::OtherScenario(results.to_owned()));
            }
        }
        let total = points.len();
        let left: Vec<&GridPoint> = points
            .iter()
            .filter(|point| !done.contains_key(&key(point)))
            .collect();
        let mut finished = total - left.len();
        let kept = points.iter().filter_map(|point| done.get(&key(point)));
        let mut fail = kept.filter(|kept| !kept.holds).count();
        progress(finished, total);
        let next = AtomicUsize::new(0);
        let (sender, receiver) = mpsc::channel();
        thread::scope(|scope| {
            for _ in 0..threads.get().min(left.len()) {
                let (sender, next, left) = (sender.clone(), &next, &left);
                scope.spawn(move || {
                    while let Some(point) = left.get(next.fetch_add(1, Ordering::Relaxed)) {
                        if sender.send(self.line(point)).is_err() {
                            break;
                        }
                    }
                });
            }
            drop(sender);
            let written: Result<(), SweepError> = receiver.iter().try_for_each(|run| {
                let (line, holds) = run?;
                writeln!(file, "{line}").map_err(file_error)?;
                fail += usize::from(!holds);
                finished += 1;
                progress(finished, total);
                Ok(())
            });
            // The threads find no run left, or no receiver.
            next.store(left.len(), Ordering::Relaxed);
            drop(receiver);
            written
        })?;
        Ok(Done { runs: total, fail })
    }

    /// Makes a run. Returns its line, and whether its assertions hold.
    fn line(&self, point: &GridPoint) -> Result<(String, bool), SweepError> {
        let scenario = self.scenario(&point.settings)?;
        let seed = point.seed;
        let simulation = Simulation::watched(&scenario, seed, Measures::new());
        let mut simulation = simulation.expect("the scenario was checked when it was read");
        simulation
            .run()
            .map_err(|error| SweepError::Run { seed, error })?;
        let report = report(&scenario, seed, simulation.machine(), simulation.observer());
        let line = Line {
            point,
            scenario: &self.fingerprints[&point.settings],
            report: &report,
        };
        let text = serde_json::to_string(&line).expect("a report is JSON");
        Ok((text, report.holds()))
    }
}

/// No setting has two axes, by whatever names, and none stands within another.
fn check_twins(scenario: &Table, axes: &[Axis]) -> Result<(), SweepError> {
    let places = axes.iter().map(|axis| place(scenario, &axis.setting));
    let places: Vec<Vec<String>> = places.collect();
    for (i, (axis, one)) in axes.iter().zip(&places).enumerate() {
        let twin = |other: &&Vec<String>| one.starts_with(other) || other.starts_with(one);
        if let Some(first) = places[..i].iter().position(|other| twin(&other)) {
            return Err(SweepError::Twice {
                setting: axes[first].setting.clone(),
                again: axis.setting.clone(),
            });
        }
    }
    Ok(())
}

/// All that results come from but seeds: the scenario with the
/// traces that it names, and the version of the simulator.
fn fingerprint(scenario: &Scenario) -> String {
    let scenario = serde_json::to_string(scenario).expect("a scenario is JSON");
    let mut fingerprint = Fingerprint::default();
    write!(fingerprint, "{}\n{scenario}", env!("CARGO_PKG_VERSION"))
        .expect("a fingerprint takes everything");
    format!("{:016x}", fingerprint.value())
}
