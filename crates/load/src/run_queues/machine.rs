//! The queues behind their locks, and who carries out the steps of decisions.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use prorata_core::run_queue::{
    Adjust, Balance, Change, Cpu, Decision, Displaced, Held, Layout, LayoutError, LimitError,
    LockIndex, Outcome, Place, Queue, Ranking, Reweigh, RunQueues, Schedule, Step, Task, TaskIndex,
    Tick, Tickets, Turn, Weights,
};

use super::lock::Lock;

/// On a cache line of its own (two, as they are fetched in pairs).
#[repr(align(128))]
#[derive(Debug)]
struct Line<T>(T);

/// What all CPUs share.
#[derive(Debug)]
pub struct Machine<R, L> {
    shared: RunQueues<R>,
    locks: Box<[Line<L>]>,
    /// By pool, if the ranking goes by feasible tickets. Whoever has one of
    /// these locks waits for no other.
    weights: Box<[Line<Mutex<Weights>>]>,
    /// Whoever adjusts a task holds it, before any other: what is changed last in
    /// the queue is so in the weights, too.
    adjusting: Line<L>,
    /// By CPU: whether it was told to decide anew and has not heard it yet.
    told: Box<[Line<AtomicBool>]>,
}

impl<R: Ranking, L: Lock> Machine<R, L> {
    /// A machine whose CPUs are idle.
    ///
    /// # Errors
    /// A layout that is none.
    pub fn new(ranking: R, layout: &Layout, cpus: u32) -> Result<Self, LayoutError> {
        let (shared, queues) = RunQueues::new(ranking, layout, cpus)?;
        let queues = queues.into_iter().map(Some);
        let locks = queues.chain(std::iter::repeat_with(|| None));
        let locks = locks.take(shared.locks() as usize);
        Ok(Self {
            locks: locks.map(|queue| Line(L::new(queue))).collect(),
            weights: shared
                .weights()
                .into_iter()
                .map(|weights| Line(Mutex::new(weights)))
                .collect(),
            adjusting: Line(L::new(None)),
            told: (0..cpus).map(|_| Line(AtomicBool::new(false))).collect(),
            shared,
        })
    }

    /// What decisions share and read without a lock.
    pub fn shared(&self) -> &RunQueues<R> {
        &self.shared
    }

    /// Its locks: first those of queues, then those of recalculations.
    pub fn locks(&self) -> impl Iterator<Item = &L> {
        self.locks.iter().map(|Line(lock)| lock)
    }

    /// Who makes the decisions of a CPU.
    pub fn processor(&self, cpu: Cpu) -> Processor<'_, R, L> {
        Processor {
            machine: self,
            cpu,
            held: Hand(Vec::with_capacity(4)),
        }
    }

    /// Whether a CPU was told to decide anew since this was asked last.
    #[inline]
    pub fn take_told(&self, Cpu(cpu): Cpu) -> bool {
        let Line(told) = &self.told[cpu as usize];
        told.load(Ordering::Relaxed) && told.swap(false, Ordering::Acquire)
    }

    /// Whether a CPU was told to decide anew and has not heard it yet.
    pub fn is_told(&self, Cpu(cpu): Cpu) -> bool {
        self.told[cpu as usize].0.load(Ordering::Acquire)
    }
}

/// Locks that a decision holds.
struct Hand<'m, L: Lock + 'm>(Vec<(LockIndex, L::Guard<'m>)>);

impl<L: Lock> Held for Hand<'_, L> {
    #[inline]
    fn queue(&mut self, lock: LockIndex) -> &mut Queue {
        let held = self.0.iter_mut().find(|(held, _)| *held == lock);
        let queue = held.and_then(|(_, guard)| guard.as_mut());
        queue.expect("a decision asks for queues whose locks it holds")
    }
}

/// A CPU that decides. Its decisions are made one after another.
pub struct Processor<'m, R, L: Lock> {
    machine: &'m Machine<R, L>,
    cpu: Cpu,
    /// Empty between decisions.
    held: Hand<'m, L>,
}

