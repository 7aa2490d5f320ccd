//! What an engine needs to know, and what it tells about itself.

use std::path::PathBuf;

/// How losers are kept from running.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mechanism {
    /// The engine puts them in `SCHED_IDLE`, so that they run on CPUs that would be idle
    /// otherwise. It stops losers that run too much in spite of that until they win.
    /// Needs the right to leave `SCHED_IDLE` again (`CAP_SYS_NICE`, or a nice
    /// limit of 20), and all clients in one scheduling group.
    Idle,
    /// The engine stops and continues them by signals.
    Stop,
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
    /// `None`: [`Mechanism::Idle`] where a trial shows that it works, else
    /// [`Mechanism::Stop`]. In any case the engine stops losers as long as the clients'
    /// scheduling groups differ.
    pub mechanism: Option<Mechanism>,
}

/// The state of an engine and its cost.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct EngineStatus {
    /// Mechanism in use now.
    pub mechanism: Mechanism,
    /// Decisions taken so far.
    pub decisions: u64,
    /// CPU time used by this process and by the guardian.
    pub own_cpu_ns: u64,
    /// Time since the engine started.
    pub uptime_ns: u64,
    /// Pid of the guardian, unless a new one is being started.
    pub guardian: Option<u32>,
    /// Why nothing is enforced any more, if the decision thread failed.
    pub failure: Option<String>,
}
