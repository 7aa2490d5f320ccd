//! The kernel engine behind the daemon's contract.
//!
//! ```text
//!   daemon: ledger --- notes of what changed ---> projection --- tickets ---> kernel:
//!           clients <-- exits, accounts, why unloaded ------------------------ decides
//!           processes --- threads, policies ---> members --- give, take ----->
//! ```
//!
//! The scheduler in the kernel decides and keeps the account. The engine tells
//! it the funding of each client and the threads of each client, and normally
//! nothing else: children come under their parents' clients at birth, and no
//! decision waits for the daemon.
//!
//! If the daemon is killed, the kernel unloads the scheduler and every member
//! continues under the kernel's own. If the kernel unloads the scheduler by
//! itself, the engine loads it again once. After a second time, or if an
//! administrator unloaded it, programs continue under the kernel's own
//! scheduler, and the daemon stays to say so.

mod client;
mod dues;
mod kept;
mod kernel_side;
mod members;
mod policies;
mod projection;
mod scheduler;
mod slots;
mod strays;
#[cfg(test)]
mod tests;
mod watch;

use std::os::fd::{AsFd, BorrowedFd};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use prorata_bulletin::Reader;
use prorata_core::dispatcher::Dispatcher;
use prorata_core::ids::ClientId;
use prorata_kernel::scheduler::{Mechanisms, Options, Policy, Queues, Scheduler, Scope};
use prorata_kernel::{BUILT_IN, KernelError};
use prorata_protocol::slots::RowReport;
use prorata_protocol::{ClientState, HybridChoice, KernelChoice, PolicyName, QueueChoice};
use prorata_user::ownership::KnownClient;
use prorata_user::{Bell, cpu_time_ns, outrank_slots, put_right_what_is_left, wake_as_others};

use crate::engine::{ClientAccount, Engine, EngineError, EngineSetup, EngineStatus, Stray, lock};
use crate::process::ProcessId;
pub use kept::KeptScheduler;
use kernel_side::{KernelSide, LoadScheduler};
use members::MemberError;
use policies::Policies;
use slots::Follower;
use watch::watch;

/// The policies that the kernel knows.
const POLICIES: &[PolicyName] = &[PolicyName::Stride, PolicyName::Lottery];

/// Longest time that the kernel takes to unload a scheduler. The scheduler's
/// name disappears earlier.
const UNLOADING: Duration = Duration::from_secs(10);

/// What is fixed about the scheduler in the kernel when it is loaded.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct KernelOptions {
    /// The tasks that it schedules.
    pub scope: Scope,
    /// Where they wait.
    pub queues: Queues,
    /// The mechanisms of hybrid lottery scheduling.
    pub hybrid: HybridChoice,
    /// Whether its decisions can be traced, by [`prorata_kernel::scheduler::Tap`].
    pub traced: bool,
}

impl From<KernelChoice> for KernelOptions {
    fn from(choice: KernelChoice) -> Self {
        Self {
            scope: if choice.all { Scope::All } else { Scope::Given },
            queues: match choice.queues {
                QueueChoice::Cpu => Queues::Cpu,
                QueueChoice::Cache => Queues::Cache,
                QueueChoice::One => Queues::One,
            },
            hybrid: choice.hybrid,
            traced: choice.traced,
        }
    }
}

impl KernelOptions {
    /// For clients alone, by their policy alone, as scenarios have it. (Each client may be ahead by the
    /// bound of leads, so hundreds of clients would need minutes to show their shares.)
    pub fn for_clients() -> Self {
        let choice = KernelChoice {
            all: false,
            hybrid: HybridChoice::NONE,
            ..KernelChoice::default()
        };
        choice.into()
    }

    /// The mechanisms as the scheduler takes them.
    pub fn hybrid(&self) -> Mechanisms {
        self.hybrid.into()
    }
}

/// What is to be known of clients that are scheduled alone.
const BELOW_OTHERS: &str = "clients get what all other tasks leave, those of `SCHED_IDLE` included: \
     without `--clients-only` the whole machine is scheduled";

/// The scheduler in the kernel and the thread that watches it.
struct ForKernel {
    shared: Arc<Shared>,
    watcher: Option<JoinHandle<()>>,
    /// Present while a timetable is open.
    follower: Mutex<Option<Follower>>,
    options: KernelOptions,
    started: Instant,
}

/// What the daemon's thread and the watching thread share.
struct Shared {
    /// A thread that takes both takes this before the dispatcher.
    side: Mutex<KernelSide>,
    dispatcher: Arc<Mutex<Dispatcher>>,
    /// The CPUs that the scheduler was told to share out.
    cpus: Vec<u32>,
    /// Rings for the daemon: a client has exited.
    exits: Bell,
    /// Rings for the watcher: the engine ends.
    end: Bell,
}

impl Shared {
    fn side(&self) -> MutexGuard<'_, KernelSide> {
        // Each method leaves it whole wherever it panics.
        self.side.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The last process of a client may have left it.
    fn tell_exits(&self, side: &KernelSide) {
        if side.has_exited() {
            self.exits.ring();
        }
    }
}

