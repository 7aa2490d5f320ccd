//! Feasible weights on CPUs that have unequal parts of themselves to give, because
//! programs that no client knows use the rest.
//!
//! So many threads can use at most the freest CPUs together, one each. No set of
//! clients can receive more than its threads can use. Within these limits the result
//! is max-min fair: all clients receive the same for each unit of weight, except those
//! that can use no more.
//!
//! ```text
//!   CPUs that give 1 and 0.2, weights 9 and 1, a thread each: 1 and 0.2
//!   weights 1 and 1: 0.6 and 0.6, as the two change places
//! ```
//!
//! What `n` threads can use is concave in `n`. So a set of clients that can use no more
//! is a set of the densest ones ([`Demand::cmp_density`]), and a search through these
//! finds it. On whole CPUs the result is that of [`crate::feasible`].

use alloc::vec;
use alloc::vec::Vec;
use core::cmp::Ordering;

use crate::feasible::{Demand, Level};

/// The capacity of a CPU that gives all its time to clients.
pub const WHOLE_CPU: u32 = 1 << 16;

/// What some CPUs have to give.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Capacities {
    /// By number of CPUs: what so many of the freest ones give together.
    sums: Vec<u64>,
}

impl Capacities {
    /// Of CPUs that give so many parts of [`WHOLE_CPU`] each: at least one, at most all.
    pub fn new(capacities: &[u32]) -> Self {
        let mut freest: Vec<u32> = capacities
            .iter()
            .map(|c| (*c).clamp(1, WHOLE_CPU))
            .collect();
        freest.sort_unstable_by(|one, other| other.cmp(one));
        let mut sums = vec![0];
        let mut sum = 0;
        sums.extend(freest.iter().map(|&capacity| {
            sum += u64::from(capacity);
            sum
        }));
        Self { sums }
    }

    /// How many CPUs there are.
    pub fn cpus(&self) -> u32 {
        self.sums.len() as u32 - 1
    }

    /// What so many threads can use together, in parts of [`WHOLE_CPU`].
    pub fn usable(&self, threads: u64) -> u64 {
        self.sums[threads.min(self.cpus().into()) as usize]
    }

    /// Appends the clients whose weight is infeasible to `cut`, with the weights that they
    /// get instead. Allocates.
    ///
    /// Cost: O(n + m^2) for n demands and m CPUs.
    pub fn readjust(
        &self,
        demands: impl Iterator<Item = (u32, Demand)>,
        cut: &mut Vec<(u32, u32)>,
    ) {
        let mut densest: Vec<(u32, Demand)> = demands.filter(|(_, d)| d.weight > 0).collect();
        let weight = densest.iter().map(|(_, d)| u64::from(d.weight)).sum();
        let threads = densest.iter().map(|(_, d)| u64::from(d.cpus)).sum();
        // More threads than CPUs can use no more than all clients can.
        let most = self.cpus() as usize;
        let by_density = |one: &(u32, Demand), other: &(u32, Demand)| {
            other.1.cmp_density(&one.1).then(one.0.cmp(&other.0))
        };
        if densest.len() > most {
            densest.select_nth_unstable_by(most, by_density);
            densest.truncate(most);
        }
        densest.sort_unstable_by(by_density);
        let mut rest = Rest {
            capacities: self,
            densest: &densest,
            threads_before: 0,
            threads,
            weight,
        };
        let mut bottlenecks = Vec::new();
        while let Some(bottleneck) = rest.split() {
            bottlenecks.push(bottleneck);
        }
        let highest = rest.level();
        for (members, level) in bottlenecks {
            let tickets = members
                .iter()
                .map(|(index, d)| (*index, scaled(d.weight, level, highest)));
            cut.extend(tickets);
        }
    }
}

/// The clients whose level is not found yet.
struct Rest<'a> {
    capacities: &'a Capacities,
    /// The densest of them.
    densest: &'a [(u32, Demand)],
    /// Threads of the clients with a level.
    threads_before: u64,
    /// Threads of all clients.
    threads: u64,
    /// Weight of those without a level.
    weight: u64,
}

impl<'a> Rest<'a> {
    /// What a unit of weight is due if none of them is a bottleneck.
    fn level(&self) -> Level {
        Level {
            cpus: self.beside(self.threads),
            weight: self.weight,
        }
    }

    /// What clients with these threads, and those with a level, can use beside the latter.
    fn beside(&self, threads: u64) -> u64 {
        self.capacities.usable(threads) - self.capacities.usable(self.threads_before)
    }

    /// Takes those out that can use least for each unit of weight, if that is less than all
    /// can use together.
    fn split(&mut self) -> Option<(&'a [(u32, Demand)], Level)> {
        let mut lowest = self.level();
        let mut found = None;
        let (mut threads, mut weight) = (self.threads_before, 0);
        for (place, (_, demand)) in self.densest.iter().enumerate() {
            threads += u64::from(demand.cpus);
            weight += u64::from(demand.weight);
            let cpus = self.beside(threads);
            let level = Level { cpus, weight };
            let order = level.cmp_rate(&lowest);
            if order == Ordering::Less || order == Ordering::Equal && found.is_some() {
                lowest = level;
                found = Some((place + 1, threads));
            }
        }
        let (count, threads) = found?;
        let (members, others) = self.densest.split_at(count);
        self.densest = others;
        self.threads_before = threads;
        self.weight -= lowest.weight;
        Some((members, lowest))
    }
}

