//! The end of a turn on a CPU and the beginning of the next, in every layout.

use super::layout::RunQueues;
use super::placement::Displaced;
use super::queue::{Queue, QueueHandle};
use super::search::Candidate;
use super::task::{Cpu, Task, TaskIndex};

/// How the running task goes on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TurnEnd {
    /// It could run on.
    Runnable,
    /// It could run on, but lets others go first.
    Yields,
    /// It blocks or has ended: the caller receives it, unless it has been recalled
    /// ([`super::Placement::leaving`]).
    Blocks,
}

/// What `schedule()` decided.
#[derive(Clone, Copy, Debug, Default)]
pub struct Scheduled {
    /// The task that runs now; none on an idle CPU.
    pub next: Option<TaskIndex>,
    /// The task that ran before and blocked. It is the caller's now.
    pub blocked: Option<Task>,
    /// The task that ran before, did not yield and now waits: the caller looks
    /// for another CPU for it ([`super::Placement::displaced`]).
    pub displaced: Option<Displaced>,
}

/// A turn that has ended, before the next task is chosen.
#[derive(Clone, Copy, Debug)]
pub(super) struct EndedTurn {
    /// The task that ran, if it could run on.
    pub(super) handle: Option<QueueHandle>,
    pub(super) yields: bool,
    pub(super) was_idle: bool,
}

impl RunQueues {
    /// Ends a turn and takes a blocking task out of the queue. A task that was woken before
    /// is runnable, as `schedule()` finds it in Linux.
    pub(super) fn end_turn(
        &self,
        queue: &mut Queue,
        cpu: Cpu,
        end: TurnEnd,
        outcome: &mut Scheduled,
    ) -> EndedTurn {
        let mut ended = EndedTurn {
            handle: queue.cpu(cpu).current,
            yields: end == TurnEnd::Yields,
            was_idle: queue.cpu(cpu).current.is_none(),
        };
        let recalled = core::mem::take(&mut queue.cpu_mut(cpu).recalled);
        if end == TurnEnd::Blocks
            && !recalled
            && let Some(handle) = ended.handle.take()
        {
            queue.cpu_mut(cpu).current = None;
            let mut task = queue.remove(handle);
            task.recalculations = queue.recalculations();
            outcome.blocked = Some(task);
        }
        ended
    }

    /// The task that ran is the default candidate, or the idle task.
    pub(super) fn default_candidate(&self, queue: &Queue, cpu: Cpu, ended: EndedTurn) -> Candidate {
        ended.handle.map_or(Candidate::IDLE, |handle| {
            let total = self.total_of(queue.task(handle), cpu);
            Candidate::running(handle, total, ended.yields)
        })
    }

    /// Begins the next turn in the CPU's queue. Returns whether the CPU was
    /// told of a task meanwhile.
    pub(super) fn begin_turn(
        &self,
        queue: &mut Queue,
        cpu: Cpu,
        chosen: Option<QueueHandle>,
        ended: EndedTurn,
        now_ns: u64,
        outcome: &mut Scheduled,
    ) -> bool {
        if let Some(handle) = ended.handle
            && chosen != ended.handle
        {
            queue.set_running(handle, false);
            outcome.displaced = (!ended.yields).then(|| Displaced {
                task: queue.task(handle).index,
                lock: self.queue_of(cpu),
                handle,
            });
        }
        let mut mm = queue.cpu(cpu).mm;
        if let Some(handle) = chosen {
            queue.set_running(handle, true);
            let task = queue.task_mut(handle);
            task.cpu = cpu;
            mm = Some(task.mm);
            outcome.next = Some(task.index);
        }
        let state = queue.cpu_mut(cpu);
        state.current = chosen;
        state.mm = mm;
        if chosen.is_none() && !ended.was_idle {
            state.idle_since_ns = now_ns;
        }
        core::mem::take(&mut state.must_decide)
    }
}
