//! A decision that a CPU is in the middle of.

use prorata_core::run_queue::{
    Cpu, Decision as _, Displaced, End, LockIndex, Outcome, Place, Schedule, Step, Tick, Turn,
};

use super::Costs;
use super::cpus::Leaves;
use super::queues::Queues;

/// What is decided.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Asked {
    /// Who runs next, and why who runs now leaves; it may not.
    Schedule(Option<Leaves>),
    /// Where a task that wakes goes.
    Wake(u32),
    /// Where a task could go that has lost its CPU to another.
    Displaced(Displaced),
    /// Whether a time slice has ended.
    Tick,
}

// One for each CPU, and most are schedules: a box would allocate for each.
#[expect(clippy::large_enum_variant)]
#[derive(Debug)]
enum Made {
    Schedule(Schedule, Option<Leaves>),
    Place(Place),
    Tick(Tick),
}

/// A decision and how far it has come.
#[derive(Debug)]
pub(super) struct Decision {
    made: Made,
    /// What it wants next.
    step: Step,
    /// Whether it has the lock that it tried to take last.
    granted: bool,
    /// The lock that it has taken last.
    lock: LockIndex,
}

/// What came of a decision.
#[derive(Debug)]
pub(super) enum Decided {
    Next(Outcome, Option<Leaves>),
    Placed,
    Ticked {
        /// The time slice has ended.
        expired: bool,
    },
}

impl Decision {
    /// A CPU begins a decision. Nothing if there is nobody whom it is about.
    pub(super) fn new(
        queues: &mut Queues,
        cpu: u32,
        asked: Asked,
        now_ns: u64,
    ) -> Option<Decision> {
        let made = match asked {
            Asked::Schedule(leaves) => {
                let end = match leaves {
                    None => End::Runnable,
                    Some(Leaves::Yields) => End::Yields,
                    Some(Leaves::Blocks | Leaves::Exits) => End::Blocks,
                };
                // Goodness goes by ticks, not by time used.
                let turn = Turn { end, used_ns: 0 };
                Made::Schedule(Schedule::new(Cpu(cpu), turn, now_ns), leaves)
            }
            Asked::Wake(task) => Made::Place(Place::woken(queues.take(task)?)),
            Asked::Displaced(displaced) => Made::Place(Place::displaced(displaced)),
            Asked::Tick => Made::Tick(Tick::new(Cpu(cpu))),
        };
        Some(Decision {
            made,
            step: Step::Done,
            granted: false,
            lock: LockIndex(0),
        })
    }

    pub(super) fn is_schedule(&self) -> bool {
        matches!(self.made, Made::Schedule(..))
    }

    /// Has the lock that it wanted, or not.
    pub(super) fn granted(&mut self, granted: bool) {
        self.granted = granted;
        if let (true, Step::Lock(lock) | Step::TryLock(lock)) = (granted, self.step) {
            self.lock = lock;
        }
    }

    /// What it wants next.
    pub(super) fn step(&self) -> Step {
        self.step
    }

    /// Goes on to the next step. Returns the time up to that.
    pub(super) fn advance(&mut self, queues: &mut Queues, costs: &Costs, cpu: u32) -> u64 {
        let mut ns = 0;
        loop {
            let (shared, memory) = (&queues.shared, &mut queues.memory);
            self.step = match &mut self.made {
                Made::Schedule(made, _) => made.step(shared, memory, self.granted),
                Made::Place(made) => made.step(shared, memory, self.granted),
                Made::Tick(made) => made.step(shared, memory, self.granted),
            };
            match self.step {
                Step::Examined { tasks, words } => {
                    if tasks > 0 {
                        ns += queues.examine_ns(costs, cpu, self.lock.0 as usize, tasks);
                    }
                    ns += queues.look_ns(costs, words);
                }
                Step::Interrupt(_) | Step::Done => return ns,
                Step::Lock(_) | Step::TryLock(_) => return ns + costs.stretch.0,
                Step::Unlock(_) => return ns + costs.stretch.0 + queues.locked_ns(costs),
            }
        }
    }

    /// What came of it, once it wants nothing any more.
    pub(super) fn decided(self) -> Decided {
        match self.made {
            Made::Schedule(made, leaves) => Decided::Next(made.outcome(), leaves),
            Made::Place(_) => Decided::Placed,
            Made::Tick(made) => Decided::Ticked {
                expired: made.expired(),
            },
        }
    }
}
