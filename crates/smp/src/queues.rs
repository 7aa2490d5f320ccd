//! The run queues of a simulated machine, and the time that a look at them takes.

use prorata_core::hybrid::nice::Nice;

use crate::run_queue::{
    Comparison, Cpu, Goodness, Held, LockIndex, Queue, QueueLayout, Rank, RunQueues, Task,
    TaskIndex,
};

use crate::cache_lines::{CacheLines, part_lost};
use crate::{LayoutName, MachineModel, SchedulerCosts, SmpError};

/// Run queues and the tasks that are in none.
#[derive(Debug)]
pub(crate) struct SimulatedQueues {
    pub(crate) shared: RunQueues,
    pub(crate) memory: Memory,
    tasks: CacheLines,
    /// The words that the CPUs of each pool publish.
    words: CacheLines,
    /// The load of each pool.
    loads: CacheLines,
    /// By pool: its CPUs.
    pools: Vec<u32>,
    has_levels: bool,
    /// Whether tasks move among pools.
    balances: bool,
    /// How a CPU compares its own queue with the others of its pool; not at all
    /// where all CPUs share one queue.
    compares: Option<Comparison>,
}

/// What decisions reach. The tests of [`crate::run_queue`] check that a decision holds the
/// locks of the queues that it asks for.
#[derive(Debug)]
pub(crate) struct Memory {
    /// By lock.
    queues: Vec<Queue>,
    /// By thread: tasks that wait or sleep.
    blocked: Vec<Option<Task>>,
}

impl Held for Memory {
    fn queue(&mut self, LockIndex(lock): LockIndex) -> &mut Queue {
        &mut self.queues[lock as usize]
    }

    fn take_blocked(&mut self, TaskIndex(task): TaskIndex) -> Option<Task> {
        self.blocked.get_mut(task as usize)?.take()
    }
}

impl SimulatedQueues {
    /// Run queues of a machine whose CPUs idle.
    pub(crate) fn new(machine: &MachineModel) -> Result<SimulatedQueues, SmpError> {
        let layout = machine.queue_layout()?;
        let (shared, queues) = RunQueues::new(Goodness::X86, &layout, machine.cpus)?;
        let cpus = machine.cpus;
        let compares = match layout {
            QueueLayout::GlobalList | QueueLayout::PriorityLevels => None,
            QueueLayout::MultiQueue(comparison) | QueueLayout::Pools(_, comparison) => {
                Some(comparison)
            }
        };
        let pools = cpus_by_pool(&shared);
        Ok(SimulatedQueues {
            tasks: CacheLines::new(queues.len(), cpus),
            words: CacheLines::new(pools.len(), cpus),
            loads: CacheLines::new(pools.len(), cpus),
            balances: pools.len() > 1 && machine.balances(),
            pools,
            compares,
            shared,
            memory: Memory {
                queues,
                blocked: Vec::new(),
            },
            has_levels: machine.layout == LayoutName::PriorityLevels,
        })
    }

    /// Whether CPUs look for work in other pools.
    pub(crate) fn balances(&self) -> bool {
        self.balances
    }

    pub(crate) fn pool_of(&self, cpu: u32) -> u32 {
        self.shared.pool_of(Cpu(cpu))
    }

    pub(crate) fn locks(&self) -> usize {
        self.shared.locks() as usize
    }

    /// Tasks in the queue of a CPU, running tasks included.
    pub(crate) fn length(&self, cpu: u32) -> u32 {
        self.memory.queues[self.own(cpu)].len()
    }

    /// Tasks in the queue behind a lock; none if there is no queue.
    pub(crate) fn length_of(&self, LockIndex(lock): LockIndex) -> u32 {
        self.memory.queues.get(lock as usize).map_or(0, Queue::len)
    }

    /// Tasks in each queue. The paper's MQ has one more queue a pool, for real-time
    /// tasks (2001, 4). It is empty, as no task here is a real-time task.
    pub(crate) fn lengths(&self) -> Vec<u32> {
        let real_time = if self.publish() { self.pools.len() } else { 0 };
        let lengths = self.memory.queues.iter().map(Queue::len);
        lengths.chain(std::iter::repeat_n(0, real_time)).collect()
    }

    /// A new task of an address space, which is in no queue yet.
    pub(crate) fn add(&mut self, task: u32, mm: u32, nice: Nice, cpu: u32) {
        let mut new = Task::new(TaskIndex(task), nice, Cpu(cpu));
        new.mm = mm;
        self.put_aside(new);
    }

    /// Keeps a task that is in no queue.
    pub(crate) fn put_aside(&mut self, task: Task) {
        let place = task.index.0 as usize;
        let blocked = &mut self.memory.blocked;
        if place >= blocked.len() {
            blocked.resize_with(place + 1, || None);
        }
        blocked[place] = Some(task);
    }

