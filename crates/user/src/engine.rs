//! The engine's interface.

use std::os::fd::BorrowedFd;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::mpsc::sync_channel;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Instant;

use prorata_core::dispatcher::Dispatcher;
use prorata_core::ids::ClientId;
use rustix::thread::CpuSet;

use crate::chronicle::ClientEvent;
use crate::competition::Competition;
use crate::config::{EngineConfig, EngineStatus};
use crate::decision::DecisionThread;
use crate::descriptors::raise_file_limit;
use crate::directory::{ClientActivity, SharedDirectory};
use crate::enforcement::Enforcement;
use crate::error::EngineError;
use crate::events::{CommandSender, Ended, Events};
use crate::guardian::Guardian;
use crate::ownership::KnownClient;
use crate::priority::Raise;
use crate::process_id::ProcessId;
use crate::scheduler::{self, Return};
use crate::signals::SignalWatch;
use crate::slots::{Director, Keepers, Play, SlotMechanism, SlotReport};
use crate::strays::Stray;
use crate::supervision::Supervision;
use crate::sweep::{Records, put_right};
use crate::table::{Journal, Table};
use crate::tree::Tree;
use crate::wake_times::WakeTimes;

/// Enforces a dispatcher's decisions on processes. Dropping it releases
/// all clients.
///
/// Methods that change something wait for the decision thread, mostly for well below a
/// millisecond, except [`nudge`](Self::nudge). Do not call them with the dispatcher's lock held.
pub struct UserEngine {
    commands: CommandSender,
    directory: SharedDirectory,
    thread: Option<JoinHandle<()>>,
    started: Instant,
    table: Arc<Table>,
    keepers: Mutex<Option<Keepers>>,
}

impl UserEngine {
    /// Undoes the deeds of a dead predecessor, starts the guardian process and the decision
    /// thread, and tells the dispatcher how many CPUs there are. Raises the limit on open files
    /// as far as permitted.
    ///
    /// The engine holds the dispatcher's lock for microseconds only, and changes no process
    /// meanwhile. After a change of the ledger, call [`nudge`](Self::nudge).
    pub fn start(
        config: EngineConfig,
        dispatcher: Arc<Mutex<Dispatcher>>,
    ) -> Result<UserEngine, EngineError> {
        let cpus = choose_cpus(config.cpus)?;
        let way_back =
            Return::by_trial().map_err(|error| EngineError::System("try out SCHED_IDLE", error))?;
        raise_file_limit();
        let table = Table::open(&config.state_directory)?;
        table.note_engine()?;
        sweep(&table, &config.socket);
        let enforcement = Enforcement::new(config.mechanism, way_back, &table)?;
        let table = Arc::new(table);
        let guardian = Guardian::spawn(&table, &config.socket).map_err(EngineError::Guardian)?;
        let wait = |error| EngineError::System("wait for events", error);
        let (mechanism, missing_right) = (enforcement.mechanism(), enforcement.missing_right());
        let directory = SharedDirectory::new(mechanism, missing_right).map_err(wait)?;
        let (commands, events) = Events::new().map_err(wait)?;
        let mut tree = Tree::new(Journal::new(table.clone()), way_back, config.socket, cpus)
            .map_err(|error| EngineError::System("notice births", error))?;
        tree.guardian = Some(guardian.pid());
        let mut supervision =
            Supervision::new(table.clone(), tree.socket.clone(), commands.clone());
        supervision
            .employ(guardian, &events)
            .map_err(|error| wait(error.into()))?;
        lock(&dispatcher).set_cpus(cpus.count());
        let decision_thread = DecisionThread {
            tree,
            competition: Competition::new(dispatcher, &cpus),
            enforcement,
            wake_times: WakeTimes::new(),
            signals: SignalWatch::default(),
            events,
            supervision,
            director: Director::default(),
            directory: directory.clone(),
            sampled: Vec::new(),
            ended: false,
        };
        let thread = std::thread::Builder::new()
            .name("decisions".into())
            .spawn(move || decide_until_the_end(decision_thread))
            .map_err(|error| EngineError::System("start the decision thread", error))?;
        Ok(UserEngine {
            commands,
            directory,
            thread: Some(thread),
            started: Instant::now(),
            table,
            keepers: Mutex::new(None),
        })
    }

    /// Manages a process and all its present and future descendants as (part of) `client`,
    /// except descendants that belong to another client. Takes them from a client that
    /// [`take_in`](Self::take_in) made.
    pub fn manage(&self, client: ClientId, process: ProcessId) -> Result<(), EngineError> {
        self.ask(move |thread, now_ns| thread.manage(client, process, now_ns))?
    }

    /// Adds processes to a client that gives way: [`manage`](Self::manage) takes a process from it,
    /// with its descendants. Each process joins by itself, and its children from then on. Returns
    /// which of these processes have a client now: not those that would be stopped or frozen.
    pub fn take_in(&self, client: ClientId, strays: &[Stray]) -> Result<Vec<bool>, EngineError> {
        let strays = strays.to_vec();
        self.ask(move |thread, now_ns| thread.take_in(client, &strays, now_ns))
    }

