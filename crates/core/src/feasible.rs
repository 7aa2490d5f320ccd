//! Feasible weights: no client is entitled to more CPUs than it can use.
//!
//! A client with one runnable thread cannot use more than one CPU, whatever
//! its tickets say. Left alone, its unusable entitlement would distort every
//! choice that follows: its pass would fall behind without end. So its weight
//! is readjusted to what it can use, and the excess goes to the others in
//! proportion to their tickets.
//!
//! The result is max-min fair: feasible weights stay as they are, each
//! infeasible one is cut to just what its client can use (rounded to the
//! nearest ticket, at least 1). Where all clients together cannot use the
//! machine, weights become proportional to what each can use.
//!
//! Only ratios of CPUs matter. So all CPUs of a machine and of its demands are counted in the
//! same unit, such as CPUs, or thousandths of a CPU where clients have limits.

use alloc::vec::Vec;
use core::cmp::Ordering;

use crate::cpu_limit::CPU_THOUSANDTHS;

/// Most density bits: a thousand has ten.
pub(crate) const MAX_DENSITY_BITS: u32 = u32::BITS + 10;

/// What a client asks of the machine.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Demand {
    /// Weight by its tickets; zero asks for nothing.
    pub weight: u32,
    /// CPUs that it can use at once, at least 1 of the unit.
    pub cpus: u32,
}

impl Demand {
    /// Compares by weight for each CPU that can be used: the denser demand is
    /// the greater one.
    pub fn cmp_density(&self, other: &Self) -> Ordering {
        let left = u64::from(self.weight) * u64::from(other.cpus);
        left.cmp(&(u64::from(other.weight) * u64::from(self.cpus)))
    }

    /// Bits of the whole part of a thousand densities: they are below two to this power.
    pub fn density_bits(&self) -> u32 {
        let density = match self.cpus {
            // Most clients have one thread and no limit.
            CPU_THOUSANDTHS => self.weight.into(),
            cpus => u64::from(self.weight) * u64::from(CPU_THOUSANDTHS) / u64::from(cpus),
        };
        u64::BITS - density.leading_zeros()
    }
}

/// Looks for infeasible demands, from the densest down.
///
/// Only the demands before the first feasible one need be shown to it, so its
/// cost does not depend on how many there are: at most one for each CPU is
/// infeasible, and those that have limits.
#[derive(Clone, Copy, Debug)]
pub struct Readjustment {
    /// CPUs of the machine.
    cpus: u64,
    /// Those that infeasible demands do not use up.
    cpus_left: u64,
    /// Sum of the weights not found infeasible.
    weight_left: u64,
    /// The demand cut last, the least dense of them.
    last: Option<Demand>,
}

impl Readjustment {
    /// Of a machine of `cpus` CPUs, at least 1 of the unit, and demands whose weights add
    /// up to `total_weight`.
    pub fn new(total_weight: u64, cpus: u32) -> Self {
        Self {
            cpus: cpus.into(),
            cpus_left: cpus.into(),
            weight_left: total_weight,
            last: None,
        }
    }

    /// Whether any demand with so many density bits is feasible beside those
    /// cut so far.
    pub fn all_feasible_below(&self, bits: u32) -> bool {
        let weight_left = u128::from(self.weight_left) * u128::from(CPU_THOUSANDTHS);
        u128::from(self.cpus_left) << bits <= weight_left
    }

    /// Cuts a demand if it is infeasible. To be called with the densest
    /// demand, then the next one, until it returns false.
    pub fn cut(&mut self, demand: Demand) -> bool {
        let usable = u64::from(demand.cpus).min(self.cpus_left);
        // weight / weight_left <= usable / cpus_left, without division.
        let feasible = u128::from(demand.weight) * u128::from(self.cpus_left)
            <= u128::from(usable) * u128::from(self.weight_left);
        if !feasible {
            self.weight_left -= u64::from(demand.weight);
            self.cpus_left -= usable;
            self.last = Some(demand);
        }
        !feasible
    }

    /// What a unit of weight is due: by the feasible demands, or by the least
    /// infeasible one where there is none. To be called after the last cut.
    pub fn level(&self) -> Level {
        match self.last {
            Some(last) if self.weight_left == 0 || self.cpus_left == 0 => Level {
                cpus: u64::from(last.cpus).min(self.cpus),
                weight: last.weight.into(),
            },
            _ => Level {
                cpus: self.cpus_left,
                weight: self.weight_left,
            },
        }
    }

