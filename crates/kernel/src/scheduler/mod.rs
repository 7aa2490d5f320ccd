//! Proportional-share scheduling inside the kernel (`bpf/prorata.bpf.c`): who
//! holds how many tickets is said here, who runs is decided there.

#[cfg(feature = "bpf")]
mod graph;
#[cfg(feature = "bpf")]
mod layout;
#[cfg(feature = "bpf")]
mod loaded;
#[cfg(not(feature = "bpf"))]
#[path = "absent.rs"]
mod loaded;
#[cfg(feature = "bpf")]
mod quanta;
#[cfg(feature = "bpf")]
mod ring;
#[cfg(feature = "bpf")]
mod room;
#[cfg(feature = "bpf")]
mod tap;
#[cfg(feature = "bpf")]
mod task;
mod trace;
#[cfg(feature = "bpf")]
mod worth;

use std::fmt;
use std::os::fd::BorrowedFd;

use crate::KernelError;
use loaded::Loaded;
#[cfg(not(feature = "bpf"))]
use loaded::Tap as Tapped;
#[cfg(feature = "bpf")]
use tap::Tap as Tapped;

pub use trace::{Decision, DecisionKind, Trace};

/// CPUs that there are or could be; 1 if the kernel does not say, or without the feature
/// `bpf`.
pub fn possible_cpus() -> u32 {
    loaded::possible_cpus()
}

/// The base currency's node.
pub const BASE: u32 = 0;
/// Numbers of the nodes that are the caller's to use, [`BASE`] among them, are
/// below this. Those from here on are control groups'.
pub const CGROUP_NODES: u32 = 24_576;
/// The node of the root control group. In [`Scope::All`] it is funded by
/// [`ROOT_TICKETS`] of the base currency until told otherwise.
pub const ROOT_CGROUP: u32 = CGROUP_NODES;
/// Base tickets of the root control group at first.
pub const ROOT_TICKETS: u64 = 1 << 16;
/// Tickets that fund all nodes together, at most.
pub const TICKETS: usize = (1 << 16) - 1;
/// The largest amount of a ticket.
pub const MAX_AMOUNT: u64 = 1 << 40;
/// The longest chain of tickets from a node to the base currency.
pub const MAX_DEPTH: u32 = 16;
/// The shortest and the longest quantum, in nanoseconds.
pub const QUANTA_NS: std::ops::RangeInclusive<u64> = 100_000..=1_000_000_000;
/// Classes of [`Account::waits`].
pub const BUCKETS: usize = 40;

/// How the winner is found.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Policy {
    /// Stride scheduling (1995, 2).
    Stride,
    /// Lottery scheduling (1994, 2), as an exponential race.
    Lottery,
}

/// Whose tasks are scheduled.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Scope {
    /// Those that were given, and what they fork.
    Given,
    /// All ordinary tasks of the machine; control groups are currencies.
    All,
}

/// Where tasks wait.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Queues {
    /// In a queue for each CPU; a CPU takes the least pass of all queues
    /// (2001, 4).
    Cpu,
    /// The same with a queue for all CPUs that share a last-level cache.
    Cache,
    /// In one queue.
    One,
}

impl fmt::Display for Queues {
    /// As it is given.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Queues::Cpu => "cpu",
            Queues::Cache => "cache",
            Queues::One => "one",
        })
    }
}

/// What is fixed, or begins, with loading.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Options {
    /// May be changed later.
    pub policy: Policy,
    /// In [`QUANTA_NS`]; may be changed later. The kernel looks at it once a
    /// tick, that is every 1 to 10 ms.
    pub quantum_ns: u64,
    /// Fixed.
    pub scope: Scope,
    /// Fixed.
    pub queues: Queues,
    /// Whether a task that wakes and deserves to run more than who runs on its CPU
    /// ends that one's quantum, for no less than a millisecond of its own (shares stay
    /// what they are: both have used what they are charged for). Else it waits for the
    /// quantum's end. Fixed.
    pub abbreviated: bool,
}

/// A ticket: an amount of a currency.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Ticket {
    /// The currency's node.
    pub currency: u32,
    /// 1 to [`MAX_AMOUNT`].
    pub amount: u64,
}

/// How a node fared since it came into being.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Account {
    /// CPU time that its tasks were charged for.
    pub received_ns: u64,
    /// Its share of all CPU time that was charged to anybody while it was
    /// active. For a node without tasks of its own it is zero.
    pub specified_ns: u64,
    /// Tasks that run or wait.
    pub runnable: u32,
    /// Tasks.
    pub tasks: u32,
    /// Turns.
    pub dispatches: u64,
    /// Turns on another CPU than the one before.
    pub migrations: u64,
    /// Time that its tasks waited.
    pub waited_ns: u64,
    /// Waits by length: below 1 ns, below 2, below 4 and so on; the last has
    /// all the longer ones.
    pub waits: [u64; BUCKETS],
}

/// Totals since the scheduler was loaded.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Statistics {
    /// CPU time that was charged.
    pub charged_ns: u64,
    /// Turns.
    pub dispatches: u64,
    /// Turns that began at once on an idle CPU.
    pub direct: u64,
    /// Turns that were prolonged because nobody deserved to run more.
    pub prolonged: u64,
    /// Tasks taken from another CPU's queue.
    pub steals: u64,
    /// Tasks that waited and were put in their new order after a change.
    pub reordered: u64,
    /// Base tickets that are active.
    pub active_base: u64,
    /// Control groups for which there was no node left; they share their
    /// parents'.
    pub groups_without_node: u64,
    /// Queues in which tasks that may run everywhere wait.
    pub queues: u32,
}

