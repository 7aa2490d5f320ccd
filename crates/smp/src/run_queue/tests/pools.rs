//! Pools of CPUs: the continuum between MQ and separate queues, and balancing.

use proptest::prelude::*;

use super::super::{
    Comparison, Cpu, Goodness, Queue, QueueLayout, Scheduled, Task, TaskIndex, TurnEnd,
};
use super::machine::{CPUS, Event, TestMachine, events, task, tasks};
use super::seeded;

proptest! {
    #![proptest_config(seeded(2001))]

    #[test]
    fn one_pool_is_mq(tasks in tasks(), events in events()) {
        let layouts = [
            QueueLayout::MultiQueue(Comparison::Scan),
            QueueLayout::Pools(vec![0; CPUS as usize], Comparison::Scan),
        ];
        let mut machines = layouts.map(|layout| TestMachine::new(Goodness::X86, &layout, &tasks));
        for event in events {
            let [mq, pool] = machines.each_mut().map(|machine| machine.happen(event));
            prop_assert_eq!(format!("{mq:?}"), format!("{pool:?}"));
        }
    }

    /// Each CPU decides as a machine of its own would.
    #[test]
    fn pools_of_one_cpu_are_separate_queues(tasks in tasks(), events in events()) {
        let pools = QueueLayout::Pools((0..CPUS).collect(), Comparison::Scan);
        let mut together = TestMachine::new(Goodness::X86, &pools, &tasks);
        let queue = QueueLayout::MultiQueue(Comparison::Scan);
        let on_first: Vec<_> = tasks.iter().map(|&task| Task { cpu: Cpu(0), ..task }).collect();
        let mut alone: Vec<_> = (0..CPUS)
            .map(|_| TestMachine::of(1, Goodness::X86, &queue, &on_first))
            .collect();
        for event in events {
            let (cpu, of_one) = match event {
                Event::Wake(task) => (task % CPUS, event),
                Event::Decide(cpu, end) => (cpu, Event::Decide(0, end)),
                Event::Tick(cpu) => (cpu, Event::Tick(0)),
            };
            let by_pool = together.happen(event);
            let by_one = alone[cpu as usize].happen(of_one);
            prop_assert_eq!(brief(by_pool), brief(by_one));
        }
    }

    /// After each event pools take tasks as long as any can.
    #[test]
    fn balancing_ends_with_pools_as_even_as_whole_tasks_permit(
        tasks in tasks(),
        events in events(),
        last in 0..3u32,
    ) {
        let pool_of = [0, 1, 2, last];
        let layout = QueueLayout::Pools(pool_of.to_vec(), Comparison::Tournament);
        let mut machine = TestMachine::new(Goodness::X86, &layout, &tasks);
        for event in events {
            machine.happen(event);
            balance_out(&mut machine, &pool_of);
            for cpu in machine.queues.take_told() {
                machine.decide(cpu.0, TurnEnd::Runnable);
            }
            machine.queues.take_told();
            check_even(&machine, &pool_of);
        }
    }
}

/// Of each decision: the task that runs next, and what is left of the slice of a
/// task that blocks.
fn brief(decided: Vec<(Cpu, Scheduled)>) -> Vec<(Option<TaskIndex>, Option<u32>)> {
    let brief = |(_, outcome): (Cpu, Scheduled)| {
        let blocked = outcome.blocked.map(|task| task.counter);
        (outcome.next, blocked)
    };
    decided.into_iter().map(brief).collect()
}

/// All pools take tasks until none does. With each move the loads of all pools,
/// the largest first, decrease lexicographically.
fn balance_out(machine: &mut TestMachine, pool_of: &[u32; 4]) {
    let (mut moves, mut still) = (0, 0);
    let mut cpus = [0, 1, 2].map(Cpu).into_iter().cycle();
    while still < 3 {
        let before = sorted_loads(machine, pool_of);
        still += 1;
        if machine.balance(cpus.next().unwrap()) {
            assert!(sorted_loads(machine, pool_of) < before);
            machine.check();
            (moves, still) = (moves + 1, 0);
            assert!(moves < 100, "it never ends");
        }
    }
}

fn of_pool<'a>(
    machine: &'a TestMachine,
    pool_of: &'a [u32; 4],
    pool: u32,
) -> impl Iterator<Item = &'a Queue> {
    let queues = machine.queues.queues().iter().zip(pool_of);
    queues.filter_map(move |(queue, of)| (*of == pool).then_some(queue))
}

/// Tasks a CPU of a pool, with so many more. Pools have one or two CPUs, so
/// twice that is a whole number.
fn double_load(machine: &TestMachine, pool_of: &[u32; 4], pool: u32, more: u32) -> u32 {
    let cpus = of_pool(machine, pool_of, pool).count() as u32;
    let tasks: u32 = of_pool(machine, pool_of, pool).map(Queue::len).sum();
    (tasks + more) * 2 / cpus
}

fn sorted_loads(machine: &TestMachine, pool_of: &[u32; 4]) -> Vec<u32> {
    let mut loads = [0, 1, 2].map(|pool| double_load(machine, pool_of, pool, 0));
    loads.sort_by(|a, b| b.cmp(a));
    loads.to_vec()
}

/// No task waits in a pool that could move to another and leave that with less
/// load than its own pool has.
fn check_even(machine: &TestMachine, pool_of: &[u32; 4]) {
    for (giver, taker) in (0..3).flat_map(|a| (0..3).map(move |b| (a, b))) {
        let mut waiting = of_pool(machine, pool_of, giver).flat_map(Queue::tasks);
        let waits = waiting.any(|(_, runs)| !runs);
        let [had, would] =
            [(giver, 0), (taker, 1)].map(|(pool, more)| double_load(machine, pool_of, pool, more));
        assert!(!(waits && would < had), "from {giver} to {taker}");
    }
}

/// The pool of the second CPU is empty; both tasks of the first wait there.
#[test]
fn an_idle_pool_takes_a_task_that_waits() {
    let layout = QueueLayout::Pools(vec![0, 1], Comparison::Scan);
    let tasks = [0, 1].map(|index| Task {
        cpu: Cpu(0),
        ..task(index)
    });
    let mut machine = TestMachine::of(2, Goodness::X86, &layout, &tasks);
    machine.wake(0);
    machine.decide(0, TurnEnd::Runnable);
    machine.queues.take_told();
    assert!(!machine.balance(Cpu(1)), "a running task stays");
    machine.wake(1);
    assert!(machine.balance(Cpu(1)));
    assert_eq!(machine.queues.take_told(), [Cpu(1)]);
    assert_eq!(
        machine.decide(1, TurnEnd::Runnable).next,
        Some(tasks[1].index)
    );
}
