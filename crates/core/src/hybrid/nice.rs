//! Nice values (1999, 3.4 and 4.1).
//!
//! A nice value changes a client's tickets, so that it has more or less priority among the
//! clients of its currency. Its base tickets are then *at most* a threshold if the value is
//! above zero, and *at least* a threshold if it is below, so that the change holds against
//! clients of other currencies, too.
//!
//! The paper says that nice 0 is 10 tickets and that a process has 100, so a single step of
//! nice would take it from 100 tickets to 9. Here both rules are relative: the tickets held
//! change by a factor that is one at nice 0, and so does the default funding of a user,
//! 1,000 base tickets, which is the paper's threshold at nice 0.
//!
//! In the paper a client is one process. Elsewhere the tasks of a client may differ in nice
//! value ([`NiceMean`]).

use core::cmp::Ordering;

use crate::ledger::Value;

/// A nice value, -20 to 20.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Debug)]
pub struct Nice(i8);

impl Nice {
    /// Highest priority.
    pub const MIN: Self = Self(-20);
    /// Lowest priority. Linux has one value less and takes this one for 19.
    pub const MAX: Self = Self(20);

    /// None outside of -20 to 20.
    pub fn new(value: i8) -> Option<Self> {
        (Self::MIN.0..=Self::MAX.0)
            .contains(&value)
            .then_some(Self(value))
    }

    /// The number.
    pub const fn value(self) -> i8 {
        self.0
    }

    fn place(self) -> usize {
        (self.0 - Self::MIN.0) as usize
    }
}

/// How much a step of nice is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NiceLaw {
    /// `10^(-nice/20)`: 10 at -20, a tenth at 20 (1999, 4.1).
    Paper,
    /// Linux's weights, about 1.25 a step.
    Linux,
}

/// The factor of nice 0.
pub const FACTOR_ONE: u32 = 1 << FACTOR_BITS;
const FACTOR_BITS: u32 = 10;
/// The threshold at nice 0: the default funding of a user.
const THRESHOLD: u64 = 1_000 << Value::FRACTION_BITS;

/// `1024 * 10^(-nice/20)`, rounded to the nearest.
const PAPER: [u32; 41] = [
    10240, 9126, 8134, 7249, 6461, 5758, 5132, 4574, 4077, 3633, 3238, 2886, 2572, 2292, 2043,
    1821, 1623, 1446, 1289, 1149, 1024, 913, 813, 725, 646, 576, 513, 457, 408, 363, 324, 289, 257,
    229, 204, 182, 162, 145, 129, 115, 102,
];

/// The kernel's `sched_prio_to_weight`.
const LINUX: [u32; 41] = [
    88761, 71755, 56483, 46273, 36291, 29154, 23254, 18705, 14949, 11916, 9548, 7620, 6100, 4904,
    3906, 3121, 2501, 1991, 1586, 1277, 1024, 820, 655, 526, 423, 335, 272, 215, 172, 137, 110, 87,
    70, 56, 45, 36, 29, 23, 18, 15, 15,
];

impl NiceLaw {
    /// By how much tickets are multiplied, in units of 1 / [`FACTOR_ONE`].
    pub fn factor(self, nice: Nice) -> u32 {
        match self {
            Self::Paper => PAPER[nice.place()],
            Self::Linux => LINUX[nice.place()],
        }
    }

    /// The tickets of a client that holds `tickets`: rounded to the nearest, at least one
    /// if it holds any, at most 2^32 - 1.
    pub fn tickets(self, tickets: u32, nice: Nice) -> u32 {
        if tickets == 0 {
            return 0;
        }
        let product = u64::from(tickets) * u64::from(self.factor(nice));
        let rounded = (product + u64::from(FACTOR_ONE / 2)) >> FACTOR_BITS;
        rounded.clamp(1, u32::MAX.into()) as u32
    }
}

/// The bound of base tickets at a factor, in units of 2^-32; exact.
pub fn threshold(factor: u32) -> Value {
    Value((u128::from(THRESHOLD) * u128::from(factor)) >> FACTOR_BITS)
}

