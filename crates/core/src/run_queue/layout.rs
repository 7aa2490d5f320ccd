//! Where tasks wait: the other axis, beside what orders them.

use alloc::boxed::Box;
use alloc::vec;
use alloc::vec::Vec;

use super::atomic::{AtomicI64, AtomicU64, Ordering};
use super::availability::IDLE;
use super::board::{Comparison, Offers};
use super::decision::LockIndex;
use super::limits::LimitError;
use super::load::Loads;
use super::place_set::PlaceSet;
use super::queue::Queue;
use super::ranking::{NOBODY, Rank, Ranking};
use super::task::{Cpu, Task};
use super::weights::Weights;

/// Most CPUs of a machine.
pub const MAX_CPUS: u32 = 4096;

/// Where tasks wait.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Layout {
    /// One list under one lock: DSS (2001, 2).
    GlobalList,
    /// One array of lists under one lock: PLS (2001, 3).
    PriorityLevels,
    /// A queue and lock for each CPU, with decisions by what all of them
    /// offer: MQ (2001, 4).
    MultiQueue(Comparison),
    /// The same within each pool of CPUs (2001, 6). By CPU, the number of its
    /// pool, from 0 without gaps; any shape will do.
    Pools(Vec<u32>, Comparison),
}

/// A layout that is refused.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum LayoutError {
    /// None, or too many.
    #[error("a machine of {0} CPUs cannot be laid out: it has 1 to {MAX_CPUS}")]
    Cpus(u32),
    /// Pools are given for another number of CPUs.
    #[error("pools are given for {given} of {cpus} CPUs: name one for each")]
    PoolsGiven {
        /// Entries.
        given: usize,
        /// CPUs of the machine.
        cpus: u32,
    },
    /// Pool numbers have a gap.
    #[error("no CPU is in pool {0}: number the pools from 0 without gaps")]
    EmptyPool(u32),
}

/// A pool of CPUs, by what all of them may read without a lock. A machine
/// without pools is one.
#[derive(Debug)]
pub(super) struct Pool {
    pub(super) cpus: Vec<Cpu>,
    /// See [`Ranking`]. Never falls.
    clock: AtomicU64,
    /// The highest rank, without affinity, of those who wait in each CPU's
    /// queue: `max_na_goodness`.
    pub(super) offers: Offers,
    /// How available each CPU is, see `availability.rs`.
    pub(super) available: Offers,
    /// What each CPU's queue counts for; kept where there are other pools.
    pub(super) loads: Loads,
    /// The highest rank among real-time tasks that wait.
    real_time: AtomicI64,
    /// Times that a real-time task began to wait.
    real_time_arrivals: AtomicU64,
}

impl Pool {
    fn new(cpus: Vec<Cpu>, comparison: Comparison) -> Self {
        let places = cpus.len() as u32;
        Self {
            cpus,
            clock: AtomicU64::new(0),
            offers: Offers::new(places, comparison, NOBODY),
            available: Offers::new(places, comparison, IDLE),
            loads: Loads::new(places),
            real_time: AtomicI64::new(NOBODY),
            real_time_arrivals: AtomicU64::new(0),
        }
    }

    pub(super) fn clock(&self) -> u64 {
        self.clock.load(Ordering::Acquire)
    }

    /// Moves the clock on, never back. Written only when it changes.
    pub(super) fn advance_clock(&self, clock: u64) {
        if clock > self.clock() {
            self.clock.fetch_max(clock, Ordering::AcqRel);
        }
    }

    pub(super) fn real_time(&self) -> Rank {
        self.real_time.load(Ordering::SeqCst)
    }

    /// To be called under the lock of the real-time queue.
    pub(super) fn offer_real_time(&self, rank: Rank) {
        self.real_time.store(rank, Ordering::SeqCst);
    }

    pub(super) fn real_time_arrivals(&self) -> u64 {
        self.real_time_arrivals.load(Ordering::SeqCst)
    }

    /// A task of this rank waits in the real-time queue from now on; to be
    /// called under its lock.
    pub(super) fn real_time_arrives(&self, rank: Rank) {
        self.offer_real_time(self.real_time().max(rank));
        self.real_time_arrivals.fetch_add(1, Ordering::SeqCst);
    }
}

