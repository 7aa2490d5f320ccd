//! The figures of benches: the measured number beside the peer's in the same
//! run, the paper's number and the target.
//!
//! A bench writes one JSON file, an array of [`Figure`]s, by [`keep`]; [`read_directory`]
//! gathers them and [`table`] prints them.

use std::path::{Path, PathBuf};
use std::{fmt, fs, io};

use serde::{Deserialize, Serialize};

use crate::table::{Side, Table};

/// A number in the figure's unit, or words if a number would mislead
/// (`at least 5`, `8.2 to 9.1`).
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Quantity {
    /// In the figure's unit.
    Number(f64),
    /// In words, with a unit of their own if they have one.
    Words(String),
}

impl fmt::Display for Quantity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Quantity::Number(number) => f.write_str(&round(*number)),
            Quantity::Words(words) => f.write_str(words),
        }
    }
}

/// One measurement of a bench.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Figure {
    /// The measured quantity.
    pub name: String,
    /// The paper's number.
    pub paper: Option<Quantity>,
    /// The peer's number in the same run.
    pub peer: Option<Quantity>,
    /// Our number.
    pub measured: f64,
    /// Unit of `measured`, and of all numbers beside it.
    pub unit: String,
    /// The number to reach.
    pub target: Option<Quantity>,
    /// Whether our number reaches the target.
    pub ok: bool,
}

impl Figure {
    /// A number that must be so large.
    pub fn at_least(name: impl Into<String>, measured: f64, unit: &str, least: f64) -> Self {
        let target = format!("at least {least}");
        Self::with_target(name.into(), measured, unit, target, measured >= least)
    }

    /// A number that must be so small.
    pub fn at_most(name: impl Into<String>, measured: f64, unit: &str, most: f64) -> Self {
        let target = format!("at most {most}");
        Self::with_target(name.into(), measured, unit, target, measured <= most)
    }

    fn with_target(name: String, measured: f64, unit: &str, target: String, ok: bool) -> Self {
        Self {
            name,
            paper: None,
            peer: None,
            measured,
            unit: unit.to_owned(),
            target: Some(Quantity::Words(target)),
            ok,
        }
    }

    /// The figure with a peer's number in words.
    pub fn beside(self, peer: String) -> Self {
        Self {
            peer: Some(Quantity::Words(peer)),
            ..self
        }
    }
}

/// The directory of the benches' figures: `bench` in the target directory. A
/// bench runs in its package's directory and finds the target directory by its
/// `tmp`, which cargo passes as `env!("CARGO_TARGET_TMPDIR")`.
fn directory(target_tmp: &str) -> PathBuf {
    Path::new(target_tmp).with_file_name("bench")
}

/// Writes a bench's figures into the directory of all.
///
/// # Panics
/// If they cannot be written.
pub fn keep(target_tmp: &str, bench: &str, figures: &[Figure]) {
    let path = directory(target_tmp).join(format!("{bench}.json"));
    write(&path, figures).expect("figures can be written");
}

/// Writes one bench's figures to a file. Creates the directory if necessary.
fn write(path: &Path, figures: &[Figure]) -> io::Result<()> {
    if let Some(directory) = path.parent() {
        fs::create_dir_all(directory)?;
    }
    fs::write(path, serde_json::to_string_pretty(figures)? + "\n")
}

/// Reads every `*.json` of a directory, in the order of the names. Returns each
/// file's stem with its figures.
pub fn read_directory(directory: &Path) -> io::Result<Vec<(String, Vec<Figure>)>> {
    let entries = fs::read_dir(directory)?.map(|entry| Ok(entry?.path()));
    let mut paths = entries.collect::<io::Result<Vec<PathBuf>>>()?;
    paths.retain(|path| path.extension().is_some_and(|ending| ending == "json"));
    paths.sort();
    let read = |path: &PathBuf| {
        let bench = path.file_stem().unwrap_or_default().to_string_lossy();
        let figures = serde_json::from_str(&fs::read_to_string(path)?);
        let named = |error| io::Error::other(format!("{}: {error}", path.display()));
        Ok((bench.into_owned(), figures.map_err(named)?))
    };
    paths.iter().map(read).collect()
}

