//! Balancing among pools: the paper's "load balancing algorithms" (2001, 6).
//!
//! The rule. While a pool has no more tasks than CPUs, its load is their number
//! for each CPU; with more tasks, which is more load than any such, it is what a
//! CPU is worth by ranking: tasks, or feasible tickets (`load.rs`). A pool takes
//! one task from a pool with more load: the heaviest that waits in one queue
//! there with which the taker would still have less load than the giver had. It
//! asks the pool with the most load first, and in a pool the queue with the
//! most; then the next, until somebody may move. If nobody may, nothing moves.
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
    /// Where somebody may wait who could move: first to ask last. Allocates only
    /// when other pools have more load.
    to_ask: Vec<Cpu>,
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

#[derive(Clone, Copy, Debug)]
enum Phase {
    Start,
    /// The queue to take from is held, of the CPU.
    Take(Cpu),
    End,
}

impl Balance {
    /// The pool of `cpu` looks for a task to take.
    pub fn new(cpu: Cpu) -> Self {
        Self {
            cpu,
            phase: Phase::Start,
            steps: Steps::NONE,
            to_ask: Vec::new(),
            moving: None,
        }
    }

    /// Who moves, if anybody does; after [`Step::Done`].
    pub fn moving(self) -> Option<Moving> {
        self.moving
    }

    fn start<R: Ranking>(&mut self, shared: &RunQueues<R>) {
        self.phase = Phase::End;
        if shared.single.is_some() || shared.pools.len() == 1 {
            return;
        }
        self.steps.examined(0, shared.cpus());
        let own = shared.pool_of(self.cpu);
        let least = shared.load(own).with(Some(0));
        let pools = (0..shared.pools.len() as u32).filter(|&pool| pool != own);
        let loads = pools.map(|pool| (shared.load(pool), &shared.pools[pool as usize]));
        let mut giving: Vec<_> = loads.filter(|(load, _)| least.is_less(*load)).collect();
        // Stable: the first among equals is asked first.
        giving.sort_by(|(a, _), (b, _)| b.cmp(*a));
        for (_, pool) in giving.into_iter().rev() {
            let places = 0..pool.offers.places();
            let some_wait = places.filter(|&place| pool.offers.get(place) != NOBODY);
            let mut places: Vec<_> = some_wait.collect();
            places.sort_by_key(|&place| (pool.loads.get(place), Reverse(place)));
            let cpus = places.into_iter().map(|place| pool.cpus[place as usize]);
            self.to_ask.extend(cpus);
        }
        self.ask_next(shared);
    }

    fn ask_next<R: Ranking>(&mut self, shared: &RunQueues<R>) {
        self.phase = Phase::End;
        if let Some(cpu) = self.to_ask.pop() {
            self.steps.push(Step::Lock(shared.queue_of(cpu)));
            self.phase = Phase::Take(cpu);
        }
    }

    fn take<R: Ranking>(&mut self, shared: &RunQueues<R>, held: &mut impl Held, from: Cpu) {
        let lock = shared.queue_of(from);
        let queue = held.queue(lock);
        let caught_up = queue.catch_up(&shared.ranking, shared.pool(from).clock());
        let taken = self.heaviest(shared, queue, from);
        let examined = caught_up + queue.len();
        let task = taken.map(|slot| queue.remove(slot));
        let words = match task.is_some() || caught_up > 0 {
            true => shared.publish_afresh(queue, from),
            false => 0,
        };
        self.steps.examined(examined, words);
        self.steps.push(Step::Unlock(lock));
        let Some(mut task) = task else {
            return self.ask_next(shared);
        };
        let to = shared.least_loaded(self.cpu, &task);
        let as_of = shared.change_pool(&mut task, from, to);
        self.moving = Some(Moving {
            task,
            from,
            to,
            as_of,
        });
        self.phase = Phase::End;
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
    /// least load, an idle one before all.
    fn least_loaded(&self, cpu: Cpu, task: &Task) -> Cpu {
        let pool = self.pool(cpu);
        let allowed = pool.cpus.iter().filter(|&&cpu| task.allowed.contains(cpu));
        let key = |&&cpu: &&Cpu| {
            let place = self.place(cpu).place;
            let word = pool.available.get(place);
            let idle = matches!(Availability::from_word(word), Availability::Idle(_));
            (!idle, pool.loads.get(place))
        };
        allowed.min_by_key(key).copied().unwrap_or(cpu)
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
                Phase::Take(from) => self.take(shared, held, from),
                Phase::End => return Step::Done,
            }
        }
    }
}
