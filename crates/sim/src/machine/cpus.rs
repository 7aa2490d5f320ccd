//! CPUs, and which of them are idle.

use super::NONE;

/// One CPU.
#[derive(Clone, Debug)]
pub(super) struct Cpu {
    /// Who runs; [`NONE`] while idle.
    pub(super) thread: u32,
    /// Who ran last, gone or not; [`NONE`] if nobody did.
    pub(super) last: u32,
    /// Told apart by this, an event for an earlier thread is void.
    pub(super) stamp: u32,
    /// Up to when its thread's time was accounted for, or when the thread will
    /// begin to run; since when it is idle.
    pub(super) since_ns: u64,
}

/// All CPUs.
#[derive(Debug)]
pub(super) struct Cpus {
    pub(super) all: Vec<Cpu>,
    /// A bit for each CPU, set exactly while it is idle.
    idle: Vec<u64>,
}

impl Cpus {
    pub(super) fn new(count: u32) -> Cpus {
        let cpu = Cpu {
            thread: NONE,
            last: NONE,
            stamp: 0,
            since_ns: 0,
        };
        let mut cpus = Cpus {
            all: vec![cpu; count as usize],
            idle: vec![0; count.div_ceil(64) as usize],
        };
        (0..count).for_each(|cpu| cpus.idle[cpu as usize / 64] |= 1 << (cpu % 64));
        cpus
    }

    #[inline]
    fn is_idle(&self, cpu: u32) -> bool {
        self.idle
            .get(cpu as usize / 64)
            .is_some_and(|word| word >> (cpu % 64) & 1 == 1)
    }

    /// Takes an idle CPU: `wanted` if it is one, else the first from `first`
    /// on; there is one.
    #[inline(always)]
    pub(super) fn take_idle(&mut self, wanted: u32, first: u32) -> u32 {
        let cpu = if self.is_idle(wanted) {
            wanted
        } else {
            self.first_idle(first)
        };
        self.take(cpu);
        cpu
    }

    /// Takes a CPU that is idle.
    #[inline]
    pub(super) fn take(&mut self, cpu: u32) {
        debug_assert!(self.is_idle(cpu));
        self.idle[cpu as usize / 64] &= !(1 << (cpu % 64));
    }

    /// The first idle CPU from one on; the dispatcher gives away no more CPUs
    /// of a pool than are free there.
    fn first_idle(&self, from: u32) -> u32 {
        let mut word = from as usize / 64;
        let mut idle = self.idle[word] & !0 << (from % 64);
        while idle == 0 {
            word += 1;
            idle = self.idle[word];
        }
        word as u32 * 64 + idle.trailing_zeros()
    }

    /// A CPU has nobody to run.
    pub(super) fn release(&mut self, cpu: u32, now_ns: u64) {
        self.idle[cpu as usize / 64] |= 1 << (cpu % 64);
        let cpu = &mut self.all[cpu as usize];
        cpu.last = cpu.thread;
        cpu.thread = NONE;
        cpu.stamp = cpu.stamp.wrapping_add(1);
        cpu.since_ns = now_ns;
    }
}
