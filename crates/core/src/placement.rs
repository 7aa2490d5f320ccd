//! Which winner has which CPU, where CPUs have unequal parts of themselves to give.
//!
//! The winner that is furthest behind gets the freest CPU, the next one the next, and so
//! on. Over time each client is on each CPU for as long as its share needs: this is the
//! level algorithm for uniform machines (Horvath, Lam and Sethi, 1977), a quantum at a time.

use alloc::vec::Vec;
use core::cmp::Reverse;

use crate::capacity::WHOLE_CPU;
use crate::matching::Matching;

/// Capacities that differ by less than so many parts of a CPU count as equal, mostly.
const CAPACITY_STEPS: u32 = 16;

/// A winner, by its number in the matching.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LaggingWinner {
    /// The client.
    pub client: u32,
    /// CPU time that it is behind, negative if it is ahead.
    pub lag_ns: i64,
}

/// CPU time that a client is behind. Of what is long past only a bounded part counts.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Lag {
    forgotten_ns: i64,
}

impl Lag {
    /// By this account, at most `most_ns` behind or ahead.
    pub fn of(&mut self, specified_ns: u64, received_ns: u64, most_ns: i64) -> i64 {
        let behind_ns = specified_ns.wrapping_sub(received_ns) as i64;
        let lag_ns = behind_ns.saturating_sub(self.forgotten_ns);
        let bounded_ns = lag_ns.clamp(-most_ns, most_ns);
        self.forgotten_ns = self.forgotten_ns.saturating_add(lag_ns - bounded_ns);
        bounded_ns
    }
}

