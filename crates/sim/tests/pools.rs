//! Pools of CPUs: a client gets its part of its own pool, on its CPUs, until
//! it moves.

mod common;

use common::{measured, parse, received_ms, report, run, run_checked};
use prorata_scenario::Plan;
use prorata_scenario::event::Event;
use prorata_sim::trace::Recorder;
use prorata_sim::{Machine, Measures, Observer};

/// Milliseconds, client and CPU of every dispatch.
#[derive(Default)]
struct Dispatches(Vec<(f64, String, u32)>);

impl Observer for Dispatches {
    fn observe(&mut self, now_ns: u64, event: Event<'_>, machine: &Machine) {
        if let Event::Dispatched { client, cpu, .. } = event {
            let name = machine.client_name(client).into_owned();
            self.0.push((now_ns as f64 / 1e6, name, cpu));
        }
    }
}

/// A machine of two pools, of one CPU and of two, with these clients and
/// further settings of the machine and events.
fn text(clients: &str, rest: &str) -> String {
    format!(
        "duration = \"12s\"\n{clients}\n\
         [machine]\ncpus = 3\nquantum = \"10ms\"\n\
         pools = [{{ name = \"small\", cpus = 1 }}, {{ name = \"large\", cpus = 2 }}]\n{rest}"
    )
}

const FIVE: &str = r#"
client = [
    { name = "A", tickets = 100, pool = "small" },
    { name = "B", tickets = 300, pool = "small" },
    { name = "C", tickets = 100, pool = "large" },
    { name = "D", tickets = 100, pool = "large" },
    { name = "E", tickets = 200, pool = "large" },
]
"#;

#[test]
fn a_share_is_a_part_of_the_clients_own_pool() {
    let (machine, measures) = measured(&text(FIVE, ""));
    let received = ["A", "B", "C", "D", "E"].map(|client| received_ms(&machine, client));
    // One CPU 1:3, two CPUs 1:1:2.
    for (received, due) in received
        .into_iter()
        .zip([3000.0, 9000.0, 6000.0, 6000.0, 12000.0])
    {
        assert!((received - due).abs() <= 10.0, "{received} of {due}");
    }
    for (client, measured) in (0..).zip(measures.clients()) {
        assert!(measured.absolute_error.largest <= 1.0, "{measured:?}");
        let usage = machine.dispatcher().usage(machine.client_id(client));
        let part = [0.25, 0.75, 0.5, 0.5, 1.0][client as usize] / 3.0;
        assert!((usage.share - part).abs() < 1e-6, "{usage:?}");
    }
}

#[test]
fn no_client_runs_outside_of_its_pool() {
    let scenario = parse(&text(FIVE, ""));
    for (_, client, cpu) in run_checked(&scenario, 1, Dispatches::default()).1.0 {
        let small = ["A", "B"].contains(&client.as_str());
        assert_eq!(cpu == 0, small, "{client} on CPU {cpu}");
    }
}

/// What a pool cannot use stays unused: there is no balancing among pools.
#[test]
fn clients_of_other_pools_do_not_use_a_pools_idle_cpus() {
    let clients = r#"
client = [
    { name = "A", tickets = 1, pool = "small" },
    { name = "B", tickets = 1, pool = "small" },
    { name = "C", tickets = 1, pool = "large" },
]
"#;
    let (machine, _) = measured(&text(clients, ""));
    let received = ["A", "B", "C"].map(|client| received_ms(&machine, client));
    assert_eq!(received, [6000.0, 6000.0, 12000.0]);
}

