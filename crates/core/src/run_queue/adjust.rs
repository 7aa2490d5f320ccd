//! A change of what a task is worth, while it stands in a queue. Of a blocked
//! task its owner just sets the fields.

use super::decision::{Decision, Held, LockIndex, Step};
use super::layout::RunQueues;
use super::limits::{Nice, Tickets};
use super::queue::Queue;
use super::ranking::Ranking;
use super::single_pass::SinglePass;
use super::task::{Cpu, TaskIndex};

/// What becomes different.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Change {
    /// From now on it has so many tickets.
    Tickets(Tickets),
    /// From now on it has this nice value.
    Nice(Nice),
}

/// A task in a queue changes.
#[derive(Debug)]
pub struct Adjust {
    lock: LockIndex,
    task: TaskIndex,
    change: Change,
    progress: SinglePass,
    found: bool,
}

impl Adjust {
    /// `task`, if it stands behind `lock`.
    pub fn new(lock: LockIndex, task: TaskIndex, change: Change) -> Self {
        Self {
            lock,
            task,
            change,
            progress: SinglePass::NEW,
            found: false,
        }
    }

    /// Whether it stood there; after [`Step::Done`].
    pub fn found(&self) -> bool {
        self.found
    }
}

impl<R: Ranking> Decision<R> for Adjust {
    fn step(&mut self, shared: &RunQueues<R>, held: &mut impl Held, _granted: bool) -> Step {
        let (lock, task, change) = (self.lock, self.task, self.change);
        let found = &mut self.found;
        self.progress.step(lock, held, |queue| {
            let examined;
            (*found, examined) = match lock.0 < shared.cpus() {
                true => shared.adjust(queue, Cpu(lock.0), task, change),
                false => shared.adjust_real_time(queue, task, change),
            };
            examined
        })
    }
}

impl<R: Ranking> RunQueues<R> {
    /// Whether the task is in this queue, which CPUs take from first, and the
    /// tasks and words looked at: O(n) in those there.
    fn adjust(
        &self,
        queue: &mut Queue,
        cpu: Cpu,
        task: TaskIndex,
        change: Change,
    ) -> (bool, (u32, u32)) {
        let (ranking, pool) = (&self.ranking, self.pool(cpu));
        let examined = queue.catch_up(ranking, pool.clock()) + queue.len();
        let slot = queue.find(task);
        if let Some(slot) = slot {
            queue.change(slot, ranking, |task| match change {
                Change::Tickets(tickets) => ranking.set_tickets(task, tickets, pool.clock()),
                Change::Nice(nice) => task.nice = nice,
            });
        }
        let words = self.publish_afresh(queue, cpu);
        (slot.is_some(), (examined, words))
    }

    /// The same where real-time tasks wait. They go by neither tickets nor nice
    /// values as long as they are, and by no recalculation while they wait
    /// there.
    fn adjust_real_time(
        &self,
        queue: &mut Queue,
        task: TaskIndex,
        change: Change,
    ) -> (bool, (u32, u32)) {
        let slot = queue.find(task);
        if let Some(slot) = slot {
            let task = queue.task_mut(slot);
            match change {
                Change::Tickets(tickets) => task.tickets = tickets,
                Change::Nice(nice) => task.nice = nice,
            }
        }
        (slot.is_some(), (queue.len(), 0))
    }
}