/// Where a CPU is in its pool.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place {
    pub(super) pool: u32,
    pub(super) place: u32,
}

/// A ranking over a layout: all that decisions share and read without a lock.
/// The queues themselves are the caller's, each behind a lock of its choice.
#[derive(Debug)]
pub struct RunQueues<R> {
    pub(super) ranking: R,
    /// Whether there is one queue for all CPUs, and whether it is sorted.
    pub(super) single: Option<Single>,
    pub(super) pools: Box<[Pool]>,
    /// By CPU.
    places: Box<[Place]>,
}

/// How one queue for all CPUs is kept.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Single {
    List,
    Levels,
}

/// Locks of the queues come first, by number; then a lock for each pool that
/// serialises recalculations.
impl<R: Ranking> RunQueues<R> {
    /// The layout for so many CPUs, and its queues, by [`QueueIndex`]: their
    /// number is the number of the lock that is to protect them.
    ///
    /// [`QueueIndex`]: LockIndex
    pub fn new(ranking: R, layout: &Layout, cpus: u32) -> Result<(Self, Vec<Queue>), LayoutError> {
        if !(1..=MAX_CPUS).contains(&cpus) {
            return Err(LayoutError::Cpus(cpus));
        }
        let one = vec![0; cpus as usize];
        let (single, pool_of, comparison) = match layout {
            Layout::GlobalList => (Some(Single::List), &one, Comparison::Scan),
            Layout::PriorityLevels => (Some(Single::Levels), &one, Comparison::Scan),
            Layout::MultiQueue(comparison) => (None, &one, *comparison),
            Layout::Pools(pool_of, comparison) => (None, pool_of, *comparison),
        };
        let (members, places) = members(pool_of, cpus)?;
        let pools = members.into_iter();
        let this = Self {
            single,
            pools: pools.map(|cpus| Pool::new(cpus, comparison)).collect(),
            places: places.into(),
            ranking,
        };
        let queues = match single {
            Some(Single::List) => vec![Queue::new(0, cpus, 1)],
            Some(Single::Levels) => vec![Queue::new(0, cpus, this.ranking.levels())],
            None => {
                let each = (0..cpus).map(|cpu| Queue::new(cpu, 1, 1));
                let real_time = this.pools.iter().map(|_| Queue::new(0, 0, 1));
                each.chain(real_time).collect()
            }
        };
        if single.is_none() {
            for (queue, cpu) in queues.iter().zip((0..cpus).map(Cpu)) {
                this.publish(queue, cpu, NOBODY);
            }
        }
        Ok((this, queues))
    }

    /// The ranking.
    pub fn ranking(&self) -> &R {
        &self.ranking
    }

    /// Number of CPUs.
    pub fn cpus(&self) -> u32 {
        self.places.len() as u32
    }

    /// Number of locks: those of the queues and those for recalculations.
    pub fn locks(&self) -> u32 {
        match self.single {
            Some(_) => 1,
            None => self.cpus() + 2 * self.pools.len() as u32,
        }
    }

    /// Number of queues, whose locks come first: those of CPUs, and behind them
    /// those of real time.
    pub fn queues(&self) -> u32 {
        match self.single {
            Some(_) => 1,
            None => self.cpus() + self.pools.len() as u32,
        }
    }

    /// The clock of a CPU's pool: recalculations so far, or virtual time.
    pub fn clock(&self, cpu: Cpu) -> u64 {
        self.pool(cpu).clock()
    }

    /// Pool of a CPU.
    pub fn pool_of(&self, cpu: Cpu) -> u32 {
        self.place(cpu).pool
    }

    /// The queue that a CPU takes from first, by its lock.
    pub fn queue_of(&self, Cpu(cpu): Cpu) -> LockIndex {
        match self.single {
            Some(_) => LockIndex(0),
            None => LockIndex(cpu),
        }
    }

    pub(super) fn place(&self, Cpu(cpu): Cpu) -> Place {
        self.places[cpu as usize]
    }

    pub(super) fn pool(&self, cpu: Cpu) -> &Pool {
        &self.pools[self.place(cpu).pool as usize]
    }