impl<R: Ranking, L: Lock> Processor<'_, R, L> {
    /// Which CPU it is.
    pub fn cpu(&self) -> Cpu {
        self.cpu
    }

    /// Ends a turn; who runs next.
    pub fn schedule(&mut self, turn: Turn, now_ns: u64) -> Outcome {
        let mut decision = Schedule::new(self.cpu, turn, now_ns);
        self.run(&mut decision);
        let outcome = decision.outcome();
        if let Some(task) = &outcome.blocked {
            self.weigh(self.cpu, task.index, None);
        }
        outcome
    }

    /// A task wakes or begins.
    ///
    /// # Errors
    /// One that the machine is not made for.
    pub fn wake(&mut self, task: Task) -> Result<(), LimitError> {
        let shared = &self.machine.shared;
        shared.check(&task)?;
        self.weigh(shared.home(&task), task.index, Some(task.tickets));
        self.run(&mut Place::woken(task));
        Ok(())
    }

    /// A task, which passed the check, competes in the pool of `cpu` with this
    /// weight from now on, or no longer. It is in no queue meanwhile but in our
    /// hands, so nobody else says the same of it.
    fn weigh(&mut self, cpu: Cpu, task: TaskIndex, weight: Option<Tickets>) {
        self.weigh_if(cpu, task, weight, |_| true);
    }

    fn weigh_if(
        &mut self,
        cpu: Cpu,
        task: TaskIndex,
        weight: Option<Tickets>,
        is_so: impl FnOnce(&Weights) -> bool,
    ) {
        let shared = &self.machine.shared;
        let weights = self.machine.weights.get(shared.pool_of(cpu) as usize);
        let Some((Line(weights), feasible)) = weights.zip(shared.ranking().feasible()) else {
            return;
        };
        let mut weights = weights.lock().unwrap_or_else(PoisonError::into_inner);
        if !is_so(&weights) {
            return;
        }
        let changed = weights.set(task, weight, feasible).unwrap_or_default();
        let mut reweigh = Reweigh::new(shared, changed);
        drop(weights);
        self.run(&mut reweigh);
    }

    /// A task that stands in a queue, or runs, changes. Whether it was found: if
    /// not it is blocked, and its owner just sets the fields, or it is on its way
    /// from one queue to another, and who asks again will find it. O(n) in all
    /// tasks.
    pub fn adjust(&mut self, task: TaskIndex, change: Change) -> bool {
        let machine = self.machine;
        L::between_steps();
        let adjusting = machine.adjusting.0.lock();
        let found = (0..machine.shared.queues()).map(LockIndex).find(|&lock| {
            let mut decision = Adjust::new(lock, task, change);
            self.run(&mut decision);
            decision.found()
        });
        // Queues of real time, behind those of CPUs, have no weights.
        let cpu = found.filter(|lock| lock.0 < machine.shared.cpus());
        if let (Some(LockIndex(cpu)), Change::Tickets(tickets)) = (cpu, change) {
            // It may have blocked or moved since; whoever counts it elsewhere, or
            // again, has it from the queue, with these tickets.
            self.weigh_if(Cpu(cpu), task, Some(tickets), |weights| {
                weights.competes(task)
            });
        }
        drop(adjusting);
        found.is_some()
    }

    /// Finds another CPU for who was displaced.
    pub fn displace(&mut self, displaced: Displaced) {
        self.run(&mut Place::displaced(displaced));
    }

    /// A tick: whether the time slice of who runs has ended.
    pub fn tick(&mut self) -> bool {
        let mut decision = Tick::new(self.cpu);
        self.run(&mut decision);
        decision.expired()
    }

    /// Takes a task for this CPU's pool from a busier one; whether there was
    /// one to take.
    pub fn balance(&mut self) -> bool {
        let mut decision = Balance::new(self.cpu);
        self.run(&mut decision);
        let Some(moving) = decision.moving() else {
            return false;
        };
        let (index, tickets) = (moving.task().index, moving.task().tickets);
        self.weigh(moving.from(), index, None);
        self.weigh(moving.to(), index, Some(tickets));
        self.run(&mut Place::moved(moving));
        true
    }

    fn run(&mut self, decision: &mut impl Decision<R>) {
        let machine = self.machine;
        let of = |LockIndex(lock): LockIndex| &machine.locks[lock as usize].0;
        let mut granted = false;
        loop {
            L::between_steps();
            match decision.step(&machine.shared, &mut self.held, granted) {
                Step::Lock(lock) => self.held.0.push((lock, of(lock).lock())),
                Step::TryLock(lock) => {
                    let guard = of(lock).try_lock();
                    granted = guard.is_some();
                    self.held.0.extend(guard.map(|guard| (lock, guard)));
                }
                Step::Unlock(lock) => {
                    let held = self.held.0.iter().position(|(held, _)| *held == lock);
                    let held = held.expect("a decision lets go what it holds");
                    drop(self.held.0.swap_remove(held));
                }
                Step::Examined { .. } => {}
                Step::Interrupt(Cpu(cpu)) => {
                    machine.told[cpu as usize].0.store(true, Ordering::Release);
                }
                Step::Done => break,
            }
        }
        assert!(self.held.0.is_empty(), "a decision ends without locks");
    }
}
