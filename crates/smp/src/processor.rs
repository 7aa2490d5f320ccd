//! One CPU: what it does, and what it has to do next.

use std::collections::VecDeque;

use crate::run_queue::Displaced;
use prorata_scenario::threads::NO_THREAD;

use crate::open_decision::{Asked, OpenDecision, Waking};

/// Why the task of a CPU leaves it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Leaves {
    /// The task waits or sleeps.
    Blocks,
    /// The task lets others go first.
    Yields,
    /// The task has ended.
    Exits,
}

/// What a CPU does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Doing {
    /// Runs the idle task.
    Idles,
    /// Runs its task's own code, which an interrupt breaks off.
    Computes,
    /// Is in the kernel until an event, and then goes on so.
    Busy(Then),
    /// Waits for a lock that another CPU holds.
    Spins,
}

/// How a CPU goes on after some time in the kernel.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Then {
    /// With its next work.
    GoesOn,
    /// With or without the lock that its decision wanted.
    Granted(bool),
    /// With the effect of its task's system call.
    Acts,
    /// With the step that its decision asks for.
    Steps,
}

#[derive(Debug)]
pub(crate) struct Processor {
    /// The task that has the CPU; [`NO_THREAD`] is the idle task.
    pub(crate) task: u32,
    pub(crate) doing: Doing,
    /// Rises with each interrupt: an event with an older stamp is void.
    pub(crate) stamp: u32,
    /// When its task began to compute, while it does.
    pub(crate) since_ns: u64,
    /// A decision of the scheduler in progress.
    pub(crate) decision: Option<OpenDecision>,
    /// When that decision began.
    pub(crate) decides_since_ns: u64,
    /// A timer interrupt waits to be handled.
    pub(crate) ticks: bool,
    /// The CPU is to look for work in other pools.
    pub(crate) balances: bool,
    /// A task that lost this CPU to another task and waits.
    pub(crate) displaced: Option<Displaced>,
    /// The message that its task writes leaves at once.
    pub(crate) leaves_at_once: bool,
    /// The soft interrupt that takes a segment to its reader's end and wakes the reader.
    pub(crate) soft_interrupt_ns: u64,
    /// Tasks to wake, in this order.
    pub(crate) wakes: VecDeque<Waking>,
    /// Why its task is to leave the CPU. If the task wakes before, it stays.
    pub(crate) leaves: Option<Leaves>,
    /// `need_resched`: the CPU is to call `schedule()` as soon as it can.
    pub(crate) needs_schedule: bool,
}

impl Processor {
    /// An idle CPU.
    pub(crate) fn new() -> Processor {
        Processor {
            task: NO_THREAD,
            doing: Doing::Idles,
            stamp: 0,
            since_ns: 0,
            decision: None,
            decides_since_ns: 0,
            ticks: false,
            balances: false,
            displaced: None,
            leaves_at_once: false,
            soft_interrupt_ns: 0,
            wakes: VecDeque::new(),
            leaves: None,
            needs_schedule: false,
        }
    }

    /// Whether the soft interrupt runs before the next decision.
    pub(crate) fn soft_interrupt_is_next(&self) -> bool {
        let next = self.wakes.front();
        self.soft_interrupt_ns > 0 && next.is_none_or(|waking| waking.by_soft_interrupt)
    }

    /// The next decision to make before the task can go on. Decisions that other
    /// tasks wait for come first.
    pub(crate) fn next_decision(&mut self) -> Option<Asked> {
        if std::mem::take(&mut self.ticks) && self.task != NO_THREAD {
            return Some(Asked::Tick);
        }
        if let Some(displaced) = self.displaced.take() {
            return Some(Asked::Displaced(displaced));
        }
        if let Some(waking) = self.wakes.pop_front() {
            return Some(Asked::Wake(waking));
        }
        if let Some(leaves) = self.leaves.take() {
            return Some(Asked::Schedule(Some(leaves)));
        }
        if self.needs_schedule {
            return Some(Asked::Schedule(None));
        }
        std::mem::take(&mut self.balances).then_some(Asked::Balance)
    }
}
