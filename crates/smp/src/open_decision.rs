//! A decision of the scheduler in progress on a CPU.

use crate::run_queue::{
    Balance, Cpu, Decision as _, DecisionStep, Displaced, Held as _, LockIndex, Moving, Placement,
    Schedule, Scheduled, TaskIndex, Tick, TurnEnd,
};

use crate::SchedulerCosts;
use crate::processor::Leaves;
use crate::queues::SimulatedQueues;

/// What is decided.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Asked {
    /// Which task runs next, and why the running task leaves, if it does.
    Schedule(Option<Leaves>),
    /// Where a waking task goes.
    Wake(Waking),
    /// Where a task could go that lost its CPU to another task.
    Displaced(Displaced),
    /// Whether a time slice has ended.
    Tick,
    /// Whether a task comes from another pool.
    Balance,
}

/// A task that wakes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Waking {
    pub(crate) task: u32,
    /// Where it ran last, and may still be about to block.
    pub(crate) cpu: u32,
    /// A CPU has tried to wake it already.
    pub(crate) again: bool,
    /// The soft interrupt of this CPU wakes it, and has to run first.
    pub(crate) by_soft_interrupt: bool,
}

#[derive(Debug)]
enum Made {
    Schedule(Schedule, Option<Leaves>),
    Place(Placement),
    Tick(Tick),
    Balance(Balance),
}

/// A decision and how far it has come.
#[derive(Debug)]
pub(crate) struct OpenDecision {
    made: Made,
    /// The last step that the decision asked for.
    step: DecisionStep,
    /// Whether the last try of a lock took it.
    granted: bool,
    /// The lock taken last.
    lock: LockIndex,
    ahead: Ahead,
}

/// Work that a decision has spent time on and not yet done.
#[derive(Clone, Copy, Default, Debug)]
struct Ahead {
    /// A lock has just been taken, and work under it follows.
    is_due: bool,
    tasks: u32,
    words: u32,
    /// The code up to the next operation on a lock.
    stretch: bool,
}

#[derive(Debug)]
pub(crate) enum Decided {
    Next(Scheduled, Option<Leaves>),
    /// With the task to wake again, if there is one.
    Placed(Option<Waking>),
    Ticked {
        /// The time slice has ended.
        expired: bool,
    },
    /// A task from another pool that is to be placed in this one.
    Balanced(Option<Moving>),
}

impl OpenDecision {
    /// A CPU begins a decision.
    pub(crate) fn new(
        queues: &mut SimulatedQueues,
        cpu: u32,
        asked: Asked,
        now_ns: u64,
    ) -> OpenDecision {
        let made = match asked {
            Asked::Schedule(leaves) => {
                let end = match leaves {
                    None => TurnEnd::Runnable,
                    Some(Leaves::Yields) => TurnEnd::Yields,
                    Some(Leaves::Blocks | Leaves::Exits) => TurnEnd::Blocks,
                };
                Made::Schedule(Schedule::new(Cpu(cpu), end, now_ns), leaves)
            }
            Asked::Wake(Waking { task, cpu, .. }) => {
                let task = TaskIndex(task);
                let blocked = queues.memory.take_blocked(task);
                Made::Place(match blocked {
                    Some(blocked) => Placement::woken(blocked),
                    None => Placement::leaving(task, Cpu(cpu)),
                })
            }
            Asked::Displaced(displaced) => Made::Place(Placement::displaced(displaced)),
            Asked::Tick => Made::Tick(Tick::new(Cpu(cpu))),
            Asked::Balance => Made::Balance(Balance::new(Cpu(cpu))),
        };
        OpenDecision::begun(made)
    }

    /// Places a task that was taken out of another pool.
    pub(crate) fn moved(moving: Moving) -> OpenDecision {
        OpenDecision::begun(Made::Place(Placement::moved(moving)))
    }

    fn begun(made: Made) -> OpenDecision {
        OpenDecision {
            made,
            step: DecisionStep::Done,
            granted: false,
            lock: LockIndex(0),
            ahead: Ahead::default(),
        }
    }

    pub(crate) fn is_schedule(&self) -> bool {
        matches!(self.made, Made::Schedule(..))
    }

    /// Takes note of whether the wanted lock was taken.
    pub(crate) fn granted(&mut self, granted: bool) {
        self.granted = granted;
        if let (true, DecisionStep::Lock(lock) | DecisionStep::TryLock(lock)) = (granted, self.step)
        {
            self.lock = lock;
            self.ahead.is_due = true;
        }
    }

