//! Why a scenario cannot be run on processes.

use std::io;

use prorata_control::EngineError;
use prorata_core::policy::PolicyName;
use prorata_scenario::file::ScenarioError;

/// Why a scenario cannot be run on processes, or not to its end.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the messages explain the variants")]
pub enum StageError {
    /// The scenario itself, or something in it that no engine for processes
    /// can do.
    #[error(transparent)]
    Scenario(#[from] ScenarioError),
    #[error("the engine cannot go on: {0}")]
    Engine(#[from] EngineError),
    #[error("{cpus} CPUs are to be shared out, but this process may use {usable}: ask for fewer")]
    TooFewCpus { cpus: u32, usable: usize },
    #[error("cannot {doing}: {error}")]
    System {
        doing: &'static str,
        error: io::Error,
    },
    #[error("a process of client {client} ended before its time ({status}): is something short?")]
    ProcessLost {
        client: String,
        status: std::process::ExitStatus,
    },
    #[error("{client} starts thread number {number}, and the {engine} engine runs {most} at most: let threads exit", most = number - 1)]
    TooManyThreads {
        client: String,
        number: u32,
        engine: &'static str,
    },
    #[error("the {engine} engine does not know the policy {policy}: use {known}, or --engine sim")]
    UnknownPolicy {
        policy: PolicyName,
        engine: &'static str,
        known: String,
    },
    #[error(
        "after {after_s} s other programs have left its CPUs free for {had_s} s of \
         the scenario: run it when the machine is less busy"
    )]
    TooBusy {
        after_s: u64,
        /// How much of that it had.
        had_s: u64,
    },
    #[error("interrupted")]
    Interrupted,
}

impl StageError {
    pub(crate) fn failed(doing: &'static str) -> impl Fn(io::Error) -> StageError {
        move |error| StageError::System { doing, error }
    }
}
