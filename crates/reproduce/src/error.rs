//! Why a figure cannot be reproduced; not that it failed to come out.

use std::io;

use prorata_scenario::RunError;
use prorata_scenario::file::{ReadError, ScenarioError};
use prorata_smp::SmpError;
use prorata_stage::StageError;

/// Why a figure cannot be reproduced.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the messages explain the variants")]
pub enum ReproduceError {
    #[error(
        "there is no figure '{name}': name a scenario file that ends in .toml, a year of {years}, or a figure such as {near}"
    )]
    Unknown {
        name: String,
        years: String,
        near: String,
    },
    #[error(transparent)]
    File(#[from] ReadError),
    #[error("{0} has no table [reproduces]: run it with a scenario that says what it reproduces")]
    NoPaper(String),
    #[error("{id}: [reproduces] {what}")]
    Malformed { id: String, what: String },
    #[error("{id}: {error}")]
    Scenario {
        id: String,
        error: Box<ScenarioError>,
    },
    #[error("{id}: {error}")]
    Start { id: String, error: Box<SmpError> },
    #[error("{id}: {error}")]
    Run { id: String, error: RunError },
    #[error("{0} is an experiment for the simulator alone: leave it out, or use --engine sim")]
    NotOnProcesses(String),
    #[error(
        "{0} compares programs with the plain kernel: leave it out, or use --engine user or kernel"
    )]
    NotBySimulation(String),
    #[error(transparent)]
    Stage(#[from] StageError),
    #[error("cannot {doing}: {error}")]
    Process {
        doing: &'static str,
        error: io::Error,
    },
    #[error("interrupted")]
    Interrupted,
}