    /// Time to spend before the decision goes on with a lock that it has just
    /// taken. Published words show when the work under the lock is done, not when
    /// it begins. So the decision pays first for the work that is sure to come.
    /// Where all CPUs share one queue, nothing is published and no time is spent
    /// ahead.
    pub(crate) fn spend_ahead(
        &mut self,
        queues: &mut SimulatedQueues,
        costs: &SchedulerCosts,
        cpu: u32,
    ) -> u64 {
        if !std::mem::take(&mut self.ahead.is_due) || !queues.publish() {
            return 0;
        }
        if let Made::Place(made) = &self.made
            && made.missed().is_some()
        {
            // A task that stays changes no published word.
            return 0;
        }
        let LockIndex(lock) = self.lock;
        let length = queues.length_of(self.lock);
        let compares = match (&self.made, self.step) {
            (Made::Schedule(..), _) => lock == cpu,
            // The task waits where it ran, unless a CPU has become idle.
            (Made::Place(_), DecisionStep::Lock(_)) => true,
            (Made::Place(_) | Made::Tick(_) | Made::Balance(_), _) => false,
        };
        let tasks = match &self.made {
            Made::Schedule(..) | Made::Balance(_) => length,
            Made::Place(_) | Made::Tick(_) => 0,
        };
        let words = match compares {
            true => SimulatedQueues::PUBLISHED_WORDS + queues.compared_words(cpu),
            false => SimulatedQueues::PUBLISHED_WORDS,
        };
        self.ahead = Ahead {
            is_due: false,
            tasks,
            words,
            stretch: true,
        };
        let mut ns = costs.stretch.0 + queues.locked_ns(costs);
        if tasks > 0 {
            ns += queues.examine_ns(costs, cpu, lock as usize, tasks);
        }
        ns + queues.look_ns(costs, cpu, self.looks_at(queues, cpu), words)
    }

    /// The pool whose words are looked at. A CPU that balances looks at words of
    /// other pools, too.
    fn looks_at(&self, queues: &SimulatedQueues, cpu: u32) -> u32 {
        let other = match &self.made {
            Made::Balance(made) => made.looks_at(),
            _ => None,
        };
        other.unwrap_or(queues.pool_of(cpu))
    }

    pub(crate) fn step(&self) -> DecisionStep {
        self.step
    }

    /// Goes on to the next step. Returns the time until then.
    pub(crate) fn advance(
        &mut self,
        queues: &mut SimulatedQueues,
        costs: &SchedulerCosts,
        cpu: u32,
    ) -> u64 {
        let own = queues.shared.queue_of(Cpu(cpu));
        let before = queues.look(self.lock);
        let own_before = queues.look(own).filter(|_| own != self.lock);
        let ns = self.advance_for(queues, costs, cpu);
        for seen in [before, own_before].into_iter().flatten() {
            queues.wrote(cpu, seen);
        }
        ns
    }

    fn advance_for(
        &mut self,
        queues: &mut SimulatedQueues,
        costs: &SchedulerCosts,
        cpu: u32,
    ) -> u64 {
        let mut ns = 0;
        loop {
            let (shared, memory) = (&mut queues.shared, &mut queues.memory);
            self.step = match &mut self.made {
                Made::Schedule(made, _) => made.step(shared, memory, self.granted),
                Made::Place(made) => made.step(shared, memory, self.granted),
                Made::Tick(made) => made.step(shared, memory, self.granted),
                Made::Balance(made) => made.step(shared, memory, self.granted),
            };
            match self.step {
                DecisionStep::Examined { tasks, words } => {
                    let tasks = beyond(&mut self.ahead.tasks, tasks);
                    if tasks > 0 {
                        ns += queues.examine_ns(costs, cpu, self.lock.0 as usize, tasks);
                    }
                    let words = beyond(&mut self.ahead.words, words);
                    // Balancing begins with a look at the loads of all pools.
                    ns += match &self.made {
                        Made::Balance(made) if made.looks_at().is_none() => {
                            queues.look_at_loads_ns(costs, cpu)
                        }
                        _ => queues.look_ns(costs, cpu, self.looks_at(queues, cpu), words),
                    };
                }
                DecisionStep::Interrupt(_) | DecisionStep::Done => return ns,
                DecisionStep::Lock(_) | DecisionStep::TryLock(_) | DecisionStep::Unlock(_) => {
                    let ahead = std::mem::take(&mut self.ahead);
                    ns += costs.stretch.0 * u64::from(!ahead.stretch);
                    let ends_hold =
                        matches!(self.step, DecisionStep::Unlock(_)) && !queues.publish();
                    return ns + u64::from(ends_hold) * queues.locked_ns(costs);
                }
            }
        }
    }

    /// The result, after [`DecisionStep::Done`].
    pub(crate) fn decided(self) -> Decided {
        match self.made {
            Made::Schedule(made, leaves) => Decided::Next(made.outcome(), leaves),
            Made::Place(made) => {
                let again = |(TaskIndex(task), Cpu(cpu))| Waking {
                    task,
                    cpu,
                    again: true,
                    by_soft_interrupt: false,
                };
                Decided::Placed(made.missed().map(again))
            }
            Made::Tick(made) => Decided::Ticked {
                expired: made.expired(),
            },
            Made::Balance(made) => Decided::Balanced(made.moving()),
        }
    }
}

/// How many of the wanted items are not paid for ahead. The others no longer
/// count as paid.
fn beyond(ahead: &mut u32, wanted: u32) -> u32 {
    let paid = wanted.min(*ahead);
    *ahead -= paid;
    wanted - paid
}
