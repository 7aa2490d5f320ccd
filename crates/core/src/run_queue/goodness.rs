//! Goodness: the ranking of Linux 2.4 (2001, 2).
//!
//! A time slice is counted in ticks of 10 ms. A task that has some left is as
//! good as its counter and its nice value say; one that has not is *expired*,
//! and when all that could run are, the counters of everybody are
//! recalculated: half of what was left over, and a new slice. So who sleeps
//! gathers up to twice a slice.
//!
//! | goodness | who |
//! |---|---|
//! | 1000 and more | real-time tasks: 1000 and their static priority |
//! | 1 to 61 | `counter + 20 - nice` |
//! | 0 | expired tasks |
//! | -1 | a task that yields, in that one decision ([`Precedence::Last`]) |
//!
//! Affinity adds [`Goodness::proc_change_penalty`] on the CPU where a task ran
//! last and [`Goodness::same_mm`] after a task of the same address space, for
//! ordinary tasks that are not expired.

use super::feasible_tickets::FeasibleTickets;
use super::limits::{Counter, MAX_COUNTER, Tickets};
use super::ranking::{Precedence, Rank, Ranking, Scale};
use super::task::{Class, Cpu, Task};

/// Lowest goodness of a real-time task.
pub const REAL_TIME: Rank = 1000;

/// The most ticks that a parent keeps when a child gives back its own: 200 ms.
pub const MAX_RETURNED: u32 = 20;

/// The ranking of Linux 2.4.
#[derive(Clone, Copy, Debug)]
pub struct Goodness {
    /// What a task is worth more where it ran last: `PROC_CHANGE_PENALTY`, at
    /// most [`MAX_PENALTY`].
    pub proc_change_penalty: u8,
    /// What a task is worth more after one of its address space, 1 or, where
    /// that is disregarded, 0.
    pub same_mm: u8,
}

/// Highest `PROC_CHANGE_PENALTY` of all architectures.
pub const MAX_PENALTY: u8 = 20;

impl Goodness {
    /// As on x86.
    pub const X86: Self = Self {
        proc_change_penalty: 15,
        same_mm: 1,
    };
}

/// The highest goodness of an ordinary task, and so its level: a whole counter
/// at nice -20.
const HIGHEST_OTHER: usize = MAX_COUNTER as usize + 40;
const REAL_TIME_LEVEL: usize = HIGHEST_OTHER + 1;

/// Recalculations after which the counter changes no more.
const ENOUGH_RECALCULATIONS: u64 = 32;

/// A child takes half of its parent's time slice along, so that forking gains
/// nothing: the child has what this returns. Rounded in the child's favour.
pub fn fork_counter(parent: &mut Task) -> Counter {
    let Counter(ticks) = parent.counter;
    parent.counter = Counter(ticks / 2);
    Counter(ticks.div_ceil(2))
}

/// A child that ends gives its parent back what is left of its time slice.
pub fn return_counter(parent: &mut Task, child: &Task) {
    let ticks = parent.counter.get() + child.counter.get();
    parent.counter = Counter(ticks.min(MAX_RETURNED));
}

impl Ranking for Goodness {
    const RECALCULATES: bool = true;

    /// `add_to_runqueue()` puts who wakes at the head of the list. There it stays
    /// until it blocks, unless `move_last_runqueue()` puts it at the end.
    const LATEST_FIRST: bool = true;

    fn levels(&self) -> usize {
        REAL_TIME_LEVEL + 1
    }

    #[inline]
    fn rank(&self, task: &Task) -> Rank {
        match task.class {
            Class::Other if task.counter == Counter::ZERO => 0,
            Class::Other => Rank::from(task.counter.get()) + 20 - Rank::from(task.nice.get()),
            Class::Fifo | Class::RoundRobin => REAL_TIME + Rank::from(task.rt_priority),
        }
    }

    #[inline]
    fn affinity(&self, task: &Task, cpu: Cpu, mm: Option<u32>) -> Rank {
        if task.class != Class::Other || task.counter == Counter::ZERO {
            return 0;
        }
        let same_cpu = Rank::from(task.cpu == cpu) * Rank::from(self.proc_change_penalty);
        same_cpu + Rank::from(mm == Some(task.mm)) * Rank::from(self.same_mm)
    }

    fn is_spent(&self, rank: Rank) -> bool {
        rank == 0
    }

    /// Every task counts alike.
    fn load(&self, _task: &Task) -> Option<u32> {
        Some(self.least_load())
    }

    fn least_load(&self) -> u32 {
        1
    }

    fn is_real_time(&self, task: &Task) -> bool {
        task.class != Class::Other
    }

    fn level(&self, task: &Task, _scale: &Scale) -> usize {
        (self.rank(task) as usize).min(REAL_TIME_LEVEL)
    }

    fn limit(&self, level: usize, _scale: &Scale) -> Rank {
        match level {
            0 => 0,
            REAL_TIME_LEVEL => Rank::MAX,
            _ => level as Rank + Rank::from(self.proc_change_penalty),
        }
    }

    fn rescale(&self, _lowest: Rank, _highest: Rank) -> Option<Scale> {
        None
    }

    fn preempts(&self, gain: Rank) -> bool {
        gain > 1
    }

    /// Makes up for the recalculations that happened while the task slept.
    fn enter(&self, task: &mut Task, clock: u64) {
        let missed = clock.saturating_sub(task.recalculations);
        self.recalculate(task, missed);
    }

    fn leave(&self, task: &mut Task, clock: u64) {
        task.recalculations = clock;
    }

    fn recalculate(&self, task: &mut Task, times: u64) {
        for _ in 0..times.min(ENOUGH_RECALCULATIONS) {
            task.counter.0 = task.counter.0 / 2 + task.nice.whole_slice().0;
        }
    }

    fn set_tickets(&self, task: &mut Task, tickets: Tickets, _clock: u64) {
        task.tickets = tickets;
    }

    fn refresh_tickets(&self, _task: &mut Task, _clock: u64) {}

    fn feasible(&self) -> Option<&FeasibleTickets> {
        None
    }

    fn charge(&self, _task: &mut Task, _used_ns: u64) {}

    fn tick(&self, task: &mut Task) -> bool {
        if task.class == Class::Fifo {
            return false;
        }
        task.counter.0 = task.counter.0.saturating_sub(1);
        task.counter == Counter::ZERO
    }

    fn pause(&self, task: &mut Task, yields: bool) -> Precedence {
        let expired = task.class == Class::RoundRobin && task.counter == Counter::ZERO;
        if expired {
            task.counter = task.nice.whole_slice();
        }
        match task.class {
            Class::Other if yields => Precedence::Last,
            Class::Fifo | Class::RoundRobin if yields || expired => Precedence::BehindEquals,
            _ => Precedence::First,
        }
    }

    fn clock_after(&self, _chosen: &Task, clock: u64) -> u64 {
        clock
    }
}