/// A weight at this level, where those at the `highest` level keep theirs: rounded to the
/// nearest, at least 1.
fn scaled(weight: u32, level: Level, highest: Level) -> u32 {
    let due = u128::from(weight) * u128::from(level.cpus) * u128::from(highest.weight);
    let per_ticket = u128::from(level.weight) * u128::from(highest.cpus);
    (((due + per_ticket / 2) / per_ticket) as u32).clamp(1, weight)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::feasible::feasible_weights;
    use proptest::prelude::*;

    const FIFTH: u32 = WHOLE_CPU / 5;

    fn readjusted(demands: &[Demand], capacities: &[u32]) -> Vec<u32> {
        let mut cut = Vec::new();
        Capacities::new(capacities).readjust((0..).zip(demands.iter().copied()), &mut cut);
        let mut weights: Vec<u32> = demands.iter().map(|demand| demand.weight).collect();
        for (index, weight) in cut {
            weights[index as usize] = weight;
        }
        weights
    }

    fn of(demands: &[(u32, u32)], capacities: &[u32]) -> Vec<u32> {
        let demands = demands
            .iter()
            .map(|&(weight, cpus)| Demand { weight, cpus });
        readjusted(&demands.collect::<Vec<_>>(), capacities)
    }

    #[test]
    fn one_thread_uses_no_more_than_the_freest_cpu() {
        let capacities = [FIFTH, WHOLE_CPU];
        assert_eq!(of(&[(1, 1), (1, 1)], &capacities), [1, 1]);
        assert_eq!(of(&[(1, 2), (1, 1)], &capacities), [1, 1]);
        // 9:1 is more than one CPU and a fifth can give a single thread.
        assert_eq!(of(&[(9000, 1), (1000, 1)], &capacities), [5000, 1000]);
        assert_eq!(of(&[(9000, 2), (1000, 1)], &capacities), [9000, 1000]);
        assert_eq!(of(&[(7, 1), (0, 3)], &capacities), [7, 0]);
        assert_eq!(of(&[], &capacities), [0; 0]);
    }

    #[test]
    fn two_threads_use_no_more_than_the_two_freest_cpus() {
        let capacities = [FIFTH, WHOLE_CPU, FIFTH];
        // The first two can use 1.2 together, and the third the last fifth.
        assert_eq!(
            of(&[(6000, 1), (6000, 1), (1000, 1)], &capacities),
            [3000, 3000, 1000]
        );
        // The first can use one CPU, and a fifth is left for each of the others.
        assert_eq!(
            of(&[(60_000, 1), (2000, 1), (2000, 1)], &capacities),
            [10_000, 2000, 2000]
        );
    }

    fn a_history() -> ProptestConfig {
        ProptestConfig {
            failure_persistence: None,
            rng_seed: proptest::test_runner::RngSeed::Fixed(2000),
            ..ProptestConfig::default()
        }
    }

    fn demands(most: usize) -> impl Strategy<Value = Vec<Demand>> {
        let weight = prop_oneof![Just(0), 1_000_000..u32::MAX];
        let demand = (weight, 1u32..5).prop_map(|(weight, cpus)| Demand { weight, cpus });
        prop::collection::vec(demand, 1..most)
    }

    proptest! {
        #![proptest_config(a_history())]

        #[test]
        fn on_whole_cpus_weights_are_the_feasible_ones(demands in demands(40), cpus in 1u32..17) {
            let capacities = vec![WHOLE_CPU; cpus as usize];
            prop_assert_eq!(readjusted(&demands, &capacities), feasible_weights(&demands, cpus));
        }

        #[test]
        fn the_result_is_max_min_fair(
            demands in demands(8),
            parts in prop::collection::vec(WHOLE_CPU / 64..=WHOLE_CPU, 1..6),
        ) {
            let capacities = Capacities::new(&parts);
            let after = readjusted(&demands, &parts);
            let total: f64 = after.iter().map(|&w| f64::from(w)).sum();
            let threads = |set: &[usize]| set.iter().map(|&i| u64::from(demands[i].cpus)).sum();
            let competing: Vec<usize> = (0..demands.len()).filter(|&i| demands[i].weight > 0).collect();
            if competing.is_empty() {
                prop_assert_eq!(total, 0.0);
                return Ok(());
            }
            let dispensed = capacities.usable(threads(&competing)) as f64;
            let share = |i: usize| f64::from(after[i]) / total * dispensed;
            let rate = |i: usize| share(i) / f64::from(demands[i].weight);
            let mut held_back = vec![false; demands.len()];
            for bits in 1u32..1 << competing.len() {
                let set: Vec<usize> =
                    (0..competing.len()).filter(|n| bits >> n & 1 == 1).map(|n| competing[n]).collect();
                let (usable, got) = (capacities.usable(threads(&set)) as f64, set.iter().map(|&i| share(i)).sum::<f64>());
                // No set receives more than its threads can use.
                prop_assert!(got <= usable * (1.0 + 1e-4), "{} of {}", got, usable);
                // In a set that can use no more, those with most for their weight are held back.
                if got >= usable * (1.0 - 1e-4) {
                    let most = set.iter().map(|&i| rate(i)).fold(0.0, f64::max);
                    set.iter().filter(|&&i| rate(i) >= most * (1.0 - 1e-4)).for_each(|&i| held_back[i] = true);
                }
            }
            prop_assert!(competing.iter().all(|&i| held_back[i]), "{:?} of {:?}", after, demands);
        }
    }
}
