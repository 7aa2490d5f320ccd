//! Sweeps: one scenario under a grid of settings and seeds, over all cores.
//!
//! Results are kept as lines of JSON in a file, one a run, as runs end. A
//! sweep that was broken off is taken up where it stopped: runs whose line is
//! there are not repeated.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs::{File, OpenOptions};
use std::io::{self, BufRead, BufReader, Seek, Write};
use std::num::NonZero;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;
use std::thread;

use serde::{Deserialize, Serialize};
use toml::{Table, Value};

use crate::machine::{RunError, Simulation};
use crate::measure::{Measures, Report};
use crate::scenario::{ReadError, Scenario};
use crate::trace::Fingerprint;

/// Most runs of a sweep.
pub const MAX_RUNS: usize = 1 << 24;

/// One setting of the scenario and the values that it takes.
#[derive(Clone, PartialEq, Debug)]
pub struct Axis {
    /// Where it stands: keys with points between them, and for lists names or
    /// numbers, such as `machine.quantum` or `client.A.tickets`.
    pub setting: String,
    /// As TOML.
    pub values: Vec<Value>,
}

/// A scenario with axes and seeds.
#[derive(Clone, Debug)]
pub struct Sweep {
    path: PathBuf,
    scenario: Table,
    /// See [`fingerprint`].
    fingerprint: String,
    /// Each of another setting.
    axes: Vec<Axis>,
    seeds: RangeInclusive<u64>,
}

/// One run of a sweep.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Point {
    /// Values by setting, as they stand in TOML.
    pub settings: BTreeMap<String, String>,
    /// All that chance comes from.
    pub seed: u64,
}

/// A line of the results.
#[derive(Serialize)]
struct Line<'a> {
    #[serde(flatten)]
    point: &'a Point,
    report: &'a Report,
}

/// What of a line tells which run it is of, and how that ended.
#[derive(Deserialize)]
struct Kept {
    #[serde(flatten)]
    point: Point,
    report: KeptReport,
}

#[derive(Deserialize)]
struct KeptReport {
    verdicts: Vec<KeptVerdict>,
}

#[derive(Deserialize)]
struct KeptVerdict {
    holds: bool,
}

impl Kept {
    fn holds(&self) -> bool {
        self.report.verdicts.iter().all(|verdict| verdict.holds)
    }
}

/// A sweep that is done.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct Done {
    /// Its runs.
    pub runs: usize,
    /// Those in which an assertion does not hold.
    pub fail: usize,
}

/// The first line of the results.
#[derive(Serialize, Deserialize)]
struct Head {
    scenario: String,
}

/// A sweep that cannot be run or taken up.
#[derive(Debug, thiserror::Error)]
pub enum SweepError {
    /// The scenario is refused, with some settings.
    #[error(transparent)]
    Scenario(#[from] ReadError),
    /// A setting stands nowhere in the scenario.
    #[error("there is no place {setting} in the scenario: {segment} is {why}")]
    Setting {
        /// The setting.
        setting: String,
        /// The part of it that leads nowhere.
        segment: String,
        /// Why.
        why: &'static str,
    },
    /// A value that is not TOML.
    #[error(
        "{0} is no list of values: write them as in TOML, with commas between them, text in quotes or without spaces"
    )]
    Values(String),
    /// More runs than a sweep may have.
    #[error("the sweep has more than {MAX_RUNS} runs: leave out settings or seeds")]
    TooManyRuns,
    /// A setting has two axes.
    #[error("{0} is swept twice: write all its values in one list, with commas between them")]
    Twice(String),
    /// The results are of another scenario, of other traces or of another
    /// version of the simulator.
    #[error(
        "{} holds results of another scenario, trace or version of prorata: name another file", .0.display()
    )]
    OtherScenario(PathBuf),
    /// The file is there and holds no results.
    #[error("{} holds something else than results of a sweep: name another file", .0.display())]
    NoResults(PathBuf),
    /// The results cannot be read or written.
    #[error("{}: {error}", path.display())]
    File {
        /// Which file.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// A run cannot go on.
    #[error("seed {seed}: {error}")]
    Run {
        /// Its seed.
        seed: u64,
        /// Why.
        error: RunError,
    },
}

