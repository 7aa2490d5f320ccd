//! The contract between the daemon and the engine that works for it.

use std::os::fd::BorrowedFd;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard};

use prorata_core::dispatcher::Dispatcher;
use prorata_core::ids::ClientId;
use prorata_protocol::{ClientState, POLICIES, PolicyName};

use crate::process::ProcessId;

/// Why an engine could not do what it was asked: one sentence.
pub type EngineError = Box<dyn std::error::Error + Send + Sync>;

/// What an engine works for, and with what.
#[derive(Clone)]
pub struct EngineSetup {
    /// Shared with the daemon: says what belongs to each client.
    pub dispatcher: Arc<Mutex<Dispatcher>>,
    /// Keeps until the next boot what the engine's successor must know. The
    /// directory need not exist yet.
    pub directory: PathBuf,
    /// The daemon's socket, which the markers of its clients name.
    pub socket: PathBuf,
    /// CPUs that the engine shares out, by number.
    pub cpus: Vec<u32>,
    /// Base tickets of a user whose funding was never set; 0 without users.
    pub user_funding: u32,
}

impl EngineSetup {
    /// For an engine without a daemon: nothing listens on its socket.
    pub fn without_daemon(
        dispatcher: Arc<Mutex<Dispatcher>>,
        directory: PathBuf,
        cpus: Vec<u32>,
    ) -> Self {
        Self {
            dispatcher,
            socket: directory.join("socket"),
            directory,
            cpus,
            user_funding: 0,
        }
    }
}

/// How an engine fares.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct EngineStatus {
    /// `user` or `kernel`.
    pub engine: &'static str,
    /// How decisions are enforced.
    pub mechanism: &'static str,
    /// Where tasks wait, if a scheduler in the kernel decides.
    pub queues: Option<String>,
    /// Whether a waking task preempts a running task that is owed less.
    pub abbreviated: bool,
    /// Whether the decisions in the kernel can be traced.
    pub traced: bool,
    /// CPUs that are shared out, by number.
    pub cpus: Vec<u32>,
    /// Decisions taken so far.
    pub decisions: u64,
    /// CPU time that the daemon's process has used.
    pub own_cpu_ns: u64,
    /// Time since the engine started.
    pub uptime_ns: u64,
    /// What its user should know, in one sentence; most often nothing.
    pub trouble: Option<String>,
}

/// What an engine that keeps the account itself knows of a client, since it was
/// managed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ClientAccount {
    /// CPU time that it was charged for.
    pub received_ns: u64,
    /// Its share of all CPU time that was charged to anybody while it competed.
    pub specified_ns: u64,
    /// Times that one of its threads was given a CPU.
    pub turns: u64,
    /// Turns on another CPU than the one before.
    pub migrations: u64,
    /// Time that its threads waited while they could have run.
    pub waited_ns: u64,
    /// Waits by length: below 1 ns, below 2, below 4 and so on; the last has all
    /// the longer ones.
    pub waits: Vec<u64>,
}

/// Gives real processes what the ledger of a
/// [`prorata_core::dispatcher::Dispatcher`], which it shares with the daemon,
/// says is theirs: by enforcing its decisions, or by having the kernel decide.
///
/// The daemon calls none of these while it holds the dispatcher, so each may
/// take it. Dropping an engine releases every client.
pub trait Engine {
    /// Takes over the tree of processes at `root`, with all present and
    /// future descendants, except those that belong to other clients. A
    /// client may have several roots.
    fn manage(&self, client: ClientId, root: ProcessId) -> Result<(), EngineError>;

    /// Children that `parent` has from now on belong to the client too, though
    /// `parent` does not: it inherits the client's orphans.
    fn adopt(&self, client: ClientId, parent: ProcessId) -> Result<(), EngineError>;

    /// Finds processes of a client by the marker that they carry, as far as
    /// they are its owner's, `user`, and started at `since_ticks` or later, and
    /// manages them. Returns how many there are.
    fn manage_marked(&self, client: ClientId, user: u32, since_ticks: u64) -> u32;

    /// Lets go of a client, all enforcement undone. Unknown ones are ignored.
    fn release(&self, client: ClientId);

    /// Turns of a managed client last so long from the next one on, or as long as
    /// those of all.
    fn set_client_quantum(&self, client: ClientId, quantum_ns: Option<u64>);

    /// The user has stopped the client: undoes all enforcement, and keeps the
    /// client out of the competition as far as stopped processes are not out of
    /// it by themselves. Returns whether its processes were stopped by the
    /// engine.
    fn suspend(&self, client: ClientId) -> bool;

    /// Ends what `suspend` began.
    fn resume(&self, client: ClientId);

    /// Rights have changed: decide now.
    fn nudge(&self);

    /// Readable while [`Engine::take_exited`] has something to tell, and when
    /// the engine has failed.
    fn exits(&self) -> BorrowedFd<'_>;

    /// Clients whose last process has ended; each is told once.
    fn take_exited(&self) -> Vec<ClientId>;

    /// Brings up to date what [`Engine::processes`], [`Engine::state`] and
    /// [`Engine::account`] say, and who is active in the dispatcher's ledger. To
    /// be called before these are asked for.
    fn look(&self) {}

    /// Which client a process belongs to.
    fn find(&self, pid: u32) -> Option<ClientId>;

    /// The processes of a client.
    fn processes(&self, client: ClientId) -> Vec<ProcessId>;

    /// What a client is doing; `None` if it is not managed.
    fn state(&self, client: ClientId) -> Option<ClientState>;

    /// What a client received and was due, where the engine keeps that account
    /// and not the dispatcher.
    fn account(&self, _client: ClientId) -> Option<ClientAccount> {
        None
    }

    /// The policies that it knows.
    fn policies(&self) -> &'static [PolicyName] {
        POLICIES
    }

    /// Whether it has something to do while there is no client, so that the daemon
    /// is to stay.
    fn works_without_clients(&self) -> bool {
        false
    }

    /// How decisions are made from now on. The dispatcher has been told.
    fn configure(&self, _quantum_ns: u64, _policy: PolicyName) {}

    /// How it fares.
    fn status(&self) -> EngineStatus;

    /// Why nothing is enforced any more, if it has failed.
    fn failure(&self) -> Option<String>;
}

/// Takes a dispatcher. A poisoned lock means that the engine's thread died of a
/// bug: the daemon then releases everything and ends.
pub(crate) fn lock(dispatcher: &Mutex<Dispatcher>) -> MutexGuard<'_, Dispatcher> {
    dispatcher
        .lock()
        .expect("no thread has died while it decided")
}
