//! What a CPU does at a time.

use std::collections::VecDeque;

use crate::run_queue::Displaced;
use prorata_scenario::threads::NO_THREAD;

use crate::open_decision::{Asked, OpenDecision};

/// Why the task of a CPU leaves it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Leaves {
    /// It waits or sleeps.
    Blocks,
    /// It gives way.
    Yields,
    /// It is gone.
    Exits,
}

/// What a CPU does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Doing {
    /// Nothing: it runs the idle task.
    Idles,
    /// Runs its task's own code, which interrupts break off.
    Computes,
    /// Is in the kernel until an event says that it goes on so.
    Busy(Then),
    /// Wants a lock that another CPU has.
    Spins,
}

/// How a CPU goes on after some time in the kernel.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Then {
    /// With whatever comes next.
    GoesOn,
    /// It has the lock that it wanted, or knows that it has not.
    Granted(bool),
    /// With the effect of the system call that its task has made.
    Acts,
    /// With the step that its decision asks for.
    Steps,
}

/// One CPU.
#[derive(Debug)]
pub(crate) struct Processor {
    /// Who has it; [`NO_THREAD`] is its idle task.
    pub(crate) task: u32,
    pub(crate) doing: Doing,
    /// Told apart by this, an event for something that was broken off is void.
    pub(crate) stamp: u32,
    /// Since when its task has computed, while it does.
    pub(crate) since_ns: u64,
    /// A decision of the scheduler that it is in the middle of.
    pub(crate) decision: Option<OpenDecision>,
    /// When that began.
    pub(crate) decides_since_ns: u64,
    /// A timer interrupt is yet to be seen to.
    pub(crate) ticks: bool,
    /// It is to look for work in other pools.
    pub(crate) balances: bool,
    /// A task that has lost this CPU to another and waits.
    pub(crate) displaced: Option<Displaced>,
    /// Tasks that it has to wake, or was asked to, in this order.
    pub(crate) wakes: VecDeque<u32>,
    /// Its task is to leave it, unless something comes between.
    pub(crate) leaves: Option<Leaves>,
    /// `need_resched`: it is to call `schedule()` as soon as it can.
    pub(crate) needs_schedule: bool,
}

impl Processor {
    /// An idle one.
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
            wakes: VecDeque::new(),
            leaves: None,
            needs_schedule: false,
        }
    }

    /// What it has to decide before its task can go on: what others wait for
    /// first.
    pub(crate) fn next_decision(&mut self) -> Option<Asked> {
        if std::mem::take(&mut self.ticks) && self.task != NO_THREAD {
            return Some(Asked::Tick);
        }
        if let Some(displaced) = self.displaced.take() {
            return Some(Asked::Displaced(displaced));
        }
        if let Some(task) = self.wakes.pop_front() {
            return Some(Asked::Wake(task));
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
