//! Tickets that are feasible: as if all were worked out afresh.

use std::num::NonZeroU32;

use proptest::prelude::*;
use proptest::test_runner::RngSeed;
use prorata_core::feasible::{Demand, Readjustment};
use prorata_core::run_queue::{TaskIndex, Weights};

/// The tickets of all, from the papers' definition.
fn afresh(weights: &[u32], cpus: u32) -> Vec<u32> {
    let mut sorted: Vec<_> = (0..weights.len()).collect();
    let demand = |&index: &usize| Demand {
        weight: weights[index],
        cpus: 1,
    };
    sorted.sort_by(|a, b| demand(b).cmp_density(&demand(a)).then(a.cmp(b)));
    let total = weights.iter().map(|&weight| u64::from(weight)).sum();
    let mut readjustment = Readjustment::new(total, cpus);
    let cut = sorted.iter().take_while(|i| readjustment.cut(demand(i)));
    let cut: Vec<_> = cut.copied().collect();
    let mut tickets = weights.to_vec();
    for index in cut {
        tickets[index] = readjustment.weight(demand(&index));
    }
    tickets
}

proptest! {
    #![proptest_config(ProptestConfig {
        failure_persistence: None,
        rng_seed: RngSeed::Fixed(2001),
        ..ProptestConfig::default()
    })]

    #[test]
    fn everybody_is_told_in_time(
        changes in prop::collection::vec((0..12u32, prop_oneof![Just(0), 1..100u32, 1..u32::MAX]), 1..100),
        cpus in 1..8u32,
    ) {
        let mut weights = Weights::new(cpus);
        let (mut by_weight, mut told) = (vec![0; 12], vec![0; 12]);
        let mut changed = Vec::new();
        for (task, weight) in changes {
            by_weight[task as usize] = weight;
            told[task as usize] = 0;
            weights.set(TaskIndex(task), NonZeroU32::new(weight), &mut changed);
            for &(TaskIndex(task), tickets) in &changed {
                told[task as usize] = tickets.get();
            }
            prop_assert!(changed.len() <= 2 * cpus as usize + 1);
            prop_assert_eq!(&told, &afresh(&by_weight, cpus));
        }
    }
}
