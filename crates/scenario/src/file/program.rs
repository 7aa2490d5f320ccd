//! Programs: the steps of a thread.

use prorata_core::hybrid::WakeClass;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Distribution, Time};

/// Name of the built-in program, which computes for ever.
pub const COMPUTE: &str = "compute";

/// The steps of a thread, which exits after the last.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Program {
    /// The steps, in order.
    pub steps: Vec<Step>,
}

/// A step of a thread. Only `compute` takes CPU time itself.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Step {
    /// Uses this much CPU time.
    Compute(Distribution),
    /// Sleeps for this long.
    Sleep(Distribution),
    /// Sleeps in the kernel, on a resource of it (1999, 3.1).
    Block(Block),
    /// Waits for a signal of this name; an earlier signal counts.
    Wait(String),
    /// Wakes one thread that waits for the signal, now or later.
    Signal(String),
    /// Acquires a mutex, waiting while another thread holds it.
    Lock(String),
    /// Releases a mutex.
    Unlock(String),
    /// Calls a service and waits for the reply. Meanwhile the client's tickets fund the
    /// server of the call (1994, 4.6).
    Call(String),
    /// Waits for a call, serves it and replies.
    Serve(Serve),
    /// Puts a message into a pipe, waiting while it is full.
    Send(String),
    /// Takes a message out of a pipe, waiting while it is empty.
    Receive(String),
    /// Gives up the rest of the turn.
    Yield,
    /// Starts another thread of the same client with this program.
    Fork(String),
    /// Ends the thread.
    Exit,
    /// Repeats steps.
    Loop(Loop),
}

/// A sleep in the kernel. It gives the client a kernel priority, if these are in force.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Block {
    /// How long it lasts.
    #[serde(rename = "for")]
    pub time: Distribution,
    /// What the thread sleeps on.
    #[serde(rename = "in")]
    pub resource: Resource,
}

/// A resource of the kernel, the most important first (1999, 3.1).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Resource {
    /// A lock of the kernel.
    Lock,
    /// A disk.
    Disk,
    /// Anything else.
    Other,
}

impl Resource {
    /// The class of a wake from a sleep on it.
    pub fn wake_class(self) -> WakeClass {
        match self {
            Self::Lock => WakeClass::Lock,
            Self::Disk => WakeClass::Disk,
            Self::Other => WakeClass::Other,
        }
    }
}

/// The service of one call.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Serve {
    /// The service.
    pub service: String,
    /// The steps for each call; the reply follows the last.
    pub steps: Vec<Step>,
}

/// Repeated steps.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Loop {
    /// Number of times; without it, a chance and a time, the loop is endless.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub times: Option<u32>,
    /// Instead of a number, the chance of another time, from 0 to less than 1. It is drawn
    /// anew each time, also before the first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub chance: Option<f64>,
    /// Instead of a number, a time of the scenario: the steps repeat as long as it has not
    /// come, and are not broken off when it comes. On processes it is refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<Time>,
    /// The steps to repeat.
    pub steps: Vec<Step>,
}

/// A mutex that programs lock and unlock.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Mutex {
    /// The rule for the next holder.
    #[serde(default)]
    pub kind: MutexKind,
    /// The thread that releases it continues. Otherwise, after a lottery, that thread
    /// yields the CPU (1994, 6.1).
    #[serde(default)]
    pub keeps_cpu: bool,
    /// It is a lock of the kernel: a thread that waited for it has a kernel priority, if
    /// these are in force (1999, 3.1).
    #[serde(default, skip_serializing_if = "is_false")]
    pub kernel: bool,
}

fn is_false(value: &bool) -> bool {
    !value
}

/// The rule for the next holder of a mutex.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum MutexKind {
    /// The thread that has waited longest.
    #[default]
    Fifo,
    /// The winner of a lottery among the waiting threads, whose tickets fund the holder
    /// meanwhile (1994, 6.1).
    Lottery,
}

/// A pipe that programs send to and receive from.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Pipe {
    /// Number of messages that it can hold.
    pub capacity: u32,
}
