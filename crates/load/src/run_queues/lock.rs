//! Locks of run queues, and statistics of them in the form of Lockmeter
//! (2001, reference 3).

use std::hint::spin_loop;
use std::ops::{AddAssign, Deref, DerefMut};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError, TryLockError};
use std::time::Instant;

use prorata_core::run_queue::Queue;
use serde::Serialize;

/// Attempts before a thread that waits for a lock sleeps: some tens of
/// microseconds, longer than locks are held unless their holder has lost its
/// CPU.
const SPINS: u32 = 2_000;

/// A lock and what it protects: a queue, or nothing (a lock on recalculation).
pub trait Lock: Send + Sync {
    /// Held.
    type Guard<'a>: DerefMut<Target = Option<Queue>>
    where
        Self: 'a;

    /// Not held.
    fn new(queue: Option<Queue>) -> Self;

    /// Waits for it.
    fn lock(&self) -> Self::Guard<'_>;

    /// Takes it if nobody holds it.
    fn try_lock(&self) -> Option<Self::Guard<'_>>;

    /// Between two steps of a decision, where other CPUs' may come: nothing
    /// where CPUs run by themselves.
    #[inline]
    fn between_steps() {}
}

/// A lock that is spun for, and no more.
#[derive(Debug)]
pub struct Plain(Mutex<Option<Queue>>);

impl Lock for Plain {
    type Guard<'a> = MutexGuard<'a, Option<Queue>>;

    fn new(queue: Option<Queue>) -> Self {
        Self(Mutex::new(queue))
    }

    #[inline]
    fn lock(&self) -> Self::Guard<'_> {
        try_to_lock(&self.0).unwrap_or_else(|| spin(&self.0))
    }

    #[inline]
    fn try_lock(&self) -> Option<Self::Guard<'_>> {
        try_to_lock(&self.0)
    }
}

fn try_to_lock<T>(mutex: &Mutex<T>) -> Option<MutexGuard<'_, T>> {
    match mutex.try_lock() {
        Ok(guard) => Some(guard),
        Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
        Err(TryLockError::WouldBlock) => None,
    }
}

fn spin<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    for _ in 0..SPINS {
        spin_loop();
        if let Some(guard) = try_to_lock(mutex) {
            return guard;
        }
    }
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What Lockmeter prints of a lock.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct LockStatistics {
    /// Times that it was asked for by who would wait.
    pub asked: u64,
    /// Of these, times that it was not to be had at once.
    pub waited: u64,
    /// Times that it was tried and taken.
    pub tried: u64,
    /// Times that it was tried in vain.
    pub failed: u64,
    /// Sum of all holds.
    pub hold_ns: u64,
    /// The longest hold.
    pub longest_hold_ns: u64,
    /// Sum of all waits.
    pub wait_ns: u64,
    /// The longest wait.
    pub longest_wait_ns: u64,
}

impl LockStatistics {
    /// Part of all requests that found it held; failed attempts are such.
    pub fn contention(&self) -> f64 {
        let all = self.asked + self.tried + self.failed;
        (self.waited + self.failed) as f64 / all.max(1) as f64
    }

    /// The same without attempts: *NF contention* (2001, 5.1).
    pub fn nf_contention(&self) -> f64 {
        self.waited as f64 / self.asked.max(1) as f64
    }

    /// Mean time that it is held.
    pub fn mean_hold_ns(&self) -> f64 {
        self.hold_ns as f64 / (self.asked + self.tried).max(1) as f64
    }

    /// Mean wait of those who waited.
    pub fn mean_wait_ns(&self) -> f64 {
        self.wait_ns as f64 / self.waited.max(1) as f64
    }
}

impl AddAssign for LockStatistics {
    fn add_assign(&mut self, other: Self) {
        self.asked += other.asked;
        self.waited += other.waited;
        self.tried += other.tried;
        self.failed += other.failed;
        self.hold_ns += other.hold_ns;
        self.longest_hold_ns = self.longest_hold_ns.max(other.longest_hold_ns);
        self.wait_ns += other.wait_ns;
        self.longest_wait_ns = self.longest_wait_ns.max(other.longest_wait_ns);
    }
}

