//! The queues behind their locks, and who carries out the steps of decisions.

use std::sync::atomic::{AtomicBool, Ordering};

use prorata_core::run_queue::{
    Cpu, Decision, Displaced, Held, Layout, LayoutError, LockIndex, Outcome, Place, Queue, Ranking,
    RunQueues, Schedule, Step, Task, Tick, Turn,
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
        decision.outcome()
    }

    /// A task wakes or begins.
    pub fn wake(&mut self, task: Task) {
        self.run(&mut Place::woken(task));
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
