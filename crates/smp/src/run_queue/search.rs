//! Which task of a queue runs next on a CPU: by a scan of one list (2001, 2), or
//! by a search of levels that affinity bounds (2001, 3).
//!
//! # Equals
//!
//! The paper leaves their order open. Here it is that of Linux 2.4, where a scan
//! begins with the running task and takes every task better than the best so
//! far. Of two tasks of equal goodness, affinity included, the first to go is
//!
//! 1. the task that runs on the CPU already;
//! 2. the task with the lower number in the queue (`queue.rs`), which came last.
//!
//! Lists are in the order of the numbers. Where affinity makes up for the
//! difference between two levels, a search of levels compares numbers.

use super::goodness::{Goodness, LEVELS, NOBODY, Rank, limit};
use super::queue::{Queue, QueueHandle};
use super::task::Cpu;

/// Goodness of a yielding task: above the idle task, below every other.
const LAST: Rank = NOBODY + 1;

/// The best so far.
#[derive(Clone, Copy, Debug)]
pub(super) struct Candidate {
    /// None for the idle task.
    pub(super) handle: Option<QueueHandle>,
    /// Its number in the queue, or below all numbers if it runs now. Only
    /// equals with a lower one go first.
    order: i64,
    /// Goodness with affinity, [`NOBODY`] for the idle task.
    pub(super) total: Rank,
    /// Whether it runs now.
    pub(super) runs: bool,
}

impl Candidate {
    /// The idle task.
    pub(super) const IDLE: Self = Self {
        handle: None,
        order: 0,
        total: NOBODY,
        runs: false,
    };

    /// The task that runs on the CPU already.
    pub(super) fn running(handle: QueueHandle, total: Rank, yields: bool) -> Self {
        Self {
            handle: Some(handle),
            order: i64::MIN,
            total: if yields { LAST } else { total },
            runs: true,
        }
    }

    /// Puts another in its place if that one is better.
    fn improve(&mut self, handle: QueueHandle, order: i64, total: Rank) {
        if total > self.total || total == self.total && order < self.order {
            *self = Self {
                handle: Some(handle),
                order,
                total,
                runs: false,
            };
        }
    }
}

/// The two highest ranks, without affinity, of the waiting tasks.
#[derive(Clone, Copy, Debug)]
pub(super) struct Heads {
    first: (Rank, Option<QueueHandle>),
    second: Rank,
}

impl Heads {
    const NONE: Self = Self {
        first: (NOBODY, None),
        second: NOBODY,
    };

    pub(super) fn add(&mut self, rank: Rank, handle: QueueHandle) {
        if rank > self.first.0 {
            self.second = self.first.0;
            self.first = (rank, Some(handle));
        } else {
            self.second = self.second.max(rank);
        }
    }

    /// The highest once `chosen` has gone: `max_na_goodness` (2001, 4).
    pub(super) fn without(&self, chosen: Option<QueueHandle>) -> Rank {
        match self.first {
            (_, handle) if handle == chosen => self.second,
            (rank, _) => rank,
        }
    }
}

pub(super) struct Scan {
    pub(super) best: Candidate,
    pub(super) heads: Heads,
    /// Tasks looked at.
    pub(super) examined: u32,
}

/// Looks at every task of the only list.
pub(super) fn scan(
    queue: &Queue,
    goodness: Goodness,
    cpu: Cpu,
    mm: Option<u32>,
    default: Candidate,
) -> Scan {
    let mut scan = Scan {
        best: default,
        heads: Heads::NONE,
        examined: 0,
    };
    for handle in queue.list(0) {
        scan.examined += 1;
        if queue.runs(handle) {
            continue;
        }
        let task = queue.task(handle);
        let rank = task.rank();
        scan.heads.add(rank, handle);
        let total = rank + goodness.affinity(task, cpu, mm);
        scan.best.improve(handle, queue.order(handle), total);
    }
    scan
}

/// The highest rank, without affinity, of the waiting tasks: O(n).
pub(super) fn head(queue: &Queue) -> Rank {
    let waiting = queue.list(0).filter(|&handle| !queue.runs(handle));
    let ranks = waiting.map(|handle| queue.task(handle).rank());
    ranks.max().unwrap_or(NOBODY)
}

/// Looks at levels from the top down to where no task can beat the best so far,
/// whatever its affinity. In a level it ends with the first task that has all
/// the affinity there is. Where a task could only equal the best, it ends with
/// the first higher number.
///
/// Address spaces are disregarded, except that the running task has that of the
/// CPU: they break ties, and would take a complete search of the last level and
/// the one below. Expired tasks are in the lowest level, which the search
/// reaches only if no other task can run.
pub(super) fn search_levels(
    queue: &Queue,
    goodness: Goodness,
    cpu: Cpu,
    default: Candidate,
) -> (Candidate, u32) {
    let mut best = default;
    let mut examined = 0;
    let mut next = queue.occupied_below(LEVELS);
    while let Some(level) = next {
        let limit = limit(level);
        if limit < best.total || limit == best.total && best.order == i64::MIN {
            break;
        }
        for handle in queue.list(level) {
            examined += 1;
            let (task, order) = (queue.task(handle), queue.order(handle));
            if limit == best.total && order > best.order {
                break;
            }
            if queue.runs(handle) {
                continue;
            }
            let total = task.rank() + goodness.affinity(task, cpu, None);
            best.improve(handle, order, total);
            if total == limit {
                break;
            }
        }
        next = queue.occupied_below(level);
    }
    (best, examined)
}
