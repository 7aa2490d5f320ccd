//! Balancing among pools: the paper's "load balancing algorithms" (2001, 6).
//!
//! The load of a pool is its tasks for each CPU. A pool takes one waiting task
//! from a pool with more load, if the taker would still have less load than the
//! giver had. It asks the pool with the most load first, and in a pool the queue
//! with the most tasks; then the next, until a task moves or no pool is left.
//! Pools that are even take no lock.
//!
//! The larger of the two loads falls with every move. So the loads of all pools,
//! sorted in descending order, decrease lexicographically, and moves end.
//!
//! The caller decides when to balance: from time to time, and when a CPU falls
//! idle. A move is a decision here and a [`Placement`](super::Placement).
//!
//! A look at the sum of each pool tells which to ask (`load.rs`). Only of the
//! asked pools the decision looks at each queue.

use std::cmp::Reverse;

use super::availability::Availability;
use super::decision::{Decision, DecisionStep, Held, PendingSteps};
use super::goodness::NOBODY;
use super::layout::RunQueues;
use super::load::PoolLoad;
use super::task::{Cpu, Task};

/// A pool takes a task from another one, if that makes them more even. The
/// driver places the task.
#[derive(Debug)]
pub struct Balance {
    /// A CPU of the pool that takes.
    cpu: Cpu,
    phase: Phase,
    steps: PendingSteps,
    /// Pools with more load, the first to ask last.
    pools: Vec<u32>,
    /// CPUs of the asked pool in whose queues tasks wait, the first to ask
    /// last.
    to_ask: Vec<Cpu>,
    looks_at: Option<u32>,
    moving: Option<Moving>,
}

/// A task taken out of one pool for another one. It is in no queue until it is
/// placed ([`Placement::moved`](super::Placement::moved)).
#[must_use]
#[derive(Debug)]
pub struct Moving {
    pub(super) task: Task,
    pub(super) to: Cpu,
    /// The recalculations that the task has been through.
    pub(super) as_of: u64,
}

/// Words of both pools' loads, read again before a task moves.
const LOADS_OF_TWO: u32 = 2;

#[derive(Clone, Copy, Debug)]
enum Phase {
    Start,
    /// Nothing is held: the next queue, or the next pool.
    Ask,
    /// The queue of this CPU is held, to take a task from.
    Take(Cpu),
    /// Nothing is held, a task moves.
    Find,
    End,
}

impl Balance {
    /// The pool of `cpu` looks for a task to take.
    pub fn new(cpu: Cpu) -> Self {
        Self {
            cpu,
            phase: Phase::Start,
            steps: PendingSteps::NONE,
            pools: Vec::new(),
            to_ask: Vec::new(),
            looks_at: None,
            moving: None,
        }
    }

    /// The task that moves, if any does; after [`DecisionStep::Done`].
    pub fn moving(self) -> Option<Moving> {
        self.moving
    }

    /// The pool whose CPUs' words the last [`DecisionStep::Examined`] was about; none
    /// if that was about the loads of all pools. For a driver that models whose
    /// cache has these words.
    pub fn looks_at(&self) -> Option<u32> {
        self.looks_at
    }

    fn start(&mut self, shared: &RunQueues) {
        self.phase = Phase::End;
        if shared.single.is_some() || shared.pools.len() == 1 {
            return;
        }
        let pools = shared.pools.len() as u32;
        self.steps.examined(0, pools);
        let own = shared.pool_of(self.cpu);
        let with_one_more = shared.load(own).with_one_more();
        let others = (0..pools).filter(|&pool| pool != own);
        let loads = others.map(|pool| (shared.load(pool), pool));
        let mut giving: Vec<_> = loads
            .filter(|(load, _)| with_one_more.is_less(*load))
            .collect();
        // The first of equals is asked first.
        giving.sort_by(|(a, first), (b, second)| a.cmp(*b).then(second.cmp(first)));
        self.pools = giving.into_iter().map(|(_, pool)| pool).collect();
        self.phase = Phase::Ask;
    }

