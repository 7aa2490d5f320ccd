//! Who in a queue is to run next on a CPU: by a scan of one list (2001, 2), or
//! by a search of levels that affinity bounds (2001, 3).
//!
//! # Who goes first among equals
//!
//! The papers leave that open. Of two whose ranks, affinity included, are
//! equal there goes first:
//!
//! 1. who runs on the CPU already, unless it is a real-time task that gives way;
//! 2. who has the higher rank without affinity;
//! 3. who has had its present rank for longer.
//!
//! Both searches keep to it: levels are visited from the top, which is the
//! second rule, and lists are in the order of the third.

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
    /// Rank without affinity.
    rank: Rank,
    /// Rank with affinity, [`NOBODY`] for the idle task.
    pub(super) total: Rank,
    /// Whether equals come first: it runs now, but stands behind them.
    gives_way: bool,
    /// Whether it runs now, so that equals come after it in any case else.
    runs: bool,
}

impl Candidate {
    /// The idle task.
    pub(super) const IDLE: Self = Self {
        slot: None,
        rank: NOBODY,
        total: NOBODY,
        gives_way: false,
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
        let rank = ranking.rank(task);
        Self {
            slot: Some(slot),
            rank,
            total: match precedence {
                Precedence::Last => LAST,
                _ => rank + ranking.affinity(task, cpu, Some(task.mm)),
            },
            gives_way: precedence == Precedence::BehindEquals,
            runs: true,
        }
    }

    /// Whether it runs on the CPU already.
    pub(super) fn runs(&self) -> bool {
        self.runs
    }

    /// Puts another in its place if that one is better.
    fn improve(&mut self, slot: Slot, rank: Rank, total: Rank) {
        let wins_tie = match self.runs {
            true => self.gives_way,
            false => rank > self.rank,
        };
        if total > self.total || total == self.total && wins_tie {
            *self = Self {
                slot: Some(slot),
                rank,
                total,
                gives_way: false,
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
            scan.best.improve(slot, rank, total);
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
/// that has all the affinity there is, as nobody below can be as good.
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
        let wins_tie = best.runs && best.gives_way && limit == best.total;
        if limit <= best.total && !wins_tie {
            break;
        }
        for slot in queue.list(level) {
            examined += 1;
            let task = queue.task(slot);
            if queue.runs(slot) || !task.allowed.contains(cpu) {
                continue;
            }
            let rank = ranking.rank(task);
            let total = rank + ranking.affinity(task, cpu, None);
            best.improve(slot, rank, total);
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