    fn own(&self, cpu: u32) -> usize {
        self.shared.queue_of(Cpu(cpu)).0 as usize
    }

    /// Whether each CPU has a queue, and publishes words about it.
    pub(crate) fn publish(&self) -> bool {
        self.compares.is_some()
    }

    /// Words that a CPU looks at to compare its own queue with others.
    pub(crate) fn compared_words(&self, cpu: u32) -> u32 {
        match self.compares {
            None => 0,
            Some(Comparison::Scan) => self.pools[self.pool_of(cpu) as usize],
            Some(Comparison::Tournament) => 1,
        }
    }

    /// Words that each CPU publishes.
    pub(crate) const PUBLISHED_WORDS: u32 = 2;

    /// A CPU has switched from one task to another, and has written so many
    /// tasks of its queue.
    pub(crate) fn switched(&mut self, cpu: u32, tasks: u64) {
        self.tasks.wrote(self.own(cpu), cpu, tasks);
        if !self.publish() {
            self.words.wrote(0, cpu, 1);
        }
    }

    /// How a queue looks now. None for a lock without a queue.
    pub(crate) fn look(&self, lock: LockIndex) -> Option<Seen> {
        let LockIndex(queue) = lock;
        let length = self.memory.queues.get(queue as usize)?.len();
        let is_of_cpu = self.publish() && queue < self.shared.cpus();
        let published = is_of_cpu.then(|| self.shared.published(Cpu(queue)));
        Some(Seen {
            queue,
            length,
            published,
        })
    }

    /// A CPU has worked on a queue that looked so before. It has written each
    /// task that came or went, and each word that has changed.
    pub(crate) fn wrote(&mut self, cpu: u32, before: Seen) {
        let Some(now) = self.look(LockIndex(before.queue)) else {
            return;
        };
        let tasks = u64::from(now.length.abs_diff(before.length));
        self.tasks.wrote(before.queue as usize, cpu, tasks);
        if let (Some(before_words), Some(words)) = (before.published, now.published) {
            let pairs = before_words.iter().zip(words);
            let changed = pairs.filter(|(before, now)| *before != now).count();
            let pool = self.pool_of(before.queue) as usize;
            self.words.wrote(pool, cpu, changed as u64);
            self.loads.wrote(pool, cpu, u64::from(tasks > 0));
        }
    }

    /// The time to examine tasks of a queue.
    pub(crate) fn examine_ns(
        &mut self,
        costs: &SchedulerCosts,
        cpu: u32,
        queue: usize,
        tasks: u32,
    ) -> u64 {
        let length = u64::from(self.memory.queues[queue].len());
        let tasks = u64::from(tasks);
        let read = self.tasks.read(queue, cpu, tasks, length);
        // A decision that recalculates examines the same tasks again.
        let different = tasks.min(length);
        let lost = (tasks - read) as f64 * part_lost(different, costs.cached_tasks);
        let lines = read + lost.round() as u64;
        tasks * costs.examine.0 + costs.on_bus_ns(lines * costs.transfer.0)
    }

    /// The extra time of scheduler code while a lock is held.
    pub(crate) fn locked_ns(&self, costs: &SchedulerCosts) -> u64 {
        costs.cold.0 + u64::from(self.has_levels) * costs.levels.0
    }

    /// The time to look at words that the CPUs of a pool write.
    pub(crate) fn look_ns(
        &mut self,
        costs: &SchedulerCosts,
        cpu: u32,
        pool: u32,
        words: u32,
    ) -> u64 {
        let pool = pool as usize;
        let of = match self.publish() {
            true => self.pools[pool] * Self::PUBLISHED_WORDS,
            false => self.pools[pool],
        };
        let read = self.words.read(pool, cpu, words.into(), of.into());
        u64::from(words) * costs.look.0 + costs.on_bus_ns(read * costs.transfer.0)
    }

    /// The time to look at the load of each pool, a line of each.
    pub(crate) fn look_at_loads_ns(&mut self, costs: &SchedulerCosts, cpu: u32) -> u64 {
        let pools = 0..self.pools.len();
        let looks = pools.len() as u64;
        let read = pools.map(|pool| self.loads.read(pool, cpu, 1, 1));
        costs.on_bus_ns(read.sum::<u64>() * costs.transfer.0) + looks * costs.look.0
    }
}

/// How a queue looked.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Seen {
    queue: u32,
    length: u32,
    /// What other CPUs read of the queue without a lock.
    published: Option<[Rank; 2]>,
}

fn cpus_by_pool(shared: &RunQueues) -> Vec<u32> {
    let mut pools = Vec::new();
    for cpu in (0..shared.cpus()).map(Cpu) {
        let pool = shared.pool_of(cpu) as usize;
        pools.resize(pools.len().max(pool + 1), 0);
        pools[pool] += 1;
    }
    pools
}
