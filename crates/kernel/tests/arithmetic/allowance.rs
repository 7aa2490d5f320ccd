//! Allowances (`bpf/allowance.h`) beside the core's (`core/src/allowance.rs`).

use prorata_core::allowance::{Allowance, PERIOD_NS};
use prorata_core::cpu_limit::CpuLimit;
use rand_core::Rng as _;
use rand_xoshiro::Xoshiro256PlusPlus;

use super::{amount, numbers};
use crate::native::CONSTANTS;
use crate::native::allowance as native;

fn limit(random: &mut Xoshiro256PlusPlus) -> CpuLimit {
    let thousandths = amount(random, 27).min(CpuLimit::MOST.thousandths().into());
    CpuLimit::from_thousandths(thousandths as u32).unwrap()
}

/// Random histories: use up to minutes, steps from nothing to hours, some of them to the very
/// end of a period, clocks that step back, and changes of the limit.
#[test]
fn allowances_are_the_core_s() {
    assert_eq!(CONSTANTS.period_ns, PERIOD_NS);
    let mut random = numbers(30);
    let mut pauses = 0;
    for history in 0..2_000 {
        let mut now_ns = amount(&mut random, 50);
        let max = limit(&mut random);
        let mut core = Allowance::new(max, now_ns);
        let mut ours = native::Allowance::new(max.thousandths(), now_ns);
        let (mut paused, mut latest_ns) = (false, now_ns);
        for step in 0..100 {
            if random.next_u64().is_multiple_of(8) {
                let max = limit(&mut random);
                core.set_max(max);
                // The dispatcher looks at once, too.
                core.advance(latest_ns);
                ours.change_max(max.thousandths());
            }
            now_ns = match random.next_u64() % 4 {
                0 => (latest_ns + 1).next_multiple_of(PERIOD_NS),
                1 => now_ns + amount(&mut random, 42),
                2 => now_ns + amount(&mut random, 28),
                _ => now_ns - amount(&mut random, 14).min(now_ns),
            };
            let is_end = now_ns > latest_ns && now_ns.is_multiple_of(PERIOD_NS);
            latest_ns = latest_ns.max(now_ns);
            let used_ns = amount(&mut random, 38) - 1;
            core.charge(used_ns);
            ours.spend(used_ns);
            core.advance(now_ns);
            ours.regain(now_ns);
            let place = || format!("history {history}, step {step}: {core:?}");
            for cpus in [0, 1, 3, u32::MAX] {
                assert_eq!(ours.lasts_ns(cpus), core.lasts_ns(cpus), "{}", place());
            }
            // The kernel resumes at ends of periods only.
            paused |= ours.is_exhausted();
            if is_end {
                paused = ours.is_exhausted();
                assert_eq!(paused, core.resumes_ns().is_some(), "{}", place());
            }
            pauses += u32::from(paused);
        }
    }
    assert!(pauses > 10_000, "only {pauses} pauses");
}

#[test]
fn an_allowance_is_exhausted_at_its_least_and_not_above() {
    for (used_ns, is_exhausted) in [(49_500_000, true), (49_499_999, false)] {
        let mut allowance = native::Allowance::new(500, 7);
        allowance.spend(used_ns);
        assert_eq!(allowance.is_exhausted(), is_exhausted);
    }
}

#[test]
fn the_ends_of_all_ranges_are_safe() {
    for max in [CpuLimit::LEAST, CpuLimit::MOST] {
        let mut allowance = native::Allowance::new(max.thousandths(), 0);
        for _ in 0..3 {
            allowance.spend(u64::MAX);
            allowance.regain(0);
            assert!(allowance.is_exhausted());
            assert_eq!(allowance.lasts_ns(u32::MAX), 0);
        }
        // The largest debt can be paid back.
        allowance.regain(u64::MAX);
        assert!(!allowance.is_exhausted());
    }
}
