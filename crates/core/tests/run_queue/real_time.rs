//! Real-time tasks: strictly before all others. Among equals, as in Linux 2.4.3, who
//! woke last goes first and goes on until it blocks, in turns if they are round-robin.

use prorata_core::run_queue::{Change, Comparison, Cpu, End, Layout, Nice, TaskIndex};

use super::machine::{Machine, Nature, TASKS, WITHOUT_MM};

const OTHER: Nature = (0, 0, -20, 0, 0);

fn layouts() -> [Layout; 3] {
    [
        Layout::GlobalList,
        Layout::PriorityLevels,
        Layout::MultiQueue(Comparison::Scan),
    ]
}

/// Tasks on one CPU of the machine, those not named being ordinary.
fn natures(some: &[Nature]) -> Vec<Nature> {
    let mut natures = vec![OTHER; TASKS as usize];
    natures[..some.len()].copy_from_slice(some);
    for nature in &mut natures {
        nature.4 = 1;
    }
    natures
}

fn next(machine: &mut Machine<prorata_core::run_queue::Goodness>, end: End) -> Option<u32> {
    let outcome = machine.decide(0, end);
    machine.queues.take_told();
    outcome.next.map(|task| task.0)
}

#[test]
fn fifo_runs_on_until_it_blocks_or_yields() {
    for layout in layouts() {
        let natures = natures(&[(1, 5, 0, 0, 0), (1, 5, 0, 0, 0), (1, 6, 0, 0, 0), OTHER]);
        let mut machine = Machine::new(WITHOUT_MM, &layout, &natures);
        for index in [3, 1, 0] {
            machine.wake(index);
        }
        assert_eq!(next(&mut machine, End::Runnable), Some(0), "{layout:?}");
        for _ in 0..50 {
            assert!(!machine.queues.tick(Cpu(0)));
        }
        assert_eq!(next(&mut machine, End::Runnable), Some(0));
        // The higher one displaces it, and it goes on before its equal.
        machine.wake(2);
        assert_eq!(next(&mut machine, End::Runnable), Some(2));
        assert_eq!(next(&mut machine, End::Blocks), Some(0));
        assert_eq!(next(&mut machine, End::Yields), Some(1));
        assert_eq!(next(&mut machine, End::Yields), Some(0));
        assert_eq!(next(&mut machine, End::Blocks), Some(1));
        assert_eq!(next(&mut machine, End::Blocks), Some(3));
    }
}

#[test]
fn round_robin_takes_turns_of_a_time_slice() {
    for layout in layouts() {
        let natures = natures(&[(2, 5, 0, 0, 0), (2, 5, 0, 0, 0), OTHER]);
        let mut machine = Machine::new(WITHOUT_MM, &layout, &natures);
        for index in [2, 1, 0] {
            machine.wake(index);
        }
        let mut order = Vec::new();
        let mut runs = next(&mut machine, End::Runnable);
        for _ in 0..24 {
            order.extend(runs);
            if machine.queues.tick(Cpu(0)) {
                runs = next(&mut machine, End::Runnable);
            }
        }
        let turn = |task: u32| [task; 6];
        let expected = [turn(0), turn(1), turn(0), turn(1)].concat();
        assert_eq!(order, expected, "{layout:?}");
    }
}

/// Counters of real-time tasks that wait are nobody's business, however often
/// those of others were recalculated.
#[test]
fn who_changes_while_it_waits_in_the_real_time_queue_changes_in_that_alone() {
    let layout = Layout::MultiQueue(Comparison::Scan);
    let natures = natures(&[(1, 5, 0, 0, 0), (1, 5, 0, 0, 0), OTHER]);
    let mut machine = Machine::new(WITHOUT_MM, &layout, &natures);
    machine.wake(2);
    next(&mut machine, End::Runnable);
    while machine.queues.shared().clock(Cpu(0)) < 3 {
        if machine.queues.tick(Cpu(0)) {
            next(&mut machine, End::Runnable);
        }
    }
    machine.wake(0);
    assert_eq!(next(&mut machine, End::Runnable), Some(0));
    machine.wake(1);
    machine
        .queues
        .adjust(TaskIndex(1), Change::Nice(Nice::new(7).unwrap()));
    let mut tasks = machine
        .queues
        .queues()
        .iter()
        .flat_map(|queue| queue.tasks());
    let (waiting, _) = tasks.find(|(task, _)| task.index == TaskIndex(1)).unwrap();
    assert_eq!((waiting.counter.get(), waiting.nice.get()), (6, 7));
}
