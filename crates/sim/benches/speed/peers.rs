//! The same scenarios in the simulators that can express them: SimSo's PD2 on
//! several CPUs, and weighted fair queueing in ns.py on one.

use std::path::{Path, PathBuf};
use std::process::Command;

use prorata_report::figures::{Figure, Quantity};
use prorata_sim::scenario::{PolicyName, Scenario, Step, Tickets};
use prorata_sim::{Event, Machine, Observer, Simulation};
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

/// Figures beside the peers; none where they cannot be installed, which is
/// said.
pub fn compare() -> Vec<Figure> {
    let Some(place) = install() else {
        println!("SimSo and ns.py cannot be installed here: no comparison");
        return Vec::new();
    };
    let simso = run(&place, "simso", "simso_pd2.py", &["16", "1000", "20"]);
    let ns = run(&place, "ns", "ns_wfq.py", &["1000", &PACKETS.to_string()]);
    let on_16 = turns_a_second(&equal(16));
    let on_1 = turns_a_second(&weighted());
    let worst = worst_error(&weighted());
    let faster = |name: &str, ours: f64, peer: &str, theirs: f64| Figure {
        name: name.into(),
        paper: None,
        peer: Some(Quantity::Words(format!("{peer} {theirs:.0} a second"))),
        measured: ours / theirs,
        unit: "times faster".into(),
        target: Some(Quantity::Words("above 1".into())),
        ok: ours > theirs,
    };
    let figures = vec![
        faster(
            "decisions, 16 CPUs, 1,000 clients",
            on_16,
            "SimSo PD2",
            simso.per_second,
        ),
        faster(
            "decisions, 1 CPU, 1,000 weighted clients",
            on_1,
            "ns.py WFQ",
            ns.per_second,
        ),
        Figure {
            name: "stride: largest difference from the fluid, 1,000 weighted clients".into(),
            paper: Some(Quantity::Words("O(clients) (1995, 2)".into())),
            peer: Some(Quantity::Words(format!("ns.py WFQ {:.2}", ns.worst))),
            measured: worst,
            unit: "quanta".into(),
            target: Some(Quantity::Words("below 1000".into())),
            ok: worst < 1000.0,
        },
    ];
    for figure in &figures {
        println!("{}: {:.2} {}", figure.name, figure.measured, figure.unit);
    }
    figures
}

/// Where the scripts are.
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
fn equal(cpus: u32) -> Scenario {
    let steps = vec![Step::Compute(time(1000))];
    scenario(cpus, 1000, PolicyName::Stride, steps)
}

/// On one CPU client `i` has `1 + i % 10` tickets, as in the peer's script.
fn weighted() -> Scenario {
    let mut scenario = equal(1);
    let client = scenario.clients[0].clone();
    scenario.clients = (0..1000)
        .map(|i| {
            let mut client = client.clone();
            client.name = format!("c{i}");
            client.count = None;
            client.tickets = Tickets::Fixed(vec![prorata_sim::scenario::Amount::base(1 + i % 10)]);
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
        let total: u64 = (0..1000).map(|i| 1 + i % 10).sum();
        let part = f64::from(1 + client % 10) / total as f64;
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
        received: vec![0; 1000],
        turns: 0,
        worst: 0.0,
    };
    let mut simulation = Simulation::watched(scenario, 1, watch).expect("a scenario");
    while simulation.observer().turns < PACKETS {
        simulation.step().expect("it goes on");
    }
    simulation.observer().worst
}
