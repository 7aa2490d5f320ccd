//! All interleavings, up to a number of preemptions, of CPUs that publish what
//! they offer (loom): the tournament names the best when they have done, and
//! who idles and who waits do not miss each other.
//!
//! Every single access is a step here. loom takes sequentially consistent
//! accesses for weaker ones than they are, so each stands between two fences.

extern crate alloc;

#[path = "../src/run_queue/board.rs"]
mod board;

#[path = "../src/run_queue/place_set.rs"]
mod place_set;

/// What offers are compared by, as in the library.
mod ranking {
    pub use prorata_core::run_queue::{NOBODY, Rank};
}

/// loom's, in one order of all accesses.
mod atomic {
    pub use loom::sync::atomic::Ordering;
    use loom::sync::atomic::{self, fence};

    fn fenced<T>(access: impl FnOnce() -> T) -> T {
        fence(Ordering::SeqCst);
        let result = access();
        fence(Ordering::SeqCst);
        result
    }

    #[derive(Debug)]
    pub struct AtomicI64(atomic::AtomicI64);

    impl AtomicI64 {
        pub fn new(value: i64) -> Self {
            Self(atomic::AtomicI64::new(value))
        }

        pub fn load(&self, order: Ordering) -> i64 {
            fenced(|| self.0.load(order))
        }

        pub fn store(&self, value: i64, order: Ordering) {
            fenced(|| self.0.store(value, order));
        }
    }

    #[derive(Debug)]
    pub struct AtomicU64(atomic::AtomicU64);

    impl AtomicU64 {
        pub fn new(value: u64) -> Self {
            Self(atomic::AtomicU64::new(value))
        }

        pub fn load(&self, order: Ordering) -> u64 {
            fenced(|| self.0.load(order))
        }

        pub fn fetch_add(&self, value: u64, order: Ordering) -> u64 {
            fenced(|| self.0.fetch_add(value, order))
        }

        pub fn fetch_sub(&self, value: u64, order: Ordering) -> u64 {
            fenced(|| self.0.fetch_sub(value, order))
        }

        pub fn compare_exchange(
            &self,
            before: u64,
            after: u64,
            success: Ordering,
            failure: Ordering,
        ) -> Result<u64, u64> {
            fenced(|| self.0.compare_exchange(before, after, success, failure))
        }
    }
}

use std::sync::Arc;
use std::sync::atomic::{AtomicU64 as Count, Ordering::Relaxed};

use board::{Best, Comparison, Offers};
use loom::thread::spawn;
use place_set::PlaceSet;
use ranking::{NOBODY, Rank};

/// Explores; returns how many executions there were.
fn check(preemptions: usize, execute: impl Fn() + Send + Sync + 'static) -> u64 {
    let executions = Arc::new(Count::new(0));
    let counted = Arc::clone(&executions);
    let mut explorer = loom::model::Builder::new();
    explorer.preemption_bound = Some(preemptions);
    explorer.max_branches = 20_000;
    explorer.check(move || {
        counted.fetch_add(1, Relaxed);
        execute();
    });
    println!("{} executions", executions.load(Relaxed));
    executions.load(Relaxed)
}

fn tournament(values: &[Rank]) -> Arc<Offers> {
    let offers = Offers::new(values.len() as u32, Comparison::Tournament, NOBODY);
    for (place, &value) in (0..).zip(values) {
        offers.set(place, value);
    }
    Arc::new(offers)
}

