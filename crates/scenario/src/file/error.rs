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
pub enum Problem {
    /// A name that nothing has.
    #[error("there is no {kind} \"{name}\": {fix}")]
    Unknown {
        /// What was looked for.
        kind: &'static str,
        /// The name.
        name: String,
        /// The known names, or how to make one.
        fix: String,
    },
    /// A name that two things have.
    #[error("\"{0}\" names two things: give one of them another name")]
    Duplicate(String),
    /// A name of the wrong form.
    #[error("\"{0}\" is no name: use 1 to {MAX_NAME_BYTES} bytes without spaces")]
    Name(String),
    /// A number that is too small or too large.
    #[error("{what} is {is}: it must be {low} to {high}")]
    Range {
        /// The quantity.
        what: &'static str,
        /// The value.
        is: String,
        /// Smallest value allowed.
        low: String,
        /// Largest value allowed.
        high: String,
    },
    /// Pools with more or fewer CPUs than the machine.
    #[error("the pools have {pools} CPUs together, the machine has {cpus}: let `cpus` be {pools}")]
    Pools {
        /// Sum over the pools.
        pools: u64,
        /// CPUs of the machine.
        cpus: u32,
    },
    /// A step that makes no sense where it stands.
    #[error("{0}")]
    Step(&'static str),
    /// A trace file that was not read yet.
    #[error("the trace \"{}\" was not read: read the scenario from a file", .0.display())]
    TraceNotRead(PathBuf),
    /// An operation that the ledger refuses.
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
pub enum ReadError {
    /// The file itself cannot be read.
    #[error("{}: {error}", path.display())]
    File {
        /// Which file.
        path: PathBuf,
        /// Why.
        error: std::io::Error,
    },
    /// The file is too long.
    #[error("{}: longer than {max} bytes: split the scenario", path.display(), max = super::MAX_FILE_BYTES)]
    TooLong {
        /// Which file.
        path: PathBuf,
    },
    /// The file says something that is not allowed.
    #[error("{}:{line}:{column}: {what}", path.display())]
    Line {
        /// Which file.
        path: PathBuf,
        /// Line, from 1.
        line: usize,
        /// Column in characters, from 1.
        column: usize,
        /// The rule and the fix.
        what: String,
    },
}
