//! Every scenario file: its assertions hold, its books balance, and it replays
//! byte for byte.

mod common;

use std::fmt::Write;

use prorata_core::policy::PolicyName;
use prorata_sim::trace::{Fingerprint, Recorder};
use prorata_sim::{Measures, report};

use common::{directory, files, name, parse_whole, read, run, run_checked};

#[test]
fn all_assertions_hold() {
    for file in files() {
        let scenario = read(&file);
        let seed = scenario.seed.into();
        let (machine, measures) = run_checked(&scenario, seed, Measures::new());
        let report = report(&scenario, seed, &machine, &measures);
        for verdict in &report.verdicts {
            assert!(verdict.holds, "{}: {verdict:?}", file.display());
        }
        assert_eq!(report.refused, [""; 0], "{}", file.display());
    }
}

/// The traces of all scenarios under their own seed and another one. They are
/// the same on every machine; a change of the simulator, the dispatcher, the
/// ledger or a policy that changes what happens shows here.
#[test]
fn runs_are_the_same_for_ever() {
    let mut fingerprints = String::new();
    for file in files() {
        let scenario = read(&file);
        let name = name(&file);
        for seed in [scenario.seed.into(), 1_000_003] {
            let (_, fingerprint) = run(&scenario, seed, Fingerprint::default());
            writeln!(fingerprints, "{name} {seed} {:016x}", fingerprint.value()).expect("a string");
        }
    }
    compare("fingerprints.txt", &fingerprints);
}

/// The traces of ten scenarios, one with pools of CPUs, under every policy.
#[test]
fn runs_under_every_policy_are_the_same_for_ever() {
    const FILES: [&str; 10] = [
        "currencies-insulate",
        "mixed",
        "mutex",
        "pools",
        "server",
        "three-two-one",
        "conformance/blocked-sibling",
        "conformance/inflation",
        "conformance/latency",
        "conformance/transfer-by-call",
    ];
    let mut fingerprints = String::new();
    for name in FILES {
        let mut scenario = read(&directory().join(format!("{name}.toml")));
        for policy in PolicyName::BY_TICKETS {
            scenario.machine.policy = policy;
            let seed = scenario.seed.into();
            let (_, fingerprint) = run(&scenario, seed, Fingerprint::default());
            let value = fingerprint.value();
            writeln!(fingerprints, "{name} {policy} {value:016x}").expect("a string");
        }
    }
    compare("policies.txt", &fingerprints);
}

#[test]
fn a_short_run_is_the_same_line_by_line() {
    let mut scenario = read(&directory().join("mixed.toml"));
    scenario.duration = "60ms".parse().expect("a time");
    let (_, recorder) = run(&scenario, 4, Recorder::new(Vec::new()));
    let trace = String::from_utf8(recorder.finish().expect("written")).expect("text");
    compare("mixed.trace", &trace);
}

#[test]
fn another_seed_is_another_run_where_there_is_chance() {
    let scenario = read(&directory().join("mixed.toml"));
    let fingerprint = |seed| run(&scenario, seed, Fingerprint::default()).1;
    assert_eq!(fingerprint(1), fingerprint(1));
    assert_ne!(fingerprint(1), fingerprint(2));
}

#[test]
fn a_scenario_survives_being_written_and_read() {
    for file in files() {
        let scenario = read(&file);
        let text = toml::to_string(&scenario).expect("it can be written");
        assert_eq!(parse_whole(text), scenario, "{}", file.display());
    }
}

#[test]
fn the_example_of_the_documentation_is_a_scenario() {
    let page = directory().join("../docs/SIMULATOR.md");
    let page = std::fs::read_to_string(page).expect("readable");
    let (_, rest) = page.split_once("```toml\n").expect("an example");
    let (text, _) = rest.split_once("```").expect("an end of it");
    let scenario = parse_whole(text.to_owned());
    let (machine, measures) = run_checked(&scenario, 1, Measures::new());
    let report = report(&scenario, 1, &machine, &measures);
    assert!(report.verdicts.iter().all(|verdict| verdict.holds));
    assert_eq!(report.verdicts.len(), 1);
}

/// Compares with a file beside the tests; writes it afresh where the variable
/// `UPDATE_GOLDEN` is set.
fn compare(name: &str, actual: &str) {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/golden")
        .join(name);
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(&path, actual).expect("writable");
    }
    let expected = std::fs::read_to_string(&path).expect("UPDATE_GOLDEN=1 writes it");
    assert!(
        actual == expected,
        "{name} differs: if that is meant, run with UPDATE_GOLDEN=1 and look at the difference"
    );
}