/// Rights are one ledger's: what a currency's client in one pool does not use
/// while it blocks makes the others worth more, wherever they are.
#[test]
fn a_currency_funds_clients_in_several_pools() {
    let clients = r#"
currency = [{ name = "alice", tickets = ["200.base"] }]
client = [
    { name = "A1", tickets = "1.alice", pool = "small" },
    { name = "B", tickets = 100, pool = "small" },
    { name = "A2", tickets = "1.alice", pool = "large" },
    { name = "C", tickets = 100, pool = "large" },
    { name = "D", tickets = 100, pool = "large" },
    { name = "E", tickets = 100, pool = "large" },
]
"#;
    let events = "[[at]]\ntime = \"6s\"\ndo = { stop = \"A2\" }\n";
    let scenario = parse(&text(clients, events));
    let report = |to: &str| {
        let mut scenario = scenario.clone();
        scenario.duration = to.parse().expect("a time");
        let (machine, _) = run(&scenario, 1, ());
        ["A1", "B", "A2", "C"].map(|client| received_ms(&machine, client))
    };
    let (half, whole) = (report("6s"), report("12s"));
    // Alice's 200 tickets are 100 in each pool: equal to each neighbour.
    for (received, due) in half.into_iter().zip([3000.0, 3000.0, 3000.0, 3000.0]) {
        assert!((received - due).abs() <= 10.0, "{half:?}");
    }
    // Then all 200 are in the small pool, against 100.
    let later = [0, 1, 2, 3].map(|i| whole[i] - half[i]);
    for (received, due) in later.into_iter().zip([4000.0, 2000.0, 0.0, 4000.0]) {
        assert!((received - due).abs() <= 20.0, "{later:?}");
    }
}

#[test]
fn a_client_that_moves_competes_in_its_new_pool() {
    let events = "[[at]]\ntime = \"6s\"\ndo = { move = { client = \"B\", to = \"large\" } }\n";
    let report = report(&text(FIVE, events));
    let client = |name: &str| {
        let found = report.clients.iter().find(|client| client.name == name);
        found.expect("a client")
    };
    // 6 s of 1:3 on one CPU; then A alone, and 3:1:1:2 on two CPUs.
    for (name, due_ms) in [
        ("A", 1500.0 + 6000.0),
        ("B", 4500.0 + 12000.0 * 3.0 / 7.0),
        ("C", 3000.0 + 12000.0 / 7.0),
        ("E", 6000.0 + 12000.0 * 2.0 / 7.0),
    ] {
        let client = client(name);
        let received_ms = client.received_ns as f64 / 1e6;
        assert!(
            (received_ms - due_ms).abs() <= 20.0,
            "{client:?} of {due_ms}"
        );
        let due_by_account_ms = client.specified_ns as f64 / 1e6;
        assert!((due_by_account_ms - due_ms).abs() <= 20.0, "{client:?}");
        assert!(client.largest_error <= 2.0, "{client:?}");
    }
    assert_eq!(client("B").pool.as_deref(), Some("large"));
    assert_eq!(client("A").migrations, Some(0));
    assert!(client("B").migrations > Some(0));
}

#[test]
fn a_move_ends_the_turn_and_costs_a_cache_refill() {
    let machine = "costs = { cache-refill = \"2ms\" }\n";
    let events = "[[at]]\ntime = \"5ms\"\ndo = { move = { client = \"A\", to = \"large\" } }\n";
    let clients = r#"
client = [
    { name = "A", tickets = 1, pool = "small", program = "once" },
    { name = "B", tickets = 1, pool = "small", start = "1ms" },
]
program = { once = { steps = [{ compute = "8ms" }] } }
"#;
    let scenario = parse(&text(clients, &format!("{machine}{events}")));
    let (machine, (dispatches, measures)) =
        run_checked(&scenario, 1, (Dispatches::default(), Measures::new()));
    let first: Vec<_> = dispatches.0.into_iter().take(3).collect();
    let expected = [(0.0, "A", 0), (5.0, "B", 0), (5.0, "A", 1)];
    assert_eq!(
        first,
        expected.map(|(ms, name, cpu)| (ms, name.to_owned(), cpu))
    );
    // 8 ms of work and 2 ms for the cache.
    assert_eq!(received_ms(&machine, "A"), 10.0);
    assert_eq!(measures.clients()[0].migrations, 1);
    assert_eq!(machine.counts().migrations, 1);
}

#[test]
fn queues_are_measured_by_pool() {
    let report = report(&text(FIVE, ""));
    let pools: Vec<_> = report
        .pools
        .iter()
        .map(|pool| {
            let (mean, most) = (pool.mean_waiting_threads, pool.most_waiting_threads);
            (pool.name.as_str(), pool.cpus, pool.clients, mean, most)
        })
        .collect();
    assert_eq!(pools, [("small", 1, 2, 1.0, 1), ("large", 2, 3, 1.0, 1)]);
    let busy: Vec<_> = report.pools.iter().map(|pool| pool.busy_ns).collect();
    assert_eq!(busy, [12_000_000_000, 24_000_000_000]);
    assert_eq!(
        (report.mean_waiting_threads, report.most_waiting_threads),
        (Some(2.0), Some(2))
    );
}

