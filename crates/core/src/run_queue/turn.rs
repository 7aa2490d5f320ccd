//! The end of a turn on a CPU and the beginning of the next: what is the same
//! in every layout.

use super::layout::RunQueues;
use super::place::Displaced;
use super::queue::{Queue, Slot};
use super::ranking::{Precedence, Ranking};
use super::search::Candidate;
use super::task::{Cpu, Task, TaskIndex};

/// How who ran until now goes on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum End {
    /// It could run on.
    Runnable,
    /// It could run on, but lets others go first.
    Yields,
    /// It waits for something, or has ended: it is handed to the caller.
    Blocks,
}

/// A turn that ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Turn {
    /// How its task goes on; of no meaning on an idle CPU.
    pub end: End,
    /// CPU time used since the last decision on this CPU.
    pub used_ns: u64,
}

/// What `schedule` decided.
#[derive(Debug, Default)]
pub struct Outcome {
    /// Who runs now; nobody on an idle CPU.
    pub next: Option<TaskIndex>,
    /// Who ran before.
    pub previous: Option<TaskIndex>,
    /// Who ran before and blocked. It is the caller's now.
    pub blocked: Option<Task>,
    /// Who ran before, could run on, did not yield and is to wait now: the
    /// caller should look for another CPU for it ([`super::Place::displaced`]).
    pub displaced: Option<Displaced>,
    /// Queues that were passed over: their lock was held, or they no longer
    /// had what they had offered.
    pub skipped: u32,
    /// Whether all time slices were recalculated.
    pub recalculated: bool,
}

/// A turn that was ended, but nobody is chosen yet.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ended {
    /// Who ran and could run on.
    pub(super) slot: Option<Slot>,
    pub(super) precedence: Precedence,
    pub(super) yields: bool,
}

impl<R: Ranking> RunQueues<R> {
    /// Ends a turn: charges it, and takes who blocks out of the queue.
    pub(super) fn end_turn(
        &self,
        queue: &mut Queue,
        cpu: Cpu,
        turn: Turn,
        outcome: &mut Outcome,
    ) -> Ended {
        let none = Ended {
            slot: None,
            precedence: Precedence::First,
            yields: false,
        };
        let Some(slot) = queue.cpu(cpu).current else {
            return none;
        };
        let ranking = &self.ranking;
        queue.change(slot, ranking, |task| ranking.charge(task, turn.used_ns));
        outcome.previous = Some(queue.task(slot).index);
        if turn.end == End::Blocks {
            queue.cpu_mut(cpu).current = None;
            let mut task = queue.remove(slot);
            ranking.leave(&mut task, self.clock_in(queue, self.pool(cpu)));
            outcome.blocked = Some(task);
            return none;
        }
        let yields = turn.end == End::Yields;
        let precedence = ranking.pause(queue.task_mut(slot), yields);
        if precedence == Precedence::BehindEquals {
            queue.give_way(slot, ranking);
        }
        Ended {
            slot: Some(slot),
            precedence,
            yields,
        }
    }

    /// Who ran is the default candidate, the idle task if nobody did.
    pub(super) fn default_candidate(&self, queue: &Queue, cpu: Cpu, ended: Ended) -> Candidate {
        match ended.slot {
            Some(slot) => {
                Candidate::running(slot, queue.task(slot), &self.ranking, cpu, ended.precedence)
            }
            None => Candidate::IDLE,
        }
    }

    /// Lets the next turn begin, in the CPU's queue. Whether the CPU was told
    /// of somebody meanwhile.
    pub(super) fn begin_turn(
        &self,
        queue: &mut Queue,
        cpu: Cpu,
        chosen: Option<Slot>,
        ended: Ended,
        now_ns: u64,
        outcome: &mut Outcome,
    ) -> bool {
        if let Some(slot) = ended.slot
            && chosen != ended.slot
        {
            queue.set_running(slot, false);
            outcome.displaced = (!ended.yields).then(|| Displaced {
                task: queue.task(slot).index,
                lock: self.queue_of(cpu),
                slot,
            });
        }
        let was_idle = outcome.previous.is_none();
        let mut mm = queue.cpu(cpu).mm;
        if let Some(slot) = chosen {
            queue.set_running(slot, true);
            let task = queue.task_mut(slot);
            task.cpu = cpu;
            mm = Some(task.mm);
            outcome.next = Some(task.index);
            let pool = self.pool(cpu);
            pool.advance_clock(self.ranking.clock_after(task, pool.clock()));
        }
        let state = queue.cpu_mut(cpu);
        state.current = chosen;
        state.mm = mm;
        if chosen.is_none() && !was_idle {
            state.idle_since_ns = now_ns;
        }
        core::mem::take(&mut state.must_decide)
    }
}
