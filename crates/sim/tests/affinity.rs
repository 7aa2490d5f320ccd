//! Clients that may use only some CPUs run there alone, in proportion to tickets.

mod common;

use common::{dispatches, measured, pairs, parse, received_ms, run};
use prorata_core::policy::PolicyName;
use prorata_sim::Measures;

/// On two CPUs, with a quantum of ten milliseconds.
fn text(clients: &str, rest: &str) -> String {
    format!("duration = \"12s\"\n{clients}\n[machine]\ncpus = 2\nquantum = \"10ms\"\n{rest}")
}

const THREE: &str = r#"
client = [
    { name = "A", tickets = 900, cpus = [0] },
    { name = "B", tickets = 100, cpus = [0] },
    { name = "C", tickets = 1 },
]
"#;

#[test]
fn bound_clients_share_their_cpu_and_leave_the_other() {
    for quanta in ["own", "aligned"] {
        let (machine, _) = measured(&text(THREE, &format!("quanta = \"{quanta}\"\n")));
        for (client, due) in [("A", 10_800.0), ("B", 1_200.0), ("C", 12_000.0)] {
            let received = received_ms(&machine, client);
            assert!(
                (received - due).abs() <= 20.0,
                "{client}: {received} of {due}"
            );
        }
        assert_eq!(machine.counts().idle_ns, 0);
    }
}

#[test]
fn a_running_thread_migrates_where_a_bound_one_needs_its_cpu() {
    let clients = r#"
        client = [
            { name = "A", tickets = 100 },
            { name = "B", tickets = 100, cpus = [0], start = "5ms" },
        ]"#;
    let rest = "costs = { context-switch = \"100us\", cache-refill = \"200us\" }\n";
    let text = text(clients, rest).replace("12s", "8ms");
    // A begins on CPU 0, and goes on at once on CPU 1.
    assert_eq!(
        dispatches(&text),
        pairs(&[(0.0, "A0"), (5.0, "A1"), (5.0, "B0")])
    );
    let (machine, measures) = measured(&text);
    assert_eq!(received_ms(&machine, "A"), 8.0 - 0.2);
    assert_eq!(received_ms(&machine, "B"), 3.0 - 0.1);
    assert_eq!(measures.clients()[0].migrations, 1);
    assert_eq!(measures.clients()[0].turns, 0, "its turn goes on");
}

#[test]
fn every_policy_keeps_bound_clients_on_their_cpus() {
    let mut scenario = parse(&text(THREE, ""));
    for policy in PolicyName::BY_TICKETS {
        scenario.machine.policy = policy;
        // The books are checked at every event: where threads run, and that no CPU idles.
        let (machine, _) = common::run_checked(&scenario, 1, Measures::new());
        let bound = received_ms(&machine, "A") + received_ms(&machine, "B");
        assert_eq!(bound, 12_000.0, "{policy}");
        assert_eq!(received_ms(&machine, "C"), 12_000.0, "{policy}");
    }
}

#[test]
fn an_affinity_to_all_cpus_changes_nothing() {
    let bound = THREE.replace("cpus = [0]", "cpus = [1, 0]");
    let free = THREE.replace(", cpus = [0]", "");
    let received = |clients: &str| {
        let (machine, _) = run(&parse(&text(clients, "")), 1, ());
        ["A", "B", "C"].map(|client| received_ms(&machine, client))
    };
    assert_eq!(received(&bound), received(&free));
}