    fn ask(&mut self, shared: &RunQueues) {
        if let Some(cpu) = self.to_ask.pop() {
            self.steps.push(DecisionStep::Lock(shared.queue_of(cpu)));
            self.phase = Phase::Take(cpu);
        } else if let Some(pool) = self.pools.pop() {
            self.looks_at = Some(pool);
            self.look_at(shared, pool);
        } else {
            self.phase = Phase::End;
        }
    }

    /// Finds the queues in which tasks wait.
    fn look_at(&mut self, shared: &RunQueues, pool: u32) {
        let pool = &shared.pools[pool as usize];
        let places = 0..pool.offers.places();
        let some_wait = places.filter(|&place| pool.offers.get(place) != NOBODY);
        let mut waiting: Vec<_> = some_wait
            .map(|place| (pool.loads.get(place), Reverse(place)))
            .collect();
        waiting.sort_unstable();
        let words = pool.offers.places() + waiting.len() as u32;
        self.steps.examined(0, words);
        let cpus = waiting.iter();
        self.to_ask
            .extend(cpus.map(|(_, Reverse(place))| pool.cpus[*place as usize]));
    }

    fn take(&mut self, shared: &mut RunQueues, held: &mut impl Held, from: Cpu) {
        let lock = shared.queue_of(from);
        let queue = held.queue(lock);
        let caught_up = queue.catch_up(shared.clock(from));
        let examined = caught_up + queue.len();
        let giver = shared.load(shared.pool_of(from));
        let taker = shared.load(shared.pool_of(self.cpu));
        let mut waiting = queue.list(0).filter(|&handle| !queue.runs(handle));
        let taken = match taker.with_one_more().is_less(giver) {
            true => waiting.next(),
            false => None,
        };
        drop(waiting);
        let task = taken.map(|handle| queue.remove(handle));
        let mut words = LOADS_OF_TWO;
        if task.is_some() || caught_up > 0 {
            words += shared.publish_afresh(queue, from);
        }
        self.steps.examined(examined, words);
        self.steps.push(DecisionStep::Unlock(lock));
        self.phase = Phase::Ask;
        if let Some(task) = task {
            self.moving = Some(Moving {
                task,
                to: self.cpu,
                as_of: shared.clock(self.cpu),
            });
            self.phase = Phase::Find;
        }
    }

    /// A task moves: finds the queue of the own pool for it.
    fn find(&mut self, shared: &RunQueues) {
        self.phase = Phase::End;
        self.looks_at = Some(shared.pool_of(self.cpu));
        if let Some(moving) = &mut self.moving {
            let words;
            (moving.to, words) = shared.least_loaded(self.cpu);
            self.steps.examined(0, words);
        }
    }
}

impl RunQueues {
    fn load(&self, pool: u32) -> PoolLoad {
        self.pools[pool as usize].loads.of_pool()
    }

    /// Of the pool of `cpu`, the CPU whose queue has the least load, an idle one
    /// before all; and the words looked at.
    fn least_loaded(&self, cpu: Cpu) -> (Cpu, u32) {
        let pool = self.pool(cpu);
        let key = |&place: &u32| {
            let availability = Availability::from_word(pool.available.get(place));
            (!availability.is_idle(), pool.loads.get(place))
        };
        let places = 0..pool.offers.places();
        let words = 2 * places.end;
        let least = places.min_by_key(key);
        (least.map_or(cpu, |place| pool.cpus[place as usize]), words)
    }
}

impl Decision for Balance {
    fn step(
        &mut self,
        shared: &mut RunQueues,
        held: &mut impl Held,
        _granted: bool,
    ) -> DecisionStep {
        loop {
            if let Some(step) = self.steps.pop() {
                return step;
            }
            match self.phase {
                Phase::Start => self.start(shared),
                Phase::Ask => self.ask(shared),
                Phase::Take(from) => self.take(shared, held, from),
                Phase::Find => self.find(shared),
                Phase::End => return DecisionStep::Done,
            }
        }
    }
}
