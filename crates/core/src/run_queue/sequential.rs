//! The plainest driver: each decision runs to its end at once, so nobody ever
//! waits for a lock. For a machine simulated without locks, and to say what
//! drivers are to do.

use alloc::vec;
use alloc::vec::Vec;

use super::adjust::{Adjust, Change};
use super::balance::Balance;
use super::decision::{Decision, Held, LockIndex, Step};
use super::layout::{Layout, LayoutError, RunQueues};
use super::limits::{LimitError, Tickets};
use super::place::Place;
use super::queue::Queue;
use super::ranking::Ranking;
use super::reweigh::Reweigh;
use super::schedule::Schedule;
use super::task::{Cpu, Task, TaskIndex};
use super::tick::Tick;
use super::turn::{Outcome, Turn};
use super::weights::Weights;

/// Run queues without contention.
#[derive(Debug)]
pub struct Sequential<R> {
    shared: RunQueues<R>,
    queues: Queues,
    /// By pool, if the ranking goes by feasible tickets.
    weights: Vec<Weights>,
    /// CPUs that were told to decide, in order, until they are taken.
    told: Vec<Cpu>,
    /// Tasks and words that the last decision looked at.
    examined: (u64, u64),
}

#[derive(Debug)]
struct Queues {
    queues: Vec<Queue>,
    /// By lock: whether a decision holds it.
    held: Vec<bool>,
}

impl Held for Queues {
    fn queue(&mut self, LockIndex(lock): LockIndex) -> &mut Queue {
        debug_assert!(
            self.held[lock as usize],
            "a queue is touched under its lock"
        );
        &mut self.queues[lock as usize]
    }
}

impl<R: Ranking> Sequential<R> {
    /// A machine whose CPUs are idle.
    pub fn new(ranking: R, layout: &Layout, cpus: u32) -> Result<Self, LayoutError> {
        let (shared, queues) = RunQueues::new(ranking, layout, cpus)?;
        let held = vec![false; shared.locks() as usize];
        Ok(Self {
            weights: shared.weights(),
            shared,
            queues: Queues { queues, held },
            told: Vec::new(),
            examined: (0, 0),
        })
    }

    /// What decisions share.
    pub fn shared(&self) -> &RunQueues<R> {
        &self.shared
    }

    /// The queues, by lock.
    pub fn queues(&self) -> &[Queue] {
        &self.queues.queues
    }

    /// Tasks that the last decision looked at, and words of other CPUs.
    pub fn examined(&self) -> (u64, u64) {
        self.examined
    }

    /// CPUs that were told to decide anew since this was asked last.
    pub fn take_told(&mut self) -> Vec<Cpu> {
        core::mem::take(&mut self.told)
    }

    /// Who runs next on `cpu`.
    pub fn schedule(&mut self, cpu: Cpu, turn: Turn, now_ns: u64) -> Outcome {
        let mut decision = Schedule::new(cpu, turn, now_ns);
        self.run(&mut decision, |_| true);
        let outcome = decision.outcome();
        if let Some(task) = &outcome.blocked {
            self.weigh(cpu, task.index, None);
        }
        outcome
    }

    /// A task wakes or begins.
    ///
    /// # Errors
    /// One that the machine is not made for.
    pub fn wake(&mut self, task: Task) -> Result<(), LimitError> {
        self.shared.check(&task)?;
        self.weigh(self.shared.home(&task), task.index, Some(task.tickets));
        self.run(&mut Place::woken(task), |_| true);
        Ok(())
    }

    /// A task, which passed the check, competes in the pool of `cpu` with this
    /// weight from now on, or no longer. What that changes for others takes
    /// effect at once and is not among what the last decision looked at.
    fn weigh(&mut self, cpu: Cpu, task: TaskIndex, weight: Option<Tickets>) {
        let shared = &self.shared;
        let weights = self.weights.get_mut(shared.pool_of(cpu) as usize);
        let Some((weights, feasible)) = weights.zip(shared.ranking().feasible()) else {
            return;
        };
        let Ok(changed) = weights.set(task, weight, feasible) else {
            return;
        };
        let mut reweigh = Reweigh::new(shared, changed);
        let examined = self.examined;
        self.run(&mut reweigh, |_| true);
        self.examined = examined;
    }

    /// A tick on `cpu`: whether the time slice there has ended.
    pub fn tick(&mut self, cpu: Cpu) -> bool {
        let mut decision = Tick::new(cpu);
        self.run(&mut decision, |_| true);
        decision.expired()
    }

    /// A task that stands in a queue changes; of a blocked one nothing is known
    /// here. O(n) in all tasks. Whether it was found.
    pub fn adjust(&mut self, task: TaskIndex, change: Change) -> bool {
        for lock in (0..self.shared.queues()).map(LockIndex) {
            let mut decision = Adjust::new(lock, task, change);
            self.run(&mut decision, |_| true);
            if decision.found() {
                // Those behind the CPUs' are of real time, and have no weights.
                if let Change::Tickets(tickets) = change
                    && lock.0 < self.shared.cpus()
                {
                    self.weigh(Cpu(lock.0), task, Some(tickets));
                }
                return true;
            }
        }
        false
    }

    /// The pool of `cpu` takes a task from another, if that makes them more
    /// even. Who moved.
    pub fn balance(&mut self, cpu: Cpu) -> Option<TaskIndex> {
        let mut decision = Balance::new(cpu);
        self.run(&mut decision, |_| true);
        let moving = decision.moving()?;
        let (index, tickets) = (moving.task().index, moving.task().tickets);
        self.weigh(moving.from(), index, None);
        self.weigh(moving.to(), index, Some(tickets));
        self.run(&mut Place::moved(moving), |_| true);
        Some(index)
    }

    /// Runs a decision to its end. `grant` says of each lock that is only
    /// tried whether it is to be had.
    ///
    /// # Panics
    ///
    /// If the decision breaks the rules: takes what is held, or lets go what
    /// is not.
    pub fn run(
        &mut self,
        decision: &mut impl Decision<R>,
        mut grant: impl FnMut(LockIndex) -> bool,
    ) {
        self.examined = (0, 0);
        let mut granted = false;
        loop {
            let held = &mut self.queues;
            match decision.step(&self.shared, held, granted) {
                Step::Lock(lock) => held.take(lock),
                Step::TryLock(lock) => {
                    granted = grant(lock);
                    if granted {
                        held.take(lock);
                    }
                }
                Step::Unlock(LockIndex(lock)) => {
                    let was_held = core::mem::take(&mut held.held[lock as usize]);
                    assert!(was_held, "lock {lock} is let go while it is not held");
                }
                Step::Examined { tasks, words } => {
                    self.examined.0 += u64::from(tasks);
                    self.examined.1 += u64::from(words);
                }
                Step::Interrupt(cpu) => self.told.push(cpu),
                Step::Done => break,
            }
        }
        assert!(
            !self.queues.held.contains(&true),
            "a decision ends without locks"
        );
    }
}

impl Queues {
    fn take(&mut self, LockIndex(lock): LockIndex) {
        let was_held = core::mem::replace(&mut self.held[lock as usize], true);
        assert!(!was_held, "lock {lock} is taken twice");
    }
}
