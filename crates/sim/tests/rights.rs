//! Rights that change while the machine runs.

mod common;

use common::{kept, report};
use prorata_scenario::event::Event;

/// Of three users the first has the first and the fourth client.
#[test]
fn copies_are_funded_by_copies() {
    let report = report(
        r#"
        duration = "12s"
        machine = { quantum = "10ms" }
        currency = [
            { name = "user", count = 3, tickets = ["10.department"] },
            { name = "department", count = 2, tickets = ["100.base"] },
        ]
        client = [
            { name = "job", count = 4, tickets = "7.user" }, { name = "last", tickets = "7.user2" },
        ]
        "#,
    );
    let received = report.clients.iter().map(|c| c.received_ns as f64 / 12e9);
    // Users 1 and 3 are of department 1, user 2 is of department 2.
    let due = [0.125, 0.25, 0.25, 0.125, 0.25];
    for (is, due) in received.zip(due) {
        assert!((is - due).abs() < 0.01, "{is} {due}");
    }
}

#[test]
fn transfers_inflation_and_funding_take_effect_at_their_time() {
    let report = report(
        r#"
        duration = "50s"
        machine = { quantum = "10ms" }
        client = [
            { name = "A", tickets = 300 }, { name = "B", tickets = 100 }, { name = "C", tickets = 100 },
        ]
        [[at]]
        time = "10s"
        do = { transfer = { name = "x", from = "A", to = ["B"], tickets = 200 } }
        [[at]]
        time = "20s"
        do = { end-transfer = "x" }
        [[at]]
        time = "30s"
        do = { set-tickets = { of = "C", tickets = 400 } }
        [[at]]
        time = "40s"
        do = { unfund = { of = "A", currency = "base" } }
        [measure]
        every = "10s"
        "#,
    );
    let received: Vec<_> = report
        .series
        .iter()
        .map(|point| &point.received_ns)
        .collect();
    let shares = |from: Option<usize>, to: usize| -> Vec<f64> {
        let before = from.map_or(vec![0; 3], |from| received[from].clone());
        let after = received[to].iter().zip(before);
        after
            .map(|(after, before)| (after - before) as f64 / 1e10)
            .collect()
    };
    let assert_close = |is: Vec<f64>, should: [f64; 3]| {
        assert!(
            is.iter()
                .zip(should)
                .all(|(is, should)| (is - should).abs() < 0.003),
            "{is:?} {should:?}"
        );
    };
    assert_close(shares(None, 0), [0.6, 0.2, 0.2]);
    assert_close(shares(Some(0), 1), [0.2, 0.6, 0.2]);
    assert_close(shares(Some(1), 2), [0.6, 0.2, 0.2]);
    assert_close(shares(Some(2), 3), [0.375, 0.125, 0.5]);
    assert_close(shares(Some(3), 4), [0.0, 0.2, 0.8]);
}

#[test]
fn a_run_reports_a_refusal_of_the_ledger_and_continues() {
    let report = report(
        r#"
        duration = "2s"
        client = [{ name = "A", tickets = 1 }, { name = "B", tickets = 1 }]
        [[at]]
        time = "1s"
        do = { transfer = { name = "x", from = "A", to = ["B"], tickets = 2 } }
        "#,
    );
    assert_eq!(report.counts.expect("simulated").refused, 1);
    assert_eq!(report.refused.len(), 1);
    assert_eq!(report.duration_ns, 2_000_000_000);
}

#[test]
fn random_tickets_stay_in_their_range_and_reach_its_ends() {
    let amounts = kept(
        r#"
        duration = "20s"
        client = [
            { name = "A", tickets = { random = { between = [2, 12], every = "40ms" } } },
            { name = "B", tickets = 3 },
        ]
        "#,
        |event, _| match event {
            Event::TicketsSet { amount, .. } => Some(amount.to_string()),
            _ => None,
        },
    );
    assert_eq!(amounts.len(), 501);
    let mut seen: Vec<u32> = amounts
        .iter()
        .map(|amount| amount.1.parse().expect("a number"))
        .collect();
    seen.sort_unstable();
    seen.dedup();
    assert_eq!(seen, (2..=12).collect::<Vec<_>>());
}

#[test]
fn monte_carlo_tickets_follow_the_error() {
    let amounts = |power: u32| {
        let text = format!(
            r#"
            duration = "4s"
            client = [{{ name = "A", tickets = {{ monte-carlo = {{ scale = 1000000, trial = "1ms", every = "1s", power = {power} }} }} }}]
            "#
        );
        let amounts = kept(&text, |event, _| match event {
            Event::TicketsSet { amount, .. } => Some(amount.to_string()),
            _ => None,
        });
        amounts
            .into_iter()
            .map(|amount| amount.1)
            .collect::<Vec<_>>()
    };
    // After 1000, 2000, ... trials: scale / trials^(power / 2), rounded.
    assert_eq!(amounts(2)[..4], ["1000000", "1000", "500", "333"]);
    assert_eq!(amounts(1)[..3], ["1000000", "32258", "22727"]);
    assert_eq!(amounts(3)[..3], ["1000000", "31", "11"]);
}
