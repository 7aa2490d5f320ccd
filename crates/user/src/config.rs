//! What an engine needs to know, and what it tells about itself.

use std::path::PathBuf;

use crate::outside::OutsideLoad;

/// How losers are kept from running.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mechanism {
    /// The engine puts them in `SCHED_IDLE`, so that they run on CPUs that would be idle
    /// otherwise. It stops losers that run too much in spite of that until they win.
    /// Needs the right to leave `SCHED_IDLE` again (`CAP_SYS_NICE`, or a nice
    /// limit of 20), and all clients in one scheduling group.
    Idle,
    /// The engine puts the control group of each in `cpu.idle`, so that they run on CPUs that
    /// would be idle otherwise, and freezes the group of a loser that runs too much in spite of
    /// that. Needs the right to make control groups around the engine, with the cpu controller.
    GroupIdle,
    /// The engine freezes the control group of each. Needs the right to make control groups around
    /// the engine.
    GroupFreeze,
    /// The engine stops and continues them by signals.
    Stop,
}

impl Mechanism {
    /// Whether clients have control groups.
    pub(crate) fn uses_groups(self) -> bool {
        matches!(self, Mechanism::GroupIdle | Mechanism::GroupFreeze)
    }
}

/// A right that would give an engine a better mechanism than it has.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MissingRight {
    /// To leave `SCHED_IDLE` again, or to use the cpu controller of control groups.
    LeaveIdle,
    /// To use that controller: the clients' scheduling groups differ.
    CpuController,
    /// To have processes of a login moved to control groups of the user's service manager, which
    /// go on after the login only if the user lingers.
    Linger,
}

/// What an engine needs to know.
#[derive(Clone, Debug)]
pub struct EngineConfig {
    /// CPUs to share out; `None`: the affinity mask of the engine's process. The engine does not
    /// bind clients to them: a client may use other CPUs too if its affinity mask permits that.
    pub cpus: Option<Vec<u32>>,
    /// Directory for the table of deeds, which the guardian and the next engine read. Made if
    /// missing; best on a memory file system, where writing never waits for a disk.
    pub state_directory: PathBuf,
    /// Path of the daemon's socket. It tells processes of this daemon's clients from those of
    /// another daemon's, see [`crate::SOCKET_MARKER`].
    pub socket: PathBuf,
    /// `None`: the first that a trial shows to work, in the order of [`Mechanism`]. Instead of
    /// [`Mechanism::Idle`] the engine uses the first other one that works, as long as the clients'
    /// scheduling groups differ.
    pub mechanism: Option<Mechanism>,
}

/// The state of an engine and its cost.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct EngineStatus {
    /// Mechanism in use now.
    pub mechanism: Mechanism,
    /// What would give it a better one.
    pub missing_right: Option<MissingRight>,
    /// Decisions taken so far.
    pub decisions: u64,
    /// CPU time used by this process and by the guardian.
    pub own_cpu_ns: u64,
    /// Time since the engine started.
    pub uptime_ns: u64,
    /// Pid of the guardian, unless a new one is being started.
    pub guardian: Option<u32>,
    /// CPUs of which programs without a client use a part, where that changes what clients
    /// receive.
    pub outside: Vec<OutsideLoad>,
    /// Why nothing is enforced any more, if the decision thread failed.
    pub failure: Option<String>,
}
