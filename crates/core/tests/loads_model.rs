//! All interleavings of CPUs that change what their queues count for, and of one
//! that reads the sum of their pool (loom): it is of what each queue had at some
//! time, and right in the end.

extern crate alloc;

#[path = "../src/run_queue/load.rs"]
mod load;

/// loom's.
mod atomic {
    pub use loom::sync::atomic::{AtomicU64, Ordering};
}

use std::sync::Arc;

use load::{Load, Loads};
use loom::thread::spawn;

/// Of a queue of so many tasks, which count for seven each.
fn of(tasks: u32) -> Load {
    let mut load = Load::default();
    (0..tasks).for_each(|_| load.add(Some(7)));
    load
}

/// A task of one queue goes, and two come to the other: so meanwhile there are one
/// and none at least, two and two at most.
#[test]
fn a_sum_is_right_when_changes_are_over_and_till_then_of_what_each_queue_had_at_some_time() {
    let mut explorer = loom::model::Builder::new();
    explorer.preemption_bound = Some(3);
    explorer.check(|| {
        let loads = Arc::new(Loads::new(2));
        let nobody = loads.of_pool();
        let tasks = |tasks: u32| (0..tasks).fold(nobody, |pool, _| pool.with(Some(7)));
        loads.set(0, of(2));
        let changes = [(0, vec![of(1)]), (1, vec![of(1), of(2)])];
        let changes = changes.map(|(place, changes)| {
            let loads = Arc::clone(&loads);
            spawn(move || {
                for load in changes {
                    loads.set(place, load);
                    assert_eq!(loads.get(place), load);
                }
            })
        });
        let sum = loads.of_pool();
        assert!(!sum.is_less(tasks(1)) && !tasks(4).is_less(sum));
        for change in changes {
            change.join().unwrap();
        }
        assert!(loads.of_pool().cmp(tasks(3)).is_eq());
        let mut one = of(1);
        one.remove(Some(7));
        assert_eq!(one, of(0));
    });
}
