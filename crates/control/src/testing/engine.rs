//! An engine that keeps books and touches no process.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{PipeReader, PipeWriter, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard};

use prorata_core::ids::ClientId;
use prorata_protocol::{ClientState, EventReport, HybridChoice, POLICIES, PolicyName};
use prorata_user::ownership::KnownClient;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::process::{Pid, PidfdFlags, pidfd_open};

use crate::engine::{ClientAccount, Engine, EngineError, EngineStatus, Stray};
use crate::process::{ProcessId, ProcessInfo};

/// A process with this pid cannot be managed.
pub(crate) const UNMANAGEABLE: u32 = 199;

/// An engine that notices when real processes end, and does no more.
#[derive(Clone, Debug)]
pub(crate) struct FakeEngine {
    books: Arc<Mutex<Books>>,
    /// Holds a byte for each client in `Books::exited`.
    exits: Arc<(PipeReader, PipeWriter)>,
    /// Whether it manages only real processes.
    strict: bool,
    /// Writes a file when the engine is dropped.
    _end_note: Option<Arc<EndNote>>,
    /// The policies that it knows.
    policies: &'static [PolicyName],
    most_limits: usize,
    keeps_events: bool,
}

/// A pid about which the engine panics when asked.
pub(crate) const CURSED: u32 = 4_000_000;

#[derive(Debug)]
struct EndNote(PathBuf);

impl Drop for EndNote {
    fn drop(&mut self) {
        std::fs::write(&self.0, "").unwrap();
    }
}

#[derive(Default, Debug)]
pub(crate) struct Books {
    pub clients: BTreeMap<ClientId, Vec<ProcessId>>,
    pub suspended: BTreeSet<ClientId>,
    pub exited: Vec<ClientId>,
    /// Clients that give way.
    pub giving_way: BTreeSet<ClientId>,
    /// Clients in the order in which they were managed.
    pub order: Vec<ClientId>,
    pub adopters: BTreeMap<u32, ClientId>,
    /// The quanta that it was told; none is the common one.
    pub quanta_ns: BTreeMap<ClientId, Option<u64>>,
    /// The processes that `manage_marked` finds.
    pub marked: BTreeMap<ClientId, ProcessId>,
    pub nudges: u64,
    /// How often it was asked whether it would take strays in.
    pub questions: u64,
    /// Whether it stops losers by signals.
    pub stops: bool,
    /// Whether it stops clients by signals that exhausted their limits.
    pub stops_in_pauses: bool,
    /// The last settings that it was told.
    pub configured: Option<(u64, PolicyName)>,
    /// The events that it keeps.
    pub events: Vec<(ClientId, EventReport)>,
    /// The mechanisms that it has fixed, if it has.
    pub hybrid: Option<HybridChoice>,
    /// Its account of any client, if it keeps accounts.
    pub account: Option<ClientAccount>,
}

impl Default for FakeEngine {
    fn default() -> Self {
        Self {
            books: Arc::default(),
            exits: Arc::new(std::io::pipe().unwrap()),
            strict: false,
            _end_note: None,
            policies: POLICIES,
            most_limits: usize::MAX,
            keeps_events: true,
        }
    }
}

impl FakeEngine {
    /// An engine that manages only real processes.
    pub fn strict() -> Self {
        Self {
            strict: true,
            ..Self::default()
        }
    }

    /// The same; writes a file at `note` when it is dropped.
    pub fn noting_its_end(note: PathBuf) -> Self {
        Self {
            _end_note: Some(Arc::new(EndNote(note))),
            ..Self::strict()
        }
    }

    /// An engine that knows only these policies.
    pub fn knowing(policies: &'static [PolicyName]) -> Self {
        Self {
            policies,
            ..Self::default()
        }
    }

    /// An engine that keeps no events.
    pub fn without_events() -> Self {
        Self {
            keeps_events: false,
            ..Self::default()
        }
    }

    /// An engine that holds so many limits of CPU time.
    pub fn with_limits(most_limits: usize) -> Self {
        Self {
            most_limits,
            ..Self::default()
        }
    }

    pub fn books(&self) -> MutexGuard<'_, Books> {
        self.books.lock().unwrap()
    }

    /// A client's process has ended.
    pub fn end(&self, process: ProcessId) {
        let mut books = self.books();
        let mut exited = Vec::new();
        for (client, processes) in &mut books.clients {
            let before = processes.len();
            processes.retain(|other| *other != process);
            if processes.is_empty() && before > 0 {
                exited.push(*client);
            }
        }
        for client in exited {
            books.exited.push(client);
            (&self.exits.1).write_all(b"!").unwrap();
        }
    }

    /// Follows a real process to its end.
    fn follow(&self, process: ProcessId) {
        let Ok(pidfd) = pidfd_open(
            Pid::from_raw(process.pid as i32).unwrap(),
            PidfdFlags::empty(),
        ) else {
            return;
        };
        let engine = Self {
            _end_note: None,
            ..self.clone()
        };
        std::thread::spawn(move || {
            while poll(&mut [PollFd::new(&pidfd, PollFlags::IN)], None).is_err() {}
            engine.end(process);
        });
    }
}

