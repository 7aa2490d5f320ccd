//! `prorata sim`, which needs no daemon.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};

use serde_json::Value;
use tempfile::TempDir;

use crate::support::{output, prorata, stderr, stdout};

const SCENARIO: &str = r#"
title = "Two programs share a CPU 3:1"
duration = "400ms"
[machine]
quantum = "10ms"
[[client]]
name = "A"
tickets = 3
[[client]]
name = "B"
tickets = 1
[[assert]]
share = { client = "A", is = 0.75, within = 0.01 }
"#;

struct ScenarioDirectory {
    directory: TempDir,
    scenario: PathBuf,
}

impl ScenarioDirectory {
    fn new(text: &str) -> ScenarioDirectory {
        let directory = tempfile::tempdir().unwrap();
        let scenario = directory.path().join("two.toml");
        std::fs::write(&scenario, text).unwrap();
        ScenarioDirectory {
            directory,
            scenario,
        }
    }

    fn run(&self, arguments: &[&str]) -> Output {
        let mut command = prorata(Path::new("/nonexistent/prorata/socket"));
        command.current_dir(self.directory.path());
        output(command.arg("sim").args(arguments))
    }

    fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.directory.path().join(name)).unwrap()
    }
}

fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

#[test]
fn a_run_is_printed_as_a_table_and_as_json() {
    let place = ScenarioDirectory::new(SCENARIO);
    let run = place.run(&["two.toml"]);
    assert_eq!(run.status.code(), Some(0), "{}", stderr(&run));
    for wanted in ["75.0 %", "25.0 %", "holds: share of A"] {
        assert!(stdout(&run).contains(wanted), "{}", stdout(&run));
    }
    let run = place.run(&["two.toml", "--json", "--seed", "9"]);
    let report = json(&stdout(&run));
    assert_eq!(report["clients"][0]["received-ns"], 300_000_000);
    assert_eq!(report["seed"], 9);
    assert_eq!(report["verdicts"][0]["holds"], true);
}

#[test]
fn a_failed_assertion_exits_with_1() {
    let place = ScenarioDirectory::new(&SCENARIO.replace("0.75", "0.5"));
    let run = place.run(&["two.toml"]);
    assert_eq!(run.status.code(), Some(1));
    assert!(stdout(&run).contains("FAILS: share of A"));
}

#[test]
fn a_wrong_scenario_is_refused_with_its_line_and_the_fix() {
    let place = ScenarioDirectory::new(&SCENARIO.replace("client = \"A\"", "client = \"C\""));
    let run = place.run(&["two.toml"]);
    assert_eq!(run.status.code(), Some(1));
    let error = stderr(&run);
    assert!(
        error.contains("two.toml:13:") && error.contains("name one"),
        "{error}"
    );
    assert_eq!(place.run(&["none.toml"]).status.code(), Some(1));
}

#[test]
fn a_refused_scenario_does_not_touch_output_files() {
    let place = ScenarioDirectory::new(&SCENARIO.replace("client = \"A\"", "client = \"C\""));
    let files = [
        ("--record", "r"),
        ("--perfetto", "p"),
        ("--csv", "c"),
        ("--svg", "s"),
        ("--results", "j"),
    ];
    for (option, file) in files {
        std::fs::write(place.directory.path().join(file), "precious").unwrap();
        let mut arguments = vec!["two.toml", option, file];
        if option == "--results" {
            arguments.extend(["--seeds", "1-2"]);
        }
        let run = place.run(&arguments);
        assert_eq!(run.status.code(), Some(1), "{option}");
        assert!(stderr(&run).contains("two.toml:13:"), "{}", stderr(&run));
        assert_eq!(place.read(file), "precious", "{option}");
    }
}

#[test]
fn an_output_file_must_not_be_the_scenario() {
    let place = ScenarioDirectory::new(SCENARIO);
    let link = place.directory.path().join("link");
    std::fs::hard_link(place.directory.path().join("two.toml"), link).unwrap();
    let symbolic = place.directory.path().join("symbolic");
    std::os::unix::fs::symlink("two.toml", symbolic).unwrap();
    for option in ["--record", "--perfetto", "--csv", "--svg"] {
        for name in ["two.toml", "./two.toml", "link", "symbolic"] {
            let run = place.run(&["two.toml", option, name]);
            assert_eq!(run.status.code(), Some(1), "{option} {name}");
            let wanted = format!("{option} {name} is the scenario itself: name another file");
            assert!(stderr(&run).contains(&wanted), "{}", stderr(&run));
            assert_eq!(place.read("two.toml"), SCENARIO);
        }
    }
    let run = place.run(&["two.toml", "--record", "another"]);
    assert_eq!(run.status.code(), Some(0));
}

#[test]
fn wrong_usage_and_refusals_have_different_codes() {
    let place = ScenarioDirectory::new(SCENARIO);
    for arguments in [
        &[][..],
        &["--json"],
        &["two.toml", "--faults"],
        &["two.toml", "--seeds", "5-1"],
        &["two.toml", "--step", "--json"],
        &["two.toml", "--seed", "x"],
    ] {
        assert_eq!(place.run(arguments).status.code(), Some(2), "{arguments:?}");
    }
}

