//! Decisions as steps, so that one and the same code runs under simulated
//! locks in virtual time and behind real locks with real threads.
//!
//! A decision never takes a lock itself. It says which one it needs and is
//! asked for its next step once that is held; it reaches the queues through
//! [`Held`], and only those whose locks it holds.
//!
//! Locks are taken in an order that cannot deadlock: a decision that waits for
//! a lock holds no other, except that one which holds a CPU's queue may wait
//! for the real-time queue, and one which holds a pool's recalculation lock for
//! a CPU's queue; whoever holds a real-time queue waits for nothing. All else
//! is tried, and given up if it is not to be had.

use super::layout::RunQueues;
use super::queue::Queue;
use super::task::Cpu;

/// A lock, and the queue behind it if there is one.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct LockIndex(pub u32);

/// What is to be done before a decision goes on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Step {
    /// Acquire this lock; wait for it if need be.
    Lock(LockIndex),
    /// Acquire this lock if nobody holds it, and say whether that was so.
    TryLock(LockIndex),
    /// Release this lock, which is held.
    Unlock(LockIndex),
    /// Nothing is to be done: so much was looked at since the last step. It is
    /// what a model of costs goes by.
    Examined {
        /// Tasks of queues whose locks are held.
        tasks: u32,
        /// Words of other CPUs that were read or compared without a lock.
        words: u32,
    },
    /// Have this CPU decide anew as soon as it can: an interrupt between
    /// processors, if it is another one.
    Interrupt(Cpu),
    /// The decision is made. No lock is held.
    Done,
}

/// The queues whose locks a decision holds.
pub trait Held {
    /// The queue behind a lock that is held. Asked for no other, nor for one
    /// that has no queue.
    fn queue(&mut self, lock: LockIndex) -> &mut Queue;
}

/// Something that is decided in steps.
pub trait Decision<R> {
    /// The next step. `granted` says whether the lock was acquired when the
    /// last step was [`Step::TryLock`]; it is not looked at otherwise. Not to
    /// be called again after [`Step::Done`].
    fn step(&mut self, shared: &RunQueues<R>, held: &mut impl Held, granted: bool) -> Step;
}

/// How often a decision that finds a queue's lock held, or what it read of that
/// queue no longer so, goes for another one: after that it waits for a lock, or
/// is content with what it has.
pub(super) const MOST_REFUSALS: u32 = 2;

/// Steps that are settled but not yet taken: at most [`Steps::MOST`].
#[derive(Clone, Copy, Debug)]
pub(super) struct Steps {
    steps: [Step; Self::MOST],
    len: usize,
}

impl Steps {
    const MOST: usize = 8;

    pub(super) const NONE: Self = Self {
        steps: [Step::Done; Self::MOST],
        len: 0,
    };

    pub(super) fn push(&mut self, step: Step) {
        self.steps[self.len] = step;
        self.len += 1;
    }

    pub(super) fn examined(&mut self, tasks: u32, words: u32) {
        if tasks > 0 || words > 0 {
            self.push(Step::Examined { tasks, words });
        }
    }

    /// The first one.
    pub(super) fn pop(&mut self) -> Option<Step> {
        let step = (self.len > 0).then_some(self.steps[0])?;
        self.steps.copy_within(1.., 0);
        self.len -= 1;
        Some(step)
    }
}
