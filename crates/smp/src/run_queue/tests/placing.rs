//! `reschedule_idle()`: which CPU is told, in every layout; and what sleeping
//! does to a time slice.

use prorata_core::hybrid::nice::Nice;

use super::super::goodness::most_ticks;
use super::super::{
    Comparison, Cpu, Goodness, Placement, Queue, QueueLayout, Schedule, Task, TaskIndex, TurnEnd,
};
use super::machine::{CPUS, Sequential, TestMachine, WITHOUT_MM, equal_tasks};

fn layouts() -> [QueueLayout; 4] {
    [
        QueueLayout::GlobalList,
        QueueLayout::PriorityLevels,
        QueueLayout::MultiQueue(Comparison::Scan),
        QueueLayout::MultiQueue(Comparison::Tournament),
    ]
}

/// Every CPU runs the task of its number; the others are blocked.
fn busy(layout: &QueueLayout, tasks: &[Task]) -> TestMachine {
    let mut machine = TestMachine::new(WITHOUT_MM, layout, tasks);
    for cpu in 0..CPUS {
        machine.wake(cpu);
        assert_eq!(machine.queues.take_told(), [Cpu(cpu)], "{layout:?}");
        let next = machine.decide(cpu, TurnEnd::Runnable).next;
        assert_eq!(next, Some(TaskIndex(cpu)));
    }
    machine
}

/// The CPUs told when a task wakes that ran last on CPU `index % CPUS`.
fn told(machine: &mut TestMachine, index: u32) -> Vec<Cpu> {
    assert!(machine.wake(index));
    machine.queues.take_told()
}

#[test]
fn a_waking_task_tells_its_last_cpu_if_idle_else_the_cpu_idle_longest() {
    for layout in &layouts() {
        let mut machine = busy(layout, &equal_tasks());
        for cpu in [2, 3, 1] {
            machine.decide(cpu, TurnEnd::Blocks);
        }
        assert_eq!(told(&mut machine, 7), [Cpu(3)], "{layout:?}");
        // CPU 3 was told and does not count any more.
        assert_eq!(told(&mut machine, 4), [Cpu(2)], "{layout:?}");
        assert_eq!(told(&mut machine, 8), [Cpu(1)], "{layout:?}");
        assert_eq!(told(&mut machine, 11), [], "{layout:?}");
    }
}

#[test]
fn a_waking_task_preempts_the_lowest_goodness_if_that_gains_more_than_one() {
    for layout in &layouts() {
        let mut machine = busy(layout, &equal_tasks());
        machine.queues.tick(Cpu(2));
        // On CPU 2 it would gain a single point.
        assert_eq!(told(&mut machine, 6), [], "{layout:?}");
        machine.queues.tick(Cpu(2));
        assert_eq!(told(&mut machine, 10), [Cpu(2)], "{layout:?}");

        // On its last CPU a better task runs. Of the others the task on CPU 3
        // is expired.
        let mut tasks = equal_tasks();
        tasks[0].counter = most_ticks(Nice::default());
        let mut machine = busy(layout, &tasks);
        while !machine.queues.tick(Cpu(3)) {}
        assert_eq!(told(&mut machine, 4), [Cpu(3)], "{layout:?}");
    }
}

/// A machine that has recalculated so often, as the first task ran alone on CPU 0.
/// Another task was `asleep` meanwhile.
fn recalculated(layout: &QueueLayout, times: u64, asleep: Option<u32>) -> TestMachine {
    let mut machine = TestMachine::new(WITHOUT_MM, layout, &equal_tasks());
    if let Some(asleep) = asleep {
        machine.wake(asleep);
        machine.decide(asleep, TurnEnd::Runnable);
        machine.decide(asleep, TurnEnd::Blocks);
    }
    machine.wake(0);
    machine.decide(0, TurnEnd::Runnable);
    while machine.queues.shared.clock(Cpu(0)) < times {
        machine.queues.take_told();
        if machine.queues.tick(Cpu(0)) {
            machine.decide(0, TurnEnd::Runnable);
        }
    }
    machine
}

/// The ticks that are left to a task in a queue.
fn counter(machine: &TestMachine, index: u32) -> u32 {
    let mut tasks = machine.queues.queues().iter().flat_map(Queue::tasks);
    let (task, _) = tasks.find(|(task, _)| task.index.0 == index).unwrap();
    task.counter
}

#[test]
fn a_sleeping_task_makes_up_for_recalculations_when_it_wakes() {
    for layout in &layouts() {
        let mut machine = recalculated(layout, 3, Some(1));
        machine.wake(1);
        // 6, and then half of it and 6, three times.
        assert_eq!(counter(&machine, 1), 11, "{layout:?}");
    }
}

#[test]
fn a_new_task_has_missed_no_recalculation() {
    for layout in &layouts() {
        let mut machine = recalculated(layout, 3, None);
        machine.wake(1);
        assert_eq!(counter(&machine, 1), 6, "{layout:?}");
    }
}

