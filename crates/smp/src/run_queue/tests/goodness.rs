//! The rules of Linux 2.4, one by one.

use super::super::goodness::MAX_COUNTER;
use super::super::{
    Comparison, Cpu, Goodness, LayoutError, MAX_CPUS, QueueLayout, Task, TaskIndex,
};
use super::machine::Sequential;

fn task() -> Task {
    Task::new(TaskIndex(1), Cpu(0))
}

#[test]
fn goodness_is_the_counter_and_affinity() {
    let goodness = Goodness::X86;
    let mut task = task();
    assert_eq!(task.rank(), 26);
    assert_eq!(goodness.affinity(&task, Cpu(0), Some(1)), 16);
    assert_eq!(goodness.affinity(&task, Cpu(1), Some(1)), 1);
    assert_eq!(goodness.affinity(&task, Cpu(1), None), 0);
    task.counter = 0;
    assert_eq!(task.rank(), 0);
    assert_eq!(goodness.affinity(&task, Cpu(0), Some(1)), 0);
}

#[test]
fn recalculations_converge_to_the_longest_time_slice() {
    for counter in 0..=MAX_COUNTER {
        let mut once = Task { counter, ..task() };
        let mut often = once;
        (0..1000).for_each(|_| once.recalculate(1));
        often.recalculate(1000);
        assert_eq!([once.counter, often.counter], [MAX_COUNTER; 2]);
    }
}

#[test]
fn a_layout_is_refused_by_name() {
    let refusal = |layout, cpus| Sequential::new(Goodness::X86, &layout, cpus).err();
    let pools = |pools: &[u32]| QueueLayout::Pools(pools.to_vec(), Comparison::Scan);
    assert_eq!(
        refusal(QueueLayout::GlobalList, 0),
        Some(LayoutError::Cpus(0))
    );
    assert_eq!(refusal(QueueLayout::GlobalList, MAX_CPUS), None);
    let beyond = MAX_CPUS + 1;
    assert_eq!(
        refusal(QueueLayout::GlobalList, beyond),
        Some(LayoutError::Cpus(beyond))
    );
    let given = LayoutError::PoolsGiven { given: 1, cpus: 2 };
    assert_eq!(refusal(pools(&[0]), 2), Some(given));
    assert_eq!(refusal(pools(&[0, 2]), 2), Some(LayoutError::EmptyPool(1)));
    let far = pools(&[0, u32::MAX]);
    assert_eq!(refusal(far, 2), Some(LayoutError::EmptyPool(1)));
    assert_eq!(refusal(pools(&[1, 0]), 2), None);
}
