//! Nice values of a scenario (1999, 3.4).

mod common;

use common::{parse, received_ms, run_checked};
use prorata_core::policy::PolicyName;
use prorata_sim::Machine;

fn machine(policy: PolicyName, nice: bool, rest: &str) -> Machine {
    let text = format!(
        r#"
        duration = "140s"
        machine = {{ policy = "{policy}", hybrid = {{ nice = {nice} }} }}
        {rest}
        "#
    );
    run_checked(&parse(&text), 1, ()).0
}

/// The ratio of A's CPU time to B's.
fn ratio(machine: &Machine) -> f64 {
    received_ms(machine, "A") / received_ms(machine, "B")
}

const EIGHT: &str = r#"client = [
    { name = "A", tickets = 100 }, { name = "B", tickets = 100, nice = 8 },
]"#;

#[test]
fn nice_eight_is_two_and_a_half_times_less_under_every_policy() {
    for policy in PolicyName::BY_TICKETS {
        // 7,000 quanta; six standard deviations of as many lotteries are 11 % of the ratio.
        let within = match policy {
            PolicyName::Stride | PolicyName::HierarchicalStride | PolicyName::Eevdf => 0.003,
            _ => 0.2,
        };
        let niced = ratio(&machine(policy, true, EIGHT));
        assert!((niced - 2.51).abs() < within, "{policy}: {niced}");
    }
}

#[test]
fn without_the_mechanism_nice_values_do_nothing() {
    let plain = ratio(&machine(PolicyName::Stride, false, EIGHT));
    assert!((plain - 1.0).abs() < 0.001, "{plain}");
}

#[test]
fn a_bound_holds_against_another_user() {
    let rest = r#"
        currency = [
            { name = "alice", tickets = ["1000.base"] }, { name = "bob", tickets = ["1000.base"] },
        ]
        client = [
            { name = "A", tickets = "100.alice", nice = 20 }, { name = "B", tickets = "100.bob" },
        ]
    "#;
    let niced = ratio(&machine(PolicyName::Stride, true, rest));
    assert!((niced - 0.0996).abs() < 0.0005, "{niced}");
}

#[test]
fn an_event_changes_a_nice_value() {
    let rest = r#"
        client = [{ name = "A", tickets = 100 }, { name = "B", tickets = 100 }]
        at = [
            { time = "20s", do = { set-nice = { of = "A", nice = 20 } } },
            { time = "120s", do = { set-nice = { of = "A", nice = -6 } } },
        ]
        assert = [
            { conservation = true },
            { ratio = { of = ["A", "B"], is = 1, within = 0.01, to = "20s" } },
            { ratio = { of = ["A", "B"], is = 0.0996, within = 0.01, from = "20s", to = "120s" } },
            { ratio = { of = ["A", "B"], is = 19.95, within = 0.05, from = "120s" } },
        ]
    "#;
    let text = format!("duration = \"140s\"\n machine.hybrid.nice = true\n{rest}");
    let report = common::report(&text);
    for verdict in &report.verdicts {
        assert!(verdict.holds, "{verdict:?}");
    }
    assert_eq!(report.verdicts.len(), 4);
}

#[test]
fn a_client_that_is_niced_up_is_never_early() {
    let latency = |nice: i8| {
        let rest = format!(
            r#"
            client = [
                {{ name = "A", tickets = 100, program = "editor", nice = {nice} }},
                {{ name = "B", tickets = 100, count = 8 }},
            ]
            [program.editor]
            steps = [{{ loop = {{ steps = [{{ compute = "2ms" }}, {{ sleep = "98ms" }}] }} }}]
            "#
        );
        let hybrid = "hybrid = { ticket-boost = true, nice = true }";
        let machine = format!("machine = {{ policy = \"lottery\", {hybrid} }}");
        let (_, measures) = common::measured(&format!("duration = \"60s\"\n{machine}\n{rest}"));
        let latencies = &measures.clients()[0].dispatch_latencies;
        latencies.percentile_ns(90.0).expect("it woke")
    };
    // An early client waits for the end of one turn, another client for its lottery.
    let quantum_ns = 20_000_000;
    assert!(latency(0) <= quantum_ns);
    assert!(latency(5) > 2 * quantum_ns);
}

#[test]
fn decay_usage_knows_nice_values_and_no_tickets() {
    let rest = r#"client = [
        { name = "A", tickets = 1000 }, { name = "B", tickets = 100 },
        { name = "C", tickets = 100, nice = 10 },
    ]"#;
    let text = format!(
        "duration = \"120s\"\nmachine = {{ policy = \"decay-usage\", quantum = \"100ms\" }}\n{rest}"
    );
    let (machine, ()) = run_checked(&parse(&text), 1, ());
    let [a, b, c] = ["A", "B", "C"].map(|name| received_ms(&machine, name));
    assert!((a / b - 1.0).abs() < 0.05, "{a} {b}");
    assert!(c > 0.0 && c < b / 2.0, "{b} {c}");
}

#[test]
fn a_new_policy_learns_of_nice_values() {
    let rest = r#"
        client = [{ name = "A", tickets = 100 }, { name = "B", tickets = 100, nice = 10 }]
        at = [{ time = "60s", do = { policy = "decay-usage" } }]
        assert = [{ ratio = { of = ["A", "B"], is = 1, within = 0.01, to = "60s" } }]
    "#;
    let text = format!("duration = \"120s\"\nmachine = {{ quantum = \"100ms\" }}\n{rest}");
    let scenario = parse(&text);
    let (machine, measures) = run_checked(&scenario, 1, prorata_sim::Measures::new());
    let report = prorata_sim::report(&scenario, 1, &machine, &measures);
    assert!(report.verdicts.iter().all(|verdict| verdict.holds));
    // In the first minute each got 30 s.
    let (a, b) = (received_ms(&machine, "A"), received_ms(&machine, "B"));
    assert!((a - 30_000.0) > 2.0 * (b - 30_000.0), "{a} {b}");
}

#[test]
fn a_loop_ends_at_its_time() {
    let text = r#"
        duration = "100ms"
        client = [{ name = "A", tickets = 1, program = "p" }]
        [program.p]
        steps = [
            { loop = { until = "20ms", steps = [{ compute = "3ms" }, { sleep = "4ms" }] } },
            { compute = "1ms" },
        ]
    "#;
    // At 0, 7 and 14 ms the time has not come, at 21 ms it has.
    let (machine, ()) = run_checked(&parse(text), 1, ());
    assert_eq!(received_ms(&machine, "A"), 10.0);
}
