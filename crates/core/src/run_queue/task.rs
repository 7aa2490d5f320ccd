//! What a run queue knows of a task, and where it may run.

use super::limits::{Counter, Nice, Tickets};
use super::pass::Standing;
use super::place_set::set_bits;
use alloc::sync::Arc;
use alloc::vec::Vec;

/// A task: a process or thread, by a number of the caller's.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct TaskIndex(pub u32);

/// A processor, numbered from 0.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Cpu(pub u32);

/// Scheduling policy of a task, as in POSIX.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Class {
    /// Neither of the two below: shares what they leave.
    Other,
    /// Real time: runs until it blocks, yields or is preempted.
    Fifo,
    /// Real time: stands behind its equals after each time slice.
    RoundRobin,
}

/// CPUs that a task may run on.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub enum CpuSet {
    /// Every one.
    #[default]
    All,
    /// Those whose bit is set; shared, as sets are copied with their tasks.
    Only(Arc<[u64]>),
}

impl CpuSet {
    /// Just these. Allocates.
    pub fn only(cpus: impl IntoIterator<Item = Cpu>) -> Self {
        let mut words = Vec::new();
        for Cpu(cpu) in cpus {
            let word = (cpu / u64::BITS) as usize;
            if word >= words.len() {
                words.resize(word + 1, 0);
            }
            words[word] |= 1u64 << (cpu % u64::BITS);
        }
        Self::Only(words.into())
    }

    /// Those that are named one by one, in order; nothing where every one is.
    pub(super) fn named(&self) -> Option<impl Iterator<Item = Cpu>> {
        match self {
            Self::All => None,
            Self::Only(words) => Some(set_bits(words).map(Cpu)),
        }
    }

    /// Whether `cpu` is one of them.
    #[inline]
    pub fn contains(&self, Cpu(cpu): Cpu) -> bool {
        match self {
            Self::All => true,
            Self::Only(words) => words
                .get((cpu / u64::BITS) as usize)
                .is_some_and(|word| word >> (cpu % u64::BITS) & 1 == 1),
        }
    }
}

/// Recalculations of a task that never was in a queue: more than there ever
/// are, so that it has missed none and joins as of now.
const NONE_MISSED: u64 = u64::MAX;

/// A task. It belongs to exactly one owner at a time: the [`Queue`] it stands
/// in while it is runnable or runs, a decision that moves it, or the caller
/// while it is blocked. So whatever lock protects the owner protects the task.
///
/// [`Queue`]: super::Queue
#[derive(Clone, Debug)]
pub struct Task {
    /// Who.
    pub index: TaskIndex,
    /// Scheduling policy; only goodness goes by it.
    pub class: Class,
    /// Static priority of a real-time task, in POSIX 1 to 99; any number will
    /// do.
    pub rt_priority: u8,
    /// How much of its time slice it is given at a recalculation.
    pub nice: Nice,
    /// Ticks left of its time slice.
    pub counter: Counter,
    /// Recalculations that `counter` has been through, while it is blocked;
    /// [`NONE_MISSED`] before it begins.
    /// While it stands in a queue, the queue keeps that number.
    pub(super) recalculations: u64,
    /// Its number in the queue where real-time tasks wait.
    pub(super) real_time_order: i64,
    /// Address space.
    pub mm: u32,
    /// CPU that it ran on last, or runs on.
    pub cpu: Cpu,
    /// CPUs that it may run on: at least one of the machine's.
    pub allowed: CpuSet,
    /// Tickets; only the pass goes by them. Where weights are kept feasible
    /// ([`Pass::weighted`](super::Pass::weighted)) this is its weight, which
    /// may be worth more than a CPU.
    pub tickets: Tickets,
    /// Pass or remain.
    pub(super) standing: Standing,
}

impl Task {
    /// An ordinary task of nice 0, in an address space of its own number, that
    /// may run everywhere; it has a whole time slice and one ticket.
    pub fn new(index: TaskIndex, cpu: Cpu) -> Self {
        Self {
            index,
            class: Class::Other,
            rt_priority: 0,
            nice: Nice::default(),
            counter: Nice::default().whole_slice(),
            recalculations: NONE_MISSED,
            real_time_order: 0,
            mm: index.0,
            cpu,
            allowed: CpuSet::All,
            tickets: Tickets::ONE,
            standing: Standing::NEW,
        }
    }
}
