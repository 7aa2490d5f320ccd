//! What it costs to find out whether a task moves between pools: locks, tasks
//! and words.

use prorata_core::hybrid::nice::Nice;

use super::super::{Balance, Comparison, Cpu, Goodness, QueueLayout, Task, TaskIndex};
use super::machine::Sequential;

/// Pools of so many CPUs, with so many equal tasks each.
fn pools(cpus: u32, tasks: &[u32]) -> Sequential {
    let all = cpus * tasks.len() as u32;
    let layout = QueueLayout::Pools((0..all).map(|cpu| cpu / cpus).collect(), Comparison::Scan);
    let mut queues = Sequential::new(Goodness::X86, &layout, all).unwrap();
    let homes = (0..)
        .zip(tasks)
        .flat_map(|(pool, &tasks)| (0..tasks).map(move |number| Cpu(pool * cpus + number % cpus)));
    for (home, index) in homes.zip(0..) {
        queues.wake(Task::new(TaskIndex(index), Nice::default(), home));
    }
    queues
}

/// The first pool balances: the locks that it takes, whether a task moves, and
/// the tasks and words looked at.
fn balance(mut queues: Sequential) -> (usize, bool, (u64, u64)) {
    let mut balance = Balance::new(Cpu(0));
    queues.run(&mut balance, |_| true);
    let moves = balance.moving().is_some();
    (queues.locked.len(), moves, queues.examined)
}

#[test]
fn pools_take_no_lock_where_no_task_could_move() {
    for even in [[16, 15], [16, 16], [16, 17]] {
        let (locks, moves, examined) = balance(pools(4, &even));
        assert_eq!((locks, moves, examined), (0, false, (0, 2)), "{even:?}");
    }
    let (locks, moves, _) = balance(pools(4, &[16, 18]));
    assert_eq!((locks, moves), (1, true));
}

/// A look for each pool; of the asked pool, two for each CPU; two for each CPU
/// of the own pool if a task moves.
#[test]
fn balancing_1024_cpus_looks_at_the_pools_and_at_the_cpus_of_two() {
    const POOLS: usize = 128;
    let mut tasks = [32; POOLS];
    let even = balance(pools(8, &tasks));
    assert_eq!(even, (0, false, (0, 128)));
    tasks[POOLS - 1] = 34;
    let (locks, moves, (examined, words)) = balance(pools(8, &tasks));
    println!("one pool has more: {examined} tasks, {words} words");
    assert_eq!((locks, moves, examined), (1, true, 5));
    // Publishing the queue takes five more at most.
    let looks = 128 + 2 * 8 + 2 + 2 * 8;
    assert!((looks..=looks + 5).contains(&words), "{words}");
    // Of two pools a look at each, and at each of the CPUs.
    let (_, moves, (_, words)) = balance(pools(512, &[1024, 1026]));
    assert!(moves && words <= 2 + 4 * 512 + 2 + 5, "{words}");
}