/// Has winners change places in a matching that seats all of them. Each keeps its number of
/// CPUs and its affinity. `capacities` are those of the matching's CPUs in order.
/// Lags that differ by less than `step_ns` count as equal, mostly, and equals do not change
/// places. Allocates.
///
/// Cost: O(CPUs^2), with affinities up to O(CPUs^3).
pub fn place_by_lag(
    matching: &mut Matching,
    winners: &[LaggingWinner],
    capacities: &[u32],
    step_ns: u64,
) {
    let first = matching.first();
    let capacity_step = |cpu: u32| {
        let capacity = capacities.get((cpu - first) as usize);
        capacity.map_or(0, |capacity| capacity / (WHOLE_CPU / CAPACITY_STEPS))
    };
    let step_ns = step_ns.clamp(1, i64::MAX as u64) as i64;
    let freest_of = |matching: &Matching, client| matching.cpus_of(client).map(capacity_step).max();
    let mut order: Vec<LaggingWinner> = winners.to_vec();
    order.sort_by_cached_key(|winner| {
        let lag = winner.lag_ns.div_euclid(step_ns);
        Reverse((lag, freest_of(matching, winner.client)))
    });
    let mut open: Vec<u32> = matching.cpus().collect();
    for LaggingWinner { client, .. } in order {
        let mut wanted = open.clone();
        wanted.sort_by_key(|&cpu| {
            Reverse((capacity_step(cpu), matching.holder(cpu) == Some(client)))
        });
        let mut left = matching.cpus_of(client).count();
        for cpu in wanted {
            if left > 0 && matching.move_to(client, cpu, &open) {
                open.retain(|&other| other != cpu);
                left -= 1;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::affinity::Affinity;
    use crate::rng::{SeedableRng as _, Xoshiro256PlusPlus, below};
    use alloc::vec;

    const FIFTH: u32 = WHOLE_CPU / 5;

    fn winners(lags: &[i64]) -> Vec<LaggingWinner> {
        let winners = (0..).zip(lags);
        winners
            .map(|(client, &lag_ns)| LaggingWinner { client, lag_ns })
            .collect()
    }

    fn cpu_of(matching: &Matching, client: u32) -> u32 {
        matching.cpus_of(client).next().expect("it has one")
    }

    #[test]
    fn the_winner_that_is_behind_gets_the_freer_cpu() {
        let mut matching = Matching::new(4..6);
        assert!(matching.seat(0) && matching.seat(1));
        let capacities = [FIFTH, WHOLE_CPU];
        place_by_lag(&mut matching, &winners(&[-5, 5]), &capacities, 10);
        assert_eq!((cpu_of(&matching, 0), cpu_of(&matching, 1)), (4, 5));
        place_by_lag(&mut matching, &winners(&[15, -5]), &capacities, 10);
        assert_eq!((cpu_of(&matching, 0), cpu_of(&matching, 1)), (5, 4));
        // Less than a step is no reason to change places.
        place_by_lag(&mut matching, &winners(&[1, 9]), &capacities, 10);
        assert_eq!((cpu_of(&matching, 0), cpu_of(&matching, 1)), (5, 4));
    }

    #[test]
    fn no_winner_moves_between_equal_cpus() {
        let mut matching = Matching::new(0..3);
        assert!(matching.seat_at(0, 2) && matching.seat_at(1, 0) && matching.seat_at(2, 1));
        let before = matching.clone();
        place_by_lag(&mut matching, &winners(&[0, 70, -90]), &[WHOLE_CPU; 3], 10);
        for client in 0..3 {
            assert_eq!(cpu_of(&matching, client), cpu_of(&before, client));
        }
    }

    #[test]
    fn what_is_long_past_is_forgotten() {
        let mut lag = Lag::default();
        assert_eq!(lag.of(130, 100, 50), 30);
        assert_eq!(lag.of(200, 100, 50), 50);
        assert_eq!(lag.of(180, 100, 50), 30);
        assert_eq!(lag.of(180, 300, 50), -50);
        assert_eq!(lag.of(310, 310, 50), 50);
    }

    /// All ways to give each client a CPU of its affinity, by client.
    fn ways(affinities: &[Affinity], cpus: u32) -> Vec<Vec<u32>> {
        let mut ways = vec![Vec::new()];
        for affinity in affinities {
            let longer = ways.iter().flat_map(|way| {
                let free = (0..cpus).filter(|cpu| affinity.contains(*cpu) && !way.contains(cpu));
                free.map(|cpu| [way.as_slice(), &[cpu]].concat())
            });
            ways = longer.collect();
        }
        ways
    }

    #[test]
    fn capacities_in_the_order_of_lags_are_the_greatest_that_can_be() {
        for seed in 0..2000 {
            let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
            let cpus = 1 + below(&mut random, 5) as u32;
            let step = WHOLE_CPU / CAPACITY_STEPS;
            // All different: among equal CPUs a winner does not care which one others need.
            let mut capacities: Vec<u32> = (1..=cpus).map(|n| step * n).collect();
            for cpu in 1..cpus as usize {
                capacities.swap(cpu, below(&mut random, cpu as u64 + 1) as usize);
            }
            let affinities: Vec<Affinity> = (0..1 + below(&mut random, cpus.into()))
                .map(|_| 1 + below(&mut random, (1 << cpus) - 1))
                .map(|bits| (0..cpus).filter(|cpu| bits >> cpu & 1 == 1).collect())
                .collect();
            let ways = ways(&affinities, cpus);
            let mut matching = Matching::new(0..cpus);
            for (client, affinity) in (0..).zip(&affinities) {
                matching.set_affinity(client, Some(affinity));
            }
            if !(0..affinities.len() as u32).all(|client| matching.seat(client)) {
                assert!(ways.is_empty(), "seed {seed}");
                continue;
            }
            // The first is furthest behind.
            let lags: Vec<i64> = (0..affinities.len() as i64)
                .map(|client| -10 * client)
                .collect();
            place_by_lag(&mut matching, &winners(&lags), &capacities, 10);
            let capacities_of = |way: &[u32]| -> Vec<u32> {
                way.iter().map(|&cpu| capacities[cpu as usize]).collect()
            };
            let clients = 0..affinities.len() as u32;
            let placed: Vec<u32> = clients.map(|client| cpu_of(&matching, client)).collect();
            assert!(ways.contains(&placed), "seed {seed}: {placed:?}");
            let best = ways.iter().map(|way| capacities_of(way)).max();
            assert_eq!(Some(capacities_of(&placed)), best, "seed {seed}");
        }
    }

    #[test]
    fn a_winner_keeps_its_number_of_cpus() {
        for seed in 0..500 {
            let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
            let cpus = 2 + below(&mut random, 6) as u32;
            let mut matching = Matching::new(0..cpus);
            let seats: Vec<u32> = (0..cpus).map(|_| below(&mut random, 3) as u32).collect();
            seats
                .iter()
                .for_each(|&client| assert!(matching.seat(client)));
            let capacities: Vec<u32> = (0..cpus)
                .map(|_| 1 + below(&mut random, WHOLE_CPU.into()) as u32)
                .collect();
            let lags: Vec<i64> = (0..3)
                .map(|_| below(&mut random, 100) as i64 - 50)
                .collect();
            place_by_lag(&mut matching, &winners(&lags), &capacities, 10);
            for client in 0..3 {
                let before = seats.iter().filter(|&&seat| seat == client).count();
                assert_eq!(matching.cpus_of(client).count(), before, "seed {seed}");
            }
        }
    }
}
