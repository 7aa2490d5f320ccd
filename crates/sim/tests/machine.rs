//! What the machine does, piece by piece.

mod common;

use common::{measured, parse, received_ms, report, run_checked};
use prorata_sim::{Event, Machine, Observer, RunError, Simulation, Why};

/// Keeps the events that a test asks for, with their times in milliseconds.
struct Keep<F>(Vec<(f64, String)>, F);

impl<F: Fn(&Event<'_>, &Machine) -> Option<String>> Observer for Keep<F> {
    fn observe(&mut self, now_ns: u64, event: Event<'_>, machine: &Machine) {
        if let Some(text) = (self.1)(&event, machine) {
            self.0.push((now_ns as f64 / 1e6, text));
        }
    }
}

fn kept(text: &str, keep: impl Fn(&Event<'_>, &Machine) -> Option<String>) -> Vec<(f64, String)> {
    run_checked(&parse(text), 1, Keep(Vec::new(), keep)).1.0
}

/// Who is given a CPU, and when.
fn dispatches(text: &str) -> Vec<(f64, String)> {
    kept(text, |event, machine| match event {
        Event::Dispatched { client, cpu, .. } => {
            Some(format!("{}{cpu}", machine.client_name(*client)))
        }
        _ => None,
    })
}

fn pairs(list: &[(f64, &str)]) -> Vec<(f64, String)> {
    list.iter()
        .map(|(time, text)| (*time, (*text).to_owned()))
        .collect()
}

#[test]
fn stride_gives_turns_in_the_papers_order() {
    // 1995, Figure 8(b): A, B, A, A, B, C for 3:2:1, up to how ties are
    // broken.
    let turns = dispatches(
        r#"
        title = "t"
        duration = "119ms"
        client = [
            { name = "A", tickets = 3 }, { name = "B", tickets = 2 }, { name = "C", tickets = 1 },
        ]
        machine = { quantum = "10ms" }
        "#,
    );
    let names: String = turns.iter().map(|turn| &turn.1[..1]).collect();
    assert_eq!(&names[..6], &names[6..]);
    assert_eq!(names[..6].matches('A').count(), 3);
    assert_eq!(names[..6].matches('B').count(), 2);
}

#[test]
fn who_blocks_gives_the_cpu_away_at_once_and_the_next_has_a_whole_quantum() {
    let turns = dispatches(
        r#"
        title = "t"
        duration = "29ms"
        machine = { quantum = "10ms" }
        client = [
            { name = "A", tickets = 1000, program = "io" },
            { name = "B", tickets = 1 },
        ]
        [program.io]
        steps = [{ compute = "4ms" }, { sleep = "1ms" }, { compute = "1ms" }]
        "#,
    );
    assert_eq!(
        turns,
        pairs(&[
            (0.0, "A0"),
            (4.0, "B0"),
            (14.0, "A0"),
            (15.0, "B0"),
            (25.0, "B0")
        ])
    );
}

#[test]
fn aligned_quanta_end_together() {
    let text = |quanta: &str| {
        format!(
            r#"
            title = "t"
            duration = "21ms"
            machine = {{ quantum = "10ms", quanta = "{quanta}" }}
            client = [{{ name = "A", tickets = 1000, program = "io" }}, {{ name = "B", tickets = 1 }}]
            [program.io]
            steps = [{{ compute = "4ms" }}, {{ sleep = "1ms" }}, {{ compute = "30ms" }}]
            "#
        )
    };
    let aligned = dispatches(&text("aligned"));
    assert_eq!(
        aligned,
        pairs(&[(0.0, "A0"), (4.0, "B0"), (10.0, "A0"), (20.0, "A0")])
    );
    let own = dispatches(&text("own"));
    assert_eq!(own, pairs(&[(0.0, "A0"), (4.0, "B0"), (14.0, "A0")]));
}

#[test]
fn a_client_has_as_many_cpus_as_threads() {
    let (machine, _) = measured(
        r#"
        title = "t"
        duration = "10s"
        machine = { cpus = 4 }
        client = [{ name = "A", tickets = 1, program = "three" }]
        [program.three]
        steps = [{ fork = "compute" }, { fork = "compute" }, { compute = "100s" }]
        "#,
    );
    assert_eq!(received_ms(&machine, "A"), 30_000.0);
    assert_eq!(machine.counts().migrations, 0);
}

#[test]
fn a_thread_forked_during_a_turn_gets_an_idle_cpu_at_once() {
    let turns = dispatches(
        r#"
        title = "t"
        duration = "8ms"
        machine = { cpus = 2, quantum = "10ms" }
        client = [{ name = "A", tickets = 1, program = "p" }]
        [program.p]
        steps = [{ compute = "3ms" }, { fork = "compute" }, { compute = "1s" }]
        "#,
    );
    assert_eq!(turns, pairs(&[(0.0, "A0"), (3.0, "A1")]));
}

#[test]
fn threads_of_a_client_take_turns() {
    let times = kept(
        r#"
        title = "t"
        duration = "60ms"
        machine = { quantum = "10ms" }
        client = [{ name = "A", tickets = 1, program = "two" }]
        [program.two]
        steps = [{ fork = "compute" }, { compute = "1s" }]
        "#,
        |event, _| match event {
            Event::Dispatched { thread, .. } => Some(thread.to_string()),
            _ => None,
        },
    );
    let threads: String = times.iter().map(|time| time.1.as_str()).collect();
    assert_eq!(&threads[..6], "010101");
}

#[test]
fn a_context_switch_costs_and_staying_does_not() {
    let costs = |clients: &str| {
        let (machine, _) = measured(&format!(
            r#"
            title = "t"
            duration = "1s"
            machine = {{ quantum = "10ms", costs = {{ context-switch = "1ms" }} }}
            client = [{clients}]
            "#
        ));
        (machine.counts().overhead_ns, machine.counts().busy_ns)
    };
    assert_eq!(
        costs(r#"{ name = "A", tickets = 1 }"#),
        (1_000_000, 999_000_000)
    );
    // Two alternate: a switch before each quantum.
    let (overhead, busy) = costs(r#"{ name = "A", tickets = 1 }, { name = "B", tickets = 1 }"#);
    assert_eq!(overhead + busy, 1_000_000_000);
    assert_eq!(overhead, 91_000_000);
}

#[test]
fn a_migrated_thread_refills_its_cache_before_it_gets_on() {
    // B wakes while A is on CPU 0 and its own CPU 1 is taken by C.
    let text = |refill: &str| {
        format!(
            r#"
            title = "t"
            duration = "100ms"
            machine = {{ cpus = 2, quantum = "10ms", costs = {{ cache-refill = "{refill}" }} }}
            client = [
                {{ name = "A", tickets = 1, program = "short" }},
                {{ name = "B", tickets = 1, program = "io" }},
                {{ name = "C", tickets = 1, start = "5ms" }},
            ]
            [program.short]
            steps = [{{ compute = "7ms" }}]
            [program.io]
            steps = [{{ compute = "5ms" }}, {{ sleep = "11ms" }}, {{ compute = "5ms" }}]
            "#
        )
    };
    let (machine, _) = measured(&text("0s"));
    assert_eq!(
        (received_ms(&machine, "B"), machine.counts().migrations),
        (10.0, 1)
    );
    let (machine, _) = measured(&text("2ms"));
    assert_eq!(
        (received_ms(&machine, "B"), machine.counts().migrations),
        (12.0, 1)
    );
}

#[test]
fn an_idle_cpu_hears_of_work_after_the_interrupt() {
    let (_, measures) = measured(
        r#"
        title = "t"
        duration = "1s"
        machine = { costs = { interrupt = "3us" } }
        client = [{ name = "A", tickets = 1, program = "io" }]
        [program.io]
        steps = [{ loop = { steps = [{ compute = "1ms" }, { sleep = "9ms" }] } }]
        "#,
    );
    let latencies = &measures.clients()[0].dispatch_latencies;
    assert_eq!(latencies.percentile_ns(100.0), Some(3000));
    assert_eq!(
        latencies.percentile_ns(0.0),
        Some(0),
        "the CPU is awake at the start"
    );
}

#[test]
fn a_pipe_holds_its_capacity_and_no_more() {
    let program = |steps: &str| {
        kept(
            &format!(
                r#"
                title = "t"
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
        title = "t"
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
    let text = format!(
        "title = \"t\"\nduration = \"1s\"\nmutex = {{ m = {{ kind = \"{kind}\" }} }}\n{rest}{LOCKERS}"
    );
    kept(&text, |event, machine| match event {
        Event::Acquired { client, .. } => Some(machine.client_name(*client).into_owned()),
        _ => None,
    })
}

#[test]
fn a_fifo_mutex_goes_to_who_has_waited_longest() {
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
fn the_holder_of_a_lottery_mutex_inherits_what_the_waiters_hold() {
    // One CPU and a hog with as many tickets as the rich waiter: without
    // inheritance the holder would get a thousandth of the CPU.
    let hog = "machine = { quantum = \"1ms\" }\n[[client]]\nname = \"hog\"\ntickets = 1000\nstart = \"5ms\"\n";
    let lottery = acquisitions("lottery", hog);
    assert_eq!(lottery[1].1, "rich");
    assert!((55.0..75.0).contains(&lottery[1].0), "{lottery:?}");
    let fifo = acquisitions("fifo", hog);
    assert_eq!(fifo.len(), 1, "priority inversion: {fifo:?}");
}

#[test]
fn a_server_without_tickets_runs_on_those_of_its_callers() {
    let report = report(
        r#"
        title = "t"
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
fn one_worker_serves_one_call_after_the_other_for_whoever_pays() {
    // While B's call is served, A waits: its tickets push the worker on.
    let report = report(
        r#"
        title = "t"
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
        title = "t"
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
fn who_is_stopped_leaves_nothing_undone() {
    // The server, a holder and a caller are stopped; everybody else goes on.
    let report = report(
        r#"
        title = "t"
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

#[test]
fn transfers_inflation_and_funding_take_effect_at_their_time() {
    let report = report(
        r#"
        title = "t"
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
fn what_the_ledger_refuses_is_told_and_the_run_goes_on() {
    let report = report(
        r#"
        title = "t"
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
        title = "t"
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
            title = "t"
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

#[test]
fn programs_that_never_let_time_pass_are_found_out() {
    let scenario = parse(
        r#"
        title = "t"
        duration = "1s"
        client = [{ name = "A", tickets = 1, program = "ping" }, { name = "B", tickets = 1, program = "pong" }]
        pipe = { p = { capacity = 1 }, q = { capacity = 1 } }
        [program.ping]
        steps = [{ compute = "10ms" }, { loop = { steps = [{ send = "p" }, { receive = "q" }] } }]
        [program.pong]
        steps = [{ loop = { steps = [{ receive = "p" }, { send = "q" }] } }]
        "#,
    );
    let mut simulation = Simulation::new(&scenario, 1).expect("checked");
    let error = simulation.run().expect_err("stuck");
    assert!(
        matches!(&error, RunError::Stuck { at, .. } if at.0 == 10_000_000),
        "{error}"
    );
    assert_eq!(simulation.step(), Err(error));
}

#[test]
fn yielding_gives_the_rest_of_the_turn_away() {
    let left = kept(
        r#"
        title = "t"
        duration = "6ms"
        machine = { quantum = "10ms" }
        client = [{ name = "A", tickets = 1, program = "polite" }, { name = "B", tickets = 1, program = "polite" }]
        [program.polite]
        steps = [{ loop = { steps = [{ compute = "1ms" }, "yield"] } }]
        "#,
        |event, machine| match event {
            Event::Left { client, why, .. } => {
                assert_eq!(*why, Why::Yielded);
                Some(machine.client_name(*client).into_owned())
            }
            _ => None,
        },
    );
    let order: String = left.iter().map(|event| event.1.as_str()).collect();
    assert_eq!(order.len(), 6);
    assert_eq!(order.matches('A').count(), 3);
}

#[test]
fn a_run_can_be_stepped_through() {
    let scenario = parse(
        r#"
        title = "t"
        duration = "100ms"
        machine = { quantum = "10ms" }
        client = [{ name = "A", tickets = 1 }]
        "#,
    );
    let mut simulation = Simulation::new(&scenario, 1).expect("checked");
    let mut times = Vec::new();
    while simulation.step().expect("it goes on") {
        times.push(simulation.machine().now_ns() / 1_000_000);
    }
    assert_eq!(times, (0..=10).map(|tick| tick * 10).collect::<Vec<_>>());
    assert_eq!(simulation.machine().running(0), Some((0, 0)));
    assert_eq!(simulation.step(), Ok(false));
}
