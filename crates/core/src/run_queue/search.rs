//! Who in a queue is to run next on a CPU: by a scan of one list (2001, 2), or
//! by a search of levels that affinity bounds (2001, 3).
//!
//! # Who goes first among equals
//!
//! The papers leave that open; for goodness it is as in Linux 2.4, where a scan of
//! the list begins with who runs and takes whoever is better than the best so far.
//! Of two whose ranks, affinity included, are equal there goes first:
//!
//! 1. who runs on the CPU already, unless it is a real-time task that gives way;
//! 2. who has the lower number in the queue (`queue.rs`): who came last or, by
//!    pass, who has had its present rank for longer.
//!
//! Both searches keep to it. Lists are in the order of the second; between levels
//! a search compares numbers, where affinity makes up for what is between them.

use super::queue::{Queue, Slot};
use super::ranking::{NOBODY, Precedence, Rank, Ranking};
use super::task::{Cpu, Task};

/// Above the idle task, below everybody else.
const LAST: Rank = NOBODY + 1;

/// The best so far.
#[derive(Clone, Copy, Debug)]
pub(super) struct Candidate {
    /// None for the idle task.
    pub(super) slot: Option<Slot>,
    /// Only equals with a lower one go first: its number in the queue, below all
    /// if it runs now, above all if it runs now and gives way.
    order: i64,
    /// Rank with affinity, [`NOBODY`] for the idle task.
    pub(super) total: Rank,
    /// Whether it runs now.
    runs: bool,
}

impl Candidate {
    /// The idle task.
    pub(super) const IDLE: Self = Self {
        slot: None,
        order: 0,
        total: NOBODY,
        runs: false,
    };

    /// Who runs on `cpu` already: the default candidate.
    pub(super) fn running(
        slot: Slot,
        task: &Task,
        ranking: &impl Ranking,
        cpu: Cpu,
        precedence: Precedence,
    ) -> Self {
        Self {
            slot: Some(slot),
            order: match precedence {
                Precedence::BehindEquals => i64::MAX,
                Precedence::First | Precedence::Last => i64::MIN,
            },
            total: match precedence {
                Precedence::Last => LAST,
                _ => ranking.rank(task) + ranking.affinity(task, cpu, Some(task.mm)),
            },
            runs: true,
        }
    }

    /// Whether it runs on the CPU already.
    pub(super) fn runs(&self) -> bool {
        self.runs
    }

    /// Puts another in its place if that one is better.
    fn improve(&mut self, slot: Slot, order: i64, total: Rank) {
        if total > self.total || total == self.total && order < self.order {
            *self = Self {
                slot: Some(slot),
                order,
                total,
                runs: false,
            };
        }
    }
}

/// The two highest ranks, without affinity, of those who wait.
#[derive(Clone, Copy, Debug)]
pub(super) struct Heads {
    first: (Rank, Option<Slot>),
    second: Rank,
}

impl Heads {
    const NONE: Self = Self {
        first: (NOBODY, None),
        second: NOBODY,
    };

    pub(super) fn add(&mut self, rank: Rank, slot: Slot) {
        if rank > self.first.0 {
            self.second = self.first.0;
            self.first = (rank, Some(slot));
        } else {
            self.second = self.second.max(rank);
        }
    }

    /// The highest once `chosen` has gone: `max_na_goodness` (2001, 4).
    pub(super) fn without(&self, chosen: Option<Slot>) -> Rank {
        match self.first {
            (_, slot) if slot == chosen => self.second,
            (rank, _) => rank,
        }
    }
}

/// What a scan found.
pub(super) struct Scan {
    pub(super) best: Candidate,
    /// Of all who wait, whether they may run on this CPU or not.
    pub(super) heads: Heads,
    /// Tasks looked at.
    pub(super) examined: u32,
}

/// Looks at everybody in the only list.
pub(super) fn scan<R: Ranking>(
    queue: &Queue,
    ranking: &R,
    cpu: Cpu,
    mm: Option<u32>,
    default: Candidate,
) -> Scan {
    let mut scan = Scan {
        best: default,
        heads: Heads::NONE,
        examined: 0,
    };
    for slot in queue.list(0) {
        scan.examined += 1;
        if queue.runs(slot) {
            continue;
        }
        let task = queue.task(slot);
        let rank = ranking.rank(task);
        scan.heads.add(rank, slot);
        if task.allowed.contains(cpu) {
            let total = rank + ranking.affinity(task, cpu, mm);
            scan.best.improve(slot, queue.order(slot), total);
        }
    }
    scan
}

/// The highest rank, without affinity, of those who wait: O(n).
pub(super) fn head<R: Ranking>(queue: &Queue, ranking: &R) -> Rank {
    let waiting = queue.list(0).filter(|&slot| !queue.runs(slot));
    let ranks = waiting.map(|slot| ranking.rank(queue.task(slot)));
    ranks.max().unwrap_or(NOBODY)
}

/// Looks at levels from the top down to where nobody can be better than the
/// best so far, whatever its affinity. In a level it ends with the first task
/// that has all the affinity there is, as nobody behind can be better; where
/// somebody could be as good at most, with the first whose number is higher.
///
/// Address spaces are disregarded, except that who runs has that of the CPU:
/// they break ties, which would take a complete search of the last level and
/// the one below it. Expired tasks are in the lowest level, which is reached
/// only if nobody else can run.
pub(super) fn search_levels<R: Ranking>(
    queue: &Queue,
    ranking: &R,
    cpu: Cpu,
    default: Candidate,
) -> (Candidate, u32) {
    let mut best = default;
    let mut examined = 0;
    let mut next = queue.occupied_level(ranking.levels() - 1);
    while let Some(level) = next {
        let limit = ranking.limit(level, &queue.scale);
        if limit < best.total || limit == best.total && best.order == i64::MIN {
            break;
        }
        for slot in queue.list(level) {
            examined += 1;
            let (task, order) = (queue.task(slot), queue.order(slot));
            if limit == best.total && order > best.order {
                break;
            }
            if queue.runs(slot) || !task.allowed.contains(cpu) {
                continue;
            }
            let total = ranking.rank(task) + ranking.affinity(task, cpu, None);
            best.improve(slot, order, total);
            if total == limit {
                break;
            }
        }
        next = level
            .checked_sub(1)
            .and_then(|below| queue.occupied_level(below));
    }
    (best, examined)
}
