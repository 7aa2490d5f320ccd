//! A decision that takes one lock, passes once over the queue behind it and
//! lets it go.

use super::decision::{Held, LockIndex, Step, Steps};
use super::queue::Queue;

/// How far such a decision has come.
#[derive(Debug)]
pub(super) struct SinglePass {
    phase: Phase,
    steps: Steps,
}

#[derive(Clone, Copy, Debug)]
enum Phase {
    Start,
    Locked,
    End,
}

impl SinglePass {
    pub(super) const NEW: Self = Self {
        phase: Phase::Start,
        steps: Steps::NONE,
    };

    /// The next step; `pass` returns the tasks and words that it looked at.
    pub(super) fn step(
        &mut self,
        lock: LockIndex,
        held: &mut impl Held,
        pass: impl FnOnce(&mut Queue) -> (u32, u32),
    ) -> Step {
        if let Phase::Start = self.phase {
            self.phase = Phase::Locked;
            return Step::Lock(lock);
        }
        if let Phase::Locked = self.phase {
            let (tasks, words) = pass(held.queue(lock));
            self.steps.examined(tasks, words);
            self.steps.push(Step::Unlock(lock));
            self.phase = Phase::End;
        }
        self.steps.pop().unwrap_or(Step::Done)
    }
}
