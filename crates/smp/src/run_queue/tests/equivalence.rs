//! DSS and PLS decide the same (2001, 3), and MQ what DSS would (2001, 4).

use proptest::prelude::*;

use super::super::{Comparison, Goodness, QueueLayout, Task};
use super::machine::{Event, TestMachine, WITHOUT_MM, events, tasks};
use super::reference::compare_decision;
use super::seeded;

fn config() -> ProptestConfig {
    ProptestConfig {
        cases: 400,
        ..seeded(2001)
    }
}

fn layouts() -> [QueueLayout; 6] {
    [
        QueueLayout::GlobalList,
        QueueLayout::PriorityLevels,
        QueueLayout::MultiQueue(Comparison::Scan),
        QueueLayout::MultiQueue(Comparison::Tournament),
        QueueLayout::Pools(vec![0, 1, 1, 0], Comparison::Scan),
        QueueLayout::Pools(vec![0, 1, 2, 3], Comparison::Tournament),
    ]
}

/// The decisions of both are the same, to the last field.
fn list_and_levels_agree(
    goodness: Goodness,
    tasks: &[Task],
    events: Vec<Event>,
) -> Result<(), TestCaseError> {
    let mut list = TestMachine::new(goodness, &QueueLayout::GlobalList, tasks);
    let mut levels = TestMachine::new(goodness, &QueueLayout::PriorityLevels, tasks);
    for event in events {
        let [by_list, by_levels] = [&mut list, &mut levels].map(|m| m.happen(event));
        prop_assert_eq!(format!("{by_list:?}"), format!("{by_levels:?}"));
    }
    Ok(())
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn levels_pick_the_task_that_the_list_picks(tasks in tasks(), events in events()) {
        list_and_levels_agree(WITHOUT_MM, &tasks, events)?;
    }

    #[test]
    fn levels_agree_with_the_list_where_no_two_tasks_share_an_address_space(
        mut tasks in tasks(),
        events in events(),
    ) {
        tasks.iter_mut().zip(100..).for_each(|(task, mm)| task.mm = mm);
        list_and_levels_agree(Goodness::X86, &tasks, events)?;
    }

    #[test]
    fn every_layout_decides_by_goodness(tasks in tasks(), events in events()) {
        for layout in layouts() {
            let mut machine = TestMachine::new(WITHOUT_MM, &layout, &tasks);
            for &event in &events {
                compare_decision(&mut machine, event).unwrap();
                machine.check();
            }
        }
    }

    #[test]
    fn no_task_is_lost_where_locks_are_held(
        tasks in tasks(),
        events in events(),
        grants in prop::collection::vec(any::<bool>(), 1..40),
    ) {
        for layout in layouts() {
            let mut machine = TestMachine::new(Goodness::X86, &layout, &tasks);
            // Every holder of a lock releases it some time.
            machine.grants = [&grants[..], &[true]].concat();
            for &event in &events {
                machine.happen(event);
                machine.check();
            }
        }
    }
}
