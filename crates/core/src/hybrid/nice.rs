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
    pub fn value(self) -> i8 {
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

    /// The bound of base tickets, in units of 2^-32; exact.
    pub fn threshold(self, nice: Nice) -> Value {
        let threshold = u128::from(THRESHOLD) * u128::from(self.factor(nice));
        Value(threshold >> FACTOR_BITS)
    }

    /// What a client's base tickets are with its nice value: `value` times the factor,
    /// rounded down, and then within the bound. A client without base tickets has none
    /// with any nice value; any other has some.
    pub fn value(self, value: Value, nice: Nice) -> Value {
        if value == Value(0) || nice == Nice::default() {
            return value;
        }
        let product = value.0.saturating_mul(self.factor(nice).into()) >> FACTOR_BITS;
        self.bound(Value(product.max(1)), nice)
    }

    /// Base tickets within the bound: at most the threshold above nice 0, at least the
    /// threshold below. To be applied last, after any boost (1999, Figure 2).
    pub fn bound(self, value: Value, nice: Nice) -> Value {
        match nice.0 {
            0 => value,
            1.. => value.min(self.threshold(nice)),
            _ => value.max(self.threshold(nice)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
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
        let base = |value| NiceLaw::Paper.threshold(nice(value)).to_f64();
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
        let base = |value| NiceLaw::Linux.threshold(nice(value)).to_f64();
        assert_eq!(base(0), 1_000.0);
        assert!((base(19) - 14.648).abs() < 0.001);
        assert!((base(-20) - 86_680.664).abs() < 0.001);
        assert_eq!(base(20), base(19));
    }

    #[test]
    fn a_step_of_nice_never_raises_tickets_or_thresholds() {
        for law in [NiceLaw::Paper, NiceLaw::Linux] {
            for (before, after) in all().zip(all().skip(1)) {
                assert!(law.factor(after) <= law.factor(before));
                assert!(law.threshold(after) <= law.threshold(before));
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
            NiceLaw::Paper.value(value, nice(at)).to_f64()
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
            for nice in all() {
                assert_eq!(law.value(Value(0), nice), Value(0));
                assert!(law.value(Value(1), nice) >= Value(1));
                assert!(law.value(Value(u128::MAX), nice) > Value(0));
            }
        }
    }

    proptest! {
        #[test]
        fn a_bound_is_on_one_side_only(value: u64, at in -20i8..=20) {
            for law in [NiceLaw::Paper, NiceLaw::Linux] {
                let (value, nice) = (Value(value.into()), nice(at));
                let bounded = law.bound(value, nice);
                prop_assert!(at <= 0 || bounded <= law.threshold(nice) && bounded <= value);
                prop_assert!(at >= 0 || bounded >= law.threshold(nice) && bounded >= value);
                prop_assert!(at != 0 || bounded == value);
                prop_assert!(bounded == value || bounded == law.threshold(nice));
            }
        }
    }
}