impl Books {
    fn leave(&mut self, client: ClientId, process: ProcessId) {
        if let Some(processes) = self.clients.get_mut(&client) {
            processes.retain(|other| *other != process);
        }
    }
}

impl Engine for FakeEngine {
    fn manage(&self, client: ClientId, root: ProcessId) -> Result<(), EngineError> {
        let is_real = ProcessInfo::read(root.pid).is_some_and(|process| process.id == root);
        if root.pid == UNMANAGEABLE || (self.strict && !is_real) {
            return Err("it has just ended".into());
        }
        if is_real {
            self.follow(root);
        }
        let holder = self.find(root.pid);
        let mut books = self.books();
        match holder {
            Some(from) if books.giving_way.contains(&from) => books.leave(from, root),
            _ => {}
        }
        books.order.push(client);
        books.clients.entry(client).or_default().push(root);
        Ok(())
    }

    fn take_in(&self, client: ClientId, strays: &[Stray]) -> Vec<bool> {
        let mut books = self.books();
        let taken = strays.iter().map(|stray| {
            let is_taken = stray.process.pid != UNMANAGEABLE && !books.stops;
            if is_taken {
                books.giving_way.insert(client);
                books.clients.entry(client).or_default().push(stray.process);
            }
            is_taken
        });
        taken.collect()
    }

    fn would_take_in(&self, _: &[Stray]) -> bool {
        let mut books = self.books();
        books.questions += 1;
        !books.stops
    }

    fn let_out(&self, processes: &[ProcessId]) {
        for process in processes {
            let holder = self.find(process.pid);
            let mut books = self.books();
            if let Some(client) = holder.filter(|client| books.giving_way.contains(client)) {
                books.leave(client, *process);
            }
        }
    }

    fn adopt(&self, client: ClientId, parent: ProcessId) -> Result<(), EngineError> {
        self.books().adopters.insert(parent.pid, client);
        Ok(())
    }

    fn manage_marked(&self, clients: &[KnownClient]) -> Vec<u32> {
        let manage = |client: &KnownClient| {
            let marked = self.books().marked.get(&client.id).copied();
            let left = marked.filter(|process| process.start_time_ticks >= client.since_ticks);
            left.map_or(0, |process| {
                u32::from(self.manage(client.id, process).is_ok())
            })
        };
        clients.iter().map(manage).collect()
    }

    fn release(&self, client: ClientId) {
        let mut books = self.books();
        books.clients.remove(&client);
        books.quanta_ns.remove(&client);
        books.suspended.remove(&client);
        books.giving_way.remove(&client);
    }

    fn would_stop(&self, _: ProcessId, is_limited: bool) -> bool {
        let books = self.books();
        books.stops || (is_limited && books.stops_in_pauses)
    }

    fn set_client_quantum(&self, client: ClientId, quantum_ns: Option<u64>) {
        let mut books = self.books();
        assert!(books.clients.contains_key(&client), "{client} is managed");
        books.quanta_ns.insert(client, quantum_ns);
    }

    fn suspend(&self, client: ClientId) -> bool {
        self.books().suspended.insert(client);
        false
    }

    fn resume(&self, client: ClientId) {
        self.books().suspended.remove(&client);
    }

    fn nudge(&self) {
        self.books().nudges += 1;
    }

    fn exits(&self) -> BorrowedFd<'_> {
        self.exits.0.as_fd()
    }

    fn take_exited(&self) -> Vec<ClientId> {
        let exited = std::mem::take(&mut self.books().exited);
        let mut bytes = vec![0; exited.len()];
        (&self.exits.0).read_exact(&mut bytes).unwrap();
        exited
    }

    fn find(&self, pid: u32) -> Option<ClientId> {
        assert_ne!(pid, CURSED, "a bug");
        let books = self.books();
        let found = books
            .clients
            .iter()
            .find(|(_, all)| all.iter().any(|one| one.pid == pid));
        found.map(|(client, _)| *client)
    }

    fn processes(&self, client: ClientId) -> Vec<ProcessId> {
        self.books()
            .clients
            .get(&client)
            .cloned()
            .unwrap_or_default()
    }

    fn state(&self, client: ClientId) -> Option<ClientState> {
        self.books()
            .clients
            .contains_key(&client)
            .then_some(ClientState::Waiting)
    }

    fn account(&self, _: ClientId) -> Option<ClientAccount> {
        self.books().account.clone()
    }

    fn keeps_events(&self) -> bool {
        self.keeps_events
    }

    fn events(&self) -> Vec<(ClientId, EventReport)> {
        self.books().events.clone()
    }

    fn most_limits(&self) -> usize {
        self.most_limits
    }

    fn policies(&self) -> &'static [PolicyName] {
        self.policies
    }

    fn configure(&self, quantum_ns: u64, policy: PolicyName) {
        self.books().configured = Some((quantum_ns, policy));
    }

    fn status(&self) -> EngineStatus {
        EngineStatus {
            engine: "fake",
            mechanism: "none",
            cpus: vec![0],
            decisions: 0,
            own_cpu_ns: 0,
            uptime_ns: 0,
            queues: None,
            hybrid: self.books().hybrid,
            traced: false,
            outside: Vec::new(),
            advice: None,
            trouble: None,
        }
    }

    fn failure(&self) -> Option<String> {
        None
    }
}
