//! Nice values (1999, 3.4) under every policy that engines run.

use prorata_core::hybrid::{Nice, NiceLaw, NiceMean};
use prorata_core::ids::ClientId;
use prorata_core::policy::PolicyName;

use super::{Bench, POLICIES};

fn bench(policy: PolicyName) -> Bench {
    let mut bench = Bench::new(1, policy);
    bench.dispatcher.set_nice_law(Some(NiceLaw::Paper));
    bench
}

fn nice(value: i8) -> Nice {
    Nice::new(value).expect("in range")
}

/// What a client got of so many quanta is its part of the parts, within a policy's error.
fn assert_shares(bench: &mut Bench, parts: &[(ClientId, f64)], quanta: u32, error: f64) {
    let before: Vec<f64> = parts.iter().map(|(c, _)| bench.received(*c)).collect();
    bench.run(quanta);
    let total: f64 = parts.iter().map(|(_, part)| part).sum();
    for ((client, part), before) in parts.iter().zip(before) {
        let (received, due) = (bench.received(*client) - before, part / total);
        let due = due * f64::from(quanta);
        assert!(
            (received - due).abs() <= error,
            "{client}: {received} of {due}"
        );
    }
}

#[test]
fn eight_steps_of_nice_are_one_to_two_and_a_half() {
    for (policy, error) in POLICIES {
        let mut bench = bench(policy);
        let (niced, plain) = (bench.base_client(100), bench.base_client(100));
        bench.dispatcher.set_nice(niced, nice(8));
        let parts = [(niced, 408.0 / 1024.0), (plain, 1.0)];
        assert_shares(&mut bench, &parts, 7_000, error(7_000.0));
        // Nice again as the other one, it has its tickets again.
        bench.dispatcher.set_nice(niced, Nice::default());
        let parts = [(niced, 1.0), (plain, 1.0)];
        assert_shares(&mut bench, &parts, 1_000, error(1_000.0) + 1.0);
    }
}

#[test]
fn a_niced_client_is_bounded_whatever_funds_it() {
    for (value, base) in [(20, 99.609), (19, 112.305), (1, 891.602), (-20, 10_000.0)] {
        for funded in [500, 5_000] {
            let mut bench = bench(PolicyName::Stride);
            let (a, b) = (bench.currency("A", funded), bench.currency("B", 1_000));
            let (niced, plain) = (bench.client(a, 1), bench.client(b, 1));
            bench.dispatcher.set_nice(niced, nice(value));
            let factor = base / 1_000.0;
            let scaled = f64::from(funded) * factor;
            let bounded = match value > 0 {
                true => scaled.min(base),
                false => scaled.max(base),
            };
            let parts = [(niced, bounded), (plain, 1_000.0)];
            assert_shares(&mut bench, &parts, 5_000, 2.0);
        }
    }
}

#[test]
fn nice_values_leave_siblings_and_the_ledger_alone() {
    let mut bench = bench(PolicyName::Stride);
    let (a, b) = (bench.currency("A", 1_000), bench.currency("B", 1_000));
    let (niced, sibling, other) = (bench.client(a, 1), bench.client(a, 1), bench.client(b, 1));
    bench.dispatcher.set_nice(niced, nice(20));
    let ledger = bench.dispatcher.ledger();
    assert_eq!(ledger.value(niced), ledger.value(sibling));
    let parts = [(niced, 49.805), (sibling, 500.0), (other, 1_000.0)];
    assert_shares(&mut bench, &parts, 5_000, 2.0);
}

#[test]
fn a_nice_value_outlasts_a_sleep() {
    let mut bench = bench(PolicyName::Stride);
    let (niced, plain) = (bench.base_client(100), bench.base_client(100));
    bench.dispatcher.set_runnable(niced, 0);
    bench.dispatcher.set_nice(niced, nice(20));
    bench.dispatcher.set_runnable(niced, 1);
    assert_eq!(bench.dispatcher.nice(niced), nice(20));
    let parts = [(niced, 102.0 / 1024.0), (plain, 1.0)];
    assert_shares(&mut bench, &parts, 2_000, 2.0);
}

#[test]
fn without_a_law_nice_values_do_nothing() {
    let mut bench = Bench::new(1, PolicyName::Stride);
    let (niced, plain) = (bench.base_client(100), bench.base_client(100));
    bench.dispatcher.set_nice(niced, nice(20));
    assert_shares(&mut bench, &[(niced, 1.0), (plain, 1.0)], 1_000, 1.0);
}

#[test]
fn a_client_without_tickets_gets_none_by_its_nice_value() {
    let mut bench = bench(PolicyName::Stride);
    let currency = bench.currency("A", 1);
    let (poor, plain) = (bench.client(currency, 1), bench.base_client(100));
    let base = bench.dispatcher.ledger().base();
    let ticket = bench.dispatcher.ledger().backing(currency).next();
    let ticket = ticket.expect("the base currency backs it");
    bench.apply(prorata_core::ledger::Operation::DestroyTicket { ticket });
    bench.dispatcher.set_nice(poor, Nice::MIN);
    assert_shares(&mut bench, &[(poor, 0.0), (plain, 1.0)], 100, 0.0);
    assert!(bench.dispatcher.ledger().currency(base).is_some());
}

#[test]
fn an_unknown_client_is_ignored() {
    let mut bench = bench(PolicyName::Stride);
    let unknown = ClientId::from_parts(7, 0);
    bench.dispatcher.set_nice(unknown, Nice::MAX);
    assert_eq!(bench.dispatcher.nice(unknown), Nice::default());
}

/// By Linux's weights, as the user engine has it: also for a client whose tasks differ.
#[test]
fn a_user_s_nice_program_gets_fifteen_to_a_thousand_of_another_user_s() {
    for (policy, error) in POLICIES {
        let mut bench = Bench::new(1, policy);
        let (a, b) = (bench.currency("a", 1_000), bench.currency("b", 1_000));
        let (niced, plain) = (bench.client(a, 1), bench.client(b, 1));
        let ledger_value = bench.dispatcher.ledger().value(niced);
        let mut mean = NiceMean::default();
        mean.add(NiceLaw::Linux.factor(nice(19)));
        let factor = mean.factor().expect("a task");
        bench.dispatcher.set_nice_factor(niced, factor);
        let parts = [(niced, 1.0), (plain, 1.0)];
        assert_shares(&mut bench, &parts, 1_000, error(1_000.0) + 1.0);
        bench.dispatcher.set_nice_law(Some(NiceLaw::Linux));
        let usage = bench.dispatcher.usage(niced);
        assert!((usage.share / (15.0 / 1_039.0) - 1.0).abs() < 1e-4);
        let parts = [(niced, 14.648), (plain, 1_000.0)];
        assert_shares(&mut bench, &parts, 10_000, error(10_000.0) + 1.0);
        assert_eq!(bench.dispatcher.ledger().value(niced), ledger_value);
        bench.dispatcher.set_nice_law(None);
        assert_eq!(bench.dispatcher.usage(niced).share, 0.5);
    }
}
