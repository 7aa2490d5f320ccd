//! What a caller may hand to the run queues. Numbers are checked once, where
//! they come in; what is counted with them then needs no checks.

use core::num::NonZeroU32;

use super::layout::MAX_CPUS;
use super::task::{Cpu, TaskIndex};

/// Most tickets of a task: two passes that are compared without their parts
/// are then told apart down to `1 / 256` quantum.
pub const MAX_TICKETS: u32 = 1 << 24;

/// The longest time slice, in ticks: what recalculations come to at nice -20
/// (2001, 2).
pub const MAX_COUNTER: u32 = 21;

/// Shortest and longest quantum: 1 us and 10 s.
pub const MIN_QUANTUM_NS: u64 = 1_000;
/// See [`MIN_QUANTUM_NS`].
pub const MAX_QUANTUM_NS: u64 = 10_000_000_000;

/// Most tasks whose weights are kept feasible.
pub const MAX_WEIGHTED_TASKS: u32 = 1 << 20;

/// Something that a run queue is not made for.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum LimitError {
    /// Beyond the most or the least important.
    #[error("nice value {0} is out of range: give -20 to 19")]
    Nice(i8),
    /// Longer than time slices become.
    #[error("a time slice of {0} ticks is out of range: give 0 to {MAX_COUNTER}")]
    Counter(u32),
    /// None, or too many.
    #[error("{0} tickets are out of range: give 1 to {MAX_TICKETS}")]
    Tickets(u32),
    /// Too short or too long.
    #[error("a quantum of {0} ns is out of range: give {MIN_QUANTUM_NS} to {MAX_QUANTUM_NS}")]
    Quantum(u64),
    /// Weights are to be feasible on none, or on too many.
    #[error("weights on {0} CPUs cannot be made feasible: a pool has 1 to {MAX_CPUS}")]
    Cpus(u32),
    /// Weights are to be kept of too many.
    #[error("weights of {0} tasks are too many: keep those of {MAX_WEIGHTED_TASKS} at most")]
    WeightedTasks(u32),
    /// A task whose weight is not kept.
    #[error("task {} has no weight here: number tasks below {tasks}, or keep more weights", .task.0)]
    Task {
        /// Which one.
        task: TaskIndex,
        /// How many have one.
        tasks: u32,
    },
    /// A task's CPU is none of the machine's.
    #[error("task {} cannot have run on CPU {}: the machine has {cpus} CPUs", .task.0, .cpu.0)]
    Cpu {
        /// Which one.
        task: TaskIndex,
        /// Where.
        cpu: Cpu,
        /// How many there are.
        cpus: u32,
    },
    /// A task may not run on any CPU of the machine.
    #[error("task {} may run on none of {cpus} CPUs: allow one of them", .task.0)]
    Nowhere {
        /// Which one.
        task: TaskIndex,
        /// How many there are.
        cpus: u32,
    },
}

/// A nice value, -20 (most) to 19 (least).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Debug)]
pub struct Nice(i8);

impl Nice {
    /// # Errors
    /// Out of range.
    pub const fn new(nice: i8) -> Result<Self, LimitError> {
        match nice {
            -20..=19 => Ok(Self(nice)),
            _ => Err(LimitError::Nice(nice)),
        }
    }

    /// As a number.
    pub const fn get(self) -> i8 {
        self.0
    }

    /// A whole time slice, in ticks of 10 ms: 1 at nice 19, 6 at 0, 11 at -20.
    pub const fn whole_slice(self) -> Counter {
        Counter((20 - self.0 as i32) as u32 / 4 + 1)
    }
}

/// Ticks that are left of a time slice, at most [`MAX_COUNTER`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Counter(pub(super) u32);

impl Counter {
    /// The time slice is over.
    pub const ZERO: Self = Self(0);

    /// # Errors
    /// Longer than time slices become.
    pub const fn new(ticks: u32) -> Result<Self, LimitError> {
        match ticks {
            0..=MAX_COUNTER => Ok(Self(ticks)),
            _ => Err(LimitError::Counter(ticks)),
        }
    }

    /// As a number.
    pub const fn get(self) -> u32 {
        self.0
    }
}

/// Tickets of a task, 1 to [`MAX_TICKETS`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Tickets(NonZeroU32);

impl Tickets {
    /// A single one.
    pub const ONE: Self = Self(NonZeroU32::MIN);

    /// # Errors
    /// None, or too many.
    pub const fn new(tickets: u32) -> Result<Self, LimitError> {
        match NonZeroU32::new(tickets) {
            Some(some) if tickets <= MAX_TICKETS => Ok(Self(some)),
            _ => Err(LimitError::Tickets(tickets)),
        }
    }

    /// As a number.
    pub const fn get(self) -> u32 {
        self.0.get()
    }
}
