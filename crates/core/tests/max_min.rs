//! Weighted max-min fair rates against an exact reference, on small random cases.

mod fair_rates;

use fair_rates::{Claimant, Fraction, rates};
use prorata_core::affinity::Affinity;
use prorata_core::feasible::{Demand, feasible_weights};
use prorata_core::max_min::{ConfinedDemand, MAX_CLASSES, levels, max_min_weights};
use prorata_core::rng::{SeedableRng, Xoshiro256PlusPlus, below};

const CASES: u64 = 20_000;

fn affinity(bits: u32) -> Affinity {
    (0..u32::BITS).filter(|cpu| bits >> cpu & 1 == 1).collect()
}

/// The demands of clients with these weights, threads and affinities; zero bits for all CPUs.
fn confined(clients: &[(u32, u32, u32)]) -> (Vec<ConfinedDemand>, Vec<Affinity>) {
    let mut known: Vec<u32> = clients.iter().map(|client| client.2).collect();
    known.retain(|bits| *bits != 0);
    known.sort_unstable();
    known.dedup();
    let demands = clients.iter().map(|&(weight, cpus, bits)| ConfinedDemand {
        demand: Demand { weight, cpus },
        class: known
            .iter()
            .position(|known| *known == bits)
            .map_or(0, |place| place + 1),
    });
    (
        demands.collect(),
        known.iter().copied().map(affinity).collect(),
    )
}

fn weights(clients: &[(u32, u32, u32)], cpus: u32) -> Vec<u32> {
    let (demands, affinities) = confined(clients);
    max_min_weights(&demands, &affinities, cpus)
}

#[test]
fn clients_of_one_cpu_share_it_by_weight() {
    assert_eq!(weights(&[(900, 1, 0b01), (100, 1, 0b01)], 2), [900, 100]);
    // The third has the other CPU to itself, and is worth as much as both.
    assert_eq!(
        weights(&[(900, 1, 0b01), (100, 1, 0b01), (700, 1, 0)], 2),
        [630, 70, 700]
    );
    // With two threads the third has a part of the first CPU, too, if it has tickets for that.
    assert_eq!(
        weights(&[(900, 1, 0b01), (100, 1, 0b01), (9000, 2, 0)], 2),
        [900, 100, 9000]
    );
}

#[test]
fn a_chain_of_affinities_has_a_level_for_each_bottleneck() {
    // CPU 0 is full of the first two, CPU 1 of the third and the fourth, and so on.
    let clients = [
        (10, 1, 0b001),
        (30, 1, 0b001),
        (10, 1, 0b011),
        (10, 1, 0b011),
        (10, 1, 0b111),
    ];
    // Rates of 1/4, 3/4, 1/2, 1/2 and 1.
    assert_eq!(weights(&clients, 3), [3, 8, 5, 5, 10]);
}

#[test]
fn clients_without_weight_get_nothing() {
    assert_eq!(weights(&[(0, 1, 0b01), (0, 1, 0)], 2), [0, 0]);
    assert_eq!(
        weights(&[(0, 1, 0b01), (5, 1, 0b10), (7, 1, 0)], 2),
        [0, 5, 5]
    );
}

#[test]
fn an_affinity_to_absent_cpus_confines_to_none() {
    let clients = [(10, 1, 0b1000), (30, 1, 0)];
    assert_eq!(weights(&clients, 1), [10, 30]);
}

#[test]
fn as_many_affinities_as_there_are_classes_are_told_apart() {
    let count = MAX_CLASSES as u32 - 1;
    let affinities: Vec<Affinity> = (0..count).map(|cpu| [cpu].into_iter().collect()).collect();
    let own = (1..MAX_CLASSES).map(|class| ConfinedDemand {
        demand: Demand {
            weight: 10 * class as u32,
            cpus: 1,
        },
        class,
    });
    let free = ConfinedDemand {
        demand: Demand { weight: 8, cpus: 1 },
        class: 0,
    };
    let demands: Vec<_> = own.chain([free]).collect();
    let weights = max_min_weights(&demands, &affinities, count + 1);
    assert_eq!(weights, vec![8; MAX_CLASSES], "each has a CPU");
}

/// A random number with a random number of bits, from one up.
fn amount(random: &mut Xoshiro256PlusPlus, bits: u64) -> u32 {
    let bits = below(random, bits) + 1;
    1 + below(random, 1 << bits) as u32
}

fn random_clients(random: &mut Xoshiro256PlusPlus, cpus: u32, bits: u64) -> Vec<(u32, u32, u32)> {
    let all = (1 << cpus) - 1;
    let masks: Vec<u32> = (0..1 + below(random, 4))
        .map(|_| 1 + below(random, u64::from(all)) as u32)
        .collect();
    let client = |random: &mut Xoshiro256PlusPlus| {
        let mask = masks[below(random, masks.len() as u64) as usize];
        let weight = match below(random, 10) {
            0 => 0,
            _ => amount(random, bits),
        };
        let confined = below(random, 4) > 0 && mask != all;
        (
            weight,
            1 + below(random, 4) as u32,
            if confined { mask } else { 0 },
        )
    };
    (0..1 + below(random, 7)).map(|_| client(random)).collect()
}

#[test]
fn rates_are_exactly_those_of_progressive_filling() {
    for seed in 0..CASES {
        let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
        let cpus = 1 + below(&mut random, 5) as u32;
        let clients = random_clients(&mut random, cpus, 6);
        let claimants = clients.iter().map(|&(weight, threads, bits)| Claimant {
            weight: Fraction::from(weight),
            most: Fraction::from(threads),
            affinity: if bits == 0 { (1 << cpus) - 1 } else { bits },
        });
        let expected = rates(&claimants.collect::<Vec<_>>());
        let (demands, affinities) = confined(&clients);
        let levels = levels(&demands, &affinities, cpus);
        for (confined, expected) in demands.iter().zip(expected) {
            let Demand { weight, cpus } = confined.demand;
            let rate = match levels[confined.class] {
                Some(level) => {
                    let due = i128::from(weight) * i128::from(level.cpus);
                    let rate = Fraction::new(due, level.weight.into());
                    if rate < Fraction::from(cpus) {
                        rate
                    } else {
                        Fraction::from(cpus)
                    }
                }
                None => Fraction::from(0),
            };
            assert_eq!(rate, expected, "seed {seed}: {confined:?} of {clients:?}");
        }
    }
}

#[test]
fn without_affinities_weights_are_the_feasible_ones() {
    for seed in 0..CASES {
        let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
        let cpus = 1 + below(&mut random, 8) as u32;
        let mut clients = random_clients(&mut random, cpus, 31);
        clients.iter_mut().for_each(|client| client.2 = 0);
        let (demands, _) = confined(&clients);
        let plain: Vec<Demand> = demands.iter().map(|confined| confined.demand).collect();
        let expected = feasible_weights(&plain, cpus);
        assert_eq!(
            weights(&clients, cpus),
            expected,
            "seed {seed}: {clients:?}"
        );
        // An affinity to all CPUs is none.
        clients
            .iter_mut()
            .for_each(|client| client.2 = (1 << cpus) - 1);
        assert_eq!(
            weights(&clients, cpus),
            expected,
            "seed {seed}: {clients:?}"
        );
    }
}