/// Queues offer better tasks than the own one, and so many of their locks are
/// held, on so many CPUs: the attempts that a CPU makes, and the task it takes.
fn refused(
    comparison: Comparison,
    cpus: u32,
    has_own: bool,
    end: TurnEnd,
    held: u32,
) -> (u32, Option<TaskIndex>) {
    let layout = QueueLayout::MultiQueue(comparison);
    let mut queues = Sequential::new(Goodness::X86, &layout, cpus).unwrap();
    let task = |index: u32, counter| {
        let task = Task::new(TaskIndex(index), Nice::default(), Cpu(index % cpus));
        Task { counter, ..task }
    };
    let mut run = |index| {
        queues.wake(task(index, most_ticks(Nice::default())));
        queues.schedule(Cpu(index), TurnEnd::Runnable);
    };
    (1..cpus).for_each(&mut run);
    if has_own {
        // CPU 0 idles. There the task has no affinity, and is worth less than
        // what others offer.
        let cpu = Cpu(1);
        queues.wake(Task {
            cpu,
            ..task(cpus, 1)
        });
    }
    queues.wake(task(0, most_ticks(Nice::default())));
    queues.schedule(Cpu(0), TurnEnd::Runnable);
    // No task gains by preemption: all wait where they ran.
    for index in cpus + 1..2 * cpus {
        queues.wake(task(index, most_ticks(Nice::default())));
    }
    let mut decision = Schedule::new(Cpu(0), end, 0);
    let mut attempts = 0;
    queues.run(&mut decision, |_| {
        attempts += 1;
        attempts > held
    });
    (attempts, decision.outcome().next)
}

#[test]
fn a_refused_cpu_goes_on_by_scan_and_keeps_its_own_task_by_tournament() {
    let all = |comparison, has_own| refused(comparison, 8, has_own, TurnEnd::Blocks, u32::MAX);
    let weak = Some(TaskIndex(8));
    assert_eq!(all(Comparison::Scan, true), (7, weak));
    assert_eq!(all(Comparison::Tournament, true), (1, weak));
    // A CPU without a task waits for a lock in the end.
    let (attempts, next) = all(Comparison::Scan, false);
    assert_eq!((attempts, next), (7, Some(TaskIndex(9))));
    let (attempts, next) = all(Comparison::Tournament, false);
    assert_eq!(attempts, 2);
    assert!(next.is_some_and(|next| next > TaskIndex(8)), "{next:?}");
}

#[test]
fn a_cpu_whose_task_yields_goes_on_to_the_next_queue_after_a_refusal() {
    for comparison in [Comparison::Scan, Comparison::Tournament] {
        let (attempts, next) = refused(comparison, 3, false, TurnEnd::Yields, 1);
        assert_eq!(attempts, 2, "{comparison:?}");
        assert_eq!(next, Some(TaskIndex(5)), "{comparison:?}");
    }
    // Another task of the own queue is what the yielding task asked for.
    let content = refused(Comparison::Tournament, 3, true, TurnEnd::Yields, 1);
    assert_eq!(content, (1, Some(TaskIndex(3))));
    let all = |comparison| refused(comparison, 8, false, TurnEnd::Yields, u32::MAX);
    let same = Some(TaskIndex(0));
    assert_eq!(all(Comparison::Scan), (7, same));
    assert_eq!(all(Comparison::Tournament), (2, same));
}

/// The other CPUs are refused the best of all, too: each goes for one nearby.
#[test]
fn a_cpu_refused_the_best_tries_the_nearest_better_one() {
    let (attempts, next) = refused(Comparison::Tournament, 8, false, TurnEnd::Blocks, 1);
    assert_eq!((attempts, next), (2, Some(TaskIndex(10))));
}

/// A task wakes that ran last on CPU 0 of eight, the only busy one, while so many
/// locks are held: the attempts, the queue that the task goes to, and the CPUs
/// told.
fn woken(comparison: Comparison, held: u32) -> (u32, usize, Vec<Cpu>) {
    let layout = QueueLayout::MultiQueue(comparison);
    let mut queues = Sequential::new(WITHOUT_MM, &layout, 8).unwrap();
    let task = |index| Task::new(TaskIndex(index), Nice::default(), Cpu(0));
    queues.wake(task(0));
    queues.schedule(Cpu(0), TurnEnd::Runnable);
    queues.take_told();
    let mut attempts = 0;
    queues.run(&mut Placement::woken(task(1)), |_| {
        attempts += 1;
        attempts > held
    });
    let stands = |queue: &Queue| queue.tasks().any(|(task, _)| task.index == TaskIndex(1));
    let queue = queues.queues().iter().position(stands).unwrap();
    (attempts, queue, queues.take_told())
}

#[test]
fn a_waking_task_refused_twice_waits_where_it_ran_and_tells_an_idle_cpu() {
    for comparison in [Comparison::Scan, Comparison::Tournament] {
        assert_eq!(woken(comparison, 0), (1, 1, vec![Cpu(1)]));
        assert_eq!(woken(comparison, 1), (2, 2, vec![Cpu(2)]));
        assert_eq!(woken(comparison, 2), (2, 0, vec![Cpu(1)]));
        assert_eq!(woken(comparison, u32::MAX), (2, 0, vec![Cpu(1)]));
    }
}