/// A lock that keeps statistics. They cost two looks at the clock each time,
/// one of which is within the hold that it measures.
#[derive(Debug)]
pub struct Metered {
    inner: Mutex<Inner>,
    /// Attempts that failed; whoever makes one holds nothing.
    failed: AtomicU64,
}

#[derive(Debug)]
struct Inner {
    queue: Option<Queue>,
    statistics: LockStatistics,
}

impl Metered {
    /// All so far.
    pub fn statistics(&self) -> LockStatistics {
        let inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        LockStatistics {
            failed: self.failed.load(Ordering::Relaxed),
            ..inner.statistics
        }
    }
}

impl Lock for Metered {
    type Guard<'a> = MeteredGuard<'a>;

    fn new(queue: Option<Queue>) -> Self {
        let inner = Inner {
            queue,
            statistics: LockStatistics::default(),
        };
        Self {
            inner: Mutex::new(inner),
            failed: AtomicU64::new(0),
        }
    }

    fn lock(&self) -> MeteredGuard<'_> {
        let (mut inner, since) = match try_to_lock(&self.inner) {
            Some(inner) => (inner, Instant::now()),
            None => {
                let asked = Instant::now();
                let mut inner = spin(&self.inner);
                let since = Instant::now();
                let wait_ns = (since - asked).as_nanos() as u64;
                let statistics = &mut inner.statistics;
                statistics.waited += 1;
                statistics.wait_ns += wait_ns;
                statistics.longest_wait_ns = statistics.longest_wait_ns.max(wait_ns);
                (inner, since)
            }
        };
        inner.statistics.asked += 1;
        MeteredGuard { inner, since }
    }

    fn try_lock(&self) -> Option<MeteredGuard<'_>> {
        let Some(mut inner) = try_to_lock(&self.inner) else {
            self.failed.fetch_add(1, Ordering::Relaxed);
            return None;
        };
        inner.statistics.tried += 1;
        let since = Instant::now();
        Some(MeteredGuard { inner, since })
    }
}

/// Held, since when is known.
#[derive(Debug)]
pub struct MeteredGuard<'a> {
    inner: MutexGuard<'a, Inner>,
    since: Instant,
}

impl Drop for MeteredGuard<'_> {
    fn drop(&mut self) {
        let hold_ns = self.since.elapsed().as_nanos() as u64;
        let statistics = &mut self.inner.statistics;
        statistics.hold_ns += hold_ns;
        statistics.longest_hold_ns = statistics.longest_hold_ns.max(hold_ns);
    }
}

impl Deref for MeteredGuard<'_> {
    type Target = Option<Queue>;

    fn deref(&self) -> &Option<Queue> {
        &self.inner.queue
    }
}

impl DerefMut for MeteredGuard<'_> {
    fn deref_mut(&mut self) -> &mut Option<Queue> {
        &mut self.inner.queue
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Barrier;
    use std::thread::{scope, sleep};
    use std::time::Duration;

    use super::*;

    #[test]
    fn attempts_holds_and_waits_are_counted_apart() {
        let lock = Metered::new(None);
        let barrier = Barrier::new(2);
        scope(|scope| {
            let held = lock.lock();
            assert!(lock.try_lock().is_none());
            scope.spawn(|| {
                barrier.wait();
                drop(lock.lock());
            });
            barrier.wait();
            // However late the other is, it either waits or comes after.
            sleep(Duration::from_millis(1));
            drop(held);
        });
        assert!(lock.try_lock().is_some());
        let found = lock.statistics();
        assert_eq!((found.asked, found.tried, found.failed), (2, 1, 1));
        assert!(found.waited <= 1 && found.longest_hold_ns >= 1_000_000);
        assert!(found.hold_ns >= found.longest_hold_ns);
        assert_eq!(found.wait_ns, found.longest_wait_ns);
        let waited = found.waited as f64;
        assert_eq!(found.contention(), (waited + 1.0) / 4.0);
        assert_eq!(found.nf_contention(), waited / 2.0);
    }
}