    /// The clock that tasks of a queue go by: the recalculations that the queue
    /// has been through, or its pool's virtual time.
    pub(super) fn clock_in(&self, queue: &Queue, pool: &Pool) -> u64 {
        match R::RECALCULATES {
            true => queue.recalculations,
            false => pool.clock(),
        }
    }

    /// Where the real-time tasks of a CPU's pool wait, by its lock; with one list
    /// they have no queue of their own, and there is no such lock.
    pub fn real_time_queue(&self, cpu: Cpu) -> LockIndex {
        LockIndex(self.cpus() + self.place(cpu).pool)
    }

    pub(super) fn recalculation_lock(&self, cpu: Cpu) -> LockIndex {
        LockIndex(self.cpus() + self.pools.len() as u32 + self.place(cpu).pool)
    }

    /// The weights of each pool, of which nobody competes yet; none where the
    /// ranking goes by tickets as they are. To be kept by the driver.
    pub fn weights(&self) -> Vec<Weights> {
        let pools = self.ranking.feasible().map_or(&[][..], |_| &self.pools);
        let cpus = pools.iter().map(|pool| pool.cpus.len() as u32);
        cpus.filter_map(|cpus| Weights::new(cpus).ok()).collect()
    }

    /// Whether a task may be put into the queues.
    ///
    /// # Errors
    /// It was on a CPU that the machine has not, may run on none, or its weight
    /// cannot be kept.
    pub fn check(&self, task: &Task) -> Result<(), LimitError> {
        let cpus = self.cpus();
        let (cpu, task_index) = (task.cpu, task.index);
        if cpu.0 >= cpus {
            let task = task_index;
            return Err(LimitError::Cpu { task, cpu, cpus });
        }
        if !task.allowed.contains(self.home(task)) {
            let task = task_index;
            return Err(LimitError::Nowhere { task, cpus });
        }
        let feasible = self.ranking.feasible();
        feasible.map_or(Ok(()), |feasible| feasible.check(task_index))
    }

    /// The places in the pool of `cpu` that a task may run on, but for those in
    /// `except`; nothing if it may run everywhere. Allocates if not.
    pub(super) fn may_run(&self, task: &Task, cpu: Cpu, except: &[u32]) -> Option<PlaceSet> {
        let pool = self.place(cpu).pool;
        let cpus = task.allowed.named()?;
        let places = cpus.filter_map(|Cpu(cpu)| self.places.get(cpu as usize));
        let places = places
            .filter(|place| place.pool == pool)
            .map(|place| place.place);
        let places = places.filter(|place| !except.contains(place));
        Some(PlaceSet::new(self.pool(cpu).offers.places(), places))
    }

    /// Where a task goes when no CPU is ready for it: where it was, if it may
    /// run there, else the first CPU where it may.
    pub fn home(&self, task: &Task) -> Cpu {
        if task.allowed.contains(task.cpu) {
            return task.cpu;
        }
        let first = task.allowed.named().and_then(|mut cpus| cpus.next());
        first.filter(|cpu| cpu.0 < self.cpus()).unwrap_or(task.cpu)
    }
}

/// The CPUs of each pool, and where each CPU is.
fn members(pool_of: &[u32], cpus: u32) -> Result<(Vec<Vec<Cpu>>, Vec<Place>), LayoutError> {
    if pool_of.len() != cpus as usize {
        return Err(LayoutError::PoolsGiven {
            given: pool_of.len(),
            cpus,
        });
    }
    // A number beyond the CPUs leaves a gap somewhere below.
    let pools = pool_of.iter().max().map_or(0, |&last| last.min(cpus) + 1);
    let mut members = vec![Vec::new(); pools as usize];
    let mut places = Vec::new();
    for (&pool, cpu) in pool_of.iter().zip(0..) {
        if let Some(members) = members.get_mut(pool as usize) {
            let place = members.len() as u32;
            places.push(Place { pool, place });
            members.push(Cpu(cpu));
        }
    }
    match members.iter().zip(0..).find(|(cpus, _)| cpus.is_empty()) {
        Some((_, pool)) => Err(LayoutError::EmptyPool(pool)),
        None => Ok((members, places)),
    }
}
