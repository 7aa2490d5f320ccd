//! Balancing among pools: the paper's "load balancing algorithms" (2001, 6).
//!
//! The rule. While a pool has no more tasks than CPUs, its load is their number
//! for each CPU; with more tasks, which is more load than any such, it is what a
//! CPU is worth by ranking: tasks, or feasible tickets (`load.rs`). A pool takes
//! one task from a pool with more load: the heaviest that waits in one queue
//! there with which the taker would still have less load than the giver had. It
//! asks the pool with the most load first, and in a pool the queue with the
//! most; then the next, until somebody may move. If nobody may, nothing moves.
//! A pool is asked only if the least that anybody can count for would be little
//! enough, so pools that are even take no lock.
//!
//! So a pool that would leave a CPU idle takes from any where more tasks than
//! CPUs are, however rich its own are. And the larger of the two loads falls
//! with every move, so all loads, from the largest down, come earlier in the
//! dictionary, and moves end:
//!
//! * The taker's is less then than the giver's was: so the rule. What a CPU of it
//!   will be worth is the largest L at which the sum of all weights, none above
//!   L, is L for each CPU. The rule reckons that whoever is cut has a whole CPU
//!   and nobody else is; if that is not so afterwards the sum at each L is less,
//!   and L too. A cut task that moves brings with it a whole CPU less.
//! * The giver's falls: with one of more tasks than CPUs gone, that sum is less
//!   at each L.
//!
//! Where no move is left, the load of any pool is at most that of any other with
//! one more of the tasks that wait in the first and may run in the second.
//!
//! When to balance is the caller's business: from time to time, and when a CPU
//! falls idle. Each move is a decision here and one of `Place`. Real-time tasks
//! stay in their pool.
//!
//! A look at the sum of each pool tells which to ask (`load.rs`); only of the
//! pools that are asked each queue is looked at.

use alloc::vec::Vec;
use core::cmp::Reverse;

use super::availability::Availability;
use super::decision::{Decision, Held, Step, Steps};
use super::layout::RunQueues;
use super::load::PoolLoad;
use super::queue::{Queue, Slot};
use super::ranking::{NOBODY, Ranking};
use super::task::{Cpu, Task};

/// A pool takes a task from another one, if that makes them more even. The
/// driver puts it there.
#[derive(Debug)]
pub struct Balance {
    /// A CPU of the pool that takes.
    cpu: Cpu,
    phase: Phase,
    steps: Steps,
    /// With more load: first to ask last. Allocates only when there are some.
    pools: Vec<u32>,
    /// Of the pool that is asked, where somebody waits: first to ask last.
    to_ask: Vec<Cpu>,
    looks_at: Option<u32>,
    moving: Option<Moving>,
}

/// A task that has been taken out of one pool for another one. It is in no
/// queue until it is put there ([`Place::moved`](super::Place::moved)).
#[must_use]
#[derive(Debug)]
pub struct Moving {
    pub(super) task: Task,
    pub(super) from: Cpu,
    pub(super) to: Cpu,
    /// The recalculations that it has been through.
    pub(super) as_of: u64,
}

impl Moving {
    /// Who.
    pub fn task(&self) -> &Task {
        &self.task
    }

    /// Of which CPU's queue it was.
    pub fn from(&self) -> Cpu {
        self.from
    }

    /// To which CPU's queue it goes.
    pub fn to(&self) -> Cpu {
        self.to
    }
}

/// Both pools' loads are looked at again before somebody moves.
const LOADS_OF_TWO: u32 = 2;

#[derive(Clone, Copy, Debug)]
enum Phase {
    Start,
    /// Nothing is held: the next queue, or the next pool.
    Ask,
    /// The queue to take from is held, of the CPU.
    Take(Cpu),
    /// Nothing is held, somebody moves.
    Find,
    End,
}

impl Balance {
    /// The pool of `cpu` looks for a task to take.
    pub fn new(cpu: Cpu) -> Self {
        Self {
            cpu,
            phase: Phase::Start,
            steps: Steps::NONE,
            pools: Vec::new(),
            to_ask: Vec::new(),
            looks_at: None,
            moving: None,
        }
    }

    /// Who moves, if anybody does; after [`Step::Done`].
    pub fn moving(self) -> Option<Moving> {
        self.moving
    }

    /// The pool whose CPUs' words the last [`Step::Examined`] was about; none
    /// if it was about what each pool counts for. For drivers that model whose
    /// cache has these words.
    pub fn looks_at(&self) -> Option<u32> {
        self.looks_at
    }

    fn start<R: Ranking>(&mut self, shared: &RunQueues<R>) {
        self.phase = Phase::End;
        if shared.single.is_some() || shared.pools.len() == 1 {
            return;
        }
        let pools = shared.pools.len() as u32;
        self.steps.examined(0, pools);
        let own = shared.pool_of(self.cpu);
        let least = shared.ranking.least_load();
        let with_least = shared.load(own).with(Some(least));
        let others = (0..pools).filter(|&pool| pool != own);
        let loads = others.map(|pool| (shared.load(pool), pool));
        let mut giving: Vec<_> = loads
            .filter(|(load, _)| with_least.is_less(*load))
            .collect();
        // The first among equals is asked first.
        giving.sort_by(|(a, first), (b, second)| a.cmp(*b).then(second.cmp(first)));
        self.pools = giving.into_iter().map(|(_, pool)| pool).collect();
        self.phase = Phase::Ask;
    }