/// What a client's base tickets are at a factor: `value` times the factor, rounded down, and
/// then within the bound. A client without base tickets has none at any factor; any other has
/// some.
pub fn niced(value: Value, factor: u32) -> Value {
    if value == Value(0) || factor == FACTOR_ONE {
        return value;
    }
    let product = value.0.saturating_mul(factor.into()) >> FACTOR_BITS;
    bound(Value(product.max(1)), factor)
}

/// Base tickets within the bound: at most the threshold where a nice value above zero gives the
/// factor, at least the threshold where one below does. To be applied last, after any boost
/// (1999, Figure 2).
pub fn bound(value: Value, factor: u32) -> Value {
    match factor.cmp(&FACTOR_ONE) {
        Ordering::Equal => value,
        Ordering::Less => value.min(threshold(factor)),
        Ordering::Greater => value.max(threshold(factor)),
    }
}

/// The factor of a client whose tasks may differ in nice value: the mean of its tasks' factors.
/// Tasks above nice 0 count only if all tasks are above nice 0.
///
/// So a client with one task has the factor of that task. A task that stands back takes nothing
/// from the tasks beside it. And as everywhere, a client gains nothing by a fork: the sum of its
/// tasks' bounds would grow with each one.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct NiceMean {
    /// Tasks above nice 0, and the sum of their factors.
    up: (u32, u64),
    /// The same of all others.
    others: (u32, u64),
}

impl NiceMean {
    /// Counts a task with this factor.
    pub fn add(&mut self, factor: u32) {
        let (tasks, sum) = match factor < FACTOR_ONE {
            true => &mut self.up,
            false => &mut self.others,
        };
        *tasks += 1;
        *sum += u64::from(factor);
    }

