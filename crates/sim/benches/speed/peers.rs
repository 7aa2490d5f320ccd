//! The same scenarios in the simulators that can express them: SimSo's PD2 on
//! several CPUs, and weighted fair queueing in ns.py on one.

use std::path::{Path, PathBuf};
use std::process::Command;

use prorata_core::policy::PolicyName;
use prorata_report::figures::{Figure, Quantity};
use prorata_scenario::Scenario;
use prorata_scenario::event::Event;
use prorata_scenario::file::{Amount, Step, Tickets};
use prorata_sim::{Machine, Observer, Simulation};
use serde::Deserialize;

use crate::{cpu_seconds, scenario, time};

/// What a peer's script prints.
#[derive(Deserialize)]
struct Peer {
    per_second: f64,
    #[serde(default)]
    worst: f64,
}

/// Turns of our own that are timed.
const TURNS: u64 = 1 << 20;
/// Packets that ns.py sends, and turns over which errors are compared.
const PACKETS: u64 = 5_000;
/// Clients in each comparison.
const CLIENTS: u32 = 1_000;

/// Figures beside the peers; none where they cannot be installed, which is
/// said.
pub fn compare() -> Vec<Figure> {
    let Some(place) = install() else {
        println!("SimSo and ns.py cannot be installed here: no comparison");
        return Vec::new();
    };
    let clients = CLIENTS.to_string();
    let simso = run(&place, "simso", "simso_pd2.py", &["16", &clients, "20"]);
    let packets = PACKETS.to_string();
    let ns = run(&place, "ns", "ns_wfq.py", &[&clients, &packets]);
    let faster = |name: &str, ours: f64, peer: &str, theirs: f64| Figure {
        name: name.into(),
        paper: None,
        peer: Some(Quantity::Words(format!("{peer} {theirs:.0} a second"))),
        measured: ours / theirs,
        unit: "times faster".into(),
        target: None,
        ok: true,
    };
    let accurate = |policy: PolicyName, bound: f64, paper: &str| {
        let worst = worst_error(&weighted(policy));
        Figure {
            name: format!("{policy:?}: largest absolute error, 1,000 weighted clients"),
            paper: Some(Quantity::Words(paper.into())),
            peer: Some(Quantity::Words(format!("ns.py WFQ {:.2}", ns.worst))),
            measured: worst,
            unit: "quanta".into(),
            target: Some(Quantity::Words(format!("at most {bound:.2}"))),
            ok: worst <= bound,
        }
    };
    let figures = vec![
        faster(
            "decisions, 16 CPUs, 1,000 clients",
            turns_a_second(&equal(16, PolicyName::Stride)),
            "SimSo PD2",
            simso.per_second,
        ),
        faster(
            "decisions, 1 CPU, 1,000 weighted clients",
            turns_a_second(&weighted(PolicyName::Stride)),
            "ns.py WFQ",
            ns.per_second,
        ),
        accurate(
            PolicyName::Stride,
            pairwise_bound(),
            "pairwise error at most 1 (1995, 2)",
        ),
        accurate(
            PolicyName::HierarchicalStride,
            f64::from(CLIENTS).log2().ceil(),
            "at most ceil(lg clients) (1995, 4)",
        ),
    ];
    for figure in &figures {
        println!("{}: {:.2} {}", figure.name, figure.measured, figure.unit);
    }
    figures
}

fn scripts() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("benches/speed/peers")
}

fn install() -> Option<PathBuf> {
    let place = Path::new(env!("CARGO_TARGET_TMPDIR")).join("peers");
    std::fs::create_dir_all(&place).expect("writable");
    let status = Command::new(scripts().join("install")).arg(&place).status();
    status.is_ok_and(|status| status.success()).then_some(place)
}

fn run(place: &Path, environment: &str, script: &str, arguments: &[&str]) -> Peer {
    let output = Command::new(place.join(environment).join("bin/python"))
        .arg(scripts().join(script))
        .args(arguments)
        .output()
        .expect("the environment was installed");
    assert!(
        output.status.success(),
        "{script}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    serde_json::from_slice(&output.stdout).expect("the script prints JSON")
}

/// Clients with equal tickets that compute.
fn equal(cpus: u32, policy: PolicyName) -> Scenario {
    let steps = vec![Step::Compute(time(1000))];
    scenario(cpus, CLIENTS, policy, steps)
}

/// Tickets of a client among weighted ones, as in the peer's script.
fn tickets(client: u32) -> u32 {
    1 + client % 10
}

fn all_tickets() -> u32 {
    (0..CLIENTS).map(tickets).sum()
}

/// By how many quanta stride scheduling may be off at worst. No pair's error
/// is above one (1995, 2): of clients with tickets `s`, `t` and quanta `x`, `y`,
/// `|x t - y s| <= s + t`. A client's absolute error is the sum of the left side
/// over all `n - 1` others, divided by all tickets `T`: at most
/// `1 + (n - 2) s / T`.
fn pairwise_bound() -> f64 {
    let most = (0..CLIENTS).map(tickets).max().expect("there are clients");
    1.0 + f64::from(CLIENTS - 2) * f64::from(most) / f64::from(all_tickets())
}

/// Weighted clients on one CPU.
fn weighted(policy: PolicyName) -> Scenario {
    let mut scenario = equal(1, policy);
    let client = scenario.clients[0].clone();
    scenario.clients = (0..CLIENTS)
        .map(|i| {
            let mut client = client.clone();
            client.name = format!("c{i}");
            client.count = None;
            client.tickets = Tickets::Fixed(vec![Amount::base(tickets(i))]);
            client
        })
        .collect();
    scenario
}

fn turns_a_second(scenario: &Scenario) -> f64 {
    let mut simulation = Simulation::new(scenario, 1).expect("a scenario");
    let mut run_to = |turns: u64| {
        while simulation.machine().counts().turns < turns {
            simulation.step().expect("it goes on");
        }
    };
    run_to(1 << 16);
    let start = cpu_seconds();
    run_to((1 << 16) + TURNS);
    TURNS as f64 / (cpu_seconds() - start)
}

/// Looks at the fluid shares of clients that always compute just before and
/// just after each turn, when they are furthest from it.
struct Fluid {
    received: Vec<u64>,
    turns: u64,
    worst: f64,
}

impl Observer for Fluid {
    fn observe(&mut self, _: u64, event: Event<'_>, _: &Machine) {
        let Event::TurnEnded { client, .. } = event else {
            return;
        };
        let part = f64::from(tickets(client)) / f64::from(all_tickets());
        let received = &mut self.received[client as usize];
        let behind = self.turns as f64 * part - *received as f64;
        *received += 1;
        self.turns += 1;
        let ahead = *received as f64 - self.turns as f64 * part;
        self.worst = self.worst.max(behind.abs()).max(ahead.abs());
    }
}

fn worst_error(scenario: &Scenario) -> f64 {
    let watch = Fluid {
        received: vec![0; CLIENTS as usize],
        turns: 0,
        worst: 0.0,
    };
    let mut simulation = Simulation::watched(scenario, 1, watch).expect("a scenario");
    while simulation.observer().turns < PACKETS {
        simulation.step().expect("it goes on");
    }
    simulation.observer().worst
}
