//! What it costs to find out whether a task is to move between pools: locks,
//! tasks and words.

use prorata_core::run_queue::{
    Balance, Comparison, Cpu, Goodness, Layout, MIN_QUANTUM_NS, Pass, Ranking, Sequential, Task,
    TaskIndex,
};

use super::machine::Locks;

/// Pools of so many CPUs, with so many tasks each, all of them alike.
fn pools<R: Ranking>(ranking: R, cpus: u32, tasks: &[u32]) -> Sequential<R> {
    let all = cpus * tasks.len() as u32;
    let layout = Layout::Pools((0..all).map(|cpu| cpu / cpus).collect(), Comparison::Scan);
    let mut queues = Sequential::new(ranking, &layout, all).unwrap();
    let homes = (0..)
        .zip(tasks)
        .flat_map(|(pool, &tasks)| (0..tasks).map(move |number| Cpu(pool * cpus + number % cpus)));
    for (home, index) in homes.zip(0..) {
        queues.wake(Task::new(TaskIndex(index), home)).unwrap();
    }
    queues
}

/// The first pool balances: the locks that it takes, whether somebody moves, and
/// the tasks and words looked at.
fn balance<R: Ranking>(queues: &mut Sequential<R>) -> (usize, bool, (u64, u64)) {
    let mut balance = Locks(Balance::new(Cpu(0)), Vec::new());
    queues.run(&mut balance, |_| true);
    let Locks(balance, locks) = balance;
    (locks.len(), balance.moving().is_some(), queues.examined())
}

fn check_asks<R: Ranking>(new: impl Fn() -> R) {
    for even in [[16, 15], [16, 16], [16, 17]] {
        let (locks, moves, examined) = balance(&mut pools(new(), 4, &even));
        assert_eq!((locks, moves, examined), (0, false, (0, 2)), "{even:?}");
    }
    let (locks, moves, _) = balance(&mut pools(new(), 4, &[16, 18]));
    assert_eq!((locks, moves), (1, true));
}

/// Where one task more would not do, and with that one.
#[test]
fn nobody_is_asked_where_nobody_could_move() {
    check_asks(|| Goodness::X86);
    check_asks(|| Pass::new(MIN_QUANTUM_NS).unwrap());
    check_asks(|| Pass::weighted(MIN_QUANTUM_NS, 64).unwrap());
}

/// A look for each pool; of one that is asked, two for each CPU there, and two
/// for each CPU of the own one if somebody moves.
#[test]
fn on_1024_cpus_it_looks_at_pools_and_at_the_cpus_of_two() {
    const POOLS: usize = 128;
    let mut tasks = [32; POOLS];
    let even = balance(&mut pools(Goodness::X86, 8, &tasks));
    assert_eq!(even, (0, false, (0, 128)));
    tasks[POOLS - 1] = 34;
    let (locks, moves, (examined, words)) = balance(&mut pools(Goodness::X86, 8, &tasks));
    println!("one pool has more: {examined} tasks, {words} words");
    assert_eq!((locks, moves, examined), (1, true, 5));
    // What is published of the queue are five more at most.
    let looks = 128 + 2 * 8 + 2 + 2 * 8;
    assert!((looks..=looks + 5).contains(&words), "{words}");
    // Of two pools a look at each, and at each of the CPUs.
    let (_, moves, (_, words)) = balance(&mut pools(Goodness::X86, 512, &[1024, 1026]));
    assert!(moves && words <= 2 + 4 * 512 + 2 + 5, "{words}");
}
