//! The user engine: makes real processes run in proportion to their tickets on
//! an ordinary Linux machine, without root and without a special kernel.
//!
//! A [`UserEngine`] asks a [`Dispatcher`] every quantum who is to run, and
//! enforces the answer on all threads and children of the clients' processes:
//! losers are put in `SCHED_IDLE` where that can be undone, else they are
//! stopped and continued ([`Mechanism`]). Whatever becomes of the engine, a
//! guardian process undoes all of it.
//!
//! A program that starts an engine calls [`guardian_entry`] first thing in
//! `main`.

use std::os::fd::BorrowedFd;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use prorata_core::dispatcher::Dispatcher;
use prorata_core::ids::ClientId;

/// Environment variable by which descendants that escaped from their tree are
/// found again: the client's identifier as it prints (`c3`), set by whoever
/// starts a client's program.
pub const CLIENT_MARKER: &str = "PRORATA_CLIENT";

/// How losers are kept from running.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mechanism {
    /// They are put in `SCHED_IDLE`: they run where nobody else wants to.
    /// Needs the right to leave `SCHED_IDLE` again (`CAP_SYS_NICE`, or a
    /// nice limit of 0 and below), and all clients in one scheduling group.
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
    /// start-up sweep read. Made if missing; best on a memory file system.
    pub state_directory: PathBuf,
    /// `None`: [`Mechanism::Idle`] where a trial and the clients' scheduling
    /// groups permit it, else [`Mechanism::Stop`], changed as need be.
    pub mechanism: Option<Mechanism>,
}

/// A process named for ever: a pid is used again, its start time is not.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct ProcessId {
    /// Process identifier.
    pub pid: u32,
    /// Field 22 of `/proc/PID/stat`: clock ticks since boot.
    pub start_time_ticks: u64,
}

impl ProcessId {
    /// Names the process that has this pid now.
    pub fn of(pid: u32) -> Result<ProcessId, EngineError> {
        let _ = pid;
        todo!()
    }

    /// Whether it still runs (a zombie does not).
    pub fn is_alive(self) -> bool {
        todo!()
    }
}

/// What a client is doing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ClientActivity {
    /// It won the last decision.
    Running,
    /// It competes and waits.
    Waiting,
    /// None of its threads wants to run.
    Blocked,
    /// Taken out by [`UserEngine::suspend`].
    Suspended,
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
    /// Why nothing is enforced any more, if the decision thread failed.
    pub failure: Option<String>,
}

/// Why the engine refuses; nothing has changed.
#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    /// No process has this pid, or it began at another time.
    #[error("process {0} does not exist (any more): name a running process")]
    NoSuchProcess(u32),
    /// It belongs to somebody else.
    #[error("process {0} may not be managed by this user: name one of your own")]
    NotPermitted(u32),
    /// It has a client already.
    #[error("process {pid} is managed already, as part of client {client}: release that first")]
    AlreadyManaged {
        /// The process.
        pid: u32,
        /// Its client.
        client: ClientId,
    },
    /// More processes than the engine can watch.
    #[error("process {pid} is one too many: this engine watches at most {limit}")]
    TooManyProcesses {
        /// The process.
        pid: u32,
        /// How many it watches.
        limit: u32,
    },
    /// A CPU that the machine does not have, or none at all.
    #[error(
        "the list of CPUs {0:?} names none that this process may use: name at least one, and only such"
    )]
    BadCpus(Vec<u32>),
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
    /// Threads, descriptors and the like.
    #[error("the system refuses what the engine needs to {0}: {1}")]
    System(&'static str, std::io::Error),
    /// The decision thread has failed; all processes run freely.
    #[error("the engine has failed and released everything: start a new one")]
    Failed,
}

/// If this process was started as a guardian, does a guardian's work and ends
/// the process; returns at once otherwise. To be called first thing in `main`
/// by every program that starts a [`UserEngine`].
pub fn guardian_entry() {}

/// Enforces a dispatcher's decisions on processes. Dropping it releases
/// everything.
pub struct UserEngine {
    _private: (),
}

#[allow(unused_variables)]
impl UserEngine {
    /// Sweeps what a dead predecessor left demoted or stopped, starts the
    /// guardian process and the decision thread, and tells the dispatcher how
    /// many CPUs there are.
    ///
    /// The dispatcher's lock is taken for microseconds only, never while a
    /// process is touched. After changing what it holds, call
    /// [`nudge`](Self::nudge).
    pub fn start(
        config: EngineConfig,
        dispatcher: Arc<Mutex<Dispatcher>>,
    ) -> Result<UserEngine, EngineError> {
        todo!()
    }

    /// Manages a process and all its present and future descendants as
    /// (part of) `client`. Descendants that another client has stay there.
    pub fn manage(&self, client: ClientId, process: ProcessId) -> Result<(), EngineError> {
        todo!()
    }

    /// Children of `parent` join `client` too, though `parent` itself does
    /// not: it is the process that started the client and, as a child
    /// subreaper, inherits the client's orphans.
    pub fn also_children_of(&self, client: ClientId, parent: ProcessId) -> Result<(), EngineError> {
        todo!()
    }

    /// Finds living processes that carry the client's marker
    /// ([`CLIENT_MARKER`]) and began at or after `since_ticks` (clock ticks
    /// since boot), and manages them. How a restarted daemon finds what is
    /// left of a client whose root has ended. Returns how many joined.
    pub fn manage_marked(&self, client: ClientId, since_ticks: u64) -> Result<u32, EngineError> {
        todo!()
    }

    /// Undoes all enforcement on a client and forgets it. Unknown ones are
    /// ignored.
    pub fn release(&self, client: ClientId) {
        todo!()
    }

    /// Undoes enforcement and takes the client out of the competition until
    /// [`resume`](Self::resume). Returns whether the engine had stopped any
    /// of its processes, so that a stop signal may have been lost on them.
    pub fn suspend(&self, client: ClientId) -> bool {
        todo!()
    }

    /// Ends [`suspend`](Self::suspend).
    pub fn resume(&self, client: ClientId) {
        todo!()
    }

    /// The ledger has changed: decide now.
    pub fn nudge(&self) {
        todo!()
    }

    /// Readable while [`take_exited`](Self::take_exited) has something to
    /// tell.
    pub fn exits(&self) -> BorrowedFd<'_> {
        todo!()
    }

    /// Clients that have no process left since the last call. They are
    /// forgotten already.
    pub fn take_exited(&self) -> Vec<ClientId> {
        todo!()
    }

    /// The client that a process belongs to.
    pub fn find(&self, pid: u32) -> Option<ClientId> {
        todo!()
    }

    /// The processes of a client; none if it is unknown.
    pub fn processes(&self, client: ClientId) -> Vec<ProcessId> {
        todo!()
    }

    /// What a client is doing.
    pub fn state(&self, client: ClientId) -> Option<ClientActivity> {
        todo!()
    }

    /// How the engine fares.
    pub fn status(&self) -> EngineStatus {
        todo!()
    }
}
