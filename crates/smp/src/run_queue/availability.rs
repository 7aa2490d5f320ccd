//! How available a CPU is for a task that wakes, and what queues publish.
//!
//! An idle CPU is more available than any busy CPU, most of all the one idle
//! longest. A busy CPU is the more available, the lower the goodness of its
//! task (2001, 4). Published as a word:
//!
//! ```text
//!   idle          above IDLE, the higher the longer it has been idle
//!   runs a task   minus its goodness, affinity included
//!   was told to decide and has not yet: NOBODY
//! ```
//!
//! A CPU that has been told is not told a second time. (Linux 2.4 may choose
//! one idle CPU for several tasks that wake at once.)

use super::goodness::{NOBODY, Rank, preempts};
use super::layout::{Position, RunQueues};
use super::queue::{Queue, QueueHandle};
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
    /// Runs a task of this goodness, affinity included.
    Runs(Rank),
    Told,
}

impl Availability {
    pub(super) fn word(self) -> Rank {
        match self {
            Self::Idle(since_ns) => IDLE + (LONGEST_NS - since_ns.min(LONGEST_NS - 1)) as Rank,
            Self::Runs(total) => -total,
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

    pub(super) fn is_idle(self) -> bool {
        matches!(self, Self::Idle(_))
    }
}

impl RunQueues {
    /// What a CPU can do, under the lock of its queue.
    pub(super) fn availability(&self, queue: &Queue, cpu: Cpu) -> Availability {
        let state = queue.cpu(cpu);
        match state.current {
            _ if state.must_decide => Availability::Told,
            None => Availability::Idle(state.idle_since_ns),
            Some(handle) => Availability::Runs(self.total_of(queue.task(handle), cpu)),
        }
    }

    /// Goodness and affinity of the task that runs on a CPU.
    pub(super) fn total_of(&self, task: &Task, cpu: Cpu) -> Rank {
        task.rank() + self.goodness.affinity(task, cpu, Some(task.mm))
    }

    /// Publishes what others may read of a CPU and its own queue, under its
    /// lock: the best waiting task (`head`), the load and the availability.
    /// Returns the words looked at. A queue that serves all CPUs publishes
    /// nothing.
    pub(super) fn publish(&mut self, queue: &Queue, cpu: Cpu, head: Rank) -> u32 {
        if self.single.is_some() {
            return 0;
        }
        let availability = self.availability(queue, cpu).word();
        let balances = self.pools.len() > 1;
        let Position { pool, place } = self.position(cpu);
        let pool = &mut self.pools[pool as usize];
        let mut words = pool.offers.set(place, head);
        if balances {
            words += pool.loads.set(place, queue.len());
        }
        words + pool.available.set(place, availability)
    }

    /// The same; the waiting tasks have not changed.
    pub(super) fn publish_as_before(&mut self, queue: &Queue, cpu: Cpu) -> u32 {
        let head = self.pool(cpu).offers.get(self.position(cpu).place);
        self.publish(queue, cpu, head)
    }

    /// The same; the waiting tasks may have changed. O(n) in the queue.
    pub(super) fn publish_afresh(&mut self, queue: &Queue, cpu: Cpu) -> u32 {
        match self.single {
            Some(_) => 0,
            None => self.publish(queue, cpu, head(queue)),
        }
    }

    /// What all CPUs may read of a CPU and its own queue without a lock: the
    /// best waiting task and the availability.
    pub fn published(&self, cpu: Cpu) -> [Rank; 2] {
        let (pool, place) = (self.pool(cpu), self.position(cpu).place);
        [pool.offers.get(place), pool.available.get(place)]
    }

    /// Puts a task that has been through `as_of` recalculations into a CPU's
    /// own queue, which catches up first. Returns its handle and the tasks that
    /// were visited.
    pub(super) fn receive(
        &self,
        queue: &mut Queue,
        cpu: Cpu,
        mut task: Task,
        as_of: u64,
    ) -> (QueueHandle, u32) {
        let examined = queue.catch_up(self.clock(cpu));
        task.recalculate(queue.recalculations() - as_of);
        (queue.insert(task), examined)
    }

    /// The same, and publishes the queue. Returns the tasks and words looked
    /// at.
    pub(super) fn insert(
        &mut self,
        queue: &mut Queue,
        cpu: Cpu,
        task: Task,
        as_of: u64,
    ) -> (u32, u32) {
        let (handle, examined) = self.receive(queue, cpu, task, as_of);
        let head = match examined {
            0 => {
                let before = self.pool(cpu).offers.get(self.position(cpu).place);
                before.max(queue.task(handle).rank())
            }
            _ => head(queue),
        };
        (examined, self.publish(queue, cpu, head))
    }

    /// Has a CPU decide anew if it idles, under the lock of its queue. Returns
    /// the words looked at; none if the CPU does not idle.
    pub(super) fn rouse(&mut self, queue: &mut Queue, cpu: Cpu) -> Option<u32> {
        self.availability(queue, cpu).is_idle().then(|| {
            queue.cpu_mut(cpu).must_decide = true;
            self.publish_as_before(queue, cpu)
        })
    }

    /// What a task would gain on a CPU; `None` if the CPU is not to be had. An
    /// idle CPU is worth more than any preemption.
    pub(super) fn gain(
        &self,
        task: &Task,
        cpu: Cpu,
        availability: Availability,
        mm: Option<u32>,
    ) -> Option<Rank> {
        match availability {
            Availability::Told => None,
            Availability::Idle(_) => Some(availability.word()),
            Availability::Runs(total) => {
                let gain = task.rank() + self.goodness.affinity(task, cpu, mm) - total;
                preempts(gain).then_some(gain)
            }
        }
    }
}
