//! Of equals: by goodness who came last goes first, as on the one list of Linux 2.4;
//! by pass who has had its pass for longest.

use prorata_core::run_queue::{Comparison, Cpu, End, Layout, Pass, Ranking};

use super::machine::{Machine, Nature, TASKS, WITHOUT_MM};

fn layouts() -> [Layout; 4] {
    [
        Layout::GlobalList,
        Layout::PriorityLevels,
        Layout::MultiQueue(Comparison::Scan),
        Layout::MultiQueue(Comparison::Tournament),
    ]
}

/// Three equals, all of CPU 0 and of no other.
const EQUALS: [u32; 3] = [0, 4, 8];

fn machine<R: Ranking>(ranking: R, layout: &Layout) -> Machine<R> {
    let natures: [Nature; TASKS as usize] = [(0, 1, 0, 0, 1); TASKS as usize];
    Machine::new(ranking, layout, &natures)
}

fn next<R: Ranking>(machine: &mut Machine<R>, end: End) -> Option<u32> {
    let outcome = machine.decide(0, end);
    machine.queues.take_told();
    outcome.next.map(|task| task.0)
}

fn in_order_of_blocks<R: Ranking>(mut machine: Machine<R>) -> Vec<u32> {
    for index in EQUALS {
        machine.wake(index);
    }
    std::iter::from_fn(|| next(&mut machine, End::Blocks)).collect()
}

#[test]
fn who_wakes_goes_before_its_equals_by_goodness_and_behind_them_by_pass() {
    for layout in &layouts() {
        let by_goodness = in_order_of_blocks(machine(WITHOUT_MM, layout));
        assert_eq!(by_goodness, [8, 4, 0], "{layout:?}");
        let pass = Pass::new(1000).unwrap();
        let by_pass = in_order_of_blocks(machine(pass, layout));
        assert_eq!(by_pass, [0, 4, 8], "{layout:?}");
    }
}

/// A tick makes the first to wake the first of its new rank, too; those who come
/// down to that later stand before it all the same.
#[test]
fn who_has_run_keeps_its_place_until_it_blocks() {
    for layout in &layouts() {
        let mut machine = machine(WITHOUT_MM, layout);
        machine.wake(0);
        assert_eq!(next(&mut machine, End::Runnable), Some(0), "{layout:?}");
        machine.queues.tick(Cpu(0));
        machine.wake(4);
        machine.wake(8);
        assert_eq!(next(&mut machine, End::Runnable), Some(8), "{layout:?}");
        machine.queues.tick(Cpu(0));
        assert_eq!(next(&mut machine, End::Runnable), Some(4), "{layout:?}");
        machine.queues.tick(Cpu(0));
        // All three have come to the same rank, last of all who runs.
        assert_eq!(next(&mut machine, End::Runnable), Some(4), "{layout:?}");
        assert_eq!(next(&mut machine, End::Yields), Some(8), "{layout:?}");
        assert_eq!(next(&mut machine, End::Blocks), Some(4), "{layout:?}");
        machine.wake(8);
        assert_eq!(next(&mut machine, End::Yields), Some(8), "{layout:?}");
    }
}

/// So they do when everybody's time slice is recalculated, whatever ranks they had.
#[test]
fn a_recalculation_leaves_everybody_in_place() {
    for layout in &layouts() {
        let mut machine = machine(WITHOUT_MM, layout);
        for index in EQUALS {
            machine.wake(index);
        }
        let mut runs = next(&mut machine, End::Runnable);
        while machine.queues.shared().clock(Cpu(0)) == 0 {
            if machine.queues.tick(Cpu(0)) {
                runs = next(&mut machine, End::Runnable);
            }
        }
        // Who runs goes on. It was the last to expire, and to be chosen.
        assert_eq!(runs, Some(0), "{layout:?}");
        assert_eq!(next(&mut machine, End::Blocks), Some(8), "{layout:?}");
        assert_eq!(next(&mut machine, End::Blocks), Some(4), "{layout:?}");
    }
}
