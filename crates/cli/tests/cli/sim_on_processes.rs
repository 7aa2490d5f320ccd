//! `prorata sim --engine user`: scenarios on real processes.

use std::path::Path;
use std::process::{Child, Command, Output, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use tempfile::TempDir;

use crate::support::{eventually, output, prorata, stderr, stdout};

const SCENARIO: &str = r#"
title = "Two programs"
duration = "400ms"
[[client]]
name = "A"
tickets = 3
[[client]]
name = "B"
tickets = 1
[[assert]]
share = { client = "A", is = 0.5, within = 0.5 }
[[assert]]
response-time = { client = "A", percentile = 50, at-most = "1h" }
"#;

/// A directory for the scenario and the run's own files.
struct ScenarioDirectory(TempDir);

impl ScenarioDirectory {
    fn new(text: &str) -> ScenarioDirectory {
        let directory = tempfile::tempdir().unwrap();
        std::fs::write(directory.path().join("two.toml"), text).unwrap();
        ScenarioDirectory(directory)
    }

    fn command(&self) -> Command {
        let mut command = prorata(Path::new("/nonexistent/prorata/socket"));
        command
            .current_dir(self.0.path())
            .env("TMPDIR", self.0.path())
            .args(["sim", "two.toml", "--engine", "user"]);
        command
    }

    fn run(&self, arguments: &[&str]) -> Output {
        output(self.command().args(arguments))
    }

    fn processes(&self) -> Vec<u32> {
        let variable = format!("TMPDIR={}", self.0.path().display());
        let is_ours = |pid: &u32| {
            let environment = std::fs::read(format!("/proc/{pid}/environ"));
            let environment = environment.unwrap_or_default();
            let mut variables = environment.split(|&byte| byte == 0);
            variables.any(|other| other == variable.as_bytes())
        };
        let entries = std::fs::read_dir("/proc").unwrap().flatten();
        let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
        pids.filter(is_ours).collect()
    }

    fn files(&self) -> usize {
        std::fs::read_dir(self.0.path()).unwrap().count()
    }
}

#[test]
fn a_run_names_its_engine_and_unjudged_assertions() {
    let place = ScenarioDirectory::new(SCENARIO);
    let run = place.run(&["--csv", "s.csv", "--svg", "s.svg"]);
    assert_eq!(run.status.code(), Some(0), "{}", stderr(&run));
    for wanted in [
        "engine user on real processes, mechanism ",
        "holds: share of A",
        "not judged: response time of A, percentile 50, is at most 1h: not measured by this engine",
        "1 of 2 assertions are not judged",
    ] {
        assert!(stdout(&run).contains(wanted), "{wanted}: {}", stdout(&run));
    }
    let svg = std::fs::read_to_string(place.0.path().join("s.svg")).unwrap();
    assert!(svg.contains("Real processes, engine user"), "{svg}");
    assert_eq!(place.files(), 3, "the scenario and the two files asked for");
    let run = place.run(&["--json"]);
    let report: Value = serde_json::from_str(&stdout(&run)).unwrap();
    assert_eq!(report["engine"], "user");
    assert_eq!(report["verdicts"][0]["judged"], true);
    assert_eq!(report["verdicts"][1]["judged"], false);
    assert_eq!(report["verdicts"][1]["holds"], false);
    assert!(report["clients"][1]["received-ns"].as_u64() > Some(0));
    assert!(report["clients"][1].get("turns").is_none(), "{report}");
}

#[test]
fn an_unjudged_assertion_never_passes() {
    let place = ScenarioDirectory::new(&SCENARIO.replace(
        "share = { client = \"A\", is = 0.5, within = 0.5 }",
        "response-time = { client = \"B\", percentile = 50, at-most = \"1h\" }",
    ));
    let run = place.run(&[]);
    assert_eq!(run.status.code(), Some(1));
    assert!(stdout(&run).contains("2 of 2 assertions are not judged"));
    let place =
        ScenarioDirectory::new(&SCENARIO.replace("is = 0.5, within = 0.5", "is = 0, within = 0"));
    let run = place.run(&[]);
    assert_eq!(run.status.code(), Some(1));
    assert!(stdout(&run).contains("FAILS: share of A"));
}

#[test]
fn unsupported_steps_are_refused_with_their_line() {
    let place = ScenarioDirectory::new(&format!("{SCENARIO}[machine]\npolicy = \"eevdf\"\n"));
    let run = place.run(&[]);
    assert_eq!(run.status.code(), Some(1));
    let error = stderr(&run);
    assert!(error.contains("two.toml:15:1: machine.policy: "), "{error}");
    assert!(error.contains("use --engine sim"), "{error}");
    for arguments in [
        &["--step"][..],
        &["--record", "r"],
        &["--perfetto", "p"],
        &["--seeds", "1-2"],
        &["--sweep", "machine.policy=stride"],
    ] {
        assert_eq!(place.run(arguments).status.code(), Some(2), "{arguments:?}");
    }
}

/// Every signal that ends a run also ends its processes, demoted and stopped ones
/// included.
#[test]
fn a_run_ended_by_a_signal_ends_its_processes() {
    for signal in [Signal::INT, Signal::TERM, Signal::KILL] {
        let place = ScenarioDirectory::new(&SCENARIO.replace("400ms", "1h"));
        let mut command = place.command();
        command.stdout(Stdio::null()).stderr(Stdio::null());
        let mut child = crate::support::end_with_test(&mut command).spawn().unwrap();
        // The run, its guardian, and two clients.
        eventually("all are there", || place.processes().len() == 4);
        kill_process(Pid::from_child(&child), signal).unwrap();
        ended_by(&mut child, signal);
        eventually("all are gone", || place.processes().is_empty());
        if signal != Signal::KILL {
            assert_eq!(place.files(), 1, "only the scenario is left");
        }
    }
}

fn ended_by(child: &mut Child, signal: Signal) {
    use std::os::unix::process::ExitStatusExt;
    let status = child.wait().unwrap();
    assert_eq!(status.signal(), Some(signal.as_raw()), "{status}");
}
