//! Why an engine refuses a request.

use std::path::PathBuf;

use prorata_core::cpu_list;
use prorata_core::ids::ClientId;

/// Why the engine refuses a request. Nothing has changed.
#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    /// No process has this pid, or it began at another time.
    #[error("process {0} does not exist (any more): name a running process")]
    NoSuchProcess(u32),
    /// It belongs to another user.
    #[error("process {0} may not be managed by this user: name one of your own")]
    NotPermitted(u32),
    /// To stop it would stop the engine or the machine.
    #[error("process {0} is the engine itself or part of the system: name a program's process")]
    Indispensable(u32),
    /// It has a client already.
    #[error("process {pid} is managed already, as part of client {client}: release that first")]
    AlreadyManaged {
        /// The process.
        pid: u32,
        /// Its client.
        client: ClientId,
    },
    /// More processes than the limit on open files permits.
    #[error(
        "process {pid} is one too many: the limit on open files permits {limit}, so release others, \
         or stop the daemon and start it with a higher hard limit (`ulimit -Hn`, or LimitNOFILE= in \
         a systemd unit)"
    )]
    TooFewFiles {
        /// The process.
        pid: u32,
        /// How many there may be.
        limit: u32,
    },
    /// More processes than the engine can watch.
    #[error(
        "process {pid} is one too many: this engine watches at most {limit}, so release others"
    )]
    TooManyProcesses {
        /// The process.
        pid: u32,
        /// How many it watches.
        limit: u32,
    },
    /// The list is empty, or has CPUs that this process may not use.
    #[error(
        "the CPUs \"{}\" cannot be shared out: name at least one, and only such as this process may use",
        cpu_list::text(.0)
    )]
    BadCpus(Vec<u32>),
    /// `Mechanism::Idle` was asked for.
    #[error(
        "threads cannot be brought back from SCHED_IDLE by this user: \
         use the stop mechanism, or raise the nice limit to 20"
    )]
    IdleNotPermitted,
    /// A mechanism with control groups was asked for.
    #[error(
        "this user may not make the control groups that this takes: \
         use another mechanism, or have a group delegated to this user ({0})"
    )]
    ControlGroups(std::io::Error),
    /// Another engine uses the same state directory.
    #[error("an engine already runs with state directory {0}: end it first or choose another")]
    AlreadyRunning(PathBuf),
    /// The state directory cannot be used.
    #[error("cannot use state directory {path}: {source}")]
    StateDirectory {
        /// The directory.
        path: PathBuf,
        /// Why not.
        source: std::io::Error,
    },
    /// The guardian does not start.
    #[error("cannot start the guardian process: {0}")]
    Guardian(std::io::Error),
    /// The system refused a thread, a descriptor or the like.
    #[error("the system refuses what the engine needs to {0}: {1}")]
    System(&'static str, std::io::Error),
    /// The decision thread has failed; all processes run freely.
    #[error("the engine has failed and released everything: start a new one")]
    Failed,
}
