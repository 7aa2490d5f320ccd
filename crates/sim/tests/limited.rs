//! Clients with limited CPU time, on the simulated machine: exact shares, and no CPU for a client
//! that pauses.

mod common;

use common::{parse, run_checked};
use prorata_core::allowance::PERIOD_NS;
use prorata_scenario::event::Event;
use prorata_sim::{Machine, Measures, Observer};

const SECOND_NS: u64 = 1_000_000_000;

/// The CPU time of each client after a run of ten seconds.
fn received(text: &str) -> Vec<u64> {
    let scenario = parse(&format!("duration = \"10s\"\n{text}"));
    let (machine, _) = run_checked(&scenario, 1, Measures::new());
    let clients = 0..machine.client_count();
    clients.map(|client| machine.received_ns(client)).collect()
}

/// Whether a client received so many parts in a thousand of ten seconds, and at most what a full
/// allowance is worth besides.
fn is_limited_to(received_ns: u64, thousandths: u64) -> bool {
    let limit_ns = 10 * SECOND_NS / 1000 * thousandths;
    let full_ns = PERIOD_NS / 1000 * thousandths;
    (limit_ns - full_ns..=limit_ns + full_ns + 1_000).contains(&received_ns)
}

#[test]
fn a_limited_client_alone_gets_its_limit() {
    for quanta in ["own", "aligned"] {
        for policy in ["stride", "lottery", "hierarchical-stride", "eevdf"] {
            for (cpus, max, thousandths) in [(1, "30%", 300), (2, "0.1%", 1), (1, "99.9%", 999)] {
                let received = received(&format!(
                    "machine = {{ cpus = {cpus}, quanta = \"{quanta}\", policy = \"{policy}\" }}\n\
                     [[client]]\nname = \"a\"\ntickets = 1\nmax = \"{max}\"\n"
                ));
                assert!(
                    is_limited_to(received[0], thousandths),
                    "{policy}, {quanta}, {max}: {received:?}"
                );
            }
        }
    }
}

#[test]
fn the_time_of_switches_begins_no_shorter_and_shorter_turns() {
    let scenario = parse(
        "duration = \"10s\"\nmachine = { costs = { context-switch = \"5us\" } }\n\
         [[client]]\nname = \"a\"\ntickets = 1\nmax = \"50%\"\n",
    );
    let (machine, measures) = run_checked(&scenario, 1, Measures::new());
    assert!(is_limited_to(machine.received_ns(0), 500));
    let report = prorata_sim::report(&scenario, 1, &machine, &measures);
    // A quantum of 20 ms ends twice in each period, and the allowance is exhausted once.
    let turns = report.counts.expect("the simulator counts").turns;
    assert!(turns < 10 * 10 * 5, "{turns}");
}

#[test]
fn several_threads_use_a_limit_together() {
    let received = received(
        "machine = { cpus = 4 }\n\
         [program.four]\nsteps = [{ fork = \"compute\" }, { fork = \"compute\" }, { compute = \"1h\" }]\n\
         [[client]]\nname = \"a\"\ntickets = 1\nprogram = \"four\"\nmax = \"150%\"\n",
    );
    assert!(is_limited_to(received[0], 1500), "{received:?}");
}

#[test]
fn a_limit_begins_and_ends_with_events_and_others_get_the_rest() {
    let received = received(
        "[[client]]\nname = \"a\"\ntickets = 300\n[[client]]\nname = \"b\"\ntickets = 100\n\
         [[at]]\ntime = \"4s\"\ndo = { set-max = { of = \"a\", max = \"10%\" } }\n\
         [[at]]\ntime = \"8s\"\ndo = { set-max = { of = \"a\" } }\n",
    );
    // Four seconds and two at 3:1, and four at a tenth.
    let due_ns = (6 * 750 + 4 * 100) * 1_000_000;
    assert!(received[0].abs_diff(due_ns) < 40_000_000, "{received:?}");
    assert_eq!(received[0] + received[1], 10 * SECOND_NS);
}

/// Looks whether a paused client runs.
struct Watch;

impl Observer for Watch {
    fn observe(&mut self, _: u64, event: Event<'_>, machine: &Machine) {
        if let Event::Dispatched { client, .. } = event {
            let paused = machine.dispatcher().is_paused(machine.client_id(client));
            assert!(!paused, "client {client} is dispatched in its pause");
        }
    }
}

#[test]
fn shares_are_those_of_a_fluid_with_limits() {
    // Weighted max-min on two CPUs: c has at most 0.4 and d at most 0.1; a may use one CPU, and b
    // gets the rest.
    let text = "duration = \"20s\"\nmachine = { cpus = 2 }\n\
         [[client]]\nname = \"a\"\ntickets = 900\n[[client]]\nname = \"b\"\ntickets = 50\n\
         [[client]]\nname = \"c\"\ntickets = 500\nmax = \"40%\"\n\
         [[client]]\nname = \"d\"\ntickets = 500\nmax = \"10%\"\n";
    let (machine, _) = run_checked(&parse(text), 1, Watch);
    for (client, due) in [(0, 1.0), (1, 0.5), (2, 0.4), (3, 0.1)] {
        let rate = machine.received_ns(client) as f64 / 20e9;
        assert!(
            (rate - due).abs() < 0.005,
            "client {client}: {rate} for {due}"
        );
        let usage = machine.dispatcher().usage(machine.client_id(client));
        assert!((usage.share * 2.0 - due).abs() < 1e-6, "{usage:?}");
        let error_ns = usage.received_ns.abs_diff(usage.specified_ns);
        assert!(error_ns < 80_000_000, "client {client}: {usage:?}");
    }
}

/// A client that mostly sleeps runs early, and preempts; its limit holds all the same. It gets a
/// little less, as it may sleep when it regains a full allowance.
#[test]
fn an_early_client_keeps_to_its_limit() {
    for cpus in [1, 2] {
        let received = received(&format!(
            "machine = {{ cpus = {cpus}, hybrid = {{ kernel-priorities = true, \
             abbreviated-quanta = true, ticket-boost = true }} }}\n\
             [program.nap]\n\
             steps = [{{ loop = {{ steps = [{{ compute = \"4ms\" }}, {{ sleep = \"16ms\" }}] }} }}]\n\
             [[client]]\nname = \"a\"\ntickets = 100\nprogram = \"nap\"\nmax = \"10%\"\n\
             [[client]]\nname = \"b\"\ntickets = 100\ncount = {cpus}\n"
        ));
        let limit_ns = SECOND_NS;
        let full_ns = PERIOD_NS / 10;
        assert!(
            (limit_ns * 95 / 100..=limit_ns + full_ns + 1_000).contains(&received[0]),
            "{received:?}"
        );
    }
}

/// The turn was to end by the limit, before the tick; the step ends in between.
#[test]
fn a_limit_may_end_in_an_aligned_turn() {
    let received = received(
        "machine = { quanta = \"aligned\", quantum = \"100ms\" }\n\
         [program.short]\nsteps = [{ compute = \"60ms\" }]\n\
         [[client]]\nname = \"a\"\ntickets = 1\nprogram = \"short\"\nmax = \"30%\"\n\
         [[at]]\ntime = \"10ms\"\ndo = { set-max = { of = \"a\" } }\n",
    );
    assert_eq!(received, [60_000_000]);
}
