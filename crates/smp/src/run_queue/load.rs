//! The load of queues and pools, by which pools are balanced (2001, 6).

use core::cmp::Ordering;

/// Tasks of each queue of a pool and of all together, running tasks included.
/// CPUs read them without a lock.
#[derive(Debug)]
pub(super) struct Loads {
    queues: Vec<u32>,
    sum: u32,
}

impl Loads {
    pub(super) fn new(places: u32) -> Self {
        Self {
            queues: vec![0; places as usize],
            sum: 0,
        }
    }

    pub(super) fn get(&self, place: u32) -> u32 {
        self.queues[place as usize]
    }

    /// A queue has so many tasks. Returns the lines of other CPUs that are
    /// written or compared.
    pub(super) fn set(&mut self, place: u32, tasks: u32) -> u32 {
        let queue = &mut self.queues[place as usize];
        if *queue == tasks {
            return 1;
        }
        self.sum = self.sum - *queue + tasks;
        *queue = tasks;
        2
    }

    pub(super) fn of_pool(&self) -> PoolLoad {
        PoolLoad {
            tasks: self.sum,
            cpus: self.queues.len() as u32,
        }
    }
}

/// Tasks for each CPU of a pool, as a fraction.
#[derive(Clone, Copy, Debug)]
pub(super) struct PoolLoad {
    tasks: u32,
    cpus: u32,
}

impl PoolLoad {
    pub(super) fn cmp(self, other: Self) -> Ordering {
        let product = |tasks: u32, cpus: u32| u64::from(tasks) * u64::from(cpus);
        product(self.tasks, other.cpus).cmp(&product(other.tasks, self.cpus))
    }

    pub(super) fn is_less(self, other: Self) -> bool {
        self.cmp(other).is_lt()
    }

    pub(super) fn with_one_more(self) -> Self {
        Self {
            tasks: self.tasks + 1,
            ..self
        }
    }
}
