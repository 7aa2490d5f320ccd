//! Goodness: how Linux 2.4 ranks ordinary tasks of nice value 0 (2001, 2).
//!
//! A time slice is counted in ticks of 10 ms. A task with ticks left is as good
//! as its counter says. A task without is *expired*. When all runnable tasks
//! are expired, the counter of every task becomes half of what was left and a
//! new slice. So a sleeping task gathers up to almost two slices.
//!
//! | goodness | task |
//! |---|---|
//! | 21 to 31 | has ticks left: `counter + 20` |
//! | 0 | expired |
//! | below all others | yields, in that one decision |
//!
//! Affinity adds [`PROC_CHANGE_PENALTY`] on the CPU where a task ran last and
//! [`Goodness::same_mm`] after a task of the same address space, unless the
//! task is expired.

use super::task::{Cpu, Task};

/// How much a task deserves to run: the greater goes first. Queues publish the
/// part that does not depend on the CPU.
pub type Rank = i64;

/// Below every rank: no task.
pub const NOBODY: Rank = Rank::MIN;

/// A whole time slice, in ticks.
pub const WHOLE_SLICE: u32 = 6;

/// The longest time slice, in ticks: the limit of repeated recalculations.
pub const MAX_COUNTER: u32 = 11;

/// What a task is worth more on the CPU where it ran last, on x86.
const PROC_CHANGE_PENALTY: Rank = 15;

/// The goodness of an expired task.
const EXPIRED: Rank = 0;

/// Recalculations after which a counter no longer changes.
const ENOUGH_RECALCULATIONS: u64 = 8;

/// Levels of a priority array: one for each goodness.
pub(super) const LEVELS: usize = MAX_COUNTER as usize + 20 + 1;

/// Goodness with or without address spaces.
#[derive(Clone, Copy, Debug)]
pub struct Goodness {
    /// What a task is worth more after a task of its address space.
    pub same_mm: Rank,
}

impl Goodness {
    /// As on x86.
    pub const X86: Self = Self { same_mm: 1 };

    /// What is added to the rank of a task on `cpu`, whose last task had the
    /// address space `mm`; `None` disregards address spaces.
    pub fn affinity(self, task: &Task, cpu: Cpu, mm: Option<u32>) -> Rank {
        if task.counter == 0 {
            return 0;
        }
        let same_cpu = Rank::from(task.cpu == cpu) * PROC_CHANGE_PENALTY;
        same_cpu + Rank::from(mm == Some(task.mm)) * self.same_mm
    }
}

impl Task {
    /// Goodness without affinity.
    pub fn rank(&self) -> Rank {
        match self.counter {
            0 => EXPIRED,
            ticks => Rank::from(ticks) + 20,
        }
    }

    /// The level of the task in a priority array.
    pub(super) fn level(&self) -> usize {
        self.rank() as usize
    }

    /// The task goes through so many recalculations.
    pub fn recalculate(&mut self, times: u64) {
        for _ in 0..times.min(ENOUGH_RECALCULATIONS) {
            self.counter = self.counter / 2 + WHOLE_SLICE;
        }
    }
}

/// The highest goodness, without address spaces, of a task in a level.
pub(super) fn limit(level: usize) -> Rank {
    match level {
        0 => EXPIRED,
        _ => level as Rank + PROC_CHANGE_PENALTY,
    }
}

/// Whether a task of this goodness waits for a recalculation.
pub(super) fn is_expired(goodness: Rank) -> bool {
    goodness == EXPIRED
}

/// Whether a task that would gain so much goodness preempts the running task.
pub(super) fn preempts(gain: Rank) -> bool {
    gain > 1
}