    /// The weight that a demand which was cut gets, never more than it had.
    /// To be called after the last cut.
    pub fn weight(&self, demand: Demand) -> u32 {
        let Level { cpus, weight } = self.level();
        let usable = u64::from(demand.cpus).min(self.cpus);
        let rounded = u128::from(usable) * u128::from(weight) + u128::from(cpus / 2);
        ((rounded / u128::from(cpus)) as u32).clamp(1, demand.weight)
    }
}

/// How much a unit of weight is due: `cpus / weight` of a CPU. Both are above
/// zero where some client has tickets.
#[derive(Clone, Copy, Debug)]
pub struct Level {
    /// Numerator.
    pub cpus: u64,
    /// Denominator.
    pub weight: u64,
}

impl Level {
    /// Compares what a unit of weight is due.
    pub fn cmp_rate(&self, other: &Self) -> Ordering {
        let left = u128::from(self.cpus) * u128::from(other.weight);
        left.cmp(&(u128::from(other.cpus) * u128::from(self.weight)))
    }

    /// The tickets of a demand at this level, never more than its weight, where
    /// those at the `highest` level hold as many tickets as weight.
    pub fn tickets(self, highest: Level, demand: Demand) -> u32 {
        let threads = u128::from(demand.cpus);
        let due = u128::from(demand.weight) * u128::from(self.cpus);
        let (tickets, per_cpus) = if due >= threads * u128::from(self.weight) {
            (threads, u128::from(highest.cpus))
        } else {
            (due, u128::from(self.weight) * u128::from(highest.cpus))
        };
        let rounded = (tickets * u128::from(highest.weight) + per_cpus / 2) / per_cpus;
        (rounded as u32).clamp(1, demand.weight)
    }
}

/// The feasible weights of these demands on `cpus` CPUs, at least 1: of all at once, where a
/// [`Readjustment`] looks at few. In the order of `demands`, in O(n log n).
pub fn feasible_weights(demands: &[Demand], cpus: u32) -> Vec<u32> {
    let mut densest: Vec<_> = (0..demands.len()).collect();
    densest.sort_by(|&a, &b| demands[b].cmp_density(&demands[a]));
    let total = demands.iter().map(|demand| u64::from(demand.weight)).sum();
    let mut readjustment = Readjustment::new(total, cpus);
    let infeasible = densest
        .iter()
        .take_while(|&&index| readjustment.cut(demands[index]))
        .count();
    let mut weights: Vec<_> = demands.iter().map(|demand| demand.weight).collect();
    for &index in &densest[..infeasible] {
        weights[index] = readjustment.weight(demands[index]);
    }
    weights
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn of(demands: &[(u32, u32)], cpus: u32) -> Vec<u32> {
        let demands = demands
            .iter()
            .map(|&(weight, cpus)| Demand { weight, cpus });
        feasible_weights(&demands.collect::<Vec<_>>(), cpus)
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

    #[test]
    fn a_density_is_below_two_to_the_power_of_its_bits() {
        for (weight, cpus, bits) in [
            (0, 1, 0),
            (1, 2000, 0),
            (1, 1000, 1),
            (7, 2000, 2),
            (8, 2000, 3),
            (8, 500, 5),
            (u32::MAX, 1000, 32),
            (u32::MAX, 1, 42),
        ] {
            let demand = Demand { weight, cpus };
            assert_eq!(demand.density_bits(), bits);
            assert!(u64::from(weight) * 1000 < u64::from(cpus) << bits);
            assert!(bits <= MAX_DENSITY_BITS);
        }
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
                // Zero stays zero, no client gains tickets.
                prop_assert!(adjusted <= weight && (adjusted > 0) == (weight > 0));
                // No client is entitled to more than it can use; a weight of a
                // million rounded to a ticket leaves an error of 1e-6 each.
                let share = f64::from(adjusted) / total * dispensed;
                prop_assert!(share <= f64::from(limit.min(cpus)) * (1.0 + 1e-4), "{} of {}", share, limit);
                // A client that lost tickets has all that it can use.
                if adjusted < weight {
                    prop_assert!(share >= f64::from(limit.min(cpus)) * (1.0 - 1e-4));
                }
            }
        }

        #[test]
        fn what_all_feasible_below_says_is_so(
            demands in prop::collection::vec((1u32.., 1u32..9), 1..20),
            cpus in 1u32..17,
        ) {
            let total = demands.iter().map(|d| u64::from(d.0)).sum();
            let readjustment = Readjustment::new(total, cpus);
            for &(weight, cpus) in &demands {
                let demand = Demand { weight, cpus };
                if readjustment.all_feasible_below(demand.density_bits()) {
                    let mut readjustment = readjustment;
                    prop_assert!(!readjustment.cut(demand));
                }
            }
        }
    }
}
