//! Where tasks wait.

use super::availability::IDLE;
use super::decision::LockIndex;
use super::goodness::{Goodness, LEVELS, NOBODY};
use super::load::Loads;
use super::offers::{Comparison, Offers};
use super::queue::Queue;
use super::task::Cpu;

/// Most CPUs of a machine.
pub const MAX_CPUS: u32 = 4096;

/// Where tasks wait.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum QueueLayout {
    /// One list under one lock: DSS (2001, 2).
    GlobalList,
    /// One array of lists under one lock: PLS (2001, 3).
    PriorityLevels,
    /// A queue and a lock for each CPU, which compares what all queues offer:
    /// MQ (2001, 4).
    MultiQueue(Comparison),
    /// The same within each pool of CPUs (2001, 6). By CPU, the number of its
    /// pool, from 0 without gaps.
    Pools(Vec<u32>, Comparison),
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the messages explain the variants")]
pub enum LayoutError {
    #[error("a machine of {0} CPUs cannot be laid out: it has 1 to {MAX_CPUS}")]
    Cpus(u32),
    #[error("pools are given for {given} of {cpus} CPUs: name one for each")]
    PoolsGiven { given: usize, cpus: u32 },
    #[error("no CPU is in pool {0}: number the pools from 0 without gaps")]
    EmptyPool(u32),
}

/// A pool of CPUs, as its CPUs read it without a lock. A machine without pools
/// is one pool.
#[derive(Debug)]
pub(super) struct Pool {
    pub(super) cpus: Vec<Cpu>,
    /// Recalculations of all counters so far.
    pub(super) clock: u64,
    /// The highest rank, without affinity, of the tasks that wait in each CPU's
    /// queue: `max_na_goodness`.
    pub(super) offers: Offers,
    /// How available each CPU is, see `availability.rs`.
    pub(super) available: Offers,
    /// The load of each CPU's queue, kept where there are other pools.
    pub(super) loads: Loads,
}

impl Pool {
    fn new(cpus: Vec<Cpu>, comparison: Comparison) -> Self {
        let places = cpus.len() as u32;
        Self {
            cpus,
            clock: 0,
            offers: Offers::new(places, comparison, NOBODY),
            available: Offers::new(places, comparison, IDLE),
            loads: Loads::new(places),
        }
    }
}

/// A CPU's pool and its place there.
#[derive(Clone, Copy, Debug)]
pub(super) struct Position {
    pub(super) pool: u32,
    pub(super) place: u32,
}

/// What decisions share and read without a lock. The caller keeps the queues,
/// each behind a lock.
#[derive(Debug)]
pub struct RunQueues {
    pub(super) goodness: Goodness,
    /// How one queue for all CPUs is kept, if there is one.
    pub(super) single: Option<Single>,
    pub(super) pools: Vec<Pool>,
    /// By CPU.
    positions: Vec<Position>,
}

/// How one queue for all CPUs is kept.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Single {
    List,
    Levels,
}

/// The locks of the queues come first, by number. Behind them each pool has a
/// lock that serialises recalculations.
impl RunQueues {
    /// The layout for so many CPUs and its queues, by the number of the lock
    /// that protects each.
    ///
    /// # Errors
    ///
    /// The rule that the layout breaks.
    pub fn new(
        goodness: Goodness,
        layout: &QueueLayout,
        cpus: u32,
    ) -> Result<(Self, Vec<Queue>), LayoutError> {
        if !(1..=MAX_CPUS).contains(&cpus) {
            return Err(LayoutError::Cpus(cpus));
        }
        let one = vec![0; cpus as usize];
        let (single, pool_of, comparison) = match layout {
            QueueLayout::GlobalList => (Some(Single::List), &one, Comparison::Scan),
            QueueLayout::PriorityLevels => (Some(Single::Levels), &one, Comparison::Scan),
            QueueLayout::MultiQueue(comparison) => (None, &one, *comparison),
            QueueLayout::Pools(pool_of, comparison) => (None, pool_of, *comparison),
        };
        let (members, positions) = members(pool_of, cpus)?;
        let pools = members.into_iter();
        let mut this = Self {
            goodness,
            single,
            pools: pools.map(|cpus| Pool::new(cpus, comparison)).collect(),
            positions,
        };
        let queues: Vec<Queue> = match single {
            Some(Single::List) => vec![Queue::new(0, cpus, 1)],
            Some(Single::Levels) => vec![Queue::new(0, cpus, LEVELS)],
            None => (0..cpus).map(|cpu| Queue::new(cpu, 1, 1)).collect(),
        };
        if single.is_none() {
            for (queue, cpu) in queues.iter().zip((0..cpus).map(Cpu)) {
                this.publish(queue, cpu, NOBODY);
            }
        }
        Ok((this, queues))
    }

    pub fn cpus(&self) -> u32 {
        self.positions.len() as u32
    }

    /// Number of locks: those of the queues and those for recalculations.
    pub fn locks(&self) -> u32 {
        match self.single {
            Some(_) => 1,
            None => self.cpus() + self.pools.len() as u32,
        }
    }

    /// Recalculations so far in a CPU's pool.
    pub fn clock(&self, cpu: Cpu) -> u64 {
        self.pool(cpu).clock
    }

    pub fn pool_of(&self, cpu: Cpu) -> u32 {
        self.position(cpu).pool
    }

    /// The queue that a CPU takes from first, by its lock.
    pub fn queue_of(&self, Cpu(cpu): Cpu) -> LockIndex {
        match self.single {
            Some(_) => LockIndex(0),
            None => LockIndex(cpu),
        }
    }

    pub(super) fn position(&self, Cpu(cpu): Cpu) -> Position {
        self.positions[cpu as usize]
    }

    pub(super) fn pool(&self, cpu: Cpu) -> &Pool {
        &self.pools[self.position(cpu).pool as usize]
    }

    pub(super) fn pool_mut(&mut self, cpu: Cpu) -> &mut Pool {
        let pool = self.position(cpu).pool;
        &mut self.pools[pool as usize]
    }

    pub(super) fn recalculation_lock(&self, cpu: Cpu) -> LockIndex {
        LockIndex(self.cpus() + self.position(cpu).pool)
    }
}

fn members(pool_of: &[u32], cpus: u32) -> Result<(Vec<Vec<Cpu>>, Vec<Position>), LayoutError> {
    if pool_of.len() != cpus as usize {
        return Err(LayoutError::PoolsGiven {
            given: pool_of.len(),
            cpus,
        });
    }
    // A number beyond the CPUs leaves a gap somewhere below.
    let pools = pool_of.iter().max().map_or(0, |&last| last.min(cpus) + 1);
    let mut members = vec![Vec::new(); pools as usize];
    let mut positions = Vec::new();
    for (&pool, cpu) in pool_of.iter().zip(0..) {
        if let Some(members) = members.get_mut(pool as usize) {
            let place = members.len() as u32;
            positions.push(Position { pool, place });
            members.push(Cpu(cpu));
        }
    }
    match members.iter().zip(0..).find(|(cpus, _)| cpus.is_empty()) {
        Some((_, pool)) => Err(LayoutError::EmptyPool(pool)),
        None => Ok((members, positions)),
    }
}
