//! The CPU time that a client may use now, where its CPU time is limited: a token bucket.
//!
//! ```text
//!                          full: a period's worth, limit x period
//!   allowance  |\            /\
//!              | \  uses    /  \         regains limit x elapsed, up to full
//!              |  \        /    \
//!       least  |---\------/------\----
//!              |    pause         pause
//!              +----|---------|---------> periods
//! ```
//!
//! A client that has exhausted its allowance pauses for the rest of the period. If it then still
//! owes time, it pauses for further periods. So from any time on it gets at most limit x elapsed,
//! a period's worth, and what its engine let it use beyond its allowance. That debt is paid back:
//! a client that always wants to run gets exactly its limit in the long run.

use crate::cpu_limit::{CPU_THOUSANDTHS, CpuLimit};

/// A client that has exhausted its allowance pauses until the next multiple of this time.
pub const PERIOD_NS: u64 = 100_000_000;

/// Less than one in so many parts of a full allowance is left for the next period. Otherwise
/// what a client regains while its CPU switches to it would begin ever shorter turns.
const LEAST: i128 = 100;

/// What a limited client may use.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Allowance {
    max: CpuLimit,
    /// In thousandths of a nanosecond of CPU time; a debt is below zero.
    left: i128,
    /// It has regained what it was due until then.
    since_ns: u64,
    /// The client pauses until then.
    resumes_ns: Option<u64>,
}

impl Allowance {
    /// A full allowance.
    pub fn new(max: CpuLimit, now_ns: u64) -> Self {
        let mut allowance = Self {
            max,
            left: 0,
            since_ns: now_ns,
            resumes_ns: None,
        };
        allowance.left = allowance.full();
        allowance
    }

    /// From now on another limit holds. A debt stays.
    pub fn set_max(&mut self, max: CpuLimit) {
        self.max = max;
        self.left = self.left.min(self.full());
    }

    /// The client used CPU time.
    pub fn charge(&mut self, used_ns: u64) {
        self.left -= i128::from(used_ns) * i128::from(CPU_THOUSANDTHS);
    }

    /// Regains what is due until now, and finds out whether the client pauses.
    pub fn advance(&mut self, now_ns: u64) {
        let elapsed_ns = now_ns.saturating_sub(self.since_ns);
        self.left = (self.left + self.regained(elapsed_ns)).min(self.full());
        self.since_ns = self.since_ns.max(now_ns);
        let was_paused = self
            .resumes_ns
            .is_some_and(|resumes_ns| now_ns < resumes_ns);
        self.resumes_ns = match self.left <= self.least() || was_paused {
            true => Some(self.next_resumption_ns()),
            false => None,
        };
    }

    /// When the client may run again, if it has to pause as of the last advance.
    pub fn resumes_ns(&self) -> Option<u64> {
        self.resumes_ns
    }

    /// For how long from the last advance on the client may run on so many CPUs.
    pub fn lasts_ns(&self, cpus: u32) -> u64 {
        let rate = i128::from(cpus) * i128::from(CPU_THOUSANDTHS);
        match rate - i128::from(self.max.thousandths()) {
            ..=0 => u64::MAX,
            drain => {
                let lasts_ns = (self.left.max(0) + drain - 1) / drain;
                u64::try_from(lasts_ns).unwrap_or(u64::MAX)
            }
        }
    }

    /// The first end of a period at which more is left than the least, if the client pauses until
    /// then.
    fn next_resumption_ns(&self) -> u64 {
        let missing = (self.least() + 1 - self.left).max(0);
        let max = i128::from(self.max.thousandths());
        let missing_ns = u64::try_from((missing + max - 1) / max).unwrap_or(u64::MAX);
        let after_ns = self.since_ns.saturating_add(missing_ns.max(1));
        after_ns.div_ceil(PERIOD_NS).saturating_mul(PERIOD_NS)
    }

    fn regained(&self, elapsed_ns: u64) -> i128 {
        i128::from(elapsed_ns) * i128::from(self.max.thousandths())
    }

    fn full(&self) -> i128 {
        self.regained(PERIOD_NS)
    }

