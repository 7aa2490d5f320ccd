//! Errors of a scenario and their places in the file.

use core::fmt;
use std::path::PathBuf;

use prorata_core::ledger::LedgerError;

/// A scenario that is refused.
#[derive(Clone, PartialEq, Debug, thiserror::Error)]
#[error("{place}: {problem}")]
pub struct ScenarioError {
    /// Where.
    pub place: KeyPath,
    /// What.
    pub problem: Problem,
}

/// A rule that a scenario breaks.
#[derive(Clone, PartialEq, Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the messages explain the variants")]
pub enum Problem {
    #[error("there is no {kind} \"{name}\": {fix}")]
    Unknown {
        kind: &'static str,
        name: String,
        /// The known names, or how to make one.
        fix: String,
    },
    #[error("\"{0}\" names two things: give one of them another name")]
    Duplicate(String),
    #[error("\"{0}\" is no name: use 1 to {MAX_NAME_BYTES} bytes without spaces")]
    Name(String),
    #[error("{what} is {is}: it must be {low} to {high}")]
    Range {
        what: &'static str,
        is: String,
        low: String,
        high: String,
    },
    #[error("the pools have {pools} CPUs together, the machine has {cpus}: let `cpus` be {pools}")]
    Pools { pools: u64, cpus: u32 },
    #[error("{0}")]
    Step(&'static str),
    #[error("the trace \"{}\" was not read: read the scenario from a file", .0.display())]
    TraceNotRead(PathBuf),
    #[error(
        "\"{0}\" names no slots: write CPU:COLUMN or CPU:FIRST-LAST, both from 0, such as 1:3-8"
    )]
    Slots(String),
    #[error("{0}")]
    Timetable(String),
    #[error(transparent)]
    Ledger(#[from] LedgerError),
}

/// Longest name of anything in a scenario.
pub const MAX_NAME_BYTES: usize = 48;

/// A place in a scenario file: keys and list positions, from the outside in.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct KeyPath(pub Vec<Segment>);

/// One step of a [`KeyPath`].
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Segment {
    /// A key of a table.
    Key(String),
    /// A position in a list, from 0.
    Index(usize),
}

impl KeyPath {
    /// A place within this one.
    pub fn key(&self, key: &str) -> KeyPath {
        self.with(Segment::Key(key.to_owned()))
    }

    /// An element of the list at this place.
    pub fn index(&self, index: usize) -> KeyPath {
        self.with(Segment::Index(index))
    }

    fn with(&self, segment: Segment) -> KeyPath {
        let mut segments = self.0.clone();
        segments.push(segment);
        KeyPath(segments)
    }

    /// The error of a problem at this place.
    pub fn problem(&self, problem: impl Into<Problem>) -> ScenarioError {
        ScenarioError {
            place: self.clone(),
            problem: problem.into(),
        }
    }
}

impl fmt::Display for KeyPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, segment) in self.0.iter().enumerate() {
            match segment {
                Segment::Key(key) if i == 0 => f.write_str(key)?,
                Segment::Key(key) => write!(f, ".{key}")?,
                Segment::Index(index) => write!(f, "[{index}]")?,
            }
        }
        Ok(())
    }
}

/// A scenario file that is refused.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the messages explain the variants")]
pub enum ReadError {
    #[error("{}: {error}", path.display())]
    File {
        path: PathBuf,
        error: std::io::Error,
    },
    #[error("{}: longer than {max} bytes: split the scenario", path.display(), max = super::MAX_FILE_BYTES)]
    TooLong { path: PathBuf },
    #[error("{}:{line}:{column}: {what}", path.display())]
    Line {
        path: PathBuf,
        /// Line, from 1.
        line: usize,
        /// Column in characters, from 1.
        column: usize,
        what: String,
    },
}
