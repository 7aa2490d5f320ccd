//! The timer's tick: 10 ms of a time slice have passed (2001, 2).

use super::decision::{Decision, DecisionStep, Held, PendingSteps};
use super::layout::RunQueues;
use super::queue::Queue;
use super::task::Cpu;

#[derive(Debug)]
pub struct Tick {
    cpu: Cpu,
    phase: Phase,
    steps: PendingSteps,
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
            steps: PendingSteps::NONE,
            expired: false,
        }
    }

    /// Whether the time slice of the running task has ended, so that the CPU
    /// should decide anew; after [`DecisionStep::Done`].
    pub fn expired(&self) -> bool {
        self.expired
    }

    fn shorten(&mut self, shared: &mut RunQueues, queue: &mut Queue) {
        let examined = queue.catch_up(shared.clock(self.cpu));
        self.expired = queue.cpu(self.cpu).current.is_some_and(|handle| {
            queue.change(handle, |task| task.counter = task.counter.saturating_sub(1));
            queue.task(handle).counter == 0
        });
        let words = match examined {
            0 => shared.publish_as_before(queue, self.cpu),
            _ => shared.publish_afresh(queue, self.cpu),
        };
        self.steps.examined(examined, words);
    }
}

impl Decision for Tick {
    fn step(
        &mut self,
        shared: &mut RunQueues,
        held: &mut impl Held,
        _granted: bool,
    ) -> DecisionStep {
        let lock = shared.queue_of(self.cpu);
        match self.phase {
            Phase::Start => {
                self.phase = Phase::Locked;
                return DecisionStep::Lock(lock);
            }
            Phase::Locked => {
                self.shorten(shared, held.queue(lock));
                self.steps.push(DecisionStep::Unlock(lock));
                self.phase = Phase::End;
            }
            Phase::End => {}
        }
        self.steps.pop().unwrap_or(DecisionStep::Done)
    }
}
