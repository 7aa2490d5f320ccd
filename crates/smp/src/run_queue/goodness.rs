//! Goodness: how Linux 2.4 ranks ordinary tasks (2001, 2).
//!
//! A time slice is counted in ticks of 10 ms, and a nicer task has a shorter one.
//! A task with ticks left is as good as its counter and its nice value say. A
//! task without is *expired*. When all runnable tasks are expired, the counter
//! of every task becomes half of what was left and a new slice. So a sleeping
//! task gathers up to almost two slices.
//!
//! | goodness | task |
//! |---|---|
//! | 2 to 61 | has ticks left: `counter + 20 - nice`; 21 to 31 with nice 0 |
//! | 0 | expired |
//! | below all others | yields, in that one decision |
//!
//! These are 61 values. The paper has 61 lists, with that of real-time tasks (2001, 3), which are
//! missing here; the difference of one is open.
//!
//! Affinity adds [`PROC_CHANGE_PENALTY`] on the CPU where a task ran last and
//! [`Goodness::same_mm`] after a task of the same address space, unless the
//! task is expired.

use prorata_core::hybrid::nice::Nice;

use super::task::{Cpu, Task};

/// How much a task deserves to run: the greater goes first. Queues publish the
/// part that does not depend on the CPU.
pub type Rank = i64;

/// Below every rank: no task.
pub const NOBODY: Rank = Rank::MIN;

/// What a task is worth more on the CPU where it ran last, on x86.
const PROC_CHANGE_PENALTY: Rank = 15;

/// The goodness of an expired task.
const EXPIRED: Rank = 0;

/// Recalculations after which a counter no longer changes.
const ENOUGH_RECALCULATIONS: u64 = 8;

/// Levels of a priority array: one for each goodness up to the highest there is.
pub(super) const LEVELS: usize = (most_ticks(Nice::MIN) + bonus(Nice::MIN)) as usize + 1;

/// What is added to the ticks that a task has left: 1 to 40. Linux's nice values end at 19.
const fn bonus(nice: Nice) -> u32 {
    match nice.value() {
        20.. => 1,
        value => (20 - value) as u32,
    }
}

/// A whole time slice, in ticks.
pub const fn whole_slice_ticks(nice: Nice) -> u32 {
    bonus(nice) / 4 + 1
}

/// The longest time slice, in ticks: the limit of repeated recalculations.
pub const fn most_ticks(nice: Nice) -> u32 {
    2 * whole_slice_ticks(nice) - 1
}

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
            ticks => Rank::from(ticks + bonus(self.nice)),
        }
    }

    /// The level of the task in a priority array.
    pub(super) fn level(&self) -> usize {
        self.rank() as usize
    }

    /// The task goes through so many recalculations.
    pub fn recalculate(&mut self, times: u64) {
        for _ in 0..times.min(ENOUGH_RECALCULATIONS) {
            self.counter = self.counter / 2 + whole_slice_ticks(self.nice);
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
