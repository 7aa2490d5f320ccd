//! Windows, leads and early ranks (`bpf/window.h`) beside the core's (`core/src/hybrid`).

use prorata_core::hybrid::{
    DueRate, EarlyRank, FRACTION_ONE, Lead, UseWindow, WakeClass, due_rate, fraction, is_early,
    lead_bound_ns,
};
use rand_core::Rng as _;
use rand_xoshiro::Xoshiro256PlusPlus;

use super::{amount, numbers};
use crate::native::window as native;

const CLASSES: [WakeClass; 4] = [
    WakeClass::Lock,
    WakeClass::Disk,
    WakeClass::Other,
    WakeClass::User,
];

/// A random rate of some CPUs.
fn rate(random: &mut Xoshiro256PlusPlus) -> DueRate {
    let (value, total) = (amount(random, 32) as u32, amount(random, 40));
    let (cpus, threads) = (amount(random, 18) as u32, amount(random, 18) as u32);
    due_rate(value, total, cpus, threads)
}

#[test]
fn rates_and_dues_are_the_core_s() {
    let mut random = numbers(20);
    for _ in 0..300_000 {
        let (value, total) = (amount(&mut random, 32) as u32, amount(&mut random, 64));
        let (cpus, threads) = (
            amount(&mut random, 20) as u32,
            amount(&mut random, 20) as u32,
        );
        let rate = due_rate(value, total, cpus, threads);
        assert_eq!(native::due_rate(value, total, cpus, threads), rate.parts());
        let elapsed_ns = amount(&mut random, 64);
        assert_eq!(
            native::due_in(rate.parts(), elapsed_ns),
            rate.due_ns(elapsed_ns),
            "{value} {total} {cpus} {threads} {elapsed_ns}"
        );
    }
    assert_eq!(native::due_rate(7, 0, 1, 1), due_rate(7, 0, 1, 1).parts());
    let most = due_rate(u32::MAX, 1, u32::MAX, u32::MAX);
    assert_eq!(
        native::due_in(most.parts(), u64::MAX),
        most.due_ns(u64::MAX)
    );
    assert_eq!(native::due_in(0, u64::MAX), 0);
}

/// Random histories: steps from nothing to minutes, some of them to the very end of a slot.
#[test]
fn windows_are_the_core_s() {
    let mut random = numbers(21);
    for history in 0..300 {
        let mut now_ns = amount(&mut random, 50);
        let mut core = UseWindow::new(now_ns);
        let mut window = native::Window::new(now_ns);
        for _ in 0..200 {
            now_ns += match random.next_u64() % 4 {
                0 => 1_000_000_000 - now_ns % 1_000_000_000,
                1 => amount(&mut random, 37),
                2 => amount(&mut random, 31),
                _ => amount(&mut random, 22) - 1,
            };
            let rate = rate(&mut random);
            let passed = core.advance(now_ns, rate);
            assert_eq!(window.advance(now_ns, rate.parts()), passed);
            let used_ns = random.next_u64() % 50_000_000;
            core.receive(used_ns);
            window.receive(used_ns);
            assert_eq!(
                (
                    window.received_ns(),
                    window.deserved_ns(),
                    window.fraction()
                ),
                (core.received_ns(), core.deserved_ns(), core.fraction()),
                "history {history} at {now_ns}"
            );
        }
        // A time that is not later changes nothing.
        assert_eq!(window.advance(now_ns, 1 << 30), 0);
    }
}

#[test]
fn fractions_are_the_core_s() {
    let mut random = numbers(22);
    for _ in 0..300_000 {
        let (received, deserved) = (amount(&mut random, 64), amount(&mut random, 64));
        assert_eq!(
            native::fraction(received, deserved),
            fraction(received, deserved)
        );
    }
    for (received, deserved) in [(0, 0), (0, 1), (1, 1), (1 << 50, u64::MAX)] {
        assert_eq!(
            native::fraction(received, deserved),
            fraction(received, deserved)
        );
    }
}

#[test]
fn leads_are_the_core_s() {
    let mut random = numbers(23);
    let (mut core, mut lead_ns) = (Lead::default(), 0);
    for _ in 0..300_000 {
        let (rate, elapsed_ns) = (rate(&mut random), amount(&mut random, 34));
        let used_ns = amount(&mut random, 35);
        core.drain(elapsed_ns, rate);
        core.rise(used_ns);
        lead_ns = native::risen(
            native::drained(lead_ns, native::due_in(rate.parts(), elapsed_ns)),
            used_ns,
        );
        assert_eq!(lead_ns, core.ns());
        let quantum_ns = amount(&mut random, 31);
        assert_eq!(native::lead_bound_of(quantum_ns), lead_bound_ns(quantum_ns));
    }
}

#[test]
fn early_ranks_are_the_core_s() {
    let mut random = numbers(24);
    for round in 0..300_000 {
        let class = CLASSES[round % CLASSES.len()];
        let part = (random.next_u64() % u64::from(FRACTION_ONE + 2)) as u32;
        let arrival = amount(&mut random, 64);
        assert_eq!(
            native::early_rank(class as u32, part, arrival),
            EarlyRank::new(class, part, arrival).bits()
        );
        let bound_ns = amount(&mut random, 28);
        for lead_ns in [bound_ns, bound_ns + 1, random.next_u64() % (2 * bound_ns)] {
            assert_eq!(
                native::wakes_early(class as u32, part, lead_ns, bound_ns),
                is_early(class, part, lead_ns, bound_ns)
            );
        }
    }
}
