//! The part of a machine that a client is due, and how it adds up with time.

/// A rate of one CPU.
pub const CPU: u64 = 1 << CPU_BITS;
const CPU_BITS: u32 = 30;
/// Most CPUs of a rate.
const MAX_CPUS: u64 = 1 << 16;

/// CPU time due for each nanosecond that passes, in units of 1 / [`CPU`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Debug)]
pub struct DueRate(u64);

impl DueRate {
    /// Units of 1 / [`CPU`]; at most 2^16 CPUs.
    pub fn parts(self) -> u64 {
        self.0
    }

    /// CPU time due for `elapsed_ns`, rounded down. Where the product exceeds 64 bits it
    /// counts as 2^64 - 1, so the result is then 2^34 - 1 ns (17 s), longer than any
    /// window and any lead.
    pub fn due_ns(self, elapsed_ns: u64) -> u64 {
        self.0.saturating_mul(elapsed_ns) >> CPU_BITS
    }
}

/// The rate of a client that holds `value` of the `total` of all clients that competed in
/// the last ten seconds, itself included, in any common unit. No client is due more than
/// one CPU a thread.
///
/// `value / total` is rounded down to 1 / [`CPU`] before it is multiplied by the CPUs, so a
/// client's rate is too low by less than 2^-30 of the machine. A value above the total
/// counts as the total; without a total nothing is due.
pub fn due_rate(value: u32, total: u64, cpus: u32, threads: u32) -> DueRate {
    let part = (u64::from(value) << CPU_BITS).checked_div(total);
    let part = part.unwrap_or(0).min(CPU);
    let cpus = u64::from(cpus).min(MAX_CPUS);
    let threads = u64::from(threads).min(MAX_CPUS);
    DueRate((part * cpus).min(threads << CPU_BITS))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_client_is_due_its_part_of_the_machine() {
        assert_eq!(due_rate(1, 2, 1, 1), DueRate(CPU / 2));
        assert_eq!(due_rate(3, 4, 2, 8), DueRate(CPU * 3 / 2));
        assert_eq!(due_rate(7, 7, 4, 1), DueRate(CPU), "one CPU a thread");
        assert_eq!(due_rate(9, 7, 4, 9), DueRate(4 * CPU), "no more than all");
        assert_eq!(due_rate(7, 0, 4, 1), DueRate(0));
        assert_eq!(due_rate(7, 7, 4, 0), DueRate(0));
        let most = due_rate(u32::MAX, u32::MAX.into(), u32::MAX, u32::MAX);
        assert_eq!(most, DueRate(CPU << 16));
    }

    #[test]
    fn a_long_time_is_due_at_least_seventeen_seconds() {
        assert_eq!(DueRate(CPU).due_ns(u64::MAX), (1 << 34) - 1);
        assert_eq!(DueRate(CPU).due_ns(1 << 33), 1 << 33);
        assert_eq!(DueRate(CPU / 2).due_ns(7), 3);
        assert_eq!(DueRate(0).due_ns(u64::MAX), 0);
    }

    proptest! {
        #[test]
        fn the_rate_is_exact_to_a_part_of_the_machine(
            value: u32, more: u32, cpus in 1u32..=1 << 16, threads in 1u32..=1 << 16,
        ) {
            let total = u64::from(value) + u64::from(more) + 1;
            let rate = due_rate(value, total, cpus, threads).parts();
            let exact = (u128::from(value) * u128::from(cpus)) << CPU_BITS;
            let exact = (exact / u128::from(total)).min(u128::from(threads) << CPU_BITS);
            prop_assert!(u128::from(rate) <= exact);
            prop_assert!(exact - u128::from(rate) <= u128::from(cpus));
        }

        #[test]
        fn due_time_never_exceeds_what_is_exact(parts in 0..=CPU << 16, elapsed_ns: u64) {
            let exact = (u128::from(parts) * u128::from(elapsed_ns)) >> CPU_BITS;
            let due_ns = u128::from(DueRate(parts).due_ns(elapsed_ns));
            prop_assert_eq!(due_ns, exact.min((1 << 34) - 1));
        }
    }
}
