//! Spin locks in virtual time, with the statistics of Lockmeter (2001, 5.1).
//!
//! A lock is a word on a cache line. A CPU that takes the lock from another CPU
//! waits for the line. A CPU that finds the lock held spins. On release the line
//! goes to every spinner in turn before one of them has the lock, so a handover
//! takes a transfer for each spinner. Chance decides which spinner wins, as with
//! the spin locks of Linux 2.4: a CPU may lose many times in a row.

use prorata_core::rng::{Xoshiro256PlusPlus, below};

const NO_CPU: u32 = u32::MAX;

/// All spin locks of a machine.
#[derive(Debug)]
pub(crate) struct Locks {
    all: Vec<Lock>,
    transfer_ns: u64,
    chance: Xoshiro256PlusPlus,
    statistics: LockStatistics,
}

#[derive(Clone, Debug)]
struct Lock {
    /// The CPU that holds the lock or is being handed it; [`NO_CPU`] while free.
    holder: u32,
    /// The CPU whose cache has the line.
    line: u32,
    /// When the holder began to hold it; in the future during a handover.
    since_ns: u64,
    /// CPUs that spin, and when each began.
    spinners: Vec<(u32, u64)>,
}

/// What Lockmeter prints, of some locks together.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct LockStatistics {
    /// Locks taken, successful tries included.
    pub acquisitions: u64,
    /// Of these, those after a wait.
    pub waits: u64,
    /// Tries to take a lock only if it is free.
    pub tries: u64,
    /// Of these, those that failed.
    pub failed_tries: u64,
    /// The sum of all times held.
    pub held_ns: u64,
    /// The longest time held.
    pub longest_hold_ns: u64,
    /// The sum of all waits.
    pub waited_ns: u64,
    /// The longest wait.
    pub longest_wait_ns: u64,
}

/// The answer to a CPU that wants a lock.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Wanted {
    /// The CPU has the lock from this time on.
    From(u64),
    /// The CPU spins until another CPU hands the lock over.
    Spins,
}

impl Locks {
    pub(crate) fn new(count: usize, transfer_ns: u64, chance: Xoshiro256PlusPlus) -> Locks {
        let lock = Lock {
            holder: NO_CPU,
            line: NO_CPU,
            since_ns: 0,
            spinners: Vec::new(),
        };
        Locks {
            all: vec![lock; count],
            transfer_ns,
            chance,
            statistics: LockStatistics::default(),
        }
    }

    /// Forgets what was measured so far.
    pub(crate) fn measure_afresh(&mut self) {
        self.statistics = LockStatistics::default();
    }

    /// What was measured so far.
    pub(crate) fn statistics(&self) -> LockStatistics {
        self.statistics
    }

    /// A CPU wants a lock.
    pub(crate) fn lock(&mut self, lock: usize, cpu: u32, now_ns: u64) -> Wanted {
        let state = &mut self.all[lock];
        if state.holder != NO_CPU {
            state.spinners.push((cpu, now_ns));
            return Wanted::Spins;
        }
        let from_ns = now_ns + state.transfer_ns(cpu, self.transfer_ns);
        state.give(cpu, from_ns);
        self.statistics.acquisitions += 1;
        Wanted::From(from_ns)
    }

    /// A CPU wants a lock only if it is free. Returns whether it is, and when the
    /// CPU has the lock or knows that it has not.
    pub(crate) fn try_lock(&mut self, lock: usize, cpu: u32, now_ns: u64) -> (bool, u64) {
        let state = &mut self.all[lock];
        let from_ns = now_ns + state.transfer_ns(cpu, self.transfer_ns);
        let taken = state.holder == NO_CPU;
        self.statistics.tries += 1;
        if taken {
            state.give(cpu, from_ns);
            self.statistics.acquisitions += 1;
        } else {
            self.statistics.failed_tries += 1;
        }
        (taken, from_ns)
    }

    /// The holder of a lock releases it. Returns the next holder, and from when
    /// on that CPU has the lock.
    pub(crate) fn unlock(&mut self, lock: usize, cpu: u32, now_ns: u64) -> Option<(u32, u64)> {
        let state = &mut self.all[lock];
        debug_assert_eq!(state.holder, cpu);
        let held_ns = now_ns - state.since_ns;
        let statistics = &mut self.statistics;
        statistics.held_ns += held_ns;
        statistics.longest_hold_ns = statistics.longest_hold_ns.max(held_ns);
        state.holder = NO_CPU;
        let spinners = state.spinners.len() as u64;
        if spinners == 0 {
            return None;
        }
        let winner = below(&mut self.chance, spinners) as usize;
        let (next, wanted_ns) = state.spinners.swap_remove(winner);
        let from_ns = now_ns + self.transfer_ns * spinners;
        state.give(next, from_ns);
        let waited_ns = from_ns - wanted_ns;
        statistics.acquisitions += 1;
        statistics.waits += 1;
        statistics.waited_ns += waited_ns;
        statistics.longest_wait_ns = statistics.longest_wait_ns.max(waited_ns);
        Some((next, from_ns))
    }
}

