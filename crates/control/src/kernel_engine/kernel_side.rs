//! The scheduler in the kernel, and what it has been told.

use std::collections::BTreeMap;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::sync::Mutex;

use prorata_core::cpu_limit::CpuLimit;
use prorata_core::dispatcher::Dispatcher;
use prorata_core::hybrid::BOOST_ONE;
use prorata_core::ids::ClientId;
use prorata_core::ledger::Ledger;
use prorata_kernel::KernelError;
use prorata_kernel::scheduler::{
    Account, BASE, CGROUP_NODES, MOST_LIMITS, Options, Policy, ROOT_CGROUP, Scope, Ticket,
};
use prorata_protocol::{ClientState, HybridReport, PolicyName};
use prorata_user::procfs::LastBorn;

use super::client::{Client, NOTHING, sum};
use super::dues::Dues;
use super::policies::Policies;
use super::projection::{KernelStep, Projection};
use super::scheduler::InKernel;
use super::slots::Slots;
use crate::engine::{ClientAccount, EngineError, lock};
use crate::process::ProcessId;

/// So many processes of a client are asked for their boosts.
const MOST_BOOSTS: usize = 16;

/// Loads a scheduler.
pub(super) type LoadScheduler =
    Box<dyn Fn(&Options) -> Result<Box<dyn InKernel>, KernelError> + Send>;

/// The scheduler, its clients, and how both came there.
pub(super) struct KernelSide {
    /// None once it was unloaded for good.
    pub(super) scheduler: Option<Box<dyn InKernel>>,
    load: LoadScheduler,
    pub(super) options: Options,
    pub(super) projection: Projection,
    /// Nodes without an object that the kernel cannot forget yet.
    lingering: Vec<u32>,
    pub(super) clients: BTreeMap<ClientId, Client>,
    /// The limits that the kernel has been told.
    limits: BTreeMap<ClientId, CpuLimit>,
    pub(super) policies: Policies,
    /// The daemon's socket, which its clients' markers name.
    pub(super) socket: PathBuf,
    /// Base tickets of all tasks together that belong to no client, where the
    /// scheduler has all of the machine.
    user_funding: u32,
    exited: Vec<ClientId>,
    /// What the user should know of the scheduler, if anything.
    trouble: Option<String>,
    births: LastBorn,
    /// At the last look: the process born last on this machine, and the number
    /// of tasks of each client.
    seen: (Option<u32>, Vec<(ClientId, u32)>),
    /// Whether the clients' processes were found since then.
    are_found: bool,
    pub(super) dues: Dues,
    /// The open timetable.
    pub(super) slots: Option<Slots>,
    /// Turns under schedulers that were unloaded.
    earlier_decisions: u64,
    reloaded: bool,
}

impl KernelSide {
    /// Loads a scheduler and tells it the whole ledger.
    pub fn open(
        load: LoadScheduler,
        options: Options,
        policies: Policies,
        socket: PathBuf,
        user_funding: u32,
        ledger: &Ledger,
    ) -> Result<Self, EngineError> {
        let scheduler = load(&options)?;
        let mut side = Self {
            scheduler: Some(scheduler),
            load,
            options,
            projection: Projection::new(ledger),
            lingering: Vec::new(),
            clients: BTreeMap::new(),
            limits: BTreeMap::new(),
            policies,
            socket,
            user_funding,
            exited: Vec::new(),
            trouble: None,
            births: LastBorn::open()?,
            seen: (None, Vec::new()),
            dues: Dues::default(),
            are_found: false,
            slots: None,
            earlier_decisions: 0,
            reloaded: false,
        };
        side.fund_everybody_else();
        let steps = side.projection.begin(ledger);
        side.tell(steps);
        side.tell_limits(ledger.limited_clients().collect());
        Ok(side)
    }

    /// Releases all clients in order, as far as possible.
    pub fn close(&mut self) {
        let clients: Vec<ClientId> = self.clients.keys().copied().collect();
        clients.into_iter().for_each(|client| self.release(client));
        self.scheduler = None;
    }

    /// Tells the kernel what has changed in the dispatcher's ledger.
    pub fn follow(&mut self, dispatcher: &Mutex<Dispatcher>) {
        let (steps, limits) = {
            let mut dispatcher = lock(dispatcher);
            let entitlements = dispatcher.entitlements_alone();
            let changed = entitlements.take_funding_changes();
            let ledger = entitlements.ledger();
            let steps = match changed.is_empty() && !self.projection.is_full() {
                true => Vec::new(),
                false => self.projection.follow(ledger, changed),
            };
            (steps, ledger.limited_clients().collect())
        };
        if !steps.is_empty() {
            self.tell(steps);
        }
        self.tell_limits(limits);
    }