/// Each of some places changes its values by itself; after that the root names
/// who a scan finds.
fn ends_with_the_best(before: &'static [Rank], changes: &'static [(u32, &'static [Rank])]) {
    let executions = check(3, move || {
        let offers = tournament(before);
        let cpus = changes.iter().map(|&(place, values)| {
            let offers = Arc::clone(&offers);
            spawn(move || {
                for &value in values {
                    offers.set(place, value);
                }
            })
        });
        for cpu in cpus.collect::<Vec<_>>() {
            cpu.join().unwrap();
        }
        let scan = Offers::new(offers.places(), Comparison::Scan, NOBODY);
        for place in 0..offers.places() {
            scan.set(place, offers.get(place));
        }
        assert!(offers.is_tournament() && !scan.is_tournament());
        let (best, _) = scan.best_except(&[]);
        assert_eq!(offers.best_except(&[]).0, best);
        let all = PlaceSet::new(offers.places(), 0..offers.places());
        assert_eq!(offers.best_of(&all).0, best);
        let value = |best: Option<Best>| best.map(|best| best.value);
        for place in 0..offers.places() {
            assert_eq!(value(offers.best_near(place, NOBODY, &[]).0), value(best));
            let nearest = offers.nearest_above(place, NOBODY, &[]).0;
            assert!(nearest.is_some() || best.is_none_or(|best| best.place == place));
        }
    });
    assert!(executions > 20);
}

#[test]
fn two_cpus_of_one_half_change_at_a_time() {
    ends_with_the_best(&[9, 5, 7, NOBODY], &[(0, &[1]), (1, &[2])]);
    ends_with_the_best(&[9, 8, 7, NOBODY], &[(0, &[NOBODY]), (1, &[NOBODY])]);
}

/// The second finds the first gone and a third the best; the first finds the
/// second where it won before. Neither may take the other to have told the
/// root.
#[test]
fn two_changes_do_not_end_below_the_root_because_of_each_other() {
    let before = &[9, 3, 5, NOBODY, NOBODY];
    ends_with_the_best(before, &[(0, &[1]), (1, &[2])]);
}

#[test]
fn two_cpus_of_different_halves_change_at_a_time() {
    ends_with_the_best(&[9, 5, 7, 6], &[(0, &[1]), (2, &[2])]);
}

#[test]
fn one_falls_while_another_comes_and_goes() {
    ends_with_the_best(&[9, 3, 6, NOBODY], &[(0, &[5]), (1, &[10, 1])]);
}

#[test]
fn three_cpus_change_at_a_time() {
    ends_with_the_best(&[9, 3, 6, NOBODY], &[(0, &[5]), (1, &[7]), (2, &[8])]);
}

/// The nearest of two equals is gone while somebody asks: the other one still
/// offers as much.
#[test]
fn who_asks_for_the_nearest_is_told_of_somebody() {
    let executions = check(3, || {
        let offers = tournament(&[9, NOBODY, 9, NOBODY]);
        let other = {
            let offers = Arc::clone(&offers);
            spawn(move || {
                offers.set(2, NOBODY);
            })
        };
        let asks = spawn(move || offers.best_near(3, NOBODY, &[]).0);
        other.join().unwrap();
        let found = asks.join().unwrap();
        assert_eq!(found.map(|found| found.value), Some(9));
    });
    assert!(executions > 5);
}

/// While another queue withdraws its offer, a task comes to a queue that may run
/// on two CPUs, and one of these falls idle: one of the two sees the other.
#[test]
fn who_waits_and_who_idles_do_not_miss_each_other() {
    let executions = check(3, || {
        let offers = tournament(&[9, NOBODY, NOBODY]);
        let idle = tournament(&[NOBODY, NOBODY, 5]);
        let other = {
            let (offers, idle) = (Arc::clone(&offers), Arc::clone(&idle));
            spawn(move || {
                offers.set(0, NOBODY);
                idle.set(2, NOBODY);
            })
        };
        let waits = {
            let (offers, idle) = (Arc::clone(&offers), Arc::clone(&idle));
            spawn(move || {
                offers.set(1, 3);
                idle.best_of_above_bar(&PlaceSet::new(3, 0..2)).0.is_some()
            })
        };
        idle.set(0, 4);
        let sees_who_waits = offers.best_above_bar(|place| place != 0).0.is_some();
        let is_seen = waits.join().unwrap();
        other.join().unwrap();
        assert!(sees_who_waits || is_seen);
    });
    assert!(executions > 20);
}