    /// The factor, rounded down. None without tasks.
    pub fn factor(&self) -> Option<u32> {
        let (tasks, sum) = match self.others.0 {
            0 => self.up,
            _ => self.others,
        };
        sum.checked_div(tasks.into()).map(|mean| mean as u32)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;
    use proptest::prelude::*;

    fn nice(value: i8) -> Nice {
        Nice::new(value).expect("in range")
    }

    fn all() -> impl Iterator<Item = Nice> {
        (-20..=20).map(nice)
    }

    #[test]
    fn nice_values_end_at_twenty() {
        assert_eq!(Nice::new(-20), Some(Nice::MIN));
        assert_eq!(Nice::new(20), Some(Nice::MAX));
        assert_eq!(Nice::new(-21), None);
        assert_eq!(Nice::new(21), None);
    }

    #[test]
    fn the_paper_s_table_is_the_law_of_ten_tickets() {
        for (value, tickets) in [(-20, 100), (0, 10), (20, 1)] {
            assert_eq!(NiceLaw::Paper.tickets(10, nice(value)), tickets);
        }
        let base = |value| threshold(NiceLaw::Paper.factor(nice(value))).to_f64();
        assert_eq!(base(-20), 10_000.0);
        assert_eq!(base(0), 1_000.0);
        assert!((base(20) - 100.0).abs() < 0.5);
    }

    #[test]
    fn the_paper_s_factors_are_powers_of_ten() {
        for nice in all() {
            let exact = 1024.0 * 10f64.powf(f64::from(-nice.value()) / 20.0);
            assert_eq!(NiceLaw::Paper.factor(nice), exact.round() as u32);
        }
    }

    #[test]
    fn linux_s_thresholds_are_its_weights() {
        let base = |value| threshold(NiceLaw::Linux.factor(nice(value))).to_f64();
        assert_eq!(base(0), 1_000.0);
        assert!((base(19) - 14.648).abs() < 0.001);
        assert!((base(-20) - 86_680.664).abs() < 0.001);
        assert_eq!(base(20), base(19));
    }

    #[test]
    fn a_step_of_nice_never_raises_the_factor_and_only_that_of_nice_zero_is_one() {
        for law in [NiceLaw::Paper, NiceLaw::Linux] {
            for (before, after) in all().zip(all().skip(1)) {
                assert!(law.factor(after) <= law.factor(before));
            }
            for nice in all() {
                let order = nice.cmp(&Nice::default());
                assert_eq!(FACTOR_ONE.cmp(&law.factor(nice)), order);
            }
        }
    }

    #[test]
    fn tickets_stay_within_their_limits() {
        for law in [NiceLaw::Paper, NiceLaw::Linux] {
            assert_eq!(law.tickets(0, Nice::MIN), 0);
            assert_eq!(law.tickets(1, Nice::MAX), 1);
            assert_eq!(law.tickets(u32::MAX, Nice::MIN), u32::MAX);
            assert_eq!(law.tickets(77, Nice::default()), 77);
        }
    }

    #[test]
    fn base_tickets_change_by_the_factor_and_then_by_the_bound() {
        let value = |base: u64, at| {
            let value = Value(u128::from(base) << Value::FRACTION_BITS);
            niced(value, NiceLaw::Paper.factor(nice(at))).to_f64()
        };
        assert_eq!(value(500, 0), 500.0);
        assert_eq!(value(500, 20), 500.0 * 102.0 / 1024.0);
        assert_eq!(value(2_000, 20), 1_000.0 * 102.0 / 1024.0, "at most");
        assert_eq!(value(1_500, -20), 15_000.0);
        assert_eq!(value(500, -20), 10_000.0, "at least");
    }

    #[test]
    fn no_nice_value_takes_all_base_tickets_or_makes_some_of_none() {
        for law in [NiceLaw::Paper, NiceLaw::Linux] {
            for factor in all().map(|nice| law.factor(nice)) {
                assert_eq!(niced(Value(0), factor), Value(0));
                assert!(niced(Value(1), factor) >= Value(1));
                assert!(niced(Value(u128::MAX), factor) > Value(0));
            }
        }
    }

    fn mean(tasks: &[i8]) -> Option<u32> {
        let mut mean = NiceMean::default();
        let factors = tasks.iter().map(|&at| NiceLaw::Linux.factor(nice(at)));
        factors.for_each(|factor| mean.add(factor));
        mean.factor()
    }

    #[test]
    fn tasks_above_nice_zero_count_only_without_others() {
        assert_eq!(mean(&[]), None);
        assert_eq!(mean(&[19]), Some(15));
        assert_eq!(mean(&[19, 5]), Some((15 + 335) / 2));
        assert_eq!(mean(&[19, 5, 0]), Some(FACTOR_ONE));
        assert_eq!(mean(&[19, 0, -5]), Some((1024 + 3121) / 2));
    }

    proptest! {
        #![proptest_config(ProptestConfig {
            failure_persistence: None,
            rng_seed: proptest::test_runner::RngSeed::Fixed(1999),
            ..ProptestConfig::default()
        })]

        #[test]
        fn a_bound_is_on_one_side_only(value: u64, at in -20i8..=20) {
            for law in [NiceLaw::Paper, NiceLaw::Linux] {
                let (value, factor) = (Value(value.into()), law.factor(nice(at)));
                let bounded = bound(value, factor);
                prop_assert!(at <= 0 || bounded <= threshold(factor) && bounded <= value);
                prop_assert!(at >= 0 || bounded >= threshold(factor) && bounded >= value);
                prop_assert!(at != 0 || bounded == value);
                prop_assert!(bounded == value || bounded == threshold(factor));
            }
        }

        #[test]
        fn a_client_gains_nothing_by_more_tasks_of_its_nice_value(at in -20i8..=20, tasks in 1u32..1_000) {
            let factor = NiceLaw::Linux.factor(nice(at));
            prop_assert_eq!(mean(&alloc::vec![at; tasks as usize]), Some(factor));
        }

        #[test]
        fn tasks_that_stand_back_take_nothing_from_the_tasks_beside_them(
            others in prop::collection::vec(-20i8..=0, 1..10),
            up in prop::collection::vec(1i8..=20, 0..10),
        ) {
            let all: Vec<i8> = others.iter().chain(&up).copied().collect();
            prop_assert_eq!(mean(&all), mean(&others));
        }

        #[test]
        fn a_client_s_factor_is_among_those_of_its_tasks(tasks in prop::collection::vec(-20i8..=20, 1..20)) {
            let factors = tasks.iter().map(|&at| NiceLaw::Linux.factor(nice(at)));
            let (least, most) = (factors.clone().min(), factors.max());
            let factor = mean(&tasks);
            prop_assert!(least <= factor && factor <= most);
        }
    }
}
