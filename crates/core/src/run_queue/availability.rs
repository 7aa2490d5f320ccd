//! How available a CPU is for a task that wakes: an idle one more than any that
//! runs something, the one that has been idle longest most of all; of the
//! others whoever runs the lowest goodness (2001, 4).
//!
//! ```text
//!   idle          above IDLE, the higher the longer it has been idle
//!   runs a task   minus its rank, affinity included; never above IDLE
//!   was told to decide anew and has not yet: NOBODY
//! ```
//!
//! A CPU that has been told is not asked a second time (Linux 2.4 may choose
//! one idle CPU for several tasks that wake at once).

use super::layout::RunQueues;
use super::queue::{Queue, Slot};
use super::ranking::{NOBODY, Rank, Ranking};
use super::search::head;
use super::task::{Cpu, Task};

pub(super) const IDLE: Rank = 1 << 62;
/// Times are below this: 73 years.
const LONGEST_NS: u64 = 1 << 61;

/// What a CPU can do for a task that wakes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Availability {
    /// Since then, by the caller's clock.
    Idle(u64),
    /// Runs somebody of this rank, affinity included.
    Runs(Rank),
    Told,
}

impl Availability {
    pub(super) fn word(self) -> Rank {
        match self {
            Self::Idle(since_ns) => IDLE + (LONGEST_NS - since_ns.min(LONGEST_NS - 1)) as Rank,
            Self::Runs(total) => total.saturating_neg().min(IDLE),
            Self::Told => NOBODY,
        }
    }

    pub(super) fn from_word(word: Rank) -> Self {
        match word {
            NOBODY => Self::Told,
            _ if word > IDLE => Self::Idle(LONGEST_NS - (word - IDLE) as u64),
            _ => Self::Runs(-word),
        }
    }
}

impl<R: Ranking> RunQueues<R> {
    /// What a CPU can do, under the lock of its queue.
    pub(super) fn availability(&self, queue: &Queue, cpu: Cpu) -> Availability {
        let state = queue.cpu(cpu);
        match state.current {
            _ if state.must_decide => Availability::Told,
            None => Availability::Idle(state.idle_since_ns),
            Some(slot) => Availability::Runs(self.total_of(queue.task(slot), cpu)),
        }
    }

    /// Rank and affinity of who runs on a CPU.
    fn total_of(&self, task: &Task, cpu: Cpu) -> Rank {
        self.ranking.rank(task) + self.ranking.affinity(task, cpu, Some(task.mm))
    }

    /// Publishes all that is to be known of a CPU's own queue, under its lock:
    /// what it offers (`head`), its load, and what the CPU can do. Returns the
    /// words looked at. Where one queue serves all CPUs nothing is published.
    pub(super) fn publish(&self, queue: &Queue, cpu: Cpu, head: Rank) -> u32 {
        if self.single.is_some() {
            return 0;
        }
        let (pool, place) = (self.pool(cpu), self.place(cpu).place);
        let mut words = pool.offers.set(place, head);
        if self.pools.len() > 1 {
            words += pool.loads.set(place, queue.load());
        }
        let availability = self.availability(queue, cpu);
        words + pool.available.set(place, availability.word())
    }

    /// The same, with what it offers now: O(n) in those there.
    pub(super) fn publish_afresh(&self, queue: &Queue, cpu: Cpu) -> u32 {
        match self.single {
            Some(_) => 0,
            None => self.publish(queue, cpu, head(queue, &self.ranking)),
        }
    }

    /// What all CPUs may read of a CPU's own queue and of the CPU without a
    /// lock: whom it offers, and how available the CPU is. For drivers that
    /// model whose cache has these words.
    pub fn published(&self, cpu: Cpu) -> [Rank; 2] {
        let (pool, place) = (self.pool(cpu), self.place(cpu).place);
        [pool.offers.get(place), pool.available.get(place)]
    }

    /// Puts a task that has been through the recalculations up to `as_of` into
    /// a CPU's own queue, which catches up first. Returns where it stands, and
    /// the tasks that were visited.
    pub(super) fn receive(
        &self,
        queue: &mut Queue,
        cpu: Cpu,
        mut task: Task,
        as_of: u64,
    ) -> (Slot, u32) {
        let (ranking, pool) = (&self.ranking, self.pool(cpu));
        let examined = queue.catch_up(ranking, pool.clock());
        if R::RECALCULATES {
            // Clocks do not go back, so the queue is not behind the task.
            ranking.recalculate(&mut task, queue.recalculations.saturating_sub(as_of));
        }
        // Weights may have been readjusted while it was on its way: first its
        // place, then its tickets (`feasible_tickets.rs`).
        if let Some(feasible) = ranking.feasible() {
            feasible.put(task.index, cpu);
        }
        ranking.refresh_tickets(&mut task, pool.clock());
        (queue.insert(task, ranking), examined)
    }

    /// The same, and publishes it. Returns the tasks and words looked at.
    pub(super) fn insert(&self, queue: &mut Queue, cpu: Cpu, task: Task, as_of: u64) -> (u32, u32) {
        let (slot, examined) = self.receive(queue, cpu, task, as_of);
        let head = match examined {
            0 => {
                let before = self.pool(cpu).offers.get(self.place(cpu).place);
                before.max(self.ranking.rank(queue.task(slot)))
            }
            _ => head(queue, &self.ranking),
        };
        (examined, self.publish(queue, cpu, head))
    }

    /// Has a CPU decide anew if it idles, under the lock of its queue; nothing
    /// if it does not. Returns the words looked at.
    pub(super) fn rouse(&self, queue: &mut Queue, cpu: Cpu) -> Option<u32> {
        let is_idle = matches!(self.availability(queue, cpu), Availability::Idle(_));
        is_idle.then(|| {
            queue.cpu_mut(cpu).must_decide = true;
            let head = self.pool(cpu).offers.get(self.place(cpu).place);
            self.publish(queue, cpu, head)
        })
    }

    /// What a task of this rank would gain on a CPU; `None` if it is not to be
    /// had. More than any preemption gains on an idle one, most on that which
    /// has been idle longest.
    pub(super) fn gain(
        &self,
        task: &Task,
        cpu: Cpu,
        availability: Availability,
        mm: Option<u32>,
    ) -> Option<Rank> {
        if !task.allowed.contains(cpu) {
            return None;
        }
        match availability {
            Availability::Told => None,
            Availability::Idle(_) => Some(availability.word()),
            Availability::Runs(total) => {
                let ours = self.ranking.rank(task) + self.ranking.affinity(task, cpu, mm);
                let gain = ours.saturating_sub(total);
                self.ranking.preempts(gain).then_some(gain)
            }
        }
    }
}