    /// Whether `take_in` could add any of these processes to a new client.
    pub fn would_take_in(&self, strays: &[Stray]) -> bool {
        let strays = strays.to_vec();
        let would_take = move |thread: &mut DecisionThread, _| {
            let mut strays = strays.into_iter();
            thread.tree.has_room_for_stray()
                && strays.any(|stray| thread.would_stand_by(stray.process))
        };
        self.ask(would_take).unwrap_or(false)
    }

    /// Releases those of these processes that are of clients that give way.
    pub fn let_out(&self, processes: &[ProcessId]) {
        let processes = processes.to_vec();
        let _ = self.ask(move |thread, now_ns| thread.let_out(&processes, now_ns));
    }

    /// Lets children of `parent` join `client` too, but not `parent` itself: it started the client
    /// and, as a child subreaper, inherits the client's orphans.
    pub fn also_children_of(&self, client: ClientId, parent: ProcessId) -> Result<(), EngineError> {
        self.ask(move |thread, now_ns| thread.add_foster_parent(client, parent, now_ns))?
    }

    /// Finds the processes that are left of clients after a restart of the daemon, by their
    /// markers ([`CLIENT_MARKER`](crate::CLIENT_MARKER)), and manages them, see
    /// [`is_left_of`](crate::ownership::is_left_of). Returns how many joined each client, with
    /// their descendants.
    pub fn manage_marked(&self, clients: &[KnownClient]) -> Result<Vec<u32>, EngineError> {
        let clients = clients.to_vec();
        self.ask(move |thread, now_ns| thread.manage_marked(&clients, now_ns))
    }

    /// Whether stop signals hold this process down once it is managed, so that a parent that does
    /// job control and is no client sees it stopped: as a loser, or with `is_limited` in a pause.
    pub fn would_stop(&self, process: ProcessId, is_limited: bool) -> bool {
        self.ask(move |thread, _| thread.would_stop(process, is_limited))
            .unwrap_or(false)
    }

    /// Undoes all enforcement on a client and forgets it. Ignores an unknown client.
    pub fn release(&self, client: ClientId) {
        // A failed engine has released all clients.
        let _ = self.ask(move |thread, now_ns| thread.release(client, now_ns));
    }

    /// Sets how long turns of a client last, from 1 ms to 1 s; `None` is the quantum of all.
    /// Shares do not change. Ignores an unknown client.
    pub fn set_client_quantum(&self, client: ClientId, quantum_ns: Option<u64>) {
        let _ = self.ask(move |thread, _| thread.set_client_quantum(client, quantum_ns));
    }

    /// Undoes enforcement and takes the client out of the competition until
    /// [`resume`](Self::resume). Returns whether the engine had stopped any of its processes: a
    /// stop signal of their user may be lost then.
    pub fn suspend(&self, client: ClientId) -> bool {
        self.ask(move |thread, now_ns| thread.tree.suspend(client, now_ns))
            .unwrap_or(false)
    }

    /// Ends [`suspend`](Self::suspend).
    pub fn resume(&self, client: ClientId) {
        let _ = self.ask(move |thread, now_ns| thread.tree.resume(client, now_ns));
    }

    /// The ledger has changed: decide now. Returns at once.
    pub fn nudge(&self) {
        self.commands.wake();
    }

    /// Enforces this timetable from now on, in place of any other, or none. Returns how: the first
    /// that this user may do. A table that is closed, or whose CPUs are offline, is as good as none.
    /// Waits for the end of the former keepers.
    pub fn set_timetable(
        &self,
        reader: Option<prorata_bulletin::Reader>,
    ) -> Result<Option<SlotMechanism>, EngineError> {
        let mut keepers = self.keepers.lock().unwrap_or_else(PoisonError::into_inner);
        *keepers = None;
        let Some(reader) = reader else {
            self.ask(|thread, _| thread.direct(None))?;
            return Ok(None);
        };
        let trial = |error| EngineError::System("try out how slots can be kept", error);
        let raise = Raise::by_trial().map_err(trial)?;
        let mechanism = match raise {
            Some(_) => SlotMechanism::Raise,
            None => match Return::by_trial().map_err(trial)? {
                Return::Never => SlotMechanism::Stop,
                Return::WithinNiceLimit | Return::Always => SlotMechanism::Lower,
            },
        };
        let play = Arc::new(Play::new(mechanism, &reader));
        let director = play.clone();
        self.ask(move |thread, _| thread.direct(Some(director)))?;
        let started = Keepers::start(play, reader, raise, &self.table, self.commands.clone());
        *keepers = Some(started.map_err(|error| EngineError::System("start the keepers", error))?);
        Ok(Some(mechanism))
    }

    /// How the timetable is kept; `None` if none is enforced.
    pub fn slot_report(&self) -> Option<SlotReport> {
        let keepers = self.keepers.lock().unwrap_or_else(PoisonError::into_inner);
        keepers.as_ref().map(Keepers::report)
    }

