//! What threads wait for: pipes, signals, mutexes and services.

mod common;

use common::{kept, measured, pairs, received_ms, report};
use prorata_scenario::event::Event;

#[test]
fn a_pipe_holds_its_capacity_and_no_more() {
    let program = |steps: &str| {
        kept(
            &format!(
                r#"
                duration = "100ms"
                machine = {{ cpus = 2, quantum = "10ms" }}
                pipe = {{ p = {{ capacity = 2 }} }}
                client = [
                    {{ name = "S", tickets = 1, program = "sender" }},
                    {{ name = "R", tickets = 1, program = "receiver" }},
                ]
                [program.sender]
                steps = [{{ loop = {{ times = 4, steps = [{{ compute = "1ms" }}, {{ send = "p" }}] }} }}]
                [program.receiver]
                steps = [{steps}]
                "#
            ),
            |event, machine| match event {
                Event::Left { client, why, .. } => {
                    Some(format!("{} {why:?}", machine.client_name(*client)))
                }
                _ => None,
            },
        )
    };
    // The third message finds the pipe full until the first is taken.
    let slow =
        program(r#"{ sleep = "20ms" }, { loop = { times = 4, steps = [{ receive = "p" }] } }"#);
    assert_eq!(
        slow,
        pairs(&[
            (0.0, "R Sleeps"),
            (3.0, "S Waits"),
            (20.0, "R Waits"),
            (21.0, "S Exited"),
            (21.0, "R Exited")
        ])
    );
    let fast = program(r#"{ loop = { times = 4, steps = [{ receive = "p" }] } }"#);
    let waits = fast.iter().filter(|event| event.1 == "R Waits").count();
    assert_eq!(waits, 4);
    assert!(fast.contains(&(4.0, "S Exited".to_owned())));
}

#[test]
fn a_signal_lets_one_wait_pass_before_or_after() {
    let (machine, _) = measured(
        r#"
        duration = "1s"
        machine = { cpus = 4 }
        client = [
            { name = "early", tickets = 1, program = "waiter" },
            { name = "second", tickets = 1, program = "waiter", start = "1ms" },
            { name = "S", tickets = 1, program = "signaller" },
            { name = "late", tickets = 1, program = "waiter", start = "500ms" },
        ]
        [program.waiter]
        steps = [{ wait = "go" }, { compute = "10ms" }]
        [program.signaller]
        steps = [{ compute = "100ms" }, { signal = "go" }]
        [[at]]
        time = "200ms"
        do = { signal = "go" }
        [[at]]
        time = "300ms"
        do = { signal = "go" }
        "#,
    );
    for waiter in ["early", "second", "late"] {
        assert_eq!(received_ms(&machine, waiter), 10.0, "{waiter}");
    }
}

const LOCKERS: &str = r#"
    [program.hold]
    steps = [{ lock = "m" }, { compute = "30ms" }, { unlock = "m" }]
    [[client]]
    name = "holder"
    tickets = 1
    program = "hold"
    [[client]]
    name = "poor"
    tickets = 10
    program = "hold"
    start = "1ms"
    [[client]]
    name = "rich"
    tickets = 1000
    program = "hold"
    start = "2ms"
"#;

fn acquisitions(kind: &str, rest: &str) -> Vec<(f64, String)> {
    let text =
        format!("duration = \"1s\"\nmutex = {{ m = {{ kind = \"{kind}\" }} }}\n{rest}{LOCKERS}");
    kept(&text, |event, machine| match event {
        Event::Acquired { client, .. } => Some(machine.client_name(*client).into_owned()),
        _ => None,
    })
}

#[test]
fn a_fifo_mutex_goes_to_the_thread_that_has_waited_longest() {
    let order = acquisitions("fifo", "machine = { cpus = 2 }\n");
    assert_eq!(
        order,
        pairs(&[(0.0, "holder"), (30.0, "poor"), (60.0, "rich")])
    );
}

#[test]
fn a_lottery_mutex_goes_to_the_better_funded_most_of_the_time() {
    let order = acquisitions("lottery", "machine = { cpus = 2 }\n");
    assert_eq!(
        order,
        pairs(&[(0.0, "holder"), (30.0, "rich"), (60.0, "poor")])
    );
}

#[test]
fn the_holder_of_a_lottery_mutex_inherits_the_waiters_tickets() {
    // One CPU and a hog with as many tickets as the rich waiter: without
    // inheritance the holder would get a thousandth of the CPU.
    let hog = "machine = { quantum = \"1ms\" }\n[[client]]\nname = \"hog\"\ntickets = 1000\nstart = \"5ms\"\n";
    let lottery = acquisitions("lottery", hog);
    assert_eq!(lottery[1].1, "rich");
    // Of its 30 ms, the holder used 5 alone. It gets the others at 1011 of 2011 tickets.
    let released = 5.0 + 25.0 * 2011.0 / 1011.0;
    assert!((lottery[1].0 - released).abs() <= 1.0, "{lottery:?}");
    let fifo = acquisitions("fifo", hog);
    assert_eq!(fifo.len(), 1, "priority inversion: {fifo:?}");
}

#[test]
fn a_server_without_tickets_runs_on_those_of_its_callers() {
    let report = report(
        r#"
        duration = "60s"
        machine = { quantum = "10ms" }
        client = [
            { name = "A", tickets = 300, program = "caller" },
            { name = "B", tickets = 100, program = "caller" },
            { name = "worker", count = 2, program = "worker" },
        ]
        [program.caller]
        steps = [{ loop = { steps = [{ call = "s" }] } }]
        [program.worker]
        steps = [{ loop = { steps = [{ serve = { service = "s", steps = [{ compute = "100ms" }] } }] } }]
        "#,
    );
    assert_eq!(report.refused, [""; 0]);
    let mean = |client: &str| {
        let service = report
            .services
            .iter()
            .find(|service| service.client == client);
        let times = service.and_then(|service| service.times).expect("answered");
        (times.count as f64, times.mean_ns)
    };
    let ((a_count, a_ns), (b_count, b_ns)) = (mean("A"), mean("B"));
    assert!(
        (a_count / b_count - 3.0).abs() < 0.1,
        "{a_count} to {b_count}"
    );
    assert!((b_ns / a_ns - 3.0).abs() < 0.1, "{b_ns} to {a_ns}");
    assert_eq!(report.counts.expect("simulated").idle_ns, 0);
}

#[test]
fn one_worker_serves_call_after_call_with_all_callers_tickets() {
    // While B's call is served, A waits: its tickets push the worker on.
    let report = report(
        r#"
        duration = "10s"
        machine = { quantum = "1ms" }
        client = [
            { name = "worker", program = "worker" },
            { name = "B", tickets = 1, program = "caller" },
            { name = "A", tickets = 99, program = "caller", start = "1ms" },
            { name = "hog", tickets = 100, start = "3ms" },
        ]
        [program.caller]
        steps = [{ call = "s" }]
        [program.worker]
        steps = [{ loop = { steps = [{ serve = { service = "s", steps = [{ compute = "100ms" }] } }] } }]
        "#,
    );
    let took_ms = |client: &str| {
        let service = report
            .services
            .iter()
            .find(|service| service.client == client);
        service
            .and_then(|service| service.times)
            .expect("answered")
            .mean_ns
            / 1e6
    };
    assert!((190.0..215.0).contains(&took_ms("B")), "{}", took_ms("B"));
    assert!((385.0..420.0).contains(&took_ms("A")), "{}", took_ms("A"));
}

#[test]
fn each_thread_lends_its_own_part() {
    // C's two threads call; a third one computes with a third of the tickets.
    let (machine, _) = measured(
        r#"
        duration = "30s"
        machine = { quantum = "1ms" }
        client = [
            { name = "C", tickets = 300, program = "three" },
            { name = "worker", count = 2, program = "worker" },
        ]
        [program.three]
        steps = [{ fork = "caller" }, { fork = "caller" }, { compute = "100s" }]
        [program.caller]
        steps = [{ call = "s" }]
        [program.worker]
        steps = [{ serve = { service = "s", steps = [{ compute = "100s" }] } }]
        "#,
    );
    assert!((received_ms(&machine, "C") / 10_000.0 - 1.0).abs() < 0.01);
    assert!((received_ms(&machine, "worker") / 20_000.0 - 1.0).abs() < 0.01);
}

#[test]
fn a_stopped_client_leaves_its_mutex_and_calls_in_order() {
    // The server, a holder and a caller are stopped; all others continue.
    let report = report(
        r#"
        duration = "10s"
        machine = { cpus = 2, quantum = "10ms" }
        mutex = { m = { kind = "lottery" } }
        client = [
            { name = "holder", tickets = 1, program = "hold" },
            { name = "waiter", tickets = 1, program = "hold", start = "1ms" },
            { name = "caller", tickets = 1, program = "caller" },
            { name = "server", program = "server" },
            { name = "sleeper", tickets = 1, program = "sleeper" },
        ]
        [program.hold]
        steps = [{ lock = "m" }, { compute = "5s" }, { unlock = "m" }]
        [program.caller]
        steps = [{ call = "s" }, { compute = "1s" }]
        [program.server]
        steps = [{ serve = { service = "s", steps = [{ compute = "100s" }] } }]
        [program.sleeper]
        steps = [{ sleep = "5s" }, { compute = "1s" }]
        [[at]]
        time = "100ms"
        do = { stop = "holder" }
        [[at]]
        time = "200ms"
        do = { stop = "server" }
        [[at]]
        time = "300ms"
        do = { stop = "sleeper" }
        [[at]]
        time = "400ms"
        do = { start = "sleeper" }
        "#,
    );
    let received = |name: &str| {
        let client = report.clients.iter().find(|client| client.name == name);
        client.expect("there").received_ns as f64 / 1e9
    };
    assert_eq!(received("waiter"), 5.0);
    assert_eq!(received("caller"), 1.0);
    assert_eq!(received("sleeper"), 1.0);
    assert_eq!(report.refused, [""; 0]);
}
