//! Tickets that are feasible: as if all were worked out afresh.

use proptest::prelude::*;
use proptest::test_runner::RngSeed;
use prorata_core::feasible::{Demand, Readjustment};
use prorata_core::run_queue::{
    MAX_TICKETS, MIN_QUANTUM_NS, Pass, Ranking, TaskIndex, Tickets, Weights,
};

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

    /// Whoever is not told has what it had.
    #[test]
    fn everybody_has_the_tickets_that_are_feasible(
        changes in prop::collection::vec((0..12u32, prop_oneof![Just(0), 1..100u32, 1..=MAX_TICKETS]), 1..100),
        cpus in 1..8u32,
    ) {
        let ranking = Pass::weighted(MIN_QUANTUM_NS, 12).unwrap();
        let feasible = ranking.feasible().unwrap();
        let mut weights = Weights::new(cpus).unwrap();
        let mut by_weight = vec![0; 12];
        let tickets = || -> Vec<u32> {
            let of = |task| feasible.get(TaskIndex(task)).map_or(0, Tickets::get);
            (0..12).map(of).collect()
        };
        for (task, weight) in changes {
            by_weight[task as usize] = weight;
            let mut before = tickets();
            let others = weights.set(TaskIndex(task), Tickets::new(weight).ok(), feasible).unwrap();
            prop_assert_eq!(&tickets(), &afresh(&by_weight, cpus));
            before[task as usize] = tickets()[task as usize];
            prop_assert_eq!(others, before != tickets());
        }
    }
}
