//! Of equals the task that came last goes first, as on the one list of Linux 2.4.

use prorata_core::hybrid::nice::Nice;

use super::super::{Comparison, Cpu, QueueLayout, Task, TaskIndex, TurnEnd};
use super::machine::{TestMachine, WITHOUT_MM};

fn layouts() -> [QueueLayout; 4] {
    [
        QueueLayout::GlobalList,
        QueueLayout::PriorityLevels,
        QueueLayout::MultiQueue(Comparison::Scan),
        QueueLayout::MultiQueue(Comparison::Tournament),
    ]
}

/// One CPU and three equals.
fn machine(layout: &QueueLayout) -> TestMachine {
    let tasks = [0, 1, 2].map(|index| Task::new(TaskIndex(index), Nice::default(), Cpu(0)));
    TestMachine::of(1, WITHOUT_MM, layout, &tasks)
}

fn next(machine: &mut TestMachine, end: TurnEnd) -> Option<u32> {
    machine.decide(0, end).next.map(|task| task.0)
}

#[test]
fn a_waking_task_goes_before_its_equals() {
    for layout in &layouts() {
        let mut machine = machine(layout);
        for index in [0, 1, 2] {
            machine.wake(index);
        }
        let order: Vec<_> = std::iter::from_fn(|| next(&mut machine, TurnEnd::Blocks)).collect();
        assert_eq!(order, [2, 1, 0], "{layout:?}");
    }
}

/// A tick makes the first to wake the first of its new rank, too. Tasks that
/// come down to that rank later stand before it all the same.
#[test]
fn a_task_that_has_run_keeps_its_place_until_it_blocks() {
    for layout in &layouts() {
        let mut machine = machine(layout);
        machine.wake(0);
        assert_eq!(next(&mut machine, TurnEnd::Runnable), Some(0), "{layout:?}");
        machine.queues.tick(Cpu(0));
        machine.wake(1);
        machine.wake(2);
        assert_eq!(next(&mut machine, TurnEnd::Yields), Some(2), "{layout:?}");
        machine.queues.tick(Cpu(0));
        assert_eq!(next(&mut machine, TurnEnd::Yields), Some(1), "{layout:?}");
        machine.queues.tick(Cpu(0));
        // All three have come to the same rank, last of all the running task.
        assert_eq!(next(&mut machine, TurnEnd::Runnable), Some(1), "{layout:?}");
        assert_eq!(next(&mut machine, TurnEnd::Yields), Some(2), "{layout:?}");
        assert_eq!(next(&mut machine, TurnEnd::Blocks), Some(1), "{layout:?}");
        machine.wake(2);
        assert_eq!(next(&mut machine, TurnEnd::Yields), Some(2), "{layout:?}");
    }
}

#[test]
fn a_recalculation_leaves_equals_in_their_places() {
    for layout in &layouts() {
        let mut machine = machine(layout);
        for index in [0, 1, 2] {
            machine.wake(index);
        }
        let mut runs = next(&mut machine, TurnEnd::Runnable);
        while machine.queues.shared.clock(Cpu(0)) == 0 {
            if machine.queues.tick(Cpu(0)) {
                runs = next(&mut machine, TurnEnd::Runnable);
            }
        }
        // The running task goes on. It was the last to expire, and to be chosen.
        assert_eq!(runs, Some(0), "{layout:?}");
        assert_eq!(next(&mut machine, TurnEnd::Blocks), Some(2), "{layout:?}");
        assert_eq!(next(&mut machine, TurnEnd::Blocks), Some(1), "{layout:?}");
    }
}
