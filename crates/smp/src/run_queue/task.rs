//! What a run queue knows of a task.

use prorata_core::hybrid::nice::Nice;

use super::goodness::whole_slice_ticks;

/// A task: a process or thread, by a number of the caller's.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct TaskIndex(pub u32);

/// A processor, numbered from 0.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Cpu(pub u32);

/// More recalculations than there ever are: a new task has missed none.
const NONE_MISSED: u64 = u64::MAX;

/// A task. It has one owner at a time: its queue while it is runnable, a
/// decision that moves it, or the caller while it is blocked. So the lock of
/// the owner protects the task.
#[derive(Clone, Copy, Debug)]
pub struct Task {
    /// The caller's number of the task.
    pub index: TaskIndex,
    /// Ticks left of its time slice, at most what its nice value permits.
    pub counter: u32,
    /// How little it asks for.
    pub nice: Nice,
    /// Address space.
    pub mm: u32,
    /// The CPU that it runs on or ran on last.
    pub cpu: Cpu,
    /// Recalculations that `counter` has been through, while the task is
    /// blocked. A queue keeps that number for its tasks.
    pub(super) recalculations: u64,
}

impl Task {
    /// A task with a whole time slice, in an address space of its own number.
    pub fn new(index: TaskIndex, nice: Nice, cpu: Cpu) -> Self {
        Self {
            index,
            counter: whole_slice_ticks(nice),
            nice,
            mm: index.0,
            cpu,
            recalculations: NONE_MISSED,
        }
    }
}