    fn least(&self) -> i128 {
        self.full() / LEAST
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const MS: u64 = 1_000_000;

    fn percent(percent: u32) -> CpuLimit {
        CpuLimit::from_thousandths(percent * 10).unwrap()
    }

    #[test]
    fn a_client_runs_for_its_part_of_each_period() {
        let mut allowance = Allowance::new(percent(30), 0);
        let mut now_ns = 0;
        let mut runs_ns = alloc::vec::Vec::new();
        for _ in 0..20 {
            let runs = allowance.lasts_ns(1);
            allowance.charge(runs);
            now_ns += runs;
            allowance.advance(now_ns);
            let resumes_ns = allowance.resumes_ns().expect("it is exhausted");
            assert_eq!(resumes_ns, (now_ns / PERIOD_NS + 1) * PERIOD_NS);
            now_ns = resumes_ns;
            allowance.advance(now_ns);
            assert_eq!(allowance.resumes_ns(), None);
            runs_ns.push(runs);
        }
        // A full allowance lasts longer than a period's worth, as it regains meanwhile.
        assert_eq!(runs_ns[0].div_ceil(MS), 43);
        assert!(runs_ns[19].abs_diff(30 * MS) < 10_000, "{runs_ns:?}");
        let received_ns: u64 = runs_ns.iter().sum();
        assert!(received_ns.abs_diff((20 * 30 + 9) * MS) < MS, "{runs_ns:?}");
    }

    #[test]
    fn an_allowance_is_exhausted_at_its_least_and_not_above() {
        for (used_ns, is_exhausted) in [(49_500_000, true), (49_499_999, false)] {
            let mut allowance = Allowance::new(percent(50), 7);
            allowance.charge(used_ns);
            allowance.advance(7);
            assert_eq!(allowance.resumes_ns().is_some(), is_exhausted);
        }
    }

    #[test]
    fn a_debt_is_paid_back_over_periods() {
        let mut allowance = Allowance::new(percent(10), 0);
        allowance.charge(35 * MS);
        allowance.advance(0);
        // 25 ms are owed, and each period pays back 10.
        assert_eq!(allowance.resumes_ns(), Some(3 * PERIOD_NS));
        allowance.advance(2 * PERIOD_NS);
        assert_eq!(allowance.resumes_ns(), Some(3 * PERIOD_NS));
        // What it uses during its pause makes the pause longer.
        allowance.charge(5 * MS);
        allowance.advance(2 * PERIOD_NS);
        assert_eq!(allowance.resumes_ns(), Some(4 * PERIOD_NS));
        allowance.advance(4 * PERIOD_NS);
        assert_eq!(allowance.resumes_ns(), None);
        assert_eq!(allowance.lasts_ns(1).div_ceil(MS), 12);
    }

    #[test]
    fn a_limit_of_all_cpus_in_use_is_never_exhausted() {
        let allowance = Allowance::new(percent(200), 0);
        assert_eq!(allowance.lasts_ns(2), u64::MAX);
        assert_eq!(allowance.lasts_ns(3), 200 * MS);
    }

    #[test]
    fn the_ends_of_all_ranges_are_safe() {
        for max in [CpuLimit::LEAST, CpuLimit::MOST] {
            let mut allowance = Allowance::new(max, 0);
            allowance.charge(u64::MAX);
            allowance.advance(u64::MAX);
            allowance.charge(u64::MAX);
            allowance.advance(0);
            assert_eq!(allowance.lasts_ns(u32::MAX), 0);
            assert!(allowance.resumes_ns() > Some(0));
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig {
            failure_persistence: None,
            rng_seed: proptest::test_runner::RngSeed::Fixed(2010),
            ..ProptestConfig::default()
        })]

        /// A client that starts, runs late, sleeps and uses time during pauses.
        #[test]
        fn no_window_has_more_than_limit_period_and_debt(
            max in 1u32..5000,
            steps in prop::collection::vec((0u64..300 * MS, 0u64..300 * MS, 0u64..20 * MS, 1u32..5), 1..60),
        ) {
            let max = CpuLimit::from_thousandths(max).unwrap();
            let worth = |elapsed_ns: u64| u128::from(elapsed_ns) * u128::from(max.thousandths());
            let mut allowance = Allowance::new(max, 0);
            let (mut now_ns, mut received_ns, mut over_ns) = (0, 0u64, 0u64);
            // What was received, less what the limit was worth, at its lowest.
            let mut lowest = 0i128;
            for (idle_ns, wants_ns, late_ns, cpus) in steps {
                now_ns += idle_ns;
                allowance.advance(now_ns);
                now_ns = allowance.resumes_ns().unwrap_or(now_ns);
                allowance.advance(now_ns);
                prop_assert_eq!(allowance.resumes_ns(), None);
                let ahead = |received_ns: u64, now_ns| {
                    i128::from(received_ns) * 1000 - worth(now_ns) as i128
                };
                lowest = lowest.min(ahead(received_ns, now_ns));
                let runs_ns = wants_ns.min(allowance.lasts_ns(cpus)) + late_ns;
                over_ns = over_ns.max((late_ns + 1) * u64::from(cpus));
                received_ns += runs_ns * u64::from(cpus);
                now_ns += runs_ns;
                allowance.charge(runs_ns * u64::from(cpus));
                let most = worth(PERIOD_NS) as i128 + i128::from(over_ns) * 1000;
                prop_assert!(ahead(received_ns, now_ns) - lowest <= most);
            }
        }
    }
}