    /// Tells the kernel the limits that differ from those that it holds. A client that is gone loses
    /// its limit with its node. What the kernel refuses is told again at the next change.
    fn tell_limits(&mut self, limits: BTreeMap<ClientId, CpuLimit>) {
        if limits == self.limits {
            return;
        }
        let Some(scheduler) = &self.scheduler else {
            return;
        };
        let ended = self.limits.keys();
        let ended = ended.filter(|client| !limits.contains_key(client));
        let ended = ended.map(|client| (*client, None));
        let changed = limits.iter();
        let changed = changed.filter(|(client, max)| self.limits.get(client) != Some(max));
        let changed = changed.map(|(client, max)| (*client, Some(*max)));
        let changes: Vec<_> = ended.chain(changed).collect();
        let mut done = Ok(());
        for (client, max) in changes {
            let node = self.projection.node(client);
            let told = node.map_or(Ok(()), |node| scheduler.set_limit(node, max));
            match (told, max) {
                (Err(error), _) => done = Err(error),
                (Ok(()), Some(max)) if node.is_some() => {
                    self.limits.insert(client, max);
                }
                (Ok(()), _) => {
                    self.limits.remove(&client);
                }
            }
        }
        self.note_trouble(done);
    }

    /// The most limits of CPU time that the kernel holds.
    pub fn most_limits(&self) -> usize {
        match &self.scheduler {
            Some(scheduler) if scheduler.holds_limits() => MOST_LIMITS,
            _ => 0,
        }
    }

    /// Where the scheduler has all of the machine: gives all tasks without a
    /// client together as many base tickets as a user has initially.
    fn fund_everybody_else(&mut self) {
        if self.options.scope == Scope::All {
            let ticket = Ticket {
                currency: BASE,
                amount: u64::from(self.user_funding),
            };
            self.tell(vec![KernelStep::Fund {
                node: ROOT_CGROUP,
                tickets: vec![ticket],
            }]);
        }
    }

    fn tell(&mut self, steps: Vec<KernelStep>) {
        for step in steps {
            match step {
                KernelStep::Fund { node, tickets } => {
                    let told = self
                        .scheduler
                        .as_ref()
                        .map(|s| s.set_tickets(node, &tickets));
                    if let Some(Err(error)) = told {
                        tracing::error!("rights differ in the kernel: {error}");
                        self.trouble = Some(format!(
                            "rights in the kernel are not those of the ledger: {error}"
                        ));
                    }
                }
                KernelStep::Remove(node) => self.lingering.push(node),
            }
        }
        self.remove_lingering();
    }

    /// The kernel cannot remove a node while its tasks are ending.
    fn remove_lingering(&mut self) {
        let scheduler = self.scheduler.as_deref();
        let projection = &mut self.projection;
        self.lingering.retain(|node| {
            let is_gone = scheduler.is_none_or(|scheduler| scheduler.remove(*node).is_ok());
            if is_gone {
                projection.forgotten(*node);
            }
            !is_gone
        });
    }

    /// Whether the kernel still decides.
    pub fn is_loaded(&self) -> bool {
        self.scheduler.is_some()
    }

    /// Turns so far.
    pub fn decisions(&self) -> u64 {
        let now = self
            .scheduler
            .as_ref()
            .map_or(0, |scheduler| scheduler.dispatches());
        self.earlier_decisions + now
    }

    /// What the user should know of the scheduler.
    pub fn trouble(&self) -> Option<String> {
        let full = || {
            format!(
                "the kernel has room for {} clients and currencies together: tickets of those \
                 that came last are worth nothing there",
                CGROUP_NODES - 1
            )
        };
        self.trouble
            .clone()
            .or_else(|| self.projection.is_full().then(full))
    }

    /// Readable when there is news.
    pub fn exits(&self) -> Option<OwnedFd> {
        let exits = self.scheduler.as_ref()?.exits();
        exits.try_clone_to_owned().ok()
    }

    pub fn take_exited(&mut self) -> Vec<ClientId> {
        std::mem::take(&mut self.exited)
    }

    pub fn has_exited(&self) -> bool {
        !self.exited.is_empty()
    }

    /// Sets quantum and policy, also for a later reload.
    pub fn configure(&mut self, quantum_ns: u64, policy: PolicyName) {
        self.options.quantum_ns = quantum_ns;
        self.options.policy = match policy {
            PolicyName::Lottery => Policy::Lottery,
            _ => Policy::Stride,
        };
        let Some(scheduler) = &self.scheduler else {
            return;
        };
        let done = scheduler
            .set_quantum_ns(quantum_ns)
            .and_then(|()| scheduler.set_policy(self.options.policy));
        self.note_trouble(done);
    }

