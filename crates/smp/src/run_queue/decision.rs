//! Decisions in steps, so that each step takes its time under simulated locks.
//!
//! A decision takes no lock itself. It asks for a lock and goes on once the
//! lock is held. It reaches the queues through [`Held`], and only those whose
//! locks it holds.
//!
//! The order of locks rules out deadlock. A decision that waits for a lock
//! holds no other, except a pool's recalculation lock while it waits for a
//! CPU's queue. All other locks are tried and given up if held.

use super::layout::RunQueues;
use super::queue::Queue;
use super::task::{Cpu, Task, TaskIndex};

/// A lock, and the queue behind it if there is one.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct LockIndex(pub u32);

/// What the driver does before a decision goes on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum DecisionStep {
    /// Acquire this lock; wait for it if need be.
    Lock(LockIndex),
    /// Acquire this lock if it is free, and say whether it was.
    TryLock(LockIndex),
    /// Release this lock, which is held.
    Unlock(LockIndex),
    /// Nothing to do: so much was looked at since the last step, for a model of
    /// costs.
    Examined {
        /// Tasks of queues whose locks are held.
        tasks: u32,
        /// Words of other CPUs, read or compared without a lock.
        words: u32,
    },
    /// Have this CPU decide anew as soon as it can: an interrupt between
    /// processors, if it is another one.
    Interrupt(Cpu),
    /// The decision is made. No lock is held.
    Done,
}

/// The queues whose locks a decision holds, and the tasks that are in no queue.
pub trait Held {
    /// The queue behind a lock that is held.
    fn queue(&mut self, lock: LockIndex) -> &mut Queue;

    /// Takes a task that blocked. None if the decision in which it blocked has not ended.
    fn take_blocked(&mut self, task: TaskIndex) -> Option<Task>;
}

/// A decision made in steps.
pub trait Decision {
    /// The next step. `granted` says whether the last step, a
    /// [`DecisionStep::TryLock`], acquired the lock. Not to be called after
    /// [`DecisionStep::Done`].
    fn step(&mut self, shared: &mut RunQueues, held: &mut impl Held, granted: bool)
    -> DecisionStep;
}

/// Refusals after which a decision tries no other queue: it waits for a lock or
/// keeps what it has. A refusal is a held lock or a queue that has changed.
pub(super) const MOST_REFUSALS: u32 = 2;

/// PendingSteps that are settled but not yet taken: at most [`PendingSteps::MOST`].
#[derive(Clone, Copy, Debug)]
pub(super) struct PendingSteps {
    steps: [DecisionStep; Self::MOST],
    len: usize,
}

impl PendingSteps {
    const MOST: usize = 8;

    pub(super) const NONE: Self = Self {
        steps: [DecisionStep::Done; Self::MOST],
        len: 0,
    };

    pub(super) fn push(&mut self, step: DecisionStep) {
        self.steps[self.len] = step;
        self.len += 1;
    }

    pub(super) fn examined(&mut self, tasks: u32, words: u32) {
        if tasks > 0 || words > 0 {
            self.push(DecisionStep::Examined { tasks, words });
        }
    }

    pub(super) fn pop(&mut self) -> Option<DecisionStep> {
        let step = (self.len > 0).then_some(self.steps[0])?;
        self.steps.copy_within(1.., 0);
        self.len -= 1;
        Some(step)
    }
}