impl Lock {
    fn give(&mut self, cpu: u32, from_ns: u64) {
        self.holder = cpu;
        self.line = cpu;
        self.since_ns = from_ns;
    }

    /// Time until a CPU has the line.
    fn transfer_ns(&self, cpu: u32, transfer_ns: u64) -> u64 {
        u64::from(self.line != cpu) * transfer_ns
    }
}

impl LockStatistics {
    /// Share of all requests that had to wait or failed: Lockmeter's contention.
    pub fn contention(&self) -> f64 {
        share(
            self.waits + self.failed_tries,
            self.acquisitions + self.failed_tries,
        )
    }

    /// The same without tries, which can fail: "NF contention" (2001, 5.1).
    pub fn contention_without_tries(&self) -> f64 {
        let taken_by_trying = self.tries - self.failed_tries;
        share(self.waits, self.acquisitions - taken_by_trying)
    }

    /// Mean time held, in nanoseconds.
    pub fn mean_hold_ns(&self) -> f64 {
        share(self.held_ns, self.acquisitions)
    }

    /// Mean wait, in nanoseconds, of the locks taken after one.
    pub fn mean_wait_ns(&self) -> f64 {
        share(self.waited_ns, self.waits)
    }
}

/// Zero of nothing.
fn share(part: u64, whole: u64) -> f64 {
    part as f64 / whole.max(1) as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use prorata_core::rng::SeedableRng;

    const TRANSFER_NS: u64 = 100;

    fn locks() -> Locks {
        Locks::new(2, TRANSFER_NS, Xoshiro256PlusPlus::seed_from_u64(2001))
    }

    #[test]
    fn a_lock_that_stays_on_its_cpu_costs_no_transfer() {
        let mut locks = locks();
        assert_eq!(locks.lock(0, 1, 1000), Wanted::From(1100));
        assert_eq!(locks.unlock(0, 1, 1500), None);
        assert_eq!(locks.lock(0, 1, 2000), Wanted::From(2000));
        assert_eq!(locks.unlock(0, 1, 2200), None);
        let statistics = locks.statistics();
        assert_eq!((statistics.acquisitions, statistics.waits), (2, 0));
        assert_eq!((statistics.held_ns, statistics.longest_hold_ns), (600, 400));
    }

    #[test]
    fn a_handover_takes_a_transfer_for_each_spinner() {
        let mut locks = locks();
        assert_eq!(locks.lock(0, 1, 0), Wanted::From(100));
        assert_eq!(locks.lock(0, 2, 200), Wanted::Spins);
        assert_eq!(locks.lock(0, 3, 300), Wanted::Spins);
        let (first, from_ns) = locks.unlock(0, 1, 1000).expect("two spin");
        assert_eq!(from_ns, 1000 + 2 * TRANSFER_NS);
        // During a handover the lock is not free.
        assert_eq!(locks.try_lock(0, 1, 1100), (false, 1200));
        let (second, from_ns) = locks.unlock(0, first, 2000).expect("one spins");
        assert_eq!((first + second, from_ns), (5, 2000 + TRANSFER_NS));
        assert_eq!(locks.unlock(0, second, 2200), None);
        let statistics = locks.statistics();
        assert_eq!((statistics.acquisitions, statistics.waits), (3, 2));
        assert_eq!(statistics.waited_ns, (1200 + 2100) - (200 + 300));
        assert_eq!(statistics.contention(), 3.0 / 4.0);
        assert_eq!(statistics.contention_without_tries(), 2.0 / 3.0);
    }

    #[test]
    fn chance_decides_which_spinner_wins() {
        let mut first_served = 0;
        let mut locks = locks();
        for _ in 0..1000 {
            let Wanted::From(_) = locks.lock(1, 0, 0) else {
                unreachable!("it is free")
            };
            (1..4).for_each(|cpu| assert_eq!(locks.lock(1, cpu, 0), Wanted::Spins));
            let mut holder = 0;
            let mut served = Vec::new();
            while let Some((next, from_ns)) =
                locks.unlock(1, holder, 1000 * served.len() as u64 + 1000)
            {
                assert!(from_ns > 0);
                served.push(next);
                holder = next;
            }
            served.sort_unstable_by_key(|cpu| (*cpu != 1) as u32);
            first_served += u32::from(holder == 1);
        }
        // A third of the times, within five standard deviations.
        assert!((258..409).contains(&first_served), "{first_served}");
    }
}
