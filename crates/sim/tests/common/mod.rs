//! What the tests of the simulator share.
#![allow(dead_code, reason = "each test uses a part")]

use std::path::{Path, PathBuf};

use prorata_scenario::event::Event;
use prorata_scenario::{Report, Scenario};
use prorata_sim::{Machine, Measures, Observer, Simulation};

/// Where the scenario files are.
pub fn directory() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios")
}

/// All scenario files but those of the papers' figures, by name.
pub fn files() -> Vec<PathBuf> {
    let directories = [directory(), directory().join("conformance")];
    let entries = directories.into_iter().flat_map(|directory| {
        let entries = std::fs::read_dir(directory).expect("scenarios are there");
        let mut paths: Vec<_> = entries.map(|e| e.expect("readable").path()).collect();
        paths.sort();
        paths
    });
    let files = entries.filter(|path| path.extension().is_some_and(|e| e == "toml"));
    let files: Vec<_> = files.collect();
    assert!(files.len() > 11);
    files
}

/// How a scenario file is called in messages: its path below the directory.
pub fn name(file: &Path) -> String {
    let below = file.strip_prefix(directory()).expect("it lies there");
    below.with_extension("").display().to_string()
}

pub fn read(path: &Path) -> Scenario {
    Scenario::read(path).unwrap_or_else(|error| panic!("{error}"))
}

/// A scenario from its text without the title.
pub fn parse(text: &str) -> Scenario {
    parse_whole(format!("title = \"t\"\n{text}"))
}

pub fn parse_whole(text: String) -> Scenario {
    Scenario::parse(Path::new("test.toml"), text).unwrap_or_else(|error| panic!("{error}"))
}

pub fn run<O: Observer>(scenario: &Scenario, seed: u64, observer: O) -> (Machine, O) {
    let mut simulation = Simulation::watched(scenario, seed, observer).expect("checked");
    simulation.run().unwrap_or_else(|error| panic!("{error}"));
    simulation.into_parts()
}

/// Runs a scenario to its end, checking all books at every event.
pub fn run_checked<O: Observer>(scenario: &Scenario, seed: u64, observer: O) -> (Machine, O) {
    let mut simulation = Simulation::watched(scenario, seed, observer).expect("checked");
    let mut now_ns = 0;
    while simulation.step().unwrap_or_else(|error| panic!("{error}")) {
        let machine = simulation.machine();
        let checked = if machine.now_ns() > now_ns {
            machine.check()
        } else {
            Ok(())
        };
        checked.unwrap_or_else(|error| panic!("at {} ns: {error}", machine.now_ns()));
        now_ns = machine.now_ns();
    }
    simulation.into_parts()
}

/// Runs a scenario given as text, and measures it.
pub fn measured(text: &str) -> (Machine, Measures) {
    run_checked(&parse(text), 1, Measures::new())
}

/// Runs a scenario given as text, and reports.
pub fn report(text: &str) -> Report {
    let scenario = parse(text);
    let (machine, measures) = run_checked(&scenario, 1, Measures::new());
    prorata_sim::report(&scenario, 1, &machine, &measures)
}

/// Milliseconds of CPU time that a client received.
pub fn received_ms(machine: &Machine, client: &str) -> f64 {
    let clients = machine.find_clients(client).expect("a client of that name");
    clients
        .map(|client| machine.received_ns(client))
        .sum::<u64>() as f64
        / 1e6
}

/// Keeps the events that a test asks for, with their times in milliseconds.
struct Keep<F>(Vec<(f64, String)>, F);

impl<F: Fn(&Event<'_>, &Machine) -> Option<String>> Observer for Keep<F> {
    fn observe(&mut self, now_ns: u64, event: Event<'_>, machine: &Machine) {
        if let Some(text) = (self.1)(&event, machine) {
            self.0.push((now_ns as f64 / 1e6, text));
        }
    }
}

/// What a test asks for of a run, with times in milliseconds.
pub fn kept(
    text: &str,
    keep: impl Fn(&Event<'_>, &Machine) -> Option<String>,
) -> Vec<(f64, String)> {
    run_checked(&parse(text), 1, Keep(Vec::new(), keep)).1.0
}

/// Clients and CPUs of all dispatches, with their times.
pub fn dispatches(text: &str) -> Vec<(f64, String)> {
    kept(text, |event, machine| match event {
        Event::Dispatched { client, cpu, .. } => {
            Some(format!("{}{cpu}", machine.client_name(*client)))
        }
        _ => None,
    })
}

/// What is expected of them.
pub fn pairs(list: &[(f64, &str)]) -> Vec<(f64, String)> {
    list.iter()
        .map(|(time, text)| (*time, (*text).to_owned()))
        .collect()
}
