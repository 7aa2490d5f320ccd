//! Tried locks that are held: what that changes, and that nothing else does.

use std::cell::RefCell;

use proptest::prelude::*;
use proptest::test_runner::TestRunner;

use super::super::{Comparison, QueueLayout};
use super::machine::{Event, TestMachine, WITHOUT_MM, events, tasks};
use super::reference::compare_decision;
use super::seeded;

/// How CPUs decided that were asked to.
#[derive(Default, Debug)]
struct Seen {
    unrefused: u32,
    /// With a refusal, and as by a look at every task all the same.
    refused: u32,
    /// With a refusal, and not as by a look at every task.
    otherwise: u32,
}

#[test]
fn a_decision_differs_from_a_look_at_every_task_only_where_a_lock_was_refused() {
    let layouts = [
        QueueLayout::MultiQueue(Comparison::Scan),
        QueueLayout::MultiQueue(Comparison::Tournament),
        QueueLayout::Pools(vec![0, 1, 1, 1], Comparison::Scan),
        QueueLayout::Pools(vec![0, 0, 1, 0], Comparison::Tournament),
    ];
    for layout in layouts {
        let seen = RefCell::new(Seen::default());
        let grants = prop::collection::vec(any::<bool>(), 1..40);
        let strategy = (tasks(), events(), grants);
        let config = ProptestConfig {
            cases: 200,
            ..seeded(2001)
        };
        let run = TestRunner::new(config).run(&strategy, |(tasks, events, grants)| {
            let mut machine = TestMachine::new(WITHOUT_MM, &layout, &tasks);
            machine.grants = grants;
            for &event in &events {
                let same = compare_decision(&mut machine, event);
                if !matches!(event, Event::Decide(..)) {
                    continue;
                }
                let mut seen = seen.borrow_mut();
                match (machine.made[0].refused, same) {
                    (0, same) => {
                        same.map_err(TestCaseError::fail)?;
                        seen.unrefused += 1;
                    }
                    (_, Ok(())) => seen.refused += 1,
                    (_, Err(_)) => seen.otherwise += 1,
                }
            }
            Ok(())
        });
        run.unwrap_or_else(|failure| panic!("{layout:?}: {failure}"));
        let seen = seen.borrow();
        println!("{layout:?}: {seen:?}");
        assert!(seen.unrefused > 1000 && seen.refused > 100 && seen.otherwise > 50);
    }
}
