//! Who competes: rings of tasks that pass a token (2001, 5.3), of which there
//! is nothing but their places in queues.
//!
//! It also watches that decisions are right: nobody runs twice at a time, and
//! nobody is lost.

use std::mem::replace;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use prorata_core::run_queue::{Change, Cpu, LockIndex, Ranking, Task, TaskIndex, Tickets};

use super::lock::Lock;
use super::machine::{Machine, Processor};

/// The tasks of all rings; those of ring `r` are numbered from
/// `r * threads` up.
#[derive(Debug)]
pub struct Tokens {
    rings: u32,
    threads: u32,
    seats: Box<[Seat]>,
}

#[derive(Debug)]
struct Seat {
    state: Mutex<State>,
    /// Whether a CPU runs it, by what CPUs were told.
    runs: AtomicBool,
}

#[derive(Debug)]
enum State {
    /// In a queue, or on its way.
    Awake,
    /// Blocked, until the token comes.
    Asleep(Task),
    /// The token has come already while it was about to block.
    Expected,
}

/// Puts a task into the queues.
fn wake<R: Ranking, L: Lock>(task: Task, processor: &mut Processor<'_, R, L>) {
    let woken = processor.wake(task);
    woken.expect("tokens' tasks are as the machine is made for");
}

/// What was found when nobody decided any more.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Audit {
    /// Tasks in queues.
    pub queued: u32,
    /// Tasks that are blocked.
    pub asleep: u32,
}

impl Tokens {
    /// So many rings of so many tasks, which `task` makes; all are blocked
    /// until they are started.
    pub fn new(rings: u32, threads: u32, task: impl Fn(TaskIndex) -> Task) -> Self {
        let seats = (0..rings * threads).map(|index| Seat {
            state: Mutex::new(State::Asleep(task(TaskIndex(index)))),
            runs: AtomicBool::new(false),
        });
        Self {
            rings,
            threads,
            seats: seats.collect(),
        }
    }

    /// Gives the first task of each ring its token.
    pub fn start<R: Ranking, L: Lock>(&self, processor: &mut Processor<'_, R, L>) {
        for ring in 0..self.rings {
            self.wake(TaskIndex(ring * self.threads), processor);
        }
    }

    /// Passes the token on, to the next task of the ring.
    pub fn pass<R: Ranking, L: Lock>(
        &self,
        TaskIndex(from): TaskIndex,
        processor: &mut Processor<'_, R, L>,
    ) {
        let first = from - from % self.threads;
        let next = first + (from - first + 1) % self.threads;
        self.wake(TaskIndex(next), processor);
    }

    fn wake<R: Ranking, L: Lock>(
        &self,
        TaskIndex(index): TaskIndex,
        processor: &mut Processor<'_, R, L>,
    ) {
        let mut state = self.state(index);
        match replace(&mut *state, State::Awake) {
            State::Asleep(task) => {
                drop(state);
                wake(task, processor);
            }
            State::Awake => *state = State::Expected,
            State::Expected => unreachable!("a ring has one token"),
        }
    }

    /// Gives a task other tickets. Whether that was done: it is not while the task
    /// is on its way between queues, or between blocking and sleeping.
    pub fn set_tickets<R: Ranking, L: Lock>(
        &self,
        index: TaskIndex,
        tickets: Tickets,
        processor: &mut Processor<'_, R, L>,
    ) -> bool {
        if let State::Asleep(task) = &mut *self.state(index.0) {
            task.tickets = tickets;
            return true;
        }
        processor.adjust(index, Change::Tickets(tickets))
    }

    /// A task has blocked, unless its token has come meanwhile.
    pub fn block<R: Ranking, L: Lock>(&self, task: Task, processor: &mut Processor<'_, R, L>) {
        let mut state = self.state(task.index.0);
        match *state {
            State::Expected => {
                *state = State::Awake;
                drop(state);
                wake(task, processor);
            }
            _ => *state = State::Asleep(task),
        }
    }

    /// A CPU runs it from now on.
    ///
    /// # Panics
    /// If another one does.
    pub fn begins(&self, TaskIndex(index): TaskIndex) {
        let ran = self.seats[index as usize].runs.swap(true, Ordering::AcqRel);
        assert!(!ran, "task {index} runs on two CPUs");
    }

    /// A CPU is about to run another, perhaps.
    pub fn ends(&self, TaskIndex(index): TaskIndex) {
        let runs = &self.seats[index as usize].runs;
        runs.store(false, Ordering::Release);
    }

    /// Counts everybody when no CPU decides any more.
    ///
    /// # Panics
    /// If a task is in two places or in none, or a ring has not just one task
    /// that is awake.
    pub fn audit<R: Ranking, L: Lock>(&self, machine: &Machine<R, L>) -> Audit {
        let mut places = vec![0; self.seats.len()];
        let mut queued = 0;
        for lock in machine.locks() {
            for (task, _) in lock.lock().iter().flat_map(|queue| queue.tasks()) {
                places[task.index.0 as usize] += 1;
                queued += 1;
            }
        }
        let mut asleep = 0;
        for index in 0..places.len() as u32 {
            if matches!(*self.state(index), State::Asleep(_)) {
                places[index as usize] += 1;
                asleep += 1;
            }
        }
        for (index, places) in places.iter().enumerate() {
            assert_eq!(*places, 1, "task {index} is in {places} places");
        }
        assert_eq!(queued, self.rings, "each ring has one task that is awake");
        Audit { queued, asleep }
    }

    /// CPUs that idle, were not told of anything, and could run somebody who
    /// waits in a queue of their pool.
    pub fn forgotten<R: Ranking, L: Lock>(&self, machine: &Machine<R, L>, cpus: u32) -> Vec<Cpu> {
        let shared = machine.shared();
        let mut waiting = Vec::new();
        let mut idle = Vec::new();
        let waits_in = |index: LockIndex| {
            let lock = machine.locks().nth(index.0 as usize);
            let waits = |lock: &L| {
                lock.lock()
                    .as_ref()
                    .is_some_and(|queue| queue.waiting() > 0)
            };
            lock.is_some_and(waits)
        };
        for cpu in (0..cpus).map(Cpu) {
            if waits_in(shared.queue_of(cpu)) || waits_in(shared.real_time_queue(cpu)) {
                waiting.push(shared.pool_of(cpu));
            }
            let lock = machine.locks().nth(shared.queue_of(cpu).0 as usize);
            let guard = lock.expect("each CPU has a queue").lock();
            let queue = guard.as_ref().expect("which is behind its lock");
            if queue.current(cpu).is_none() && !machine.is_told(cpu) {
                idle.push(cpu);
            }
        }
        idle.retain(|&cpu| waiting.contains(&shared.pool_of(cpu)));
        idle
    }

    fn state(&self, index: u32) -> MutexGuard<'_, State> {
        let state = self.seats[index as usize].state.lock();
        state.unwrap_or_else(PoisonError::into_inner)
    }
}