    /// Sets a client's quantum, also for a later reload.
    pub fn set_quantum(&mut self, id: ClientId, quantum_ns: Option<u64>) {
        if let Some(client) = self.clients.get_mut(&id) {
            client.quantum_ns = quantum_ns;
            self.tell_quantum(id, quantum_ns);
        }
    }

    fn tell_quantum(&mut self, client: ClientId, quantum_ns: Option<u64>) {
        let node = self.projection.node(client);
        if let (Some(scheduler), Some(node)) = (&self.scheduler, node) {
            let done = scheduler.set_client_quantum_ns(node, quantum_ns);
            self.note_trouble(done);
        }
    }

    fn note_trouble(&mut self, done: Result<(), KernelError>) {
        if let Err(error) = done {
            tracing::error!("{error}");
            self.trouble = Some(error.to_string());
        }
    }

    /// Notes the clients that have exited, and whether the scheduler is still
    /// loaded. The watcher calls this on every event and now and then.
    pub fn look_after(&mut self, dispatcher: &Mutex<Dispatcher>) {
        match self.scheduler.as_ref().map(|scheduler| scheduler.failure()) {
            Some(Some(failure)) => self.unloaded(&failure, dispatcher),
            Some(None) => {
                self.notice_exits();
                self.remove_lingering();
            }
            None => self.watch_unloaded(),
        }
    }

    fn notice_exits(&mut self) {
        let nodes = self
            .scheduler
            .as_ref()
            .map(|scheduler| scheduler.take_exited());
        for node in nodes.into_iter().flatten() {
            if let Some(client) = self.projection.client(node) {
                self.notice_exit(client);
            }
        }
    }

    /// A client without tasks has exited, unless it has got new ones meanwhile.
    /// A kernel that unloads the scheduler releases all tasks before it says
    /// so: living tasks mean that the client has not exited.
    pub(super) fn notice_exit(&mut self, client: ClientId) {
        let has_tasks = self
            .in_kernel(client)
            .is_none_or(|account| account.tasks > 0);
        if !has_tasks && !self.lives(client) && self.clients.remove(&client).is_some() {
            self.exited.push(client);
            self.policies.forget_ended();
        }
    }

    /// The clients without a process are gone.
    pub(super) fn notice_exits_of(&mut self, gone: Vec<ClientId>) {
        for client in gone {
            self.clients.remove(&client);
            self.exited.push(client);
        }
    }

    /// The kernel has unloaded the scheduler. Its members are ordinary tasks
    /// now, but can still be looked up.
    fn unloaded(&mut self, failure: &KernelError, dispatcher: &Mutex<Dispatcher>) {
        tracing::error!("{failure}");
        let members = self.members();
        self.close_accounts();
        self.earlier_decisions = self.decisions();
        // The kernel holds one scheduler at a time.
        self.scheduler = None;
        let again = match is_by_hand(failure) || self.reloaded {
            true => None,
            false => Some((self.load)(&self.options)),
        };
        self.reloaded = true;
        match again {
            Some(Ok(scheduler)) => {
                self.scheduler = Some(scheduler);
                self.begin_again(&members, dispatcher);
                self.open_timetable_again();
                tracing::warn!("the scheduler was loaded again");
                self.trouble = Some(format!("{failure}; it was loaded again"));
            }
            Some(Err(error)) => self.give_up(
                &members,
                &format!("{failure}; loading it again failed: {error}"),
            ),
            None if is_by_hand(failure) => self.give_up(&members, &failure.to_string()),
            None => self.give_up(&members, &format!("{failure}, for the second time")),
        }
    }

    /// Tells a new scheduler everything.
    fn begin_again(&mut self, members: &[(u32, ClientId)], dispatcher: &Mutex<Dispatcher>) {
        let (steps, limits) = {
            let mut dispatcher = lock(dispatcher);
            let entitlements = dispatcher.entitlements_alone();
            entitlements.take_funding_changes();
            self.projection = Projection::new(entitlements.ledger());
            self.lingering.clear();
            let limits = entitlements.ledger().limited_clients().collect();
            (self.projection.begin(entitlements.ledger()), limits)
        };
        self.fund_everybody_else();
        self.tell(steps);
        self.limits.clear();
        self.tell_limits(limits);
        for (id, quantum_ns) in self.own_quanta() {
            self.tell_quantum(id, Some(quantum_ns));
        }
        self.give_again(members);
        let clients: Vec<ClientId> = self.clients.keys().copied().collect();
        clients
            .into_iter()
            .for_each(|client| self.notice_exit(client));
    }

