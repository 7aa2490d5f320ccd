//! Run queues in the simulator's hands, and what it costs to look at them.

use prorata_core::run_queue::{
    Comparison, Cpu, Goodness, Held, Layout, LayoutError, LockIndex, Queue, RunQueues, Task,
    TaskIndex,
};

use super::{Costs, LayoutName, Machine};

/// Run queues and the tasks that are in none.
#[derive(Debug)]
pub(super) struct Queues {
    pub(super) shared: RunQueues<Goodness>,
    pub(super) memory: Memory,
    /// By thread: those that wait or sleep.
    blocked: Vec<Option<Task>>,
    looks: Looks,
    /// CPUs that write to the words which a CPU looks at.
    writers: u64,
    has_levels: bool,
}

/// The queues, by lock. That a decision holds the locks of those that it asks
/// for is the business of [`prorata_core::run_queue`], and checked by its tests.
#[derive(Debug)]
pub(super) struct Memory(Vec<Queue>);

impl Held for Memory {
    fn queue(&mut self, LockIndex(lock): LockIndex) -> &mut Queue {
        &mut self.0[lock as usize]
    }
}

/// Whose cache has what of the tasks in a queue. A task's line is written when
/// it wakes and when a CPU begins or ends running it; who reads it next
/// elsewhere has to wait for it. Counted, not followed task by task: of the
/// tasks that a CPU examines, such a part comes from elsewhere as has been
/// written by others since it looked last.
#[derive(Debug)]
struct Looks {
    /// By queue.
    writes: Vec<u64>,
    /// By queue and CPU: the writes that it has seen, or has made.
    seen: Vec<u64>,
    cpus: usize,
}

impl Queues {
    /// Run queues of a machine whose CPUs idle.
    pub(super) fn new(machine: &Machine) -> Result<Queues, LayoutError> {
        let layout = layout(machine.layout, machine.cpus);
        let (shared, queues) = RunQueues::new(Goodness::X86, &layout, machine.cpus)?;
        let cpus = machine.cpus as usize;
        Ok(Queues {
            looks: Looks {
                writes: vec![0; queues.len()],
                seen: vec![0; queues.len() * cpus],
                cpus,
            },
            shared,
            memory: Memory(queues),
            blocked: Vec::new(),
            writers: match machine.layout {
                LayoutName::Pools(of) | LayoutName::PoolsTournament(of) => {
                    of.clamp(1, machine.cpus.max(1))
                }
                _ => machine.cpus.max(1),
            }
            .into(),
            has_levels: machine.layout == LayoutName::PriorityLevels,
        })
    }

    /// Number of locks.
    pub(super) fn locks(&self) -> usize {
        self.shared.locks() as usize
    }

    /// Tasks in the queue of a CPU, those that run included.
    pub(super) fn length(&self, cpu: u32) -> u32 {
        self.memory.0[self.own(cpu)].len()
    }

    /// By queue.
    pub(super) fn lengths(&self) -> Vec<u32> {
        self.memory.0.iter().map(Queue::len).collect()
    }

    /// A new task of an address space, which is in no queue yet.
    pub(super) fn add(&mut self, task: u32, mm: u32, cpu: u32) {
        let mut new = Task::new(TaskIndex(task), Cpu(cpu));
        new.mm = mm;
        self.put_aside(new);
    }

    /// Keeps a task that is in no queue.
    pub(super) fn put_aside(&mut self, task: Task) {
        let place = task.index.0 as usize;
        if place >= self.blocked.len() {
            self.blocked.resize_with(place + 1, || None);
        }
        self.blocked[place] = Some(task);
    }

    /// A task that is in no queue.
    pub(super) fn take(&mut self, task: u32) -> Option<Task> {
        self.blocked.get_mut(task as usize)?.take()
    }

    fn own(&self, cpu: u32) -> usize {
        self.shared.queue_of(Cpu(cpu)).0 as usize
    }

    /// A CPU writes to so many tasks of its queue.
    pub(super) fn wrote(&mut self, cpu: u32, tasks: u64) {
        let queue = self.own(cpu);
        self.looks.writes[queue] += tasks;
        self.looks.seen[queue * self.looks.cpus + cpu as usize] += tasks;
    }

    /// A CPU examines tasks of a queue. Returns the time that takes.
    pub(super) fn examine_ns(&mut self, costs: &Costs, cpu: u32, queue: usize, tasks: u32) -> u64 {
        let length = u64::from(self.memory.0[queue].len()).max(1);
        let tasks = u64::from(tasks);
        let looks = &mut self.looks;
        let seen = &mut looks.seen[queue * looks.cpus + cpu as usize];
        let written = (looks.writes[queue] - *seen).min(length);
        // Who looks at a part has seen that part.
        let read = written * tasks.min(length) / length;
        *seen = looks.writes[queue] - (written - read);
        tasks * costs.examine.0 + read * costs.transfer.0
    }

    /// What scheduler code takes longer while a lock is held.
    pub(super) fn locked_ns(&self, costs: &Costs) -> u64 {
        costs.cold.0 + u64::from(self.has_levels) * costs.levels.0
    }

    /// A CPU looks at words that the CPUs of its pool write in turn, so that
    /// all but its own share come from elsewhere. Returns the time that takes.
    pub(super) fn look_ns(&self, costs: &Costs, words: u32) -> u64 {
        let from_elsewhere = costs.transfer.0 * (self.writers - 1) / self.writers;
        u64::from(words) * (costs.look.0 + from_elsewhere)
    }
}

fn layout(name: LayoutName, cpus: u32) -> Layout {
    let pools = |of: u32| (0..cpus).map(|cpu| cpu / of.max(1)).collect();
    match name {
        LayoutName::GlobalList => Layout::GlobalList,
        LayoutName::PriorityLevels => Layout::PriorityLevels,
        LayoutName::MultiQueue => Layout::MultiQueue(Comparison::Scan),
        LayoutName::MultiQueueTournament => Layout::MultiQueue(Comparison::Tournament),
        LayoutName::Pools(of) => Layout::Pools(pools(of), Comparison::Scan),
        LayoutName::PoolsTournament(of) => Layout::Pools(pools(of), Comparison::Tournament),
    }
}