/// The scheduler, loaded. Dropping this unloads it, and so does the end of
/// the process in any way: tasks go on under the kernel's own scheduler.
pub struct Scheduler {
    loaded: Loaded,
}

impl Scheduler {
    /// Loads it. Needs root, and some 0.2 s.
    pub fn load(options: &Options) -> Result<Self, KernelError> {
        check_quantum(options.quantum_ns)?;
        let loaded = Loaded::new(options, false)?;
        Ok(Self { loaded })
    }

    /// Loads it with a trace of its decisions, see
    /// [`Scheduler::take_decisions`]. Each costs some 0.2 us.
    pub fn load_traced(options: &Options) -> Result<Self, KernelError> {
        check_quantum(options.quantum_ns)?;
        let loaded = Loaded::new(options, true)?;
        Ok(Self { loaded })
    }

    /// What was decided since the last call, and how many decisions the kernel had
    /// no room for: call sooner. There is room for some 10,000. Refused if it was not
    /// loaded with a trace.
    pub fn take_decisions(&self) -> Result<Trace, KernelError> {
        self.loaded.take_decisions()
    }

    /// Goes on under another policy, from the next charge of each task on.
    pub fn set_policy(&self, policy: Policy) -> Result<(), KernelError> {
        self.loaded.set_policy(policy)
    }

    /// Changes the quantum, from the next turn of each task on.
    pub fn set_quantum_ns(&self, quantum_ns: u64) -> Result<(), KernelError> {
        check_quantum(quantum_ns)?;
        self.loaded.set_quantum_ns(quantum_ns)
    }

    /// Gives the tasks of a node a quantum of their own, from the next turn of each on,
    /// or that of all again. They are charged for what they use, so shares stay what
    /// they are. A node that is removed takes its quantum along.
    pub fn set_client_quantum_ns(
        &self,
        node: u32,
        quantum_ns: Option<u64>,
    ) -> Result<(), KernelError> {
        quantum_ns.map_or(Ok(()), check_quantum)?;
        self.loaded.set_client_quantum_ns(node, quantum_ns)
    }

    /// Makes these, and no others, the tickets that fund `node`, and brings
    /// the node into being. At once and as a whole: nobody's value is ever
    /// worked out from some of them. None at all is legal: its tasks then run
    /// only when nobody else wants to.
    pub fn set_tickets(&self, node: u32, tickets: &[Ticket]) -> Result<(), KernelError> {
        self.loaded.set_tickets(node, tickets)
    }

    /// Forgets a node, and what it was charged. Refused as long as it funds
    /// others or has tasks.
    pub fn remove(&self, node: u32) -> Result<(), KernelError> {
        self.loaded.remove(node)
    }

    /// Forgets all nodes, as after a load. Refused as long as one of them has tasks;
    /// tickets are taken from all by then.
    pub fn forget_all(&self) -> Result<(), KernelError> {
        self.loaded.forget_all()
    }

    /// Puts a task, and what it forks from now on, into a node and under this
    /// scheduler. It keeps its nice value. For a task that is there already:
    /// it moves.
    pub fn give(&self, node: u32, tid: u32) -> Result<(), KernelError> {
        self.loaded.give(node, tid)
    }

    /// Lets a task go: in [`Scope::Given`] to the kernel's own scheduler
    /// (`SCHED_OTHER`, with its nice value), else to its control group's node.
    /// Nothing happens to one that is not there.
    pub fn take_back(&self, tid: u32) -> Result<(), KernelError> {
        self.loaded.take_back(tid)
    }

    /// How a node fared.
    pub fn account(&self, node: u32) -> Result<Account, KernelError> {
        self.loaded.account(node)
    }

    /// The node that a task was given to, or was born into.
    pub fn node_of(&self, tid: u32) -> Option<u32> {
        self.loaded.node_of(tid)
    }

    /// Readable when the last task of a node of the caller's has ended, see
    /// [`Scheduler::take_exited`].
    pub fn exits(&self) -> BorrowedFd<'_> {
        self.loaded.exits()
    }

    /// The nodes whose last task ended since the last call. By now they may
    /// have tasks again: look at [`Account::tasks`].
    pub fn take_exited(&self) -> Vec<u32> {
        self.loaded.take_exited()
    }

    /// Why the kernel unloaded it, if it did.
    pub fn failure(&self) -> Option<KernelError> {
        self.loaded.failure()
    }

    /// Totals.
    pub fn statistics(&self) -> Result<Statistics, KernelError> {
        self.loaded.statistics()
    }
}

/// The trace of a scheduler that another process has loaded, and with a trace.
pub struct Tap {
    tapped: Tapped,
}

impl Tap {
    /// Decisions are taken from the next one on; before them comes the state
    /// ([`DecisionKind::Begin`]). Of several at a time each gets a part of them.
    /// Cost: the next decision takes a millisecond longer.
    ///
    /// # Errors
    ///
    /// If no scheduler of ours is loaded with a trace, or it cannot be read.
    pub fn open() -> Result<Self, KernelError> {
        let tapped = Tapped::open()?;
        Ok(Self { tapped })
    }

    /// As [`Scheduler::take_decisions`]; lost are those since this was opened.
    pub fn take_decisions(&self) -> Result<Trace, KernelError> {
        self.tapped.take_decisions()
    }
}

fn check_quantum(quantum_ns: u64) -> Result<(), KernelError> {
    if QUANTA_NS.contains(&quantum_ns) {
        return Ok(());
    }
    Err(KernelError::Quantum { quantum_ns })
}
