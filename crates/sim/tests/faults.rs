//! A few thousand trials of fault mode. A seed that fails is printed;
//! `prorata sim --faults --seeds SEED` makes its trial again.

use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use prorata_sim::fault::{Survived, trial};
use prorata_sim::trace::Fingerprint;

/// Trials of a short run, where `SHORT_TESTS` is set, and of any other.
const FEW_TRIALS: u64 = 1000;
const ALL_TRIALS: u64 = 3000;

#[test]
fn random_scenarios_survive_random_faults() {
    let trials = match std::env::var_os("SHORT_TESTS") {
        Some(_) => FEW_TRIALS,
        None => ALL_TRIALS,
    };
    let next = AtomicU64::new(0);
    let work = || {
        let mut total = Survived::default();
        loop {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            if seed >= trials {
                return total;
            }
            let survived = trial(seed, ())
                .1
                .unwrap_or_else(|failure| panic!("{failure}"));
            total.events += survived.events;
            total.faults += survived.faults;
            total.refused += survived.refused;
        }
    };
    let total = thread::scope(|scope| {
        let other = scope.spawn(work);
        let mine = work();
        let other = other.join().expect("the trials of the other thread");
        [mine, other]
    });
    // The trials are worth something: much happens, and most of it is allowed.
    let sum = |of: fn(&Survived) -> u64| total.iter().map(of).sum::<u64>();
    assert!(sum(|t| t.events) > 1000 * trials);
    assert!(sum(|t| t.faults) > 100 * trials);
    assert!(sum(|t| t.refused) < sum(|t| t.faults) / 2);
}

#[test]
fn a_trial_replays_byte_for_byte() {
    for seed in [1, 1994] {
        let fingerprint = || trial(seed, Fingerprint::default()).0;
        assert_eq!(fingerprint(), fingerprint());
    }
    let fingerprint = |seed| trial(seed, Fingerprint::default()).0;
    assert_ne!(fingerprint(1), fingerprint(2));
}
