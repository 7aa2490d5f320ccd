//! Weights have been readjusted: tasks that stand in queues go by other tickets
//! from now on.

use super::decision::{Decision, Held, Step, Steps};
use super::layout::RunQueues;
use super::ranking::Ranking;
use super::search::head;
use super::task::Cpu;

/// Visits each queue of a pool, one after another, and has everybody there go
/// by the tickets that are feasible now. O(n) in the tasks of the pool.
#[derive(Debug)]
pub struct Reweigh {
    /// A CPU of the pool.
    cpu: Cpu,
    /// The next queue, by its CPU's place in the pool.
    place: u32,
    is_held: bool,
    steps: Steps,
}

impl Reweigh {
    /// The pool of `cpu`.
    pub fn new(cpu: Cpu) -> Self {
        Self {
            cpu,
            place: 0,
            is_held: false,
            steps: Steps::NONE,
        }
    }

    fn visit<R: Ranking>(&mut self, shared: &RunQueues<R>, held: &mut impl Held, cpu: Cpu) {
        let (ranking, pool) = (&shared.ranking, shared.pool(cpu));
        let lock = shared.queue_of(cpu);
        let queue = held.queue(lock);
        queue.change_all(ranking, |task| ranking.refresh_tickets(task, pool.clock()));
        let words = match shared.single {
            Some(_) => 0,
            None => shared.publish(queue, cpu, head(queue, ranking)),
        };
        self.steps.examined(queue.len(), words);
        self.steps.push(Step::Unlock(lock));
        self.place += 1;
        self.is_held = false;
    }
}

impl<R: Ranking> Decision<R> for Reweigh {
    fn step(&mut self, shared: &RunQueues<R>, held: &mut impl Held, _granted: bool) -> Step {
        loop {
            if let Some(step) = self.steps.pop() {
                return step;
            }
            // A queue that serves all CPUs is visited once.
            let cpu = match shared.single {
                Some(_) => (self.place == 0).then_some(self.cpu),
                None => shared.pool(self.cpu).cpus.get(self.place as usize).copied(),
            };
            match cpu {
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
