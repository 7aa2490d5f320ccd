//! Weights have been readjusted: tasks that stand in queues go by other tickets
//! from now on.

use alloc::vec::Vec;

use super::decision::{Decision, Held, Step, Steps};
use super::layout::RunQueues;
use super::ranking::Ranking;
use super::task::{Cpu, TaskIndex};

/// Visits each queue where somebody stands whose tickets have changed, one after
/// another, and has everybody there go by the tickets that are feasible now.
/// O(n) in the tasks of these queues.
#[derive(Debug)]
pub struct Reweigh {
    /// CPUs of the queues that are still to be visited, the last one first.
    /// Allocates only if somebody's tickets have changed.
    cpus: Vec<Cpu>,
    is_held: bool,
    steps: Steps,
}

impl Reweigh {
    /// After a change of [`Weights`](super::Weights), for those whom it gave
    /// other tickets.
    pub fn new<R: Ranking>(shared: &RunQueues<R>, changed: &[TaskIndex]) -> Self {
        let feasible = shared.ranking.feasible().filter(|_| !changed.is_empty());
        let mut cpus = match (shared.single, feasible) {
            (_, None) => Vec::new(),
            // A queue that serves all CPUs is visited once.
            (Some(_), Some(_)) => Vec::from([Cpu(0)]),
            (None, Some(feasible)) => {
                let cpus = changed.iter().filter_map(|&task| feasible.cpu(task));
                cpus.collect()
            }
        };
        cpus.sort_unstable();
        cpus.dedup();
        Self {
            cpus,
            is_held: false,
            steps: Steps::NONE,
        }
    }

    fn visit<R: Ranking>(&mut self, shared: &RunQueues<R>, held: &mut impl Held, cpu: Cpu) {
        let (ranking, pool) = (&shared.ranking, shared.pool(cpu));
        let lock = shared.queue_of(cpu);
        let queue = held.queue(lock);
        queue.change_all(ranking, |task| ranking.refresh_tickets(task, pool.clock()));
        let words = shared.publish_afresh(queue, cpu);
        self.steps.examined(queue.len(), words);
        self.steps.push(Step::Unlock(lock));
        self.cpus.pop();
        self.is_held = false;
    }
}

impl<R: Ranking> Decision<R> for Reweigh {
    fn step(&mut self, shared: &RunQueues<R>, held: &mut impl Held, _granted: bool) -> Step {
        loop {
            if let Some(step) = self.steps.pop() {
                return step;
            }
            match self.cpus.last().copied() {
                Some(cpu) if self.is_held => self.visit(shared, held, cpu),
                Some(cpu) => {
                    self.is_held = true;
                    self.steps.push(Step::Lock(shared.queue_of(cpu)));
                }
                None => return Step::Done,
            }
        }
    }
}