    fn own_quanta(&self) -> Vec<(ClientId, u64)> {
        let clients = self.clients.iter();
        clients
            .filter_map(|(id, client)| Some((*id, client.quantum_ns?)))
            .collect()
    }

    fn give_up(&mut self, members: &[(u32, ClientId)], why: &str) {
        self.let_all_go(members);
        tracing::error!("{why}: programs run under the kernel's own scheduler");
        self.trouble = Some(format!(
            "{why}: programs run under the kernel's own scheduler until `prorata stop` and \
             another `prorata start --engine kernel`"
        ));
    }

    /// Keeps the accounts that a new scheduler continues.
    fn close_accounts(&mut self) {
        let ids: Vec<ClientId> = self.clients.keys().copied().collect();
        for id in ids {
            let now = self.in_kernel(id);
            if let (Some(client), Some(now)) = (self.clients.get_mut(&id), now) {
                client.earlier = sum(&client.earlier, &self.dues.correct(id, now));
            }
        }
        self.dues.begin_again();
    }

    /// The kernel's account of a client, since the scheduler was loaded.
    pub(super) fn in_kernel(&self, client: ClientId) -> Option<Account> {
        let node = self.projection.node(client)?;
        self.scheduler.as_ref()?.account(node).ok()
    }

    /// Refreshes the accounts and the tasks of clients.
    pub fn look(&mut self) {
        let ids: Vec<ClientId> = self.clients.keys().copied().collect();
        for id in ids {
            let account = self.in_kernel(id);
            if let Some(client) = self.clients.get_mut(&id) {
                client.now = account.unwrap_or(NOTHING);
            }
        }
        let last_born = self.births.read().ok();
        let tasks = self
            .clients
            .iter()
            .map(|(id, client)| (*id, client.now.tasks));
        let seen = (last_born, tasks.collect());
        if last_born.is_none() || self.seen != seen {
            self.seen = seen;
            self.are_found = false;
        }
    }

    /// As of the last look, or later. The engine looks for processes only after
    /// a birth or an end: for each process that it looks at, the kernel sums up
    /// all threads.
    pub fn processes(&mut self, client: ClientId) -> Vec<ProcessId> {
        if !self.are_found {
            self.find_processes();
            self.are_found = true;
        }
        let client = self.clients.get(&client);
        client.map_or_else(Vec::new, |client| client.processes.clone())
    }

    /// As of the last look. Only the kernel knows which of the clients that are
    /// not blocked run at this moment.
    pub fn state(&self, client: ClientId) -> Option<ClientState> {
        let client = self.clients.get(&client)?;
        Some(match client.now.runnable {
            0 => ClientState::Blocked,
            _ if client.now.pauses => ClientState::Limited,
            _ => ClientState::Running,
        })
    }

    /// As of the last look, from the client's beginning. For a client without
    /// tasks, the whole account.
    pub fn account(&self, client: ClientId) -> Option<ClientAccount> {
        let account = match self.clients.get(&client) {
            Some(known) => sum(&known.earlier, &self.dues.correct(client, known.now)),
            None => self.dues.correct(client, self.in_kernel(client)?),
        };
        Some(ClientAccount {
            received_ns: account.received_ns,
            specified_ns: account.specified_ns,
            turns: account.dispatches,
            migrations: account.migrations,
            waited_ns: account.waited_ns,
            waits: account.waits.to_vec(),
            hybrid: self.options.hybrid.judges_wakes().then(|| HybridReport {
                boost: self.boost(client),
                lead_ns: account.lead_ns,
            }),
        })
    }

    /// The greatest boost of a client's processes, of which a few are asked.
    fn boost(&self, client: ClientId) -> Option<f64> {
        let scheduler = self.scheduler.as_ref()?;
        let processes = &self.clients.get(&client)?.processes;
        let asked = processes.iter().take(MOST_BOOSTS);
        let boosts = asked.filter_map(|process| scheduler.boost_of(process.pid));
        Some(f64::from(boosts.max()?) / f64::from(BOOST_ONE))
    }
}

/// Whether an administrator unloaded the scheduler, by sysrq-S or otherwise:
/// then it is not loaded again. The words are the kernel's (`scx_exit_reason`
/// in its `kernel/sched/ext.c`).
fn is_by_hand(failure: &KernelError) -> bool {
    match failure {
        KernelError::Ejected { reason, .. } => {
            reason.starts_with("disabled by sysrq") || reason.starts_with("unregistered from")
        }
        _ => false,
    }
}