/// The pool with the least value a CPU, in the order of the file, after those
/// that the file itself gives to a pool.
#[test]
fn a_client_without_a_pool_joins_the_pool_with_the_fewest_tickets() {
    let clients = r#"
currency = [{ name = "alice", tickets = ["400.base"] }]
client = [
    { name = "A", count = 4, tickets = "1.alice" },
    { name = "B", tickets = 50 },
    { name = "none", count = 3 },
    { name = "C", tickets = 150, pool = "large" },
]
"#;
    let scenario = parse(&text(clients, ""));
    let plan = Plan::new(&scenario).expect("a scenario");
    let simulation = prorata_sim::Simulation::of(plan, 1, ());
    let machine = simulation.machine();
    let pools: Vec<_> = (0..machine.client_count())
        .map(|client| machine.pool_name(machine.pool_of(client)))
        .collect();
    // Tickets a CPU: 0 and 75, 100 and 75, 100 and 125, 200 and 125, 200 and
    // 175, 200 each; then clients a CPU: 2 each, 3 and 2, 3 and 2.5.
    let expected = [
        "small", "large", "small", "large", "large", "small", "large", "large", "large",
    ];
    assert_eq!(pools, expected);
}

#[test]
fn a_relative_error_counts_while_both_are_in_one_pool() {
    let pairs = "[measure]\npairs = [[\"A\", \"B\"], [\"C\", \"E\"], [\"A\", \"C\"]]\n";
    let report = report(&text(FIVE, pairs));
    let errors: Vec<_> = report.pairs.iter().map(|pair| pair.largest_error).collect();
    assert!(errors[0] > 0.0 && errors[0] <= 1.0, "{errors:?}");
    assert!(errors[1] > 0.0 && errors[1] <= 1.0, "{errors:?}");
    assert_eq!(errors[2].to_bits(), 0.0f64.to_bits());
}

#[test]
fn one_pool_with_a_name_is_a_machine_without_pools() {
    let text = |pools: &str| {
        format!(
            "duration = \"1s\"\n\
             client = [{{ name = \"A\", count = 3, tickets = 2 }}, {{ name = \"B\", tickets = 1 }}]\n\
             [machine]\ncpus = 2\npolicy = \"lottery\"\n{pools}\n"
        )
    };
    let trace = |pools: &str| {
        let (_, recorder) = run(&parse(&text(pools)), 7, Recorder::new(Vec::new()));
        String::from_utf8(recorder.finish().expect("written")).expect("text")
    };
    assert_eq!(trace(""), trace("pools = [{ name = \"all\", cpus = 2 }]"));
}

/// Stride in each pool stays as near to the fluid as on a machine of its own.
#[test]
fn each_pool_is_as_exact_as_a_machine_of_its_own() {
    let scenario = parse(&text(FIVE, ""));
    let seed = 1;
    let (machine, measures) = run_checked(&scenario, seed, Measures::new());
    let together = prorata_sim::report(&scenario, seed, &machine, &measures);
    for (pool, cpus) in [("small", 1), ("large", 2)] {
        let mut alone = scenario.clone();
        alone.machine.pools.clear();
        alone.machine.cpus = cpus;
        alone
            .clients
            .retain(|client| client.pool.as_deref() == Some(pool));
        alone
            .clients
            .iter_mut()
            .for_each(|client| client.pool = None);
        let (machine, measures) = run_checked(&alone, seed, Measures::new());
        let alone = prorata_sim::report(&alone, seed, &machine, &measures);
        for client in &alone.clients {
            let other = together.clients.iter().find(|c| c.name == client.name);
            let other = other.expect("it is in both");
            assert_eq!(client.received_ns, other.received_ns);
            assert_eq!(client.specified_ns, other.specified_ns);
            assert_eq!(
                client.largest_error.to_bits(),
                other.largest_error.to_bits()
            );
            assert_eq!(client.response_time, other.response_time);
        }
    }
}
