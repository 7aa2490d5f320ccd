//! Events of clients, as `prorata events` shows them.

use serde::{Deserialize, Serialize};

/// The most events that a daemon keeps.
pub const MOST_EVENTS: u32 = 1_000;

/// Something that happened to a client.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct EventReport {
    /// When, in nanoseconds since boot.
    pub time_ns: u64,
    /// Identifier of the client, such as `c3`; none if the client is unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client: Option<String>,
    /// Name of the client; of the thread if an engine tells threads apart.
    pub name: String,
    /// The thread, if an engine tells threads apart.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thread: Option<u32>,
    /// What happened.
    pub what: EventKind,
}

/// What happened to a client.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "kebab-case")]
pub enum EventKind {
    /// It woke.
    Woke {
        /// Whether it is early: it runs at once (1999, 3.1 and 3.3).
        early: bool,
        /// What it slept on.
        from: SleepKind,
    },
    /// It fell asleep.
    Slept {
        /// What it sleeps on.
        on: SleepKind,
        /// The function of the kernel that it sleeps in, where that was found out.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        place: Option<String>,
    },
    /// It is early no longer, though it did not sleep.
    EarlyEnded,
    /// Its turn ended.
    TurnEnded {
        /// The reason.
        reason: TurnEndKind,
        /// Length of the turn. Under the kernel engine, CPU time that the thread used.
        lasted_ns: u64,
    },
}

/// What a client sleeps on.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SleepKind {
    /// A lock of the kernel.
    Lock,
    /// A disk.
    Disk,
    /// A resource of the kernel that is not told apart.
    Kernel,
    /// Something outside the kernel: input, a timer, another process.
    User,
    /// It is not known.
    Unknown,
}

/// Why a turn ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TurnEndKind {
    /// The quantum was over.
    Quantum,
    /// All threads of the client slept.
    Sleep,
    /// The tickets or the clients changed.
    Change,
    /// The client exhausted the allowance of its limit.
    Limit,
    /// The user stopped the client.
    Suspended,
    /// Another task came first, the thread yielded, or it slept and others of its client did not.
    GaveWay,
}
