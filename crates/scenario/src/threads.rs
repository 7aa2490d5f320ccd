//! Simulated threads, by number.

use rand_xoshiro::SplitMix64;

use crate::draw::Draw;
use crate::plan::Entry;

/// The state of a thread.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ThreadState {
    /// Exited; its number is free.
    Free,
    /// Exited, but an event that wakes it is still queued.
    Dying,
    /// Runnable, without a CPU.
    Ready,
    /// Running.
    Running,
    /// Sleeps; an event will wake it.
    Sleeping,
    /// Waits for the object that its last instruction names.
    Waiting,
}

/// One thread: 48 bytes, there can be millions.
#[derive(Debug)]
pub struct Thread {
    /// Its client.
    pub client: u32,
    /// The next thread in its client's list of ready or of running threads.
    pub next: u32,
    /// The instruction that comes next.
    pub instruction: u32,
    /// Index of its registers; [`NO_THREAD`] if its program needs none.
    registers: u32,
    /// The CPU on which it runs or ran last; [`NO_CPU`] before that.
    pub cpu: u16,
    /// Its state.
    pub state: ThreadState,
    /// CPU time until the present step is done.
    pub remaining_ns: u64,
    /// The time since which it is ready or waits.
    pub since_ns: u64,
    /// The source of its durations.
    pub rng: SplitMix64,
}

/// No CPU.
pub const NO_CPU: u16 = u16::MAX;
/// No thread.
pub const NO_THREAD: u32 = u32::MAX;

/// All threads, by number. Numbers are reused, the last freed first.
#[derive(Debug, Default)]
pub struct Threads {
    /// Includes free ones.
    pub all: Vec<Thread>,
    free: Vec<u32>,
    /// Counters of loops and traces, for the threads that have any.
    registers: Vec<Box<[u32]>>,
    free_registers: Vec<u32>,
    /// Number of threads ever made.
    pub made: u64,
}

impl Threads {
    /// Makes room for exactly so many threads.
    pub fn reserve(&mut self, threads: usize) {
        self.all.reserve_exact(threads);
    }

    /// Threads that are not free.
    #[allow(clippy::len_without_is_empty, reason = "no caller needs it")]
    #[inline]
    pub fn len(&self) -> usize {
        self.all.len() - self.free.len()
    }

    /// Adds a thread at the beginning of a program.
    #[inline]
    pub fn add(&mut self, client: u32, program: Entry, rng: SplitMix64) -> u32 {
        let thread = Thread {
            client,
            next: NO_THREAD,
            instruction: program.start,
            registers: self.add_registers(program.registers),
            cpu: NO_CPU,
            state: ThreadState::Ready,
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

    /// Frees the number of a thread that exited.
    #[inline]
    pub fn free(&mut self, thread: u32) {
        let state = &mut self.all[thread as usize];
        state.state = ThreadState::Free;
        let registers = std::mem::replace(&mut state.registers, NO_THREAD);
        if registers != NO_THREAD {
            self.free_registers.push(registers);
        }
        self.free.push(thread);
    }

    fn add_registers(&mut self, count: u8) -> u32 {
        if count == 0 {
            return NO_THREAD;
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
    #[inline]
    pub fn register(&mut self, thread: u32, register: u8) -> &mut u32 {
        let registers = self.all[thread as usize].registers;
        &mut self.registers[registers as usize][usize::from(register)]
    }

    /// The next duration that a thread draws.
    #[inline]
    pub fn draw(&mut self, thread: u32, draw: &Draw) -> u64 {
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
    fn a_thread_is_small() {
        assert!(size_of::<Thread>() <= 48);
    }
}
