//! The rules of Linux 2.4, one by one.

use std::collections::BTreeSet;

use prorata_core::hybrid::nice::Nice;

use super::super::goodness::{most_ticks, whole_slice_ticks};
use super::super::{
    Comparison, Cpu, Goodness, LayoutError, MAX_CPUS, QueueLayout, Task, TaskIndex,
};
use super::machine::Sequential;

fn task() -> Task {
    Task::new(TaskIndex(1), Nice::default(), Cpu(0))
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

/// A task with so many ticks left.
fn left(counter: u32, nice: Nice) -> Task {
    Task {
        counter,
        nice,
        ..task()
    }
}

/// Every nice value there is.
fn nice_values() -> impl Iterator<Item = Nice> {
    (-20..=19).filter_map(Nice::new)
}

#[test]
fn recalculations_converge_to_the_longest_time_slice() {
    for nice in nice_values() {
        let most = most_ticks(nice);
        for counter in 0..=most {
            let mut once = left(counter, nice);
            let mut often = once;
            (0..1000).for_each(|_| once.recalculate(1));
            often.recalculate(1000);
            assert_eq!([once.counter, often.counter], [most; 2]);
        }
    }
}

#[test]
fn time_slices_last_one_to_eleven_ticks() {
    let slice_ticks = |value| whole_slice_ticks(Nice::new(value).unwrap());
    assert_eq!([-20, 0, 19, 20].map(slice_ticks), [11, 6, 1, 1]);
}

/// "This method of enqueueing tasks results in 61 lists for the x86 platform" (2001, 3). One of these
/// is for real-time tasks, which are missing here; the difference of one is open.
#[test]
fn the_goodness_of_ordinary_tasks_has_61_values() {
    let ranks = nice_values()
        .flat_map(|nice| (0..=most_ticks(nice)).map(move |counter| left(counter, nice).rank()));
    let lists: BTreeSet<i64> = ranks.collect();
    assert_eq!(lists.len(), 61);
    assert_eq!((lists.first(), lists.last()), (Some(&0), Some(&61)));
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
