//! Sweeps run every point once, in whatever order, and resume where they stopped.

use std::num::NonZero;
use std::path::PathBuf;

use prorata_sim::sweep::{Axis, MAX_RUNS, Sweep, SweepError};

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

#[test]
fn a_file_with_other_contents_is_left_alone() {
    let directory = tempfile::tempdir().expect("a directory");
    let sweep = sweep(&scenario(&directory, SCENARIO));
    let results = directory.path().join("r.jsonl");
    for theirs in [
        &b"{\"precious\": true}"[..],
        b"{\"precious\": true}\n",
        b"{\"scenario\":\"0123",
        b"x",
        b"\n",
        b"\xff\xfe",
    ] {
        std::fs::write(&results, theirs).expect("written");
        let error = sweep
            .run(&results, threads(1), |_, _| {})
            .expect_err("not ours");
        assert!(matches!(error, SweepError::NoResults(_)), "{error}");
        assert_eq!(std::fs::read(&results).expect("readable"), theirs);
    }
}

#[test]
fn a_head_of_ours_that_was_broken_off_is_written_again() {
    let directory = tempfile::tempdir().expect("a directory");
    let sweep = sweep(&scenario(&directory, SCENARIO));
    let whole = directory.path().join("whole.jsonl");
    sweep.run(&whole, threads(1), |_, _| {}).expect("runs");
    let text = std::fs::read_to_string(&whole).expect("readable");
    let head = text.lines().next().expect("a head");
    for length in [0, 1, head.len() / 2, head.len()] {
        let broken = directory.path().join("broken.jsonl");
        std::fs::write(&broken, &head[..length]).expect("written");
        sweep.run(&broken, threads(1), |_, _| {}).expect("runs");
        assert_eq!(sorted_lines(&broken), sorted_lines(&whole), "{length}");
    }
}

#[test]
fn a_setting_that_is_swept_twice_is_refused() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = scenario(&directory, SCENARIO);
    // By one name, by two, and as a part of what is swept as a whole.
    for [first, second] in [
        ["machine.policy=stride", "machine.policy=lottery"],
        ["client.A.tickets=1,2", "client.0.tickets=3"],
        ["client.1.tickets=1,2", "client.B.tickets=3"],
        ["machine={ cpus = 1 }", "machine.policy=lottery"],
        ["machine.policy=lottery", "machine={ cpus = 1 }"],
    ] {
        let axes = [first, second].map(|axis| Axis::parse(axis).expect("an axis"));
        let names = axes.each_ref().map(|axis| axis.setting.clone());
        let error = Sweep::new(&path, axes.into(), 1..=1).expect_err("named twice");
        let [setting, again] = names;
        let wanted = format!("{setting} is swept twice, the second time as {again}");
        assert!(error.to_string().starts_with(&wanted), "{error}");
    }
    let axes = ["client.A.tickets=1,2", "client.1.tickets=3"];
    let axes = axes.map(|axis| Axis::parse(axis).expect("an axis"));
    assert!(Sweep::new(&path, axes.into(), 1..=1).is_ok());
}

#[test]
fn results_of_another_trace_are_not_mixed_in() {
    let directory = tempfile::tempdir().expect("a directory");
    let text = format!(
        "{SCENARIO}program = \"p\"\n[program.p]\nsteps = [{{ compute = {{ trace = \"t.csv\" }} }}]\n"
    );
    let path = scenario(&directory, &text);
    let trace = directory.path().join("t.csv");
    let results = directory.path().join("r.jsonl");
    let run = |times: &str| {
        std::fs::write(&trace, times).expect("written");
        let axis = Axis::parse("client.A.tickets=1,2").expect("an axis");
        let sweep = Sweep::new(&path, vec![axis], 1..=1).expect("a sweep");
        sweep.run(&results, threads(1), |_, _| {})
    };
    run("1ms\n").expect("runs");
    run("1ms\n").expect("nothing is left to do");
    let error = run("2ms\n").expect_err("another trace");
    assert!(matches!(error, SweepError::OtherScenario(_)), "{error}");
}

/// A trace that only a value of a setting names is part of what a run is.
#[test]
fn results_of_another_trace_in_a_setting_are_not_mixed_in() {
    let directory = tempfile::tempdir().expect("a directory");
    let text =
        format!("{SCENARIO}program = \"p\"\n[program.p]\nsteps = [{{ compute = \"1ms\" }}]\n");
    let path = scenario(&directory, &text);
    let results = directory.path().join("r.jsonl");
    let run = |first: &str, seeds| {
        std::fs::write(directory.path().join("t.csv"), first).expect("written");
        std::fs::write(directory.path().join("u.csv"), "3ms\n").expect("written");
        let steps = |file| format!("[{{ compute = {{ trace = \"{file}\" }} }}]");
        let values = format!("program.p.steps={}, {}", steps("t.csv"), steps("u.csv"));
        let axis = Axis::parse(&values).expect("an axis");
        assert_eq!(axis.values.len(), 2);
        let sweep = Sweep::new(&path, vec![axis], seeds).expect("a sweep");
        sweep.run(&results, threads(1), |_, _| {})
    };
    run("1ms\n", 1..=1).expect("runs");
    let before = std::fs::read(&results).expect("readable");
    let error = run("2ms\n", 1..=2).expect_err("another trace");
    assert!(matches!(error, SweepError::OtherScenario(_)), "{error}");
    assert_eq!(std::fs::read(&results).expect("readable"), before);
    run("1ms\n", 1..=2).expect("it is the same again");
}

#[test]
fn a_sweep_has_as_many_runs_as_it_may() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = scenario(&directory, SCENARIO);
    let half = MAX_RUNS as u64 / 2;
    for (seeds, fits) in [(half, true), (half + 1, false)] {
        let axis = Axis::parse("client.A.tickets=1,2").expect("an axis");
        match Sweep::new(&path, vec![axis], 1..=seeds) {
            Ok(_) => assert!(fits, "{seeds}"),
            Err(error) => assert!(
                !fits && matches!(error, SweepError::TooManyRuns),
                "{seeds}: {error}"
            ),
        }
    }
}
