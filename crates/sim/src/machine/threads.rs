//! Threads, and the clients that they belong to.

use rand_xoshiro::SplitMix64;

use super::NONE;
use crate::plan::Entry;

/// What a thread does now.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum State {
    /// Gone; its number can be given to another.
    Free,
    /// Gone, but an event to wake it is still under way.
    Dying,
    /// Could run, but has no CPU.
    Ready,
    /// Has a CPU.
    Running,
    Sleeping,
    /// Waits for a signal.
    Signal(u32),
    /// Waits to acquire a mutex.
    Mutex(u32),
    /// Waits to send into a pipe, or to receive from it.
    Full(u32),
    Empty(u32),
    /// Waits for a call of a service.
    Idle(u32),
    /// Called a service; waits to be served, or for the reply.
    Called(u32),
    Served(u32),
}

/// One thread.
#[derive(Debug)]
pub(super) struct Thread {
    pub(super) client: u32,
    /// The next one in its client's list of ready or of running threads.
    pub(super) next: u32,
    /// The instruction that comes next.
    pub(super) instruction: u32,
    /// Where it runs, or ran last; [`NONE`] before that.
    pub(super) cpu: u32,
    /// Whose call it serves; [`NONE`] if none.
    pub(super) caller: u32,
    pub(super) state: State,
    /// CPU time until the present step is done.
    pub(super) remaining_ns: u64,
    /// Since when it is ready or waits.
    pub(super) since_ns: u64,
    pub(super) rng: SplitMix64,
    pub(super) registers: Box<[u32]>,
}

/// One client.
#[derive(Clone, Debug)]
pub(super) struct Client {
    /// Threads that can run but have no CPU, first come first.
    pub(super) ready: Fifo,
    /// The first of the threads that have a CPU.
    pub(super) running: u32,
    /// Threads that are not gone.
    pub(super) threads: u32,
    /// Threads that wait and have lent their part of its tickets.
    pub(super) lending: u32,
    /// Threads that can run: those ready and those running.
    pub(super) runnable: u32,
    /// CPUs that it has; above zero only during its turn.
    pub(super) cpus: u32,
    /// Which line of the scenario it comes from.
    pub(super) group: u32,
    /// CPU time used in this turn.
    pub(super) turn_used_ns: u64,
    /// When its turn ends at the latest; [`NO_TURN`] while it has none.
    pub(super) turn_end_ns: u64,
}

/// The end of a turn that has not begun.
pub(super) const NO_TURN: u64 = 0;

impl Client {
    pub(super) fn new(group: u32) -> Client {
        Client {
            ready: Fifo::EMPTY,
            running: NONE,
            threads: 0,
            lending: 0,
            runnable: 0,
            cpus: 0,
            group,
            turn_used_ns: 0,
            turn_end_ns: NO_TURN,
        }
    }
}

/// A queue of threads, linked through [`Thread::next`].
#[derive(Clone, Copy, Debug)]
pub(super) struct Fifo {
    pub(super) first: u32,
    last: u32,
}

impl Fifo {
    const EMPTY: Fifo = Fifo {
        first: NONE,
        last: NONE,
    };

    pub(super) fn push(&mut self, threads: &mut [Thread], thread: u32) {
        threads[thread as usize].next = NONE;
        match self.last {
            NONE => self.first = thread,
            last => threads[last as usize].next = thread,
        }
        self.last = thread;
    }

    pub(super) fn pop(&mut self, threads: &[Thread]) -> Option<u32> {
        let thread = self.first;
        if thread == NONE {
            return None;
        }
        self.first = threads[thread as usize].next;
        if self.first == NONE {
            self.last = NONE;
        }
        Some(thread)
    }

    /// O(length).
    pub(super) fn remove(&mut self, threads: &mut [Thread], thread: u32) {
        let mut kept = Fifo::EMPTY;
        while let Some(first) = self.pop(threads) {
            if first != thread {
                kept.push(threads, first);
            }
        }
        *self = kept;
    }
}

/// All threads, by number; numbers are used again, the last freed first.
#[derive(Debug, Default)]
pub(super) struct Threads {
    pub(super) all: Vec<Thread>,
    free: Vec<u32>,
    /// How many were ever made.
    pub(super) made: u64,
}

impl Threads {
    /// Threads that are not free.
    pub(super) fn len(&self) -> usize {
        self.all.len() - self.free.len()
    }

    pub(super) fn add(&mut self, client: u32, program: Entry, rng: SplitMix64) -> u32 {
        let thread = Thread {
            client,
            next: NONE,
            instruction: program.start,
            cpu: NONE,
            caller: NONE,
            state: State::Ready,
            remaining_ns: 0,
            since_ns: 0,
            rng,
            registers: vec![0; program.registers.into()].into_boxed_slice(),
        };
        self.made += 1;
        match self.free.pop() {
            Some(number) => {
                self.all[number as usize] = thread;
                number
            }
            None => {
                self.all.push(thread);
                self.all.len() as u32 - 1
            }
        }
    }

    pub(super) fn free(&mut self, thread: u32) {
        self.all[thread as usize].state = State::Free;
        self.free.push(thread);
    }
}