/// Why the kernel engine does not start, apart from the scheduler's own errors.
#[derive(Debug, thiserror::Error)]
enum StartError {
    #[error(
        "a scheduler is loaded by root alone, and this daemon runs as user {0}: start it as root, \
         or without `--engine kernel`"
    )]
    NotRoot(u32),
}

/// Loads a scheduler, after an earlier one of ours is unloaded.
fn load(options: &Options, traced: bool) -> Result<Scheduler, KernelError> {
    let deadline = Instant::now() + UNLOADING;
    let load = match traced {
        true => Scheduler::load_traced,
        false => Scheduler::load,
    };
    loop {
        match load(options) {
            Err(KernelError::Occupied(name))
                if (name.is_empty() || name.starts_with("prorata"))
                    && Instant::now() < deadline =>
            {
                std::thread::sleep(UNLOADING / 100);
            }
            loaded => return loaded,
        }
    }
}

/// Loads a scheduler into the kernel that shares out CPU time as the ledger of the
/// dispatcher says.
///
/// # Errors
///
/// If it cannot be loaded: the program was built without it, the user is not
/// root, the kernel has no sched_ext, or another scheduler is loaded. Nothing
/// has changed.
pub fn kernel_engine(
    setup: EngineSetup,
    options: KernelOptions,
) -> Result<Box<dyn Engine>, EngineError> {
    let traced = options.traced;
    let load: LoadScheduler =
        Box::new(move |options| Ok(Box::new(Box::new(load(options, traced)?))));
    let engine = ForKernel::start(load, setup, options)?;
    Ok(Box::new(engine))
}

/// The same over a loaded scheduler, which forgets what its last engine told
/// it.
///
/// # Errors
///
/// If tasks of that engine are still there, or the scheduler was unloaded.
pub fn kernel_engine_over(
    scheduler: &Arc<KeptScheduler>,
    setup: EngineSetup,
    options: KernelOptions,
) -> Result<Box<dyn Engine>, EngineError> {
    let scheduler = Arc::clone(scheduler);
    let load: LoadScheduler = Box::new(move |options| scheduler.lend(options));
    let engine = ForKernel::start(load, setup, options)?;
    Ok(Box::new(engine))
}

impl ForKernel {
    fn start(
        load: LoadScheduler,
        setup: EngineSetup,
        options: KernelOptions,
    ) -> Result<Self, EngineError> {
        if !BUILT_IN {
            return Err(KernelError::NotBuiltIn.into());
        }
        let user = rustix::process::getuid();
        if !user.is_root() {
            return Err(StartError::NotRoot(user.as_raw()).into());
        }
        put_right_what_is_left(&setup.directory, &setup.socket)?;
        Self::start_over(load, setup, options)
    }

    /// The same over any scheduler.
    fn start_over(
        load: LoadScheduler,
        setup: EngineSetup,
        options: KernelOptions,
    ) -> Result<Self, EngineError> {
        let EngineSetup {
            dispatcher,
            directory,
            socket,
            cpus,
            user_funding,
        } = setup;
        let policies = Policies::open(&directory)?;
        let loaded = Options {
            policy: Policy::Stride,
            quantum_ns: lock(&dispatcher).quantum_ns(),
            scope: options.scope,
            queues: options.queues,
            hybrid: options.hybrid(),
        };
        let side = {
            let mut dispatcher = lock(&dispatcher);
            let entitlements = dispatcher.entitlements_alone();
            entitlements.watch_funding();
            KernelSide::open(
                load,
                loaded,
                policies,
                socket,
                user_funding,
                entitlements.ledger(),
            )?
        };
        let shared = Arc::new(Shared {
            side: Mutex::new(side),
            dispatcher,
            cpus,
            exits: Bell::new()?,
            end: Bell::new()?,
        });
        let watched = Arc::clone(&shared);
        let watcher = std::thread::Builder::new()
            .name("kernel-watch".into())
            .spawn(move || watch(&watched))?;
        Ok(Self {
            shared,
            watcher: Some(watcher),
            follower: Mutex::new(None),
            options,
            started: Instant::now(),
        })
    }

    fn follower(&self) -> MutexGuard<'_, Option<Follower>> {
        self.follower.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What the kernel knows, with the ledger's present funding.
    fn side(&self) -> MutexGuard<'_, KernelSide> {
        let mut side = self.shared.side();
        side.follow(&self.shared.dispatcher);
        side
    }
}

impl Drop for ForKernel {
    fn drop(&mut self) {
        drop(self.follower().take());
        self.shared.end.ring();
        if let Some(watcher) = self.watcher.take() {
            let _ = watcher.join();
        }
        self.shared.side().close();
    }
}

impl Engine for ForKernel {
    fn manage(&self, client: ClientId, root: ProcessId) -> Result<(), EngineError> {
        let mut side = self.side();
        side.manage(client, root)?;
        self.shared.tell_exits(&side);
        Ok(())
    }

    fn take_in(&self, client: ClientId, strays: &[Stray]) -> Vec<bool> {
        let mut side = self.side();
        let taken = strays.iter().map(|stray| side.take_in(client, *stray));
        taken.collect()
    }

