//! Proportional-share scheduling inside the kernel. The caller states here how many tickets
//! each node holds; `bpf/prorata.bpf.c` decides which task runs.

#[cfg(feature = "bpf")]
mod boundaries;
#[cfg(feature = "bpf")]
mod free_space;
#[cfg(feature = "bpf")]
mod graph;
#[cfg(feature = "bpf")]
mod layout;
#[cfg(feature = "bpf")]
mod limits;
#[cfg(feature = "bpf")]
mod loaded;
#[cfg(not(feature = "bpf"))]
#[path = "absent.rs"]
mod loaded;
#[cfg(feature = "bpf")]
mod quanta;
#[cfg(feature = "bpf")]
mod ring;
mod slots;
#[cfg(feature = "bpf")]
mod tables;
#[cfg(feature = "bpf")]
mod tap;
#[cfg(feature = "bpf")]
mod task;
#[cfg(feature = "bpf")]
mod timetable;
mod trace;
#[cfg(feature = "bpf")]
mod worth;

use std::fmt;

#[cfg(not(feature = "bpf"))]
pub use loaded::Tap;
pub use loaded::{Scheduler, possible_cpus};
pub use prorata_core::hybrid::Mechanisms;
pub use slots::{GIFT, InSlot, RowTally};
#[cfg(feature = "bpf")]
pub use tap::Tap;
pub use trace::{Decision, DecisionKind, Trace};

/// The base currency's node.
pub const BASE: u32 = 0;
/// The caller's nodes, [`BASE`] among them, have numbers below this. The others belong to
/// control groups.
pub const CGROUP_NODES: u32 = 24_576;
/// The node of the root control group. In [`Scope::All`], [`ROOT_TICKETS`] base tickets fund
/// it until the caller changes that.
pub const ROOT_CGROUP: u32 = CGROUP_NODES;
/// Base tickets that fund the root control group at first.
pub const ROOT_TICKETS: u64 = 1 << 16;
/// The most tickets that can fund all nodes together.
pub const TICKETS: usize = (1 << 16) - 1;
/// The largest amount of a ticket.
pub const MAX_AMOUNT: u64 = 1 << 40;
/// The most nodes with limits of CPU time.
pub const MOST_LIMITS: usize = 1023;
/// The longest chain of tickets from a node to the base currency.
pub const MAX_DEPTH: u32 = 16;
/// The shortest and the longest quantum, in nanoseconds.
pub const QUANTA_NS: std::ops::RangeInclusive<u64> = 100_000..=1_000_000_000;
/// Classes of [`Account::waits`].
pub const BUCKETS: usize = 40;
/// Fractional bits of [`Decision::pass`].
pub const PASS_BITS: u32 = 20;
/// No task waits much longer than this, however few tickets it has, unless it is in a crowd.
pub const LONGEST_WAIT_NS: u64 = 8_000_000_000;
/// Beyond this wait of the first task of a queue, no early task goes before it.
pub const OVERDUE_NS: u64 = 12_000_000_000;
/// The queue of tasks that may run on several CPUs, but not on all.
pub const ROAMERS: u32 = 1024;
/// The queue of early tasks.
pub const EARLY: u32 = 4097;
/// In the place of a queue: the timetable decided.
pub const BY_CLAIM: u32 = 4098;

/// The rule that finds the winner.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Policy {
    /// Stride scheduling (1995, 2).
    Stride,
    /// Lottery scheduling (1994, 2), as an exponential race.
    Lottery,
}

/// Which tasks are scheduled.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Scope {
    /// The tasks that the caller gave, and those that they fork.
    Given,
    /// All ordinary tasks of the machine. Control groups are currencies.
    All,
}

/// Where tasks wait.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Queues {
    /// In a queue for each CPU. A CPU takes the smallest pass of all queues (2001, 4).
    Cpu,
    /// The same, with a queue for the CPUs that share a last-level cache.
    Cache,
    /// In one queue.
    One,
}

impl fmt::Display for Queues {
    /// As on the command line.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Queues::Cpu => "cpu",
            Queues::Cache => "cache",
            Queues::One => "one",
        })
    }
}

/// The settings with which a scheduler is loaded.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Options {
    /// May be changed later.
    pub policy: Policy,
    /// In [`QUANTA_NS`]; may be changed later. The kernel ends turns at its tick, every 1 to
    /// 10 ms.
    pub quantum_ns: u64,
    /// Fixed.
    pub scope: Scope,
    /// Fixed.
    pub queues: Queues,
    /// Fixed. They decide when tasks run, and change no shares: all tasks are charged for what
    /// they use. Without abbreviated quanta a waking task waits for the end of a turn.
    pub hybrid: Mechanisms,
}

/// A ticket: an amount of a currency.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Ticket {
    /// The currency's node.
    pub currency: u32,
    /// 1 to [`MAX_AMOUNT`].
    pub amount: u64,
}

/// What a node received since it was created.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Account {
    /// CPU time that its tasks were charged for.
    pub received_ns: u64,
    /// Its share of all CPU time that was charged while it was active. Zero for a node
    /// without tasks of its own.
    pub specified_ns: u64,
    /// Runnable tasks.
    pub runnable: u32,
    /// Those of them that may not use all CPUs.
    pub bound: u32,
    /// Tasks.
    pub tasks: u32,
    /// Whether it has exhausted the allowance of its limit.
    pub pauses: bool,
    /// Turns.
    pub dispatches: u64,
    /// Turns on another CPU than the one before.
    pub migrations: u64,
    /// Time that its tasks waited.
    pub waited_ns: u64,
    /// Waits by length: below 1 ns, below 2, below 4 and so on. The last class holds all
    /// longer waits.
    pub waits: [u64; BUCKETS],
    /// CPU time by which its use was ahead of its due when it was last charged.
    pub lead_ns: u64,
    /// The factor of the nice values of its tasks, as they were when some task competed
    /// ([`prorata_core::hybrid::NiceMean`]).
    pub nice_factor: u32,
}

/// Totals since the scheduler was loaded.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Statistics {
    /// CPU time that was charged.
    pub charged_ns: u64,
    /// Turns.
    pub dispatches: u64,
    /// Turns that began at once because the CPU was idle.
    pub direct: u64,
    /// Turns that were prolonged because no other task came first.
    pub prolonged: u64,
    /// Tasks taken from another CPU's queue.
    pub steals: u64,
    /// Waiting tasks that moved to another place after a change.
    pub reordered: u64,
    /// Base tickets that are active.
    pub active_base: u64,
    /// Control groups that share their parent's node because none was free.
    pub groups_without_node: u64,
    /// Queues of the tasks that may run on every CPU.
    pub queues: u32,
}
