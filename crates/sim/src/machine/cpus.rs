//! CPUs, and which of them are idle.

use std::ops::Range;

use super::NONE;

/// One CPU.
#[derive(Clone, Debug)]
pub(super) struct Cpu {
    /// The running thread; [`NONE`] while idle.
    pub(super) thread: u32,
    /// The turn in which it runs, by number.
    pub(super) turn: u32,
    /// The thread that ran last, exited or not; [`NONE`] at first.
    pub(super) last: u32,
    /// It marks events: one with an older stamp is void.
    pub(super) stamp: u32,
    /// The time up to which its thread is accounted for, or at which the thread will begin
    /// to run; while idle, the time since when.
    pub(super) since_ns: u64,
}

/// All CPUs.
#[derive(Debug)]
pub(super) struct Cpus {
    pub(super) all: Vec<Cpu>,
    /// A bit for each CPU, set exactly while it is idle.
    idle: Vec<u64>,
    /// Bits that are set.
    idle_count: u32,
    /// Sum of `since_ns` of all CPUs that are not idle, modulo 2^64.
    pub(super) since_sum_ns: u64,
}

impl Cpus {
    pub(super) fn new(count: u32) -> Cpus {
        let cpu = Cpu {
            thread: NONE,
            turn: NONE,
            last: NONE,
            stamp: 0,
            since_ns: 0,
        };
        let mut cpus = Cpus {
            all: vec![cpu; count as usize],
            idle: vec![0; count.div_ceil(64) as usize],
            idle_count: count,
            since_sum_ns: 0,
        };
        (0..count).for_each(|cpu| cpus.idle[cpu as usize / 64] |= 1 << (cpu % 64));
        cpus
    }

    #[inline]
    pub(super) fn is_idle(&self, cpu: u32) -> bool {
        self.idle
            .get(cpu as usize / 64)
            .is_some_and(|word| word >> (cpu % 64) & 1 == 1)
    }

    /// CPU time that threads have used and that is not accounted for. A thread that is about to
    /// run counts for less than nothing.
    pub(super) fn unaccounted_ns(&self, now_ns: u64) -> i64 {
        let busy = self.all.len() as u64 - u64::from(self.idle_count);
        let used_ns = busy.wrapping_mul(now_ns).wrapping_sub(self.since_sum_ns);
        used_ns.cast_signed()
    }

    /// The same on the CPUs of a range, by looking at each.
    pub(super) fn unaccounted_ns_on(&self, cpus: Range<u32>, now_ns: u64) -> i64 {
        let cpus = &self.all[cpus.start as usize..cpus.end as usize];
        let busy = cpus.iter().filter(|cpu| cpu.thread != NONE);
        busy.map(|cpu| now_ns.wrapping_sub(cpu.since_ns).cast_signed())
            .sum()
    }

    /// Takes an idle CPU: `wanted` if it is one, else the first of a range
    /// that has one.
    #[inline(always)]
    pub(super) fn take_idle(&mut self, wanted: u32, cpus: Range<u32>) -> u32 {
        let cpu = if self.is_idle(wanted) {
            wanted
        } else {
            self.first_idle(cpus).expect("one is idle")
        };
        self.take(cpu);
        cpu
    }

    /// Takes a CPU that is idle.
    #[inline]
    pub(super) fn take(&mut self, cpu: u32) {
        debug_assert!(self.is_idle(cpu));
        self.idle[cpu as usize / 64] &= !(1 << (cpu % 64));
        self.idle_count -= 1;
    }

    /// Whether at least one CPU is idle.
    #[inline]
    pub(super) fn any_idle(&self) -> bool {
        self.idle_count > 0
    }

    /// The first CPU of a range that is idle.
    #[inline]
    pub(super) fn first_idle(&self, cpus: Range<u32>) -> Option<u32> {
        let mut word = cpus.start as usize / 64;
        let mut idle = self.idle.get(word)? & !0 << (cpus.start % 64);
        while idle == 0 {
            word += 1;
            idle = *self.idle.get(word)?;
        }
        let cpu = word as u32 * 64 + idle.trailing_zeros();
        (cpu < cpus.end).then_some(cpu)
    }

    /// A CPU becomes idle.
    pub(super) fn release(&mut self, cpu: u32, now_ns: u64) {
        self.idle[cpu as usize / 64] |= 1 << (cpu % 64);
        self.idle_count += 1;
        let cpu = &mut self.all[cpu as usize];
        self.since_sum_ns = self.since_sum_ns.wrapping_sub(cpu.since_ns);
        cpu.last = cpu.thread;
        cpu.thread = NONE;
        cpu.stamp = cpu.stamp.wrapping_add(1);
        cpu.since_ns = now_ns;
    }
}