/// All figures as one table.
pub fn table(benches: &[(String, Vec<Figure>)]) -> Table {
    let mut table = Table::new(&[
        ("BENCH", Side::Left),
        ("FIGURE", Side::Left),
        ("MEASURED", Side::Right),
        ("UNIT", Side::Left),
        ("TARGET", Side::Right),
        ("", Side::Left),
        ("PEER", Side::Right),
        ("PAPER", Side::Right),
    ]);
    let shown = |quantity: &Option<Quantity>| {
        quantity
            .as_ref()
            .map_or("-".to_owned(), Quantity::to_string)
    };
    for (bench, figures) in benches {
        for figure in figures {
            let verdict = match (&figure.target, figure.ok) {
                (None, _) => "",
                (Some(_), true) => "ok",
                (Some(_), false) => "MISSED",
            };
            table.row(vec![
                bench.clone(),
                figure.name.clone(),
                round(figure.measured),
                figure.unit.clone(),
                shown(&figure.target),
                verdict.to_owned(),
                shown(&figure.peer),
                shown(&figure.paper),
            ]);
        }
    }
    table
}

/// Rounds to three significant digits or more, with at most four decimals.
fn round(number: f64) -> String {
    let decimals = match number.abs() {
        size if size >= 100.0 => 0,
        size if size >= 10.0 => 1,
        size if size >= 1.0 => 2,
        size if size >= 0.1 => 3,
        _ => 4,
    };
    format!("{number:.decimals$}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn figure() -> Figure {
        Figure {
            name: "pick at 1,000,000 clients".into(),
            paper: None,
            peer: Some(Quantity::Number(412.3)),
            measured: 61.25,
            unit: "ns".into(),
            target: Some(Quantity::Words("at most a fifth of the peer".into())),
            ok: true,
        }
    }

    #[test]
    fn figures_survive_a_file() {
        let directory = tempfile::tempdir().unwrap();
        let tmp = directory.path().join("tmp");
        let below = super::directory(tmp.to_str().unwrap());
        assert_eq!(below, directory.path().join("bench"));
        write(&below.join("lottery.json"), &[figure()]).unwrap();
        std::fs::write(below.join("notes.txt"), "not read").unwrap();
        assert_eq!(
            read_directory(&below).unwrap(),
            [("lottery".to_owned(), vec![figure()])]
        );
    }

    #[test]
    fn a_broken_file_is_named() {
        let directory = tempfile::tempdir().unwrap();
        std::fs::write(directory.path().join("x.json"), "[{\"name\": 1}]").unwrap();
        let error = read_directory(directory.path()).unwrap_err();
        assert!(error.to_string().contains("x.json"), "{error}");
    }

    #[test]
    fn a_target_is_reached_at_its_value() {
        let reached = |figure: Figure| figure.ok;
        let least = [4.9, 5.0].map(|measured| reached(Figure::at_least("", measured, "", 5.0)));
        let most = [5.0, 5.1].map(|measured| reached(Figure::at_most("", measured, "", 5.0)));
        assert_eq!((least, most), ([false, true], [true, false]));
    }

    #[test]
    fn a_missed_target_is_marked() {
        let missed = Figure {
            ok: false,
            ..figure()
        };
        let free = Figure {
            target: None,
            ok: false,
            ..figure()
        };
        let lines = table(&[("lottery".into(), vec![figure(), missed, free])]).lines(None);
        assert!(
            lines[1].contains("  ok ")
                && lines[2].contains("MISSED")
                && !lines[3].contains("MISSED"),
            "{lines:#?}"
        );
        assert!(
            lines[1].contains("61.2") && lines[1].contains("412"),
            "{lines:#?}"
        );
    }
}
