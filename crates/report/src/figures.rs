//! The figures of benches: the measured number beside the peer's in the same
//! run, the paper's number and the target.
//!
//! A bench writes one JSON file, an array of [`Figure`]s, with [`write()`] into
//! [`directory`]; [`read_directory`] gathers them and [`table`] prints them.

use std::fmt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::table::{Side, Table};

/// Largest file of figures that is read, in bytes.
pub const MAX_FILE_BYTES: u64 = 1 << 20;

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

/// A failure to read or write figures.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the messages explain the variants")]
pub enum FiguresError {
    #[error("cannot use {path}: {source}")]
    Io {
        path: PathBuf,
        source: std::io::Error,
    },
    #[error("{path} contains no figures ({source}): run the bench again")]
    Malformed {
        path: PathBuf,
        source: serde_json::Error,
    },
    #[error("{path} is larger than {MAX_FILE_BYTES} bytes: delete it and run the bench again")]
    TooLarge { path: PathBuf },
}

/// The directory of the benches' figures: `bench` in the target directory. A
/// bench runs in its package's directory and finds the target directory by its
/// `tmp`, which cargo passes as `env!("CARGO_TARGET_TMPDIR")`.
pub fn directory(target_tmp: &str) -> PathBuf {
    Path::new(target_tmp).with_file_name("bench")
}

/// Writes one bench's figures to a file. Creates the directory if necessary.
pub fn write(path: &Path, figures: &[Figure]) -> Result<(), FiguresError> {
    let io = |source| FiguresError::Io {
        path: path.to_owned(),
        source,
    };
    let mut text =
        serde_json::to_string_pretty(figures).map_err(|source| FiguresError::Malformed {
            path: path.to_owned(),
            source,
        })?;
    text.push('\n');
    if let Some(directory) = path.parent() {
        std::fs::create_dir_all(directory).map_err(io)?;
    }
    std::fs::write(path, text).map_err(io)
}

/// Reads every `*.json` of a directory, in the order of the names. Returns each
/// file's stem with its figures.
pub fn read_directory(directory: &Path) -> Result<Vec<(String, Vec<Figure>)>, FiguresError> {
    let io = |source| FiguresError::Io {
        path: directory.to_owned(),
        source,
    };
    let mut paths = Vec::new();
    for entry in std::fs::read_dir(directory).map_err(io)? {
        let path = entry.map_err(io)?.path();
        if path.extension().is_some_and(|ending| ending == "json") {
            paths.push(path);
        }
    }
    paths.sort();
    paths
        .into_iter()
        .map(|path| {
            let name = path
                .file_stem()
                .unwrap_or_default()
                .to_string_lossy()
                .into_owned();
            read(&path).map(|figures| (name, figures))
        })
        .collect()
}

fn read(path: &Path) -> Result<Vec<Figure>, FiguresError> {
    let io = |source| FiguresError::Io {
        path: path.to_owned(),
        source,
    };
    if std::fs::metadata(path).map_err(io)?.len() > MAX_FILE_BYTES {
        return Err(FiguresError::TooLarge {
            path: path.to_owned(),
        });
    }
    let text = std::fs::read_to_string(path).map_err(io)?;
    serde_json::from_str(&text).map_err(|source| FiguresError::Malformed {
        path: path.to_owned(),
        source,
    })
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
    fn broken_and_oversized_files_are_named() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("x.json");
        std::fs::write(&path, "[{\"name\": 1}]").unwrap();
        assert!(matches!(
            read_directory(directory.path()),
            Err(FiguresError::Malformed { .. })
        ));
        let blank = |bytes: u64| format!("[]{}", " ".repeat(bytes as usize - 2));
        std::fs::write(&path, blank(MAX_FILE_BYTES)).unwrap();
        assert_eq!(read_directory(directory.path()).unwrap().len(), 1);
        std::fs::write(&path, blank(MAX_FILE_BYTES + 1)).unwrap();
        let error = read_directory(directory.path()).unwrap_err();
        assert!(error.to_string().contains("x.json"), "{error}");
        assert!(matches!(
            read_directory(&path),
            Err(FiguresError::Io { .. })
        ));
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
