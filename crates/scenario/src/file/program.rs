//! Programs: what a thread does, step by step.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Distribution;

/// Name of the program that computes for ever, which need not be written.
pub const COMPUTE: &str = "compute";

/// The steps of a thread; it exits after the last.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Program {
    /// One after the other.
    pub steps: Vec<Step>,
}

/// What a thread can do. All steps but `compute` take no CPU time themselves.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Step {
    /// Uses so much CPU time.
    Compute(Distribution),
    /// Blocks for so long.
    Sleep(Distribution),
    /// Waits for a signal of this name; one that came before counts.
    Wait(String),
    /// Lets one thread that waits, now or later, go on.
    Signal(String),
    /// Acquires a mutex, waiting while another thread holds it.
    Lock(String),
    /// Releases a mutex.
    Unlock(String),
    /// Calls a service and waits for the reply. Meanwhile the client's
    /// tickets fund who serves the call (1994, 4.6).
    Call(String),
    /// Waits for a call, serves it and replies.
    Serve(Serve),
    /// Puts a message into a pipe, waiting while it is full.
    Send(String),
    /// Takes a message out of a pipe, waiting while it is empty.
    Receive(String),
    /// Gives the rest of the turn away.
    Yield,
    /// Starts another thread of the same client with this program.
    Fork(String),
    /// Ends the thread.
    Exit,
    /// Repeats steps.
    Loop(Loop),
}

/// The service of one call.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Serve {
    /// Whose calls are served.
    pub service: String,
    /// What is done for each call; the reply follows the last.
    pub steps: Vec<Step>,
}

/// Repeated steps.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Loop {
    /// How often; without it, and without a chance, endlessly.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub times: Option<u32>,
    /// Instead of a number, the chance that there is another time, each time
    /// drawn anew, the first time too: from 0 to less than 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub chance: Option<f64>,
    /// What is repeated.
    pub steps: Vec<Step>,
}

/// A mutex that programs lock and unlock.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Mutex {
    /// Who gets it next.
    #[serde(default)]
    pub kind: MutexKind,
    /// Whoever gives it up goes on. Else, where there was a lottery, it yields
    /// the CPU (1994, 6.1).
    #[serde(default)]
    pub keeps_cpu: bool,
}

/// Who gets a mutex next.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum MutexKind {
    /// Who has waited longest.
    #[default]
    Fifo,
    /// The winner of a lottery among those that wait, whose tickets fund the
    /// holder meanwhile (1994, 6.1).
    Lottery,
}

/// A pipe that programs send to and receive from.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Pipe {
    /// Messages that it holds.
    pub capacity: u32,
}