impl Axis {
    /// From `SETTING=VALUE,VALUE...`; a value that is not TOML is taken as
    /// text, so that times need no quotes.
    ///
    /// # Errors
    ///
    /// If there is no `=` or no value.
    pub fn parse(text: &str) -> Result<Axis, SweepError> {
        let error = || SweepError::Values(text.to_owned());
        let (setting, values) = text.split_once('=').ok_or_else(error)?;
        if setting.is_empty() || values.is_empty() {
            return Err(error());
        }
        let list = |values: &str| -> Option<Vec<Value>> {
            let table: Table = toml::from_str(&format!("values = [{values}]")).ok()?;
            table.get("values")?.as_array().cloned()
        };
        let bare = || {
            values
                .split(',')
                .map(|value| Value::String(value.trim().to_owned()))
        };
        Ok(Axis {
            setting: setting.trim().to_owned(),
            values: list(values).unwrap_or_else(|| bare().collect()),
        })
    }
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
        let fingerprint = fingerprint(&Scenario::parse(path, text.clone())?);
        let scenario: Table = toml::from_str(&text).expect("it was read already");
        let mut settings = BTreeSet::new();
        if let Some(twice) = axes.iter().find(|axis| !settings.insert(&axis.setting)) {
            return Err(SweepError::Twice(twice.setting.clone()));
        }
        let sweep = Sweep {
            path: path.to_owned(),
            scenario,
            fingerprint,
            axes,
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
            sweep.scenario(&settings)?;
        }
        Ok(sweep)
    }

    /// All runs: the first axis changes slowest, the seed fastest.
    pub fn points(&self) -> Vec<Point> {
        let points = self.settings().into_iter().flat_map(|settings| {
            self.seeds.clone().map(move |seed| Point {
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
        let (mut file, done) = self.take_up(results)?;
        let points = self.points();
        let total = points.len();
        let left: Vec<&Point> = points
            .iter()
            .filter(|point| !done.contains_key(&key(point)))
            .collect();
        let mut finished = total - left.len();
        let kept = points.iter().filter_map(|point| done.get(&key(point)));
        let mut fail = kept.filter(|holds| !**holds).count();
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
            // The threads find nothing left to do, or nobody to tell.
            next.store(left.len(), Ordering::Relaxed);
            drop(receiver);
            written
        })?;
        Ok(Done { runs: total, fail })
    }

    /// Makes a run. Returns its line, and whether its assertions hold.
    fn line(&self, point: &Point) -> Result<(String, bool), SweepError> {
        let scenario = self.scenario(&point.settings)?;
        let seed = point.seed;
        let simulation = Simulation::watched(&scenario, seed, Measures::new());
        let mut simulation = simulation.expect("the scenario was checked when it was read");
        simulation
            .run()
            .map_err(|error| SweepError::Run { seed, error })?;
        let report = Report::new(&scenario, seed, simulation.machine(), simulation.observer());
        let line = Line {
            point,
            report: &report,
        };
        let text = serde_json::to_string(&line).expect("a report is JSON");
        Ok((text, report.holds()))
    }

    /// Opens the results, and finds which runs are there and whether their
    /// assertions held. A last line that was not written to its end is cut off.
    /// Nothing changes in a file whose first line is not ours.
    fn take_up(&self, path: &Path) -> Result<(File, BTreeMap<String, bool>), SweepError> {
        let file_error = |error| SweepError::File {
            path: path.to_owned(),
            error,
        };
        let open = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(path);
        let mut file = open.map_err(file_error)?;
        let scenario = self.fingerprint.clone();
        let our_head = serde_json::to_string(&Head { scenario }).expect("text is JSON");
        let (mut done, mut end) = (BTreeMap::new(), 0);
        let mut reader = BufReader::new(&file);
        let mut line = Vec::new();
        while reader.read_until(b'\n', &mut line).map_err(file_error)? > 0 && line.ends_with(b"\n")
        {
            if end == 0 {
                let head: Head = serde_json::from_slice(&line)
                    .map_err(|_| SweepError::NoResults(path.to_owned()))?;
                if head.scenario != self.fingerprint {
                    return Err(SweepError::OtherScenario(path.to_owned()));
                }
            } else if let Ok(kept) = serde_json::from_slice::<Kept>(&line) {
                done.insert(key(&kept.point), kept.holds());
            }
            end += line.len() as u64;
            line.clear();
        }
        // What is left has no end: of a line of ours only if it begins like one.
        if end == 0 && !our_head.as_bytes().starts_with(&line) {
            return Err(SweepError::NoResults(path.to_owned()));
        }
        file.set_len(end).map_err(file_error)?;
        file.seek(io::SeekFrom::End(0)).map_err(file_error)?;
        if end == 0 {
            writeln!(file, "{our_head}").map_err(file_error)?;
        }
        Ok((file, done))
    }
}

/// All that results come from but settings and seeds: the scenario with the
/// traces that it names, and the version of the simulator.
fn fingerprint(scenario: &Scenario) -> String {
    let scenario = serde_json::to_string(scenario).expect("a scenario is JSON");
    let mut fingerprint = Fingerprint::default();
    write!(fingerprint, "{}\n{scenario}", env!("CARGO_PKG_VERSION"))
        .expect("a fingerprint takes everything");
    format!("{:016x}", fingerprint.value())
}

/// By which a run is known in the results.
fn key(point: &Point) -> String {
    serde_json::to_string(point).expect("text and numbers are JSON")
}

/// Puts a value into a scenario.
fn set(table: &mut Table, setting: &str, value: Value) -> Result<(), SweepError> {
    let error = |segment: &str, why| SweepError::Setting {
        setting: setting.to_owned(),
        segment: segment.to_owned(),
        why,
    };
    let (path, last) = setting.rsplit_once('.').unwrap_or(("", setting));
    let mut place = table;
    let mut segments = path.split('.').filter(|segment| !segment.is_empty());
    while let Some(segment) = segments.next() {
        let inner = place
            .entry(segment)
            .or_insert_with(|| Value::Table(Table::new()));
        place = match inner {
            Value::Table(inner) => inner,
            Value::Array(list) => {
                let name = segments
                    .next()
                    .ok_or_else(|| error(segment, "a list: name one of its entries"))?;
                let found = match name.parse::<usize>() {
                    Ok(index) => list.get_mut(index),
                    Err(_) => list
                        .iter_mut()
                        .find(|entry| entry.get("name").and_then(Value::as_str) == Some(name)),
                };
                let found = found.and_then(Value::as_table_mut);
                found.ok_or_else(|| error(name, "not in that list"))?
            }
            _ => return Err(error(segment, "neither a table nor a list")),
        };
    }
    place.insert(last.to_owned(), value);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values(text: &str) -> Vec<String> {
        let axis = Axis::parse(text).expect(text);
        axis.values.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn values_are_toml_or_bare_text() {
        assert_eq!(values("a=1,2"), ["1", "2"]);
        assert_eq!(values("a=10ms, 20ms"), ["\"10ms\"", "\"20ms\""]);
        assert_eq!(values("a=stride,lottery"), ["\"stride\"", "\"lottery\""]);
        assert_eq!(values("a={ random = { between = [1, 2] } }").len(), 1);
        for text in ["", "a", "a=", "=1"] {
            assert!(Axis::parse(text).is_err(), "{text:?}");
        }
    }

    #[test]
    fn a_setting_is_put_where_it_says() {
        let text = "title = \"t\"\n[[client]]\nname = \"A\"\n[[client]]\nname = \"B\"\n";
        let mut table: Table = toml::from_str(text).expect("TOML");
        set(&mut table, "client.B.tickets", Value::Integer(3)).expect("there");
        set(&mut table, "client.0.tickets", Value::Integer(4)).expect("there");
        set(&mut table, "machine.cpus", Value::Integer(2)).expect("made");
        set(&mut table, "duration", Value::String("1s".into())).expect("made");
        assert_eq!(table["client"][1]["tickets"], Value::Integer(3));
        assert_eq!(table["client"][0]["tickets"], Value::Integer(4));
        assert_eq!(table["machine"]["cpus"], Value::Integer(2));
        for wrong in [
            "client.C.tickets",
            "client.tickets",
            "title.x",
            "client.7.tickets",
        ] {
            assert!(
                set(&mut table, wrong, Value::Integer(1)).is_err(),
                "{wrong}"
            );
        }
    }
}
