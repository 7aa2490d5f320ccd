//! The contract between the daemon and the engine that works for it.

use std::os::fd::BorrowedFd;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard};

use prorata_bulletin::Reader;
use prorata_core::dispatcher::Dispatcher;
use prorata_core::ids::ClientId;
use prorata_protocol::slots::RowReport;
use prorata_protocol::{
    ClientState, EventReport, HybridChoice, HybridReport, OutsideReport, POLICIES, PolicyName,
};
pub use prorata_user::Stray;
use prorata_user::ownership::KnownClient;

use crate::process::ProcessId;

/// Why an engine could not obey: one sentence.
pub type EngineError = Box<dyn std::error::Error + Send + Sync>;

/// What an engine gets from the daemon.
#[derive(Clone)]
pub struct EngineSetup {
    /// Shared with the daemon: says what each client deserves.
    pub dispatcher: Arc<Mutex<Dispatcher>>,
    /// Keeps until the next boot what the next engine must know. The directory
    /// need not exist yet.
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

/// The state of an engine.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct EngineStatus {
    /// `user` or `kernel`.
    pub engine: &'static str,
    /// How decisions are enforced.
    pub mechanism: &'static str,
    /// Where tasks wait, if a scheduler in the kernel decides.
    pub queues: Option<String>,
    /// The mechanisms of hybrid lottery scheduling, if they are fixed while the engine runs.
    /// Otherwise those of the daemon's settings are in force in the dispatcher.
    pub hybrid: Option<HybridChoice>,
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
    /// CPUs of which programs without a client use a part.
    pub outside: Vec<OutsideReport>,
    /// What would be better with another choice or right, in one sentence.
    pub advice: Option<&'static str>,
    /// What the user should know, in one sentence.
    pub trouble: Option<String>,
}

/// The account of a client since it is managed, where the engine keeps
/// accounts.
#[derive(Clone, PartialEq, Debug)]
pub struct ClientAccount {
    /// CPU time that the client was charged for.
    pub received_ns: u64,
    /// Its share of all charged CPU time while it competed.
    pub specified_ns: u64,
    /// Turns of its threads.
    pub turns: u64,
    /// Turns on another CPU than the one before.
    pub migrations: u64,
    /// Time that its runnable threads waited.
    pub waited_ns: u64,
    /// Waits by length: below 1 ns, below 2, below 4 and so on; the last entry
    /// has all longer ones.
    pub waits: Vec<u64>,
    /// How hybrid lottery scheduling judges the client, where a mechanism is in force.
    pub hybrid: Option<HybridReport>,
}

/// Gives real processes what they deserve by the ledger of a
/// [`prorata_core::dispatcher::Dispatcher`], which engine and daemon share. An
/// engine enforces the dispatcher's decisions, or has the kernel decide.
///
/// The daemon never holds the dispatcher during a call, so each method may take
/// it. Dropping an engine releases every client.
pub trait Engine {
    /// Manages the process tree at `root`, with all present and future
    /// descendants except those of other clients. A client may have several
    /// roots. Takes the tree from a client that [`Engine::take_in`] made.
    fn manage(&self, client: ClientId, root: ProcessId) -> Result<(), EngineError>;

    /// Whether stop signals hold the tree at `root` down once it is managed: as a loser, or with
    /// `is_limited` in a pause.
    fn would_stop(&self, _root: ProcessId, _is_limited: bool) -> bool {
        false
    }

    /// Adds processes without a client to a client that *gives way*, each by itself, and its
    /// children from then on: [`Engine::manage`] takes processes from it. Returns which of these
    /// processes have a client now: not those that would be stopped or frozen as losers, nor those
    /// for which there is no room, nor those that became another user's.
    fn take_in(&self, client: ClientId, strays: &[Stray]) -> Vec<bool>;

    /// Whether `take_in` could add any of these processes to a new client.
    fn would_take_in(&self, strays: &[Stray]) -> bool;

    /// Releases those of these processes that are of clients that give way.
    fn let_out(&self, processes: &[ProcessId]);

