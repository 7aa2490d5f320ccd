//! Feasible weights: nobody is entitled to more CPUs than it can use.
//!
//! A client with one runnable thread cannot use more than one CPU, whatever
//! its tickets say. Left alone, its unusable entitlement would distort every
//! choice that follows: its pass would fall behind without end. So its weight
//! is readjusted to what it can use, and the excess goes to the others in
//! proportion to their tickets.

use alloc::vec::Vec;

/// What a client asks of the machine.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Demand {
    /// Weight by its tickets; zero asks for nothing.
    pub weight: u32,
    /// CPUs that it can use at once, at least 1.
    pub cpus: u32,
}

impl Demand {
    /// Whether `self` is entitled to more for each CPU that it can use.
    fn density_cmp(&self, other: &Self) -> core::cmp::Ordering {
        let left = u64::from(self.weight) * u64::from(other.cpus);
        left.cmp(&(u64::from(other.weight) * u64::from(self.cpus)))
    }
}

/// Readjusts the weights so that, on a machine of `cpus` CPUs, no client's
/// part of the sum exceeds what it can use.
///
/// The result is max-min fair: feasible weights stay as they are, each
/// infeasible one is cut to just what its client can use (rounded to the
/// nearest ticket, at least 1). Where all clients together cannot use the
/// machine, weights become proportional to what each can use.
///
/// Cost: O(n) where every weight is feasible, else O(n log n) and one
/// allocation.
pub fn readjust(demands: &mut [Demand], cpus: u32) {
    let total: u64 = demands.iter().map(|d| u64::from(d.weight)).sum();
    if demands.iter().all(|d| is_feasible(d, cpus.into(), total)) {
        return;
    }
    let mut order: Vec<u32> = (0..demands.len() as u32)
        .filter(|&i| demands[i as usize].weight > 0)
        .collect();
    order.sort_unstable_by(|&a, &b| demands[b as usize].density_cmp(&demands[a as usize]));

    // Invariant: clients before `cut` are infeasible, and what they can use is
    // taken off `cpus_left`; `weight_left` is the sum of the others.
    let (mut weight_left, mut cpus_left, mut cut) = (total, u64::from(cpus), 0);
    for &i in &order {
        let demand = demands[i as usize];
        if is_feasible(&demand, cpus_left, weight_left) {
            break;
        }
        weight_left -= u64::from(demand.weight);
        cpus_left -= u64::from(demand.cpus).min(cpus_left);
        cut += 1;
    }
    // Tickets a CPU: those of the feasible clients, or of the least infeasible
    // one where there is none.
    let (tickets, per_cpus) = match order.get(cut..) {
        Some([_, ..]) if cpus_left > 0 => (weight_left, cpus_left),
        _ => order.last().map_or((1, 1), |&i| {
            let last = demands[i as usize];
            (u64::from(last.weight), u64::from(last.cpus.min(cpus)))
        }),
    };
    for &i in &order[..cut] {
        let demand = &mut demands[i as usize];
        let usable = u128::from(demand.cpus.min(cpus));
        let weight =
            (usable * u128::from(tickets) + u128::from(per_cpus / 2)) / u128::from(per_cpus);
        // Never above the old weight, which was infeasible, so it fits.
        demand.weight = (weight as u32).clamp(1, demand.weight);
    }
}

fn is_feasible(demand: &Demand, cpus_left: u64, weight_left: u64) -> bool {
    // weight / weight_left <= usable / cpus_left, without division.
    u128::from(demand.weight) * u128::from(cpus_left)
        <= u128::from(demand.cpus.min(cpus_left as u32)) * u128::from(weight_left)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn of(demands: &[(u32, u32)], cpus: u32) -> Vec<u32> {
        let mut demands: Vec<_> = demands
            .iter()
            .map(|&(weight, cpus)| Demand { weight, cpus })
            .collect();
        readjust(&mut demands, cpus);
        demands.into_iter().map(|d| d.weight).collect()
    }

    #[test]
    fn one_cpu_needs_no_readjustment() {
        assert_eq!(
            of(&[(2, 1), (1, 1), (1, 4), (u32::MAX, 1)], 1),
            [2, 1, 1, u32::MAX]
        );
        assert_eq!(of(&[(7, 1)], 1), [7]);
    }

    #[test]
    fn an_infeasible_weight_is_cut_and_the_excess_shared() {
        // 1:2:10 on two CPUs: the third gets one CPU, the others share one.
        assert_eq!(of(&[(1, 1), (2, 1), (10, 1)], 2), [1, 2, 3]);
        // Two infeasible ones, one of which can use two CPUs.
        assert_eq!(
            of(&[(1000, 2), (10, 1), (100, 1), (10, 1)], 4),
            [40, 10, 20, 10]
        );
    }

    #[test]
    fn where_there_is_enough_weights_follow_what_each_can_use() {
        assert_eq!(of(&[(10, 1), (1000, 2), (0, 1)], 8), [10, 20, 0]);
        assert_eq!(of(&[(5, 1), (5, 1)], 2), [5, 5]);
        assert_eq!(of(&[], 4), [0; 0]);
    }

    proptest! {
        #![proptest_config(ProptestConfig {
            failure_persistence: None,
            rng_seed: proptest::test_runner::RngSeed::Fixed(2005),
            ..ProptestConfig::default()
        })]

        #[test]
        fn the_result_is_max_min_fair(
            before in prop::collection::vec((prop_oneof![Just(0), 1_000_000..u32::MAX], 1u32..9), 1..40),
            cpus in 1u32..17,
        ) {
            let after = of(&before, cpus);
            let total: f64 = after.iter().map(|&w| f64::from(w)).sum();
            let usable: u32 = before.iter().filter(|d| d.0 > 0).map(|d| d.1.min(cpus)).sum();
            if usable == 0 {
                prop_assert_eq!(total, 0.0);
                return Ok(());
            }
            let dispensed = f64::from(usable.min(cpus));
            for (&(weight, limit), &adjusted) in before.iter().zip(&after) {
                // Zero stays zero, nobody gains tickets.
                prop_assert!(adjusted <= weight && (adjusted > 0) == (weight > 0));
                // Nobody is entitled to more than it can use; a weight of a
                // million rounded to a ticket leaves an error of 1e-6 each.
                let share = f64::from(adjusted) / total * dispensed;
                prop_assert!(share <= f64::from(limit.min(cpus)) * (1.0 + 1e-4), "{} of {}", share, limit);
                // Who lost tickets has all that it can use.
                if adjusted < weight {
                    prop_assert!(share >= f64::from(limit.min(cpus)) * (1.0 - 1e-4));
                }
            }
        }
    }
}
