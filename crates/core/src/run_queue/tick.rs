//! The timer's tick: 10 ms of a time slice have passed (2001, 2).

use super::decision::{Decision, Held, Step, Steps};
use super::layout::RunQueues;
use super::ranking::Ranking;
use super::search::head;
use super::task::Cpu;

/// A tick on a CPU.
#[derive(Debug)]
pub struct Tick {
    cpu: Cpu,
    phase: Phase,
    steps: Steps,
    expired: bool,
}

#[derive(Clone, Copy, Debug)]
enum Phase {
    Start,
    Locked,
    End,
}

impl Tick {
    /// A tick on `cpu`.
    pub fn new(cpu: Cpu) -> Self {
        Self {
            cpu,
            phase: Phase::Start,
            steps: Steps::NONE,
            expired: false,
        }
    }

    /// Whether the time slice of who runs there has ended, so that the CPU
    /// should decide anew; after [`Step::Done`].
    pub fn expired(&self) -> bool {
        self.expired
    }

    fn pass<R: Ranking>(&mut self, shared: &RunQueues<R>, held: &mut impl Held) {
        let (cpu, ranking) = (self.cpu, &shared.ranking);
        let lock = shared.queue_of(cpu);
        let queue = held.queue(lock);
        let pool = shared.pool(cpu);
        let examined = queue.catch_up(ranking, pool.clock());
        if let Some(slot) = queue.cpu(cpu).current {
            self.expired = queue.change(slot, ranking, |task| ranking.tick(task));
        }
        let offered = pool.offers.get(shared.place(cpu).place);
        let head = match examined {
            0 => offered,
            _ => head(queue, ranking),
        };
        let words = shared.publish(queue, cpu, head);
        self.steps.examined(examined, words);
        self.steps.push(Step::Unlock(lock));
        self.phase = Phase::End;
    }
}

impl<R: Ranking> Decision<R> for Tick {
    fn step(&mut self, shared: &RunQueues<R>, held: &mut impl Held, _granted: bool) -> Step {
        loop {
            if let Some(step) = self.steps.pop() {
                return step;
            }
            match self.phase {
                Phase::Start => {
                    self.steps.push(Step::Lock(shared.queue_of(self.cpu)));
                    self.phase = Phase::Locked;
                }
                Phase::Locked => self.pass(shared, held),
                Phase::End => return Step::Done,
            }
        }
    }
}
