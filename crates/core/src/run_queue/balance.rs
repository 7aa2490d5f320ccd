//! Balancing among pools: the paper's "load balancing algorithms" (2001, 6).
//!
//! The rule. A pool's load is the sum over its tasks, by ranking their number
//! or their tickets, and counts for each of its CPUs. A pool takes one task
//! from the pool with the most load a CPU, out of the queue there that has the
//! most and somebody who waits: the heaviest with which the taker would still
//! have less load a CPU than the giver had. If there is none, nothing moves.
//!
//! So the larger of the two loads a CPU falls with every move, and moves end.
//! Where no move is left, the load a CPU of any pool is at most that of any
//! other with one more of the tasks that wait in the first.
//!
//! When to balance is the caller's business: from time to time, and when a CPU
//! falls idle. Each move is one decision. Real-time tasks stay in their pool.

use super::availability::Availability;
use super::decision::{Decision, Held, Step, Steps};
use super::layout::RunQueues;
use super::queue::{Queue, Slot};
use super::ranking::{NOBODY, Rank, Ranking};
use super::search::head;
use super::task::{Cpu, Task, TaskIndex};

/// A pool takes a task from another one, if that makes them more even.
#[derive(Debug)]
pub struct Balance {
    /// A CPU of the pool that takes.
    cpu: Cpu,
    phase: Phase,
    steps: Steps,
    /// On its way from one pool to the other.
    task: Option<Task>,
    entered_at: u64,
    moved: Option<TaskIndex>,
}

#[derive(Clone, Copy, Debug)]
enum Phase {
    Start,
    /// The queue to take from is held, of the CPU.
    Take(Cpu),
    /// The queue to put into is held, of the CPU.
    Put(Cpu),
    End,
}

/// Load of a pool and its CPUs.
#[derive(Clone, Copy)]
struct Load {
    sum: u128,
    cpus: u128,
}

impl Load {
    /// Whether there is less load a CPU than in the other.
    fn is_less(self, other: Self) -> bool {
        self.sum * other.cpus < other.sum * self.cpus
    }

    fn with(self, load: u32) -> Self {
        let sum = self.sum + u128::from(load);
        Self { sum, ..self }
    }
}

impl Balance {
    /// The pool of `cpu` looks for a task to take.
    pub fn new(cpu: Cpu) -> Self {
        Self {
            cpu,
            phase: Phase::Start,
            steps: Steps::NONE,
            task: None,
            entered_at: 0,
            moved: None,
        }
    }

    /// Who moved; after [`Step::Done`].
    pub fn moved(&self) -> Option<TaskIndex> {
        self.moved
    }

    fn start<R: Ranking>(&mut self, shared: &RunQueues<R>) {
        self.phase = Phase::End;
        let own = shared.pool_of(self.cpu);
        let others = (0..shared.pools.len() as u32).filter(|&pool| pool != own);
        let busiest = others.reduce(|most, pool| {
            let less = shared.load(most).is_less(shared.load(pool));
            if less { pool } else { most }
        });
        let Some(busiest) = busiest.filter(|_| shared.single.is_none()) else {
            return;
        };
        self.steps.examined(0, shared.cpus());
        if !shared.load(own).is_less(shared.load(busiest)) {
            return;
        }
        let pool = &shared.pools[busiest as usize];
        let places = 0..pool.loads.places();
        let some_wait = places.filter(|&place| pool.offers.get(place) != NOBODY);
        let first_of_most = |&place: &u32| (pool.loads.get(place), core::cmp::Reverse(place));
        if let Some(place) = some_wait.max_by_key(first_of_most) {
            let cpu = pool.cpus[place as usize];
            self.steps.push(Step::Lock(shared.queue_of(cpu)));
            self.phase = Phase::Take(cpu);
        }
    }

    fn take<R: Ranking>(&mut self, shared: &RunQueues<R>, held: &mut impl Held, from: Cpu) {
        let lock = shared.queue_of(from);
        let queue = held.queue(lock);
        let mut examined = queue.catch_up(&shared.ranking, shared.pool(from).clock());
        examined += queue.len();
        let taken = self.heaviest(shared, queue, from);
        self.steps.push(Step::Examined {
            tasks: examined,
            words: 0,
        });
        self.steps.push(Step::Unlock(lock));
        self.phase = Phase::End;
        if let Some(slot) = taken {
            let mut task = queue.remove(slot);
            shared.publish(queue, from, head(queue, &shared.ranking));
            let to = shared.least_loaded(self.cpu, &task);
            shared.change_pool(&mut task, from, to);
            self.entered_at = shared.pool(to).clock();
            self.task = Some(task);
            self.steps.push(Step::Lock(shared.queue_of(to)));
            self.phase = Phase::Put(to);
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
        for slot in queue.list(0).filter(|&slot| !queue.runs(slot)) {
            let task = queue.task(slot);
            let load = shared.ranking.load(task);
            let helps = taker.with(load).is_less(giver);
            let allowed = shared.pool(self.cpu).cpus.iter();
            let mut allowed = allowed.filter(|&&cpu| task.allowed.contains(cpu));
            if helps && allowed.next().is_some() && best.is_none_or(|(most, _)| load > most) {
                best = Some((load, slot));
            }
        }
        best.map(|(_, slot)| slot)
    }

    fn put<R: Ranking>(&mut self, shared: &RunQueues<R>, held: &mut impl Held, to: Cpu) {
        let lock = shared.queue_of(to);
        let queue = held.queue(lock);
        self.phase = Phase::End;
        let Some(task) = self.task.take() else {
            return;
        };
        self.moved = Some(task.index);
        let idle = matches!(shared.availability(queue, to), Availability::Idle(_));
        queue.cpu_mut(to).must_decide |= idle;
        let (tasks, words) = shared.insert(queue, to, task, self.entered_at);
        self.steps.examined(tasks, words);
        self.steps.push(Step::Unlock(lock));
        if idle {
            self.steps.push(Step::Interrupt(to));
        }
    }
}

impl<R: Ranking> RunQueues<R> {
    fn load(&self, pool: u32) -> Load {
        let pool = &self.pools[pool as usize];
        let loads = (0..pool.loads.places()).map(|place| pool.loads.get(place));
        Load {
            // Nothing is published before the first task comes.
            sum: loads.map(|load| load.max(0) as u128).sum(),
            cpus: pool.cpus.len() as u128,
        }
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
            let load: Rank = pool.loads.get(place);
            (!idle, load)
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
                Phase::Put(to) => self.put(shared, held, to),
                Phase::End => return Step::Done,
            }
        }
    }
}
