//! Threads, and the clients that they belong to.

use rand_xoshiro::SplitMix64;

use super::NONE;
use crate::draw::Draw;
use crate::plan::Entry;

/// What a thread does now.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum State {
    /// Gone; its number can be given to another.
    Free,
    /// Gone, but an event to wake it is still under way.
    Dying,
    /// Could run, but has no CPU.
    Ready,
    /// Has a CPU.
    Running,
    /// Sleeps; an event will wake it.
    Sleeping,
    /// Waits for what its last instruction names.
    Waiting,
}

/// One thread: 48 bytes, there can be millions.
#[derive(Debug)]
pub(crate) struct Thread {
    pub(crate) client: u32,
    /// The next one in its client's list of ready or of running threads.
    pub(crate) next: u32,
    /// The instruction that comes next.
    pub(crate) instruction: u32,
    /// Where its registers are; [`NONE`] if its program needs none.
    registers: u32,
    /// Where it runs, or ran last; [`NO_CPU`] before that.
    pub(crate) cpu: u16,
    pub(crate) state: State,
    /// CPU time until the present step is done.
    pub(crate) remaining_ns: u64,
    /// Since when it is ready or waits.
    pub(crate) since_ns: u64,
    pub(crate) rng: SplitMix64,
}

/// No CPU.
pub(crate) const NO_CPU: u16 = u16::MAX;
/// No thread.
pub(crate) const NO_THREAD: u32 = NONE;

/// One client: 20 bytes.
#[derive(Clone, Debug)]
pub(crate) struct Client {
    /// Threads that can run but have no CPU, first come first.
    pub(crate) ready: Fifo,
    /// Threads that are not gone.
    pub(crate) threads: u32,
    /// Threads that can run: those ready and those running.
    pub(crate) runnable: u32,
    /// Its turn, by number; [`NONE`] while it has none. It has CPUs only in a
    /// turn.
    pub(crate) turn: u32,
}

impl Client {
    /// One without threads.
    pub(crate) const NEW: Client = Client {
        ready: Fifo::EMPTY,
        threads: 0,
        runnable: 0,
        turn: NONE,
    };
}

/// A queue of threads, linked through [`Thread::next`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fifo {
    pub(crate) first: u32,
    last: u32,
}

impl Fifo {
    const EMPTY: Fifo = Fifo {
        first: NONE,
        last: NONE,
    };

    pub(crate) fn push(&mut self, threads: &mut [Thread], thread: u32) {
        threads[thread as usize].next = NONE;
        match self.last {
            NONE => self.first = thread,
            last => threads[last as usize].next = thread,
        }
        self.last = thread;
    }

    pub(crate) fn pop(&mut self, threads: &[Thread]) -> Option<u32> {
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
    pub(crate) fn remove(&mut self, threads: &mut [Thread], thread: u32) {
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
pub(crate) struct Threads {
    pub(crate) all: Vec<Thread>,
    free: Vec<u32>,
    /// Counters of loops and traces, of the threads that have any.
    registers: Vec<Box<[u32]>>,
    free_registers: Vec<u32>,
    /// How many were ever made.
    pub(crate) made: u64,
}

impl Threads {
    /// So many threads are going to be there: makes room for no more.
    pub(crate) fn reserve(&mut self, threads: usize) {
        self.all.reserve_exact(threads);
    }

    /// Threads that are not free.
    pub(crate) fn len(&self) -> usize {
        self.all.len() - self.free.len()
    }

    pub(crate) fn add(&mut self, client: u32, program: Entry, rng: SplitMix64) -> u32 {
        let thread = Thread {
            client,
            next: NONE,
            instruction: program.start,
            registers: self.add_registers(program.registers),
            cpu: NO_CPU,
            state: State::Ready,
            remaining_ns: 0,
            since_ns: 0,
            rng,
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

    pub(crate) fn free(&mut self, thread: u32) {
        let state = &mut self.all[thread as usize];
        state.state = State::Free;
        let registers = std::mem::replace(&mut state.registers, NONE);
        if registers != NONE {
            self.free_registers.push(registers);
        }
        self.free.push(thread);
    }

    fn add_registers(&mut self, count: u8) -> u32 {
        if count == 0 {
            return NONE;
        }
        let registers = vec![0; count.into()].into_boxed_slice();
        match self.free_registers.pop() {
            Some(place) => {
                self.registers[place as usize] = registers;
                place
            }
            None => {
                self.registers.push(registers);
                self.registers.len() as u32 - 1
            }
        }
    }

    /// A register of a thread whose program has it.
    pub(crate) fn register(&mut self, thread: u32, register: u8) -> &mut u32 {
        let registers = self.all[thread as usize].registers;
        &mut self.registers[registers as usize][usize::from(register)]
    }

    /// The next time that a thread draws.
    pub(crate) fn draw(&mut self, thread: u32, draw: &Draw) -> u64 {
        let thread = &mut self.all[thread as usize];
        let registers = self.registers.get_mut(thread.registers as usize);
        draw.next(
            &mut thread.rng,
            registers.map_or(&mut [], |registers| registers),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_and_clients_are_small() {
        assert!(size_of::<Thread>() <= 48);
        assert!(size_of::<Client>() <= 20);
    }
}