    fn ask<R: Ranking>(&mut self, shared: &RunQueues<R>) {
        if let Some(cpu) = self.to_ask.pop() {
            self.steps.push(Step::Lock(shared.queue_of(cpu)));
            self.phase = Phase::Take(cpu);
        } else if let Some(pool) = self.pools.pop() {
            self.looks_at = Some(pool);
            self.look_at(shared, pool);
        } else {
            self.phase = Phase::End;
        }
    }

    /// In whose queues somebody waits.
    fn look_at<R: Ranking>(&mut self, shared: &RunQueues<R>, pool: u32) {
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

    fn take<R: Ranking>(&mut self, shared: &RunQueues<R>, held: &mut impl Held, from: Cpu) {
        let lock = shared.queue_of(from);
        let queue = held.queue(lock);
        let caught_up = queue.catch_up(&shared.ranking, shared.pool(from).clock());
        let examined = caught_up + queue.len();
        let taken = self.heaviest(shared, queue, from);
        let task = taken.map(|slot| queue.remove(slot));
        let mut words = LOADS_OF_TWO;
        if task.is_some() || caught_up > 0 {
            words += shared.publish_afresh(queue, from);
        }
        self.steps.examined(examined, words);
        self.steps.push(Step::Unlock(lock));
        self.phase = Phase::Ask;
        if let Some(mut task) = task {
            let as_of = shared.change_pool(&mut task, from, self.cpu);
            self.moving = Some(Moving {
                task,
                from,
                to: self.cpu,
                as_of,
            });
            self.phase = Phase::Find;
        }
    }

    /// Somebody moves: to which queue of the pool.
    fn find<R: Ranking>(&mut self, shared: &RunQueues<R>) {
        self.phase = Phase::End;
        self.looks_at = Some(shared.pool_of(self.cpu));
        if let Some(moving) = &mut self.moving {
            let words;
            (moving.to, words) = shared.least_loaded(self.cpu, &moving.task);
            self.steps.examined(0, words);
        }
    }

    /// Who is to move out of the queue, if anybody is.
    fn heaviest<R: Ranking>(
        &self,
        shared: &RunQueues<R>,
        queue: &Queue,
        from: Cpu,
    ) -> Option<Slot> {
        let giver = shared.load(shared.pool_of(from));
        let taker = shared.load(shared.pool_of(self.cpu));
        let mut best: Option<(u32, Slot)> = None;
        // Who is worth a CPU is heavier than anybody who is not.
        let weight = |load: Option<u32>| load.unwrap_or(u32::MAX);
        for slot in queue.list(0).filter(|&slot| !queue.runs(slot)) {
            let task = queue.task(slot);
            let load = shared.ranking.load(task);
            let helps = taker.with(load).is_less(giver);
            let allowed = shared.pool(self.cpu).cpus.iter();
            let mut allowed = allowed.filter(|&&cpu| task.allowed.contains(cpu));
            if helps && allowed.next().is_some() && best.is_none_or(|(most, _)| weight(load) > most)
            {
                best = Some((weight(load), slot));
            }
        }
        best.map(|(_, slot)| slot)
    }
}

impl<R: Ranking> RunQueues<R> {
    fn load(&self, pool: u32) -> PoolLoad {
        self.pools[pool as usize].loads.of_pool()
    }

    /// Of the pool of `cpu`, the CPU where `task` may run whose queue has the
    /// least load, an idle one before all; and the words looked at.
    fn least_loaded(&self, cpu: Cpu, task: &Task) -> (Cpu, u32) {
        let pool = self.pool(cpu);
        let allowed = pool.cpus.iter().filter(|&&cpu| task.allowed.contains(cpu));
        let key = |&&cpu: &&Cpu| {
            let place = self.place(cpu).place;
            let word = pool.available.get(place);
            let idle = matches!(Availability::from_word(word), Availability::Idle(_));
            (!idle, pool.loads.get(place))
        };
        let words = 2 * allowed.clone().count() as u32;
        (allowed.min_by_key(key).copied().unwrap_or(cpu), words)
    }
}

impl<R: Ranking> Decision<R> for Balance {
    fn step(&mut self, shared: &RunQueues<R>, held: &mut impl Held, _granted: bool) -> Step {
        loop {
            if let Some(step) = self.steps.pop() {
                return step;
            }
            match self.phase {
                Phase::Start => self.start(shared),
                Phase::Ask => self.ask(shared),
                Phase::Take(from) => self.take(shared, held, from),
                Phase::Find => self.find(shared),
                Phase::End => return Step::Done,
            }
        }
    }
}
