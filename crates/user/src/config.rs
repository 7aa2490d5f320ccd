//! What an engine is told, and what it tells about itself.

use std::path::PathBuf;

/// How losers are kept from running.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mechanism {
    /// They are put in `SCHED_IDLE`: they run where nobody else wants to, and
    /// those who run too much in spite of it are stopped until they win.
    /// Needs the right to leave `SCHED_IDLE` again (`CAP_SYS_NICE`, or a nice
    /// limit of 20), and all clients in one scheduling group.
    Idle,
    /// They are stopped and continued by signals.
    Stop,
}

/// What an engine needs to know.
#[derive(Clone, Debug)]
pub struct EngineConfig {
    /// CPUs to share out; `None`: those of the affinity mask that the engine's
    /// process has. Processes that are to use no other CPU must be bound to
    /// them by whoever starts them; the engine does not.
    pub cpus: Option<Vec<u32>>,
    /// Directory for the table of demoted processes, which guardian and
    /// start-up sweep read. Made if missing; best on a memory file system,
    /// where writing never waits for a disk.
    pub state_directory: PathBuf,
    /// Path of the socket by which its clients' programs reach the daemon; it
    /// tells them from those of another daemon, see [`crate::CLIENT_MARKER`].
    pub socket: PathBuf,
    /// `None`: [`Mechanism::Idle`] where a trial permits it, else
    /// [`Mechanism::Stop`]. Idle gives way to stop as long as the clients'
    /// scheduling groups differ, asked for or not.
    pub mechanism: Option<Mechanism>,
}

/// How an engine fares.
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
    /// CPUs shared out.
    pub cpus: u32,
    /// Processes managed now.
    pub processes: u32,
    /// Processes left alone because we may not touch them or have too many.
    pub left_alone: u64,
    /// Pid of the guardian, unless a new one is being started.
    pub guardian: Option<u32>,
    /// Why nothing is enforced any more, if the decision thread failed.
    pub failure: Option<String>,
}