    /// The next children of `parent` belong to the client, though `parent` does
    /// not: it inherits the client's orphans.
    fn adopt(&self, client: ClientId, parent: ProcessId) -> Result<(), EngineError>;

    /// Manages the processes that carry the marker of one of these clients, belong
    /// to its owner, and did not start before it. Returns their number for each client.
    fn manage_marked(&self, clients: &[KnownClient]) -> Vec<u32>;

    /// Releases a client and undoes all enforcement. Ignores an unknown client.
    fn release(&self, client: ClientId);

    /// Sets the quantum of a managed client from its next turn on; without one,
    /// the common quantum applies.
    fn set_client_quantum(&self, client: ClientId, quantum_ns: Option<u64>);

    /// The user has stopped the client: undoes all enforcement, and keeps the
    /// client out of the competition. Returns whether the engine had stopped
    /// its processes.
    fn suspend(&self, client: ClientId) -> bool;

    /// Ends what `suspend` began.
    fn resume(&self, client: ClientId);

    /// The ledger has changed: decide now.
    fn nudge(&self);

    /// Readable while [`Engine::take_exited`] has news, and when the engine has
    /// failed.
    fn exits(&self) -> BorrowedFd<'_>;

    /// Clients whose last process has ended; each is reported once.
    fn take_exited(&self) -> Vec<ClientId>;

    /// Refreshes [`Engine::processes`], [`Engine::state`], [`Engine::account`]
    /// and the active clients in the dispatcher's ledger. The daemon calls this
    /// before it reads them.
    fn look(&self) {}

    /// The client of a process.
    fn find(&self, pid: u32) -> Option<ClientId>;

    /// The same for several processes.
    fn find_all(&self, pids: &[u32]) -> Vec<Option<ClientId>> {
        pids.iter().map(|pid| self.find(*pid)).collect()
    }

    /// The processes of a client.
    fn processes(&self, client: ClientId) -> Vec<ProcessId>;

    /// What a client is doing; `None` if it is not managed.
    fn state(&self, client: ClientId) -> Option<ClientState>;

    /// What a client received and deserved, where the engine and not the
    /// dispatcher keeps the account.
    fn account(&self, _client: ClientId) -> Option<ClientAccount> {
        None
    }

    /// Whether the engine keeps the last events of clients.
    fn keeps_events(&self) -> bool {
        false
    }

    /// The last events of clients, the oldest first, each with its client. Their reports have no
    /// names yet.
    fn events(&self) -> Vec<(ClientId, EventReport)> {
        Vec::new()
    }

    /// The policies that the engine knows.
    fn policies(&self) -> &'static [PolicyName] {
        POLICIES
    }

    /// The most clients that the engine can hold to limits of their CPU time.
    fn most_limits(&self) -> usize {
        usize::MAX
    }

    /// Whether the engine works without any client, so that the daemon stays.
    fn works_without_clients(&self) -> bool {
        false
    }

    /// Sets quantum and policy. The dispatcher has them already.
    fn configure(&self, _quantum_ns: u64, _policy: PolicyName) {}

    /// The state of the engine.
    fn status(&self) -> EngineStatus;

    /// Enforces a timetable from now on, or none: its claims go before all other decisions. Returns
    /// how, or why slots are not enforced.
    fn enforce_slots(&self, table: Option<Reader>) -> Result<&'static str, EngineError> {
        match table {
            None => Ok("none"),
            Some(_) => Err("this engine enforces no slots: claims are shown only".into()),
        }
    }

    /// What the engine counted since the table was opened, one a row; empty where it counts nothing.
    fn slot_rows(&self) -> Vec<RowReport> {
        Vec::new()
    }

    /// Why the engine enforces nothing any more, if it has failed.
    fn failure(&self) -> Option<String>;
}

/// Takes a dispatcher. A poisoned lock means that the engine's thread died of a
/// bug: the daemon then releases everything and ends.
pub(crate) fn lock(dispatcher: &Mutex<Dispatcher>) -> MutexGuard<'_, Dispatcher> {
    dispatcher
        .lock()
        .expect("no thread has died while it decided")
}
