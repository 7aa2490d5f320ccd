//! The rules of Linux 2.4, one by one.

use prorata_core::run_queue::{
    Class, Comparison, Counter, Cpu, Goodness, Layout, LayoutError, MAX_COUNTER, MAX_CPUS,
    MAX_RETURNED, Nice, REAL_TIME, Ranking, Sequential, Task, TaskIndex, fork_counter,
    return_counter,
};

fn task() -> Task {
    Task::new(TaskIndex(1), Cpu(0))
}

#[test]
fn time_slices_by_nice_value() {
    let slice = |nice| Nice::new(nice).unwrap().whole_slice().get();
    assert_eq!([slice(0), slice(-20), slice(19)], [6, 11, 1]);
}

#[test]
fn goodness_and_affinity() {
    let ranking = Goodness::X86;
    let mut task = task();
    assert_eq!(ranking.rank(&task), 26);
    assert_eq!(ranking.affinity(&task, Cpu(0), Some(1)), 16);
    assert_eq!(ranking.affinity(&task, Cpu(1), Some(1)), 1);
    assert_eq!(ranking.affinity(&task, Cpu(1), None), 0);
    task.counter = Counter::ZERO;
    assert_eq!(ranking.rank(&task), 0);
    assert_eq!(ranking.affinity(&task, Cpu(0), Some(1)), 0);
    task.class = Class::Fifo;
    task.rt_priority = 7;
    assert_eq!(ranking.rank(&task), REAL_TIME + 7);
    assert_eq!(ranking.affinity(&task, Cpu(0), Some(1)), 0);
}

#[test]
fn recalculations_converge_and_stay_within_the_levels() {
    let ranking = Goodness::X86;
    for nice in -20..20 {
        let mut once = task();
        once.nice = Nice::new(nice).unwrap();
        once.counter = Counter::new(MAX_COUNTER).unwrap();
        let mut often = once.clone();
        (0..1000).for_each(|_| ranking.recalculate(&mut once, 1));
        ranking.recalculate(&mut often, 1000);
        assert_eq!(once.counter, often.counter);
        assert!((ranking.rank(&once) as usize) < ranking.levels() - 1);
    }
}

#[test]
fn forking_gains_nothing_and_exit_gives_back() {
    let mut parent = task();
    for ticks in 0..=MAX_RETURNED {
        parent.counter = Counter::new(ticks).unwrap();
        let mut child = task();
        child.counter = fork_counter(&mut parent);
        assert_eq!(parent.counter.get() + child.counter.get(), ticks);
        return_counter(&mut parent, &child);
        assert_eq!(parent.counter.get(), ticks);
    }
    let child = task();
    return_counter(&mut parent, &child);
    assert_eq!(parent.counter.get(), MAX_RETURNED);
}

#[test]
fn a_layout_is_refused_by_name() {
    let refusal = |layout, cpus| Sequential::new(Goodness::X86, &layout, cpus).err();
    let pools = |pools: &[u32]| Layout::Pools(pools.to_vec(), Comparison::Scan);
    assert_eq!(refusal(Layout::GlobalList, 0), Some(LayoutError::Cpus(0)));
    assert_eq!(refusal(Layout::GlobalList, MAX_CPUS), None);
    let beyond = MAX_CPUS + 1;
    assert_eq!(
        refusal(Layout::GlobalList, beyond),
        Some(LayoutError::Cpus(beyond))
    );
    let given = LayoutError::PoolsGiven { given: 1, cpus: 2 };
    assert_eq!(refusal(pools(&[0]), 2), Some(given));
    assert_eq!(refusal(pools(&[0, 2]), 2), Some(LayoutError::EmptyPool(1)));
    let far = pools(&[0, u32::MAX]);
    assert_eq!(refusal(far, 2), Some(LayoutError::EmptyPool(1)));
    assert_eq!(refusal(pools(&[1, 0]), 2), None);
}