#[test]
fn a_run_writes_every_kind_of_file() {
    let place = ScenarioDirectory::new(SCENARIO);
    let run = place.run(&[
        "two.toml",
        "--csv",
        "s.csv",
        "--svg",
        "s.svg",
        "--perfetto",
        "p.json",
        "--record",
        "r",
    ]);
    assert_eq!(run.status.code(), Some(0), "{}", stderr(&run));
    let csv = place.read("s.csv");
    assert_eq!(csv.lines().count(), 1 + (2 * 3 + 1) * 200);
    for line in [
        "400000000,received-ns,B,100000000",
        "400000000,specified-ns,B,100000000",
        "400000000,error-quanta,B,0",
        "2000000,waiting-threads,,1",
    ] {
        assert!(csv.lines().any(|found| found == line), "{line}: {csv}");
    }
    let svg = place.read("s.svg");
    assert!(svg.starts_with("<svg"));
    for head in ["Threads that wait for a CPU", "Response times"] {
        assert!(svg.contains(head), "{head}");
    }
    let trace = json(&place.read("p.json"));
    let slices = trace["traceEvents"].as_array().unwrap();
    let runs = slices.iter().filter(|event| event["ph"] == "X");
    let us: f64 = runs.map(|event| event["dur"].as_f64().unwrap()).sum();
    assert_eq!(us, 400_000.0);
    let record = place.read("r");
    assert!(record.starts_with("0 began\n") && record.ends_with("finished\n"));
    let nowhere = place.run(&["two.toml", "--record", "/nonexistent/r"]);
    assert_eq!(nowhere.status.code(), Some(1));
    assert!(stderr(&nowhere).contains("/nonexistent/r"));
}

#[test]
fn a_step_ends_where_it_was_told_to() {
    let place = ScenarioDirectory::new(SCENARIO);
    let mut command = prorata(Path::new("/nonexistent/prorata/socket"));
    let mut child = command
        .args(["sim", "--step"])
        .arg(&place.scenario)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let commands = b"\n2\nB\n50ms\np\nnonsense\nq\n";
    child.stdin.take().unwrap().write_all(commands).unwrap();
    let run = child.wait_with_output().unwrap();
    assert_eq!(run.status.code(), Some(0));
    let (shown, record) = (stdout(&run), {
        place.run(&["two.toml", "--record", "r"]);
        place.read("r")
    });
    // All lines except the table's are the record's, in the same order.
    let lines: Vec<&str> = shown.lines().collect();
    let table = lines.iter().position(|line| line.starts_with("NAME"));
    let table = table.expect("p shows a table");
    let recorded: Vec<&str> = record.lines().take(table).collect();
    assert_eq!(lines[..table], recorded);
    assert!(lines[table - 1].starts_with("50000000 "), "{shown}");
    assert!(stderr(&run).contains("\"nonsense\""));
}

#[test]
fn a_sweep_continues_where_it_stopped() {
    let place = ScenarioDirectory::new(SCENARIO);
    let sweep = |seeds: &str| {
        let axis = "machine.policy=stride,lottery";
        place.run(&["two.toml", "--sweep", axis, "--seeds", seeds, "--json"])
    };
    let first = sweep("1-3");
    let done = json(&stdout(&first));
    assert_eq!(done["runs"], 6);
    // The assertion holds under stride, and hardly ever under forty lotteries.
    let fail = done["fail"].as_u64().unwrap();
    assert!((1..=3).contains(&fail), "{done}");
    assert_eq!(first.status.code(), Some(1));
    let before = place.read("two.results");
    assert_eq!(json(&stdout(&sweep("1-3"))), done);
    assert_eq!(place.read("two.results"), before);
    assert_eq!(json(&stdout(&sweep("1-4")))["runs"], 8);
    assert!(place.read("two.results").starts_with(&before));
    let wrong = place.run(&["two.toml", "--sweep", "machine.speed=1"]);
    assert_eq!(wrong.status.code(), Some(1));
    let policy = |policy| ["--sweep", policy];
    let twice = [
        policy("machine.policy=stride"),
        policy("machine.policy=lottery"),
    ]
    .concat();
    let wrong = place.run(&[&["two.toml"], &twice[..]].concat());
    assert_eq!(wrong.status.code(), Some(1));
    let error = stderr(&wrong);
    assert!(error.contains("machine.policy is swept twice"), "{error}");
}

#[test]
fn fault_trials_are_counted() {
    let place = ScenarioDirectory::new(SCENARIO);
    let run = place.run(&["--faults", "--seeds", "1-4", "--json"]);
    assert_eq!(run.status.code(), Some(0), "{}", stdout(&run));
    let done = json(&stdout(&run));
    assert_eq!(done["trials"], 4);
    assert_eq!(done["failures"], Value::Array(Vec::new()));
    assert!(done["total"]["events"].as_u64().unwrap() > 1600);
    let run = place.run(&["--faults", "--seed", "3", "--record", "r"]);
    assert_eq!(run.status.code(), Some(0));
    assert!(place.read("r").lines().count() > 400);
}

#[test]
fn the_schema_is_printed() {
    let place = ScenarioDirectory::new(SCENARIO);
    let schema = json(&stdout(&place.run(&["--schema"])));
    assert_eq!(schema["title"], "prorata scenario");
}
