//! What the machine does, piece by piece.

mod common;

use common::{dispatches, kept, measured, pairs, parse, received_ms};
use prorata_scenario::RunError;
use prorata_scenario::event::{Event, Why};
use prorata_sim::Simulation;

#[test]
fn stride_gives_turns_in_the_papers_order() {
    // 1995, Figure 8(b): A, B, A, A, B, C for 3:2:1, up to how ties are
    // broken.
    let turns = dispatches(
        r#"
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
fn a_blocking_client_gives_its_cpu_at_once_and_the_next_has_a_whole_quantum() {
    let turns = dispatches(
        r#"
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
fn programs_that_never_let_time_pass_are_found_out() {
    let scenario = parse(
        r#"
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
