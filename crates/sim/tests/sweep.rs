//! Sweeps run every point once, in whatever order, and go on where they stopped.

use std::num::NonZero;
use std::path::PathBuf;

use prorata_sim::sweep::{Axis, Sweep, SweepError};

const SCENARIO: &str = r#"
title = "t"
duration = "100ms"
[machine]
policy = "lottery"
[[client]]
name = "A"
tickets = 1
[[client]]
name = "B"
tickets = 1
"#;

fn scenario(directory: &tempfile::TempDir, text: &str) -> PathBuf {
    let path = directory.path().join("s.toml");
    std::fs::write(&path, text).expect("written");
    path
}

fn sweep(path: &std::path::Path) -> Sweep {
    let axes = ["machine.quantum=1ms,10ms", "client.A.tickets=1,2,3"];
    let axes = axes.iter().map(|axis| Axis::parse(axis).expect("an axis"));
    Sweep::new(path, axes.collect(), 1..=4).expect("a sweep")
}

fn threads(number: usize) -> NonZero<usize> {
    NonZero::new(number).expect("above zero")
}

fn sorted_lines(path: &std::path::Path) -> Vec<String> {
    let text = std::fs::read_to_string(path).expect("readable");
    let mut lines: Vec<_> = text.lines().map(str::to_owned).collect();
    lines.sort();
    lines
}

#[test]
fn a_sweep_broken_off_ends_up_as_one_that_was_not() {
    let directory = tempfile::tempdir().expect("a directory");
    let sweep = sweep(&scenario(&directory, SCENARIO));
    assert_eq!(sweep.points().len(), 24);

    let whole = directory.path().join("whole.jsonl");
    let mut told = Vec::new();
    sweep
        .run(&whole, threads(2), |done, total| told.push((done, total)))
        .expect("runs");
    assert_eq!(told, (0..=24).map(|done| (done, 24)).collect::<Vec<_>>());

    // The last line is half there, two more are missing.
    let text = std::fs::read_to_string(&whole).expect("readable");
    let keep: Vec<&str> = text.lines().take(23).collect();
    let broken = directory.path().join("broken.jsonl");
    let half = &keep[22][..keep[22].len() / 2];
    std::fs::write(&broken, format!("{}\n{half}", keep[..22].join("\n"))).expect("written");
    let mut first = None;
    sweep
        .run(&broken, threads(1), |done, _| {
            first.get_or_insert(done);
        })
        .expect("runs");
    assert_eq!(first, Some(21));
    assert_eq!(sorted_lines(&broken), sorted_lines(&whole));

    // Nothing is left to do.
    sweep
        .run(&broken, threads(2), |done, total| assert_eq!(done, total))
        .expect("runs");
}

#[test]
fn results_of_another_scenario_are_not_mixed_in() {
    let directory = tempfile::tempdir().expect("a directory");
    let results = directory.path().join("r.jsonl");
    sweep(&scenario(&directory, SCENARIO))
        .run(&results, threads(1), |_, _| {})
        .expect("runs");
    let other = sweep(&scenario(&directory, &SCENARIO.replace("100ms", "200ms")));
    let error = other
        .run(&results, threads(1), |_, _| {})
        .expect_err("another scenario");
    assert!(matches!(error, SweepError::OtherScenario(_)), "{error}");
}

#[test]
fn a_value_that_does_not_fit_is_refused_before_anything_runs() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = scenario(&directory, SCENARIO);
    for axis in [
        "machine.cpus=1,0",
        "machine.speed=1",
        "client.C.tickets=1",
        "title.x=1",
    ] {
        let axis = Axis::parse(axis).expect("an axis");
        assert!(Sweep::new(&path, vec![axis], 1..=1).is_err());
    }
    let axis = Axis::parse("client.A.tickets=1,2").expect("an axis");
    assert!(matches!(
        Sweep::new(&path, vec![axis], 0..=u64::MAX),
        Err(SweepError::TooManyRuns)
    ));
}
