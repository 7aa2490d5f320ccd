//! Why a figure cannot be reproduced; not that it failed to come out.

use std::io;

use prorata_scenario::RunError;
use prorata_scenario::file::{ReadError, ScenarioError};
use prorata_smp::SmpError;
use prorata_stage::StageError;

/// Why a figure cannot be reproduced.
#[derive(Debug, thiserror::Error)]
pub enum ReproduceError {
    /// No figure of that name.
    #[error(
        "there is no figure '{name}': name a scenario file that ends in .toml, or a year, or one of {known}"
    )]
    Unknown {
        /// What was asked for.
        name: String,
        /// Those that there are.
        known: String,
    },
    /// The file itself is wrong.
    #[error(transparent)]
    File(#[from] ReadError),
    /// A scenario without a paper.
    #[error("{0} has no table [reproduces]: run it with a scenario that says what it reproduces")]
    NoPaper(String),
    /// The paper's part of a file is wrong.
    #[error("{id}: [reproduces] {what}")]
    Malformed {
        /// Which figure.
        id: String,
        /// The rule and the fix.
        what: String,
    },
    /// The experiment's settings make no scenario.
    #[error("{id}: {error}")]
    Scenario {
        /// Which figure.
        id: String,
        /// Why not.
        error: Box<ScenarioError>,
    },
    /// The experiment's settings make no machine with many CPUs, or nothing to
    /// run on it.
    #[error("{id}: {error}")]
    Start {
        /// Which figure.
        id: String,
        /// Why not.
        error: Box<SmpError>,
    },
    /// A run cannot go on.
    #[error("{id}: {error}")]
    Run {
        /// Which figure.
        id: String,
        /// Why not.
        error: RunError,
    },
    /// Nothing that processes could do.
    #[error("{0} is an experiment for the simulator alone: leave it out, or use --engine sim")]
    NotOnProcesses(String),
    /// The engine for real processes refuses.
    #[error(transparent)]
    Stage(#[from] StageError),
    /// A process cannot be started or spoken to.
    #[error("cannot {doing}: {error}")]
    Process {
        /// What was to be done.
        doing: &'static str,
        /// Why it failed.
        error: io::Error,
    },
    /// The watcher ends it.
    #[error("interrupted")]
    Interrupted,
}