    /// Readable while [`take_exited`](Self::take_exited) would return a client, and once the
    /// engine has failed.
    pub fn exits(&self) -> BorrowedFd<'_> {
        self.directory.exits()
    }

    /// Clients whose last process ended since the last call. The engine has forgotten them.
    pub fn take_exited(&self) -> Vec<ClientId> {
        self.directory.take_exited()
    }

    /// The client that a process belongs to.
    pub fn find(&self, pid: u32) -> Option<ClientId> {
        self.directory.read().find(pid)
    }

    /// The same for several processes.
    pub fn find_all(&self, pids: &[u32]) -> Vec<Option<ClientId>> {
        let directory = self.directory.read();
        pids.iter().map(|&pid| directory.find(pid)).collect()
    }

    /// The processes of a client; none if it is unknown.
    pub fn processes(&self, client: ClientId) -> Vec<ProcessId> {
        self.directory.read().processes(client)
    }

    /// What a client is doing; `None` if it is unknown.
    pub fn state(&self, client: ClientId) -> Option<ClientActivity> {
        self.directory.read().activity(client)
    }

    /// The last events of clients, the oldest first: [`MOST_EVENTS`](crate::MOST_EVENTS) at most.
    pub fn events(&self) -> Vec<ClientEvent> {
        self.directory.read().events.all()
    }

    /// The engine's state and its cost.
    pub fn status(&self) -> EngineStatus {
        let directory = self.directory.read();
        let own = scheduler::cpu_time_ns(std::process::id());
        let guardian = directory.facts.guardian.and_then(scheduler::cpu_time_ns);
        EngineStatus {
            mechanism: directory.facts.mechanism,
            missing_right: directory.facts.missing_right,
            decisions: directory.facts.decisions,
            own_cpu_ns: own.unwrap_or(0) + guardian.unwrap_or(0),
            uptime_ns: self.started.elapsed().as_nanos() as u64,
            guardian: directory.facts.guardian,
            outside: directory.facts.outside.clone(),
            failure: directory.failure.clone(),
        }
    }

    fn ask<T: Send + 'static>(
        &self,
        command: impl FnOnce(&mut DecisionThread, u64) -> T + Send + 'static,
    ) -> Result<T, EngineError> {
        let (answer, answered) = sync_channel(1);
        let sent = self.commands.send(move |thread, now_ns| {
            // A caller that is gone misses nothing.
            let _ = answer.send(command(thread, now_ns));
        });
        sent.map_err(|Ended| EngineError::Failed)?;
        answered.recv().map_err(|_| EngineError::Failed)
    }
}

impl Drop for UserEngine {
    fn drop(&mut self) {
        *self.keepers.lock().unwrap_or_else(PoisonError::into_inner) = None;
        let _ = self.commands.send(|thread, _| thread.ended = true);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Undoes the deeds of a dead engine, for the daemon on `socket` that is going to use another
/// kind of engine. `state_directory` is the dead engine's. Waits for the end of its guardian.
pub fn put_right_what_is_left(state_directory: &Path, socket: &Path) -> Result<(), EngineError> {
    sweep(&Table::open(state_directory)?, socket);
    Ok(())
}

/// Undoes the deeds of a dead engine where no engine is to follow. Does nothing while an engine or
/// a guardian lives: they see to it.
pub fn put_right_orphans(state_directory: &Path, socket: &Path) -> Result<(), EngineError> {
    sweep(&Table::open_at_once(state_directory)?, socket);
    Ok(())
}

fn sweep(table: &Table, socket: &Path) {
    let swept = put_right(table, socket, Records::Clear);
    if swept.restored > 0 {
        tracing::warn!(
            "put {} processes right that a dead engine left",
            swept.restored
        );
    }
}

/// Runs the decision thread. After a panic it undoes all deeds that the table lists, because
/// nothing else can be relied on.
fn decide_until_the_end(mut decision_thread: DecisionThread) {
    let directory = decision_thread.directory.clone();
    let table = decision_thread.supervision.table();
    let socket = decision_thread.tree.socket.clone();
    let Err(panic) = catch_unwind(AssertUnwindSafe(|| decision_thread.run())) else {
        return;
    };
    decision_thread.director.end();
    put_right(&table, &socket, Records::Clear);
    let message = panic
        .downcast_ref::<&str>()
        .map(|text| (*text).to_owned())
        .or_else(|| panic.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "the decision thread panicked".to_owned());
    tracing::error!("the engine has failed and released everything: {message}");
    directory.fail(message);
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The CPUs that are shared out.
fn choose_cpus(wanted: Option<Vec<u32>>) -> Result<CpuSet, EngineError> {
    let usable =
        scheduler::affinity(0).map_err(|error| EngineError::System("find out its CPUs", error))?;
    let Some(wanted) = wanted else {
        return Ok(usable);
    };
    let mut cpus = CpuSet::new();
    for &cpu in &wanted {
        let cpu = cpu as usize;
        if cpu >= CpuSet::MAX_CPU || !usable.is_set(cpu) {
            return Err(EngineError::BadCpus(wanted));
        }
        cpus.set(cpu);
    }
    if cpus.count() == 0 {
        return Err(EngineError::BadCpus(wanted));
    }
    Ok(cpus)
}
