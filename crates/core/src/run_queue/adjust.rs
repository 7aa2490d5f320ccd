//! A change of what a task is worth, while it stands in a queue. Of a blocked
//! task its owner just sets the fields.

use core::num::NonZeroU32;

use super::decision::{Decision, Held, LockIndex, Step, Steps};
use super::layout::RunQueues;
use super::ranking::Ranking;
use super::search::head;
use super::task::{Cpu, TaskIndex};

/// What becomes different.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Change {
    /// From now on it has so many tickets.
    Tickets(NonZeroU32),
    /// From now on it has this nice value, -20 to 19.
    Nice(i8),
}

/// A task in a queue changes.
#[derive(Debug)]
pub struct Adjust {
    lock: LockIndex,
    task: TaskIndex,
    change: Change,
    phase: Phase,
    steps: Steps,
    found: bool,
}

#[derive(Clone, Copy, Debug)]
enum Phase {
    Start,
    Locked,
    End,
}

impl Adjust {
    /// `task`, if it stands behind `lock`.
    pub fn new(lock: LockIndex, task: TaskIndex, change: Change) -> Self {
        Self {
            lock,
            task,
            change,
            phase: Phase::Start,
            steps: Steps::NONE,
            found: false,
        }
    }

    /// Whether it stood there; after [`Step::Done`].
    pub fn found(&self) -> bool {
        self.found
    }

    /// O(n) in the tasks of the queue.
    fn adjust<R: Ranking>(&mut self, shared: &RunQueues<R>, held: &mut impl Held) {
        let ranking = &shared.ranking;
        // Whose queue it is, if that is one CPU's.
        let own = (self.lock.0 < shared.cpus()).then_some(Cpu(self.lock.0));
        let pool = match own {
            Some(cpu) => shared.pool(cpu),
            None => &shared.pools[(self.lock.0 - shared.cpus()) as usize],
        };
        let queue = held.queue(self.lock);
        let examined = queue.catch_up(ranking, pool.clock()) + queue.len();
        let slot = queue.find(self.task);
        self.found = slot.is_some();
        if let Some(slot) = slot {
            let change = self.change;
            queue.change(slot, ranking, |task| match change {
                Change::Tickets(tickets) => ranking.set_tickets(task, tickets, pool.clock()),
                Change::Nice(nice) => task.nice = nice,
            });
        }
        let mut words = 0;
        if shared.single.is_none() {
            let head = head(queue, ranking);
            match own {
                Some(cpu) => words = shared.publish(queue, cpu, head),
                None => pool.offer_real_time(head),
            }
        }
        self.steps.examined(examined, words);
        self.steps.push(Step::Unlock(self.lock));
        self.phase = Phase::End;
    }
}

impl<R: Ranking> Decision<R> for Adjust {
    fn step(&mut self, shared: &RunQueues<R>, held: &mut impl Held, _granted: bool) -> Step {
        loop {
            if let Some(step) = self.steps.pop() {
                return step;
            }
            match self.phase {
                Phase::Start => {
                    self.steps.push(Step::Lock(self.lock));
                    self.phase = Phase::Locked;
                }
                Phase::Locked => self.adjust(shared, held),
                Phase::End => return Step::Done,
            }
        }
    }
}