    fn would_take_in(&self, strays: &[Stray]) -> bool {
        self.shared.side().would_take_in(strays)
    }

    fn let_out(&self, processes: &[ProcessId]) {
        let mut side = self.side();
        side.let_out(processes);
        self.shared.tell_exits(&side);
    }

    fn adopt(&self, client: ClientId, parent: ProcessId) -> Result<(), EngineError> {
        Ok(self.side().adopt(client, parent)?)
    }

    fn manage_marked(&self, clients: &[KnownClient]) -> Vec<u32> {
        let mut side = self.side();
        clients
            .iter()
            .map(|client| side.manage_marked(client))
            .collect()
    }

    fn release(&self, client: ClientId) {
        self.side().release(client);
    }

    fn set_client_quantum(&self, client: ClientId, quantum_ns: Option<u64>) {
        self.side().set_quantum(client, quantum_ns);
    }

    /// A stopped task does not compete, so there is nothing to undo. Tasks that
    /// are not stopped continue with the client's tickets.
    fn suspend(&self, _: ClientId) -> bool {
        false
    }

    fn resume(&self, _: ClientId) {}

    fn nudge(&self) {
        drop(self.side());
    }

    fn exits(&self) -> BorrowedFd<'_> {
        self.shared.exits.as_fd()
    }

    fn take_exited(&self) -> Vec<ClientId> {
        let mut side = self.shared.side();
        self.shared.exits.hush();
        side.take_exited()
    }

    fn find(&self, pid: u32) -> Option<ClientId> {
        self.shared.side().find(pid)
    }

    fn look(&self) {
        let mut side = self.side();
        side.look_and_account(&self.shared.dispatcher, &self.shared.cpus);
    }

    fn processes(&self, client: ClientId) -> Vec<ProcessId> {
        self.shared.side().processes(client)
    }

    fn state(&self, client: ClientId) -> Option<ClientState> {
        self.shared.side().state(client)
    }

    fn account(&self, client: ClientId) -> Option<ClientAccount> {
        self.shared.side().account(client)
    }

    fn policies(&self) -> &'static [PolicyName] {
        POLICIES
    }

    fn most_limits(&self) -> usize {
        self.shared.side().most_limits()
    }

    fn works_without_clients(&self) -> bool {
        self.options.scope == Scope::All
    }

    fn configure(&self, quantum_ns: u64, policy: PolicyName) {
        self.shared.side().configure(quantum_ns, policy);
    }

    fn status(&self) -> EngineStatus {
        let side = self.shared.side();
        EngineStatus {
            engine: "kernel",
            mechanism: match (side.is_loaded(), self.options.scope) {
                (false, _) => "none",
                (true, Scope::Given) => "partial",
                (true, Scope::All) => "all",
            },
            cpus: self.shared.cpus.clone(),
            queues: Some(self.options.queues.to_string()),
            hybrid: Some(self.options.hybrid),
            traced: self.options.traced,
            decisions: side.decisions(),
            own_cpu_ns: cpu_time_ns(std::process::id()).unwrap_or(0),
            uptime_ns: self.started.elapsed().as_nanos() as u64,
            outside: Vec::new(),
            advice: (self.options.scope == Scope::Given).then_some(BELOW_OTHERS),
            trouble: side.trouble(),
        }
    }

    fn enforce_slots(&self, table: Option<Reader>) -> Result<&'static str, EngineError> {
        drop(self.follower().take());
        let Some(table) = table.map(Arc::new) else {
            self.shared.side().set_timetable(None)?;
            wake_as_others();
            return Ok("none");
        };
        {
            let mut side = self.side();
            if !side.is_loaded() {
                let why = side.trouble().unwrap_or_default();
                return Err(MemberError::Unloaded(why).into());
            }
            side.set_timetable(Some(Arc::clone(&table)))?;
        }
        match Follower::start(Arc::clone(&self.shared), table) {
            Ok(follower) => *self.follower() = Some(follower),
            Err(error) => {
                self.shared.side().set_timetable(None)?;
                return Err(error.into());
            }
        }
        Ok(match self.options.scope {
            Scope::All => {
                // Claims are made and freed although all slots are taken (2005, Figure 3.2).
                outrank_slots();
                "kernel"
            }
            Scope::Given => "kernel, among clients",
        })
    }

    fn slot_rows(&self) -> Vec<RowReport> {
        let tallies = self.shared.side().slot_tallies();
        let rows = tallies.iter().map(|row| RowReport {
            cpu: row.cpu,
            begun: row.begun,
            missed: row.missed,
            ran: row.ran,
            idle: row.idle,
            lost: row.lost,
            late_median_ns: row.late_ns(50),
            late_99th_ns: row.late_ns(99),
            late_most_ns: row.late.longest_ns,
            stolen_ns: row.stolen_ns,
        });
        rows.collect()
    }

    /// The status tells that the scheduler was unloaded: the daemon stays.
    fn failure(&self) -> Option<String> {
        None
    }
}
