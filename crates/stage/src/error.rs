//! Why a scenario cannot be run on processes.

use std::io;

use prorata_control::EngineError;
use prorata_core::policy::PolicyName;
use prorata_scenario::file::ScenarioError;

/// Why a scenario cannot be run on processes, or not to its end.
#[derive(Debug, thiserror::Error)]
pub enum StageError {
    /// The scenario itself, or something in it that no engine for processes
    /// can do.
    #[error(transparent)]
    Scenario(#[from] ScenarioError),
    /// The engine does not start, refuses, or has failed.
    #[error("the engine cannot go on: {0}")]
    Engine(#[from] EngineError),
    /// More CPUs than there are.
    #[error("{cpus} CPUs are to be shared out, but this process may use {usable}: ask for fewer")]
    TooFewCpus {
        /// Asked for.
        cpus: u32,
        /// There.
        usable: usize,
    },
    /// The system refuses.
    #[error("cannot {doing}: {error}")]
    System {
        /// The action that failed.
        doing: &'static str,
        /// Why it failed.
        error: io::Error,
    },
    /// A process ended that should not have.
    #[error("a process of client {client} ended before its time ({status}): is something short?")]
    ProcessLost {
        /// The client.
        client: String,
        /// How it ended.
        status: std::process::ExitStatus,
    },
    /// Programs that fork without end.
    #[error("{client} starts thread number {number}, and the {engine} engine runs {most} at most: let threads exit", most = number - 1)]
    TooManyThreads {
        /// The client.
        client: String,
        /// One too many.
        number: u32,
        /// Which engine.
        engine: &'static str,
    },
    /// A policy that the engine does not know.
    #[error("the {engine} engine does not know the policy {policy}: use {known}, or --engine sim")]
    UnknownPolicy {
        /// Which policy.
        policy: PolicyName,
        /// Which engine.
        engine: &'static str,
        /// The policies that it knows.
        known: String,
    },
    /// Other programs take nearly everything.
    #[error(
        "after {after_s} s other programs have left its CPUs free for {had_s} s of \
         the scenario: run it when the machine is less busy"
    )]
    TooBusy {
        /// How long it went on.
        after_s: u64,
        /// How much of that it had.
        had_s: u64,
    },
    /// The watcher ends it.
    #[error("interrupted")]
    Interrupted,
}

impl StageError {
    pub(crate) fn failed(doing: &'static str) -> impl Fn(io::Error) -> StageError {
        move |error| StageError::System { doing, error }
    }
}
