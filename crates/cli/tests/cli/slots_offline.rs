//! `prorata slots check` and `plan`, which need no daemon.

use std::path::Path;
use std::process::Output;

use serde_json::Value;

use crate::support::{output, prorata, stderr, stdout};

const ROBOT: &str = r#"
[slots]
cpus = 2
columns = 40
length = "5ms"

[[claim]]
by = "controller"
periodic = "4ms/20ms"
jitter = "5ms"
level = "hard"

[[claim]]
by = "solver"
gang = { threads = 2, columns = 10 }
level = "gang"

[[claim]]
by = "alarm"
event = "10ms/60ms"
level = "soft-1"
"#;

/// Runs a command with a file of this text.
fn slots(command: &str, text: &str, options: &[&str]) -> Output {
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("robot.toml"), text).unwrap();
    let mut prorata = prorata(Path::new("/nonexistent/prorata/socket"));
    prorata.current_dir(directory.path());
    output(prorata.args(["slots", command, "robot.toml"]).args(options))
}

fn json(run: &Output) -> Value {
    serde_json::from_slice(&run.stdout).unwrap_or_else(|error| panic!("{error}: {run:?}"))
}

#[test]
fn claims_that_fit_are_told_with_their_slots_and_blackouts() {
    let run = slots("check", ROBOT, &[]);
    assert_eq!(run.status.code(), Some(0), "{}", stderr(&run));
    let told = stdout(&run);
    for wanted in [
        "40 slots of 5ms on 2 CPUs; 1 of 10 reserved",
        "periodic 4ms/20ms",
        "15ms",
        "0:0,4,8",
        "50.0 %",
        "all claims fit",
    ] {
        assert!(told.contains(wanted), "{wanted}: {told}");
    }
    assert!(!told.contains("warning"), "{told}");
    let report = json(&slots("check", ROBOT, &["--json"]));
    assert_eq!(report["fits"], true);
    assert_eq!(report["claims"][0]["blackout-ns"], 15_000_000);
    assert_eq!(report["cpus"][0]["claimed"], 20);
    assert_eq!(report["claims"][2]["slots"], serde_json::json!([]));
}

#[test]
fn a_conflict_names_its_window_its_cpu_and_who_is_there() {
    let more = "[[claim]]\nby = \"camera\"\nslots = [\"0:0-2\"]\nlevel = \"system\"\n";
    let text = format!("{ROBOT}\n{more}").replace("level = \"hard\"", "cpu = 0\nlevel = \"hard\"");
    let run = slots("check", &text, &[]);
    assert_eq!(run.status.code(), Some(1), "{}", stderr(&run));
    let conflict = "conflict: controller wants periodic 4ms/20ms: its first slot in slots 0 to 3 \
                    of CPU 0 is 15ms after the beginning, where camera has slots";
    assert!(stdout(&run).contains(conflict), "{}", stdout(&run));
    assert!(stdout(&run).ends_with("1 conflict\n"), "{}", stdout(&run));
    let report = json(&slots("check", &text, &["--json"]));
    assert_eq!(report["fits"], false);
    let example = &report["conflicts"][0]["counterexamples"][0];
    assert_eq!(example["cpu"], 0);
    assert_eq!(example["held-by"], serde_json::json!(["camera"]));
}

#[test]
fn a_small_reservation_is_warned_of() {
    let text = ROBOT.replacen(
        "\n[[claim]]",
        "reserve = { slots = 1, of = 20 }\n\n[[claim]]",
        1,
    );
    let run = slots("check", &text, &[]);
    assert_eq!(run.status.code(), Some(0), "{}", stderr(&run));
    assert!(stdout(&run).contains("warning: less than 1 slot in 10"));
}

#[test]
fn a_plan_is_drawn_with_a_row_for_each_cpu() {
    let text = "[slots]\ncpus = 2\ncolumns = 4\nreserve = { slots = 0, of = 1 }\n\
                [[claim]]\nby = \"A\"\nperiodic = \"20ms/40ms\"\n\
                [[claim]]\nby = \"B\"\nperiodic = \"10ms/20ms\"\n\
                [[claim]]\nby = \"C\"\nperiodic = \"30ms/40ms\"\n";
    let run = slots("plan", text, &[]);
    assert_eq!(run.status.code(), Some(0), "{}", stderr(&run));
    let drawn = "       0  1  2  3\n\
                 CPU 0  C  C  C  .\n\
                 CPU 1  B  A  A  B\n";
    assert!(stdout(&run).starts_with(drawn), "{}", stdout(&run));
    let report = json(&slots("plan", text, &["--json"]));
    assert_eq!(report["claims"][1]["slots"], serde_json::json!(["1:0,3"]));
    let too_much = format!("{text}[[claim]]\nby = \"D\"\nperiodic = \"20ms/40ms\"\n");
    let run = slots("plan", &too_much, &[]);
    assert_eq!(run.status.code(), Some(1));
    let told = stdout(&run);
    assert!(told.contains("at most 1 are left on one"), "{told}");
    assert!(
        told.ends_with("no table has room for all periodic claims\n"),
        "{told}"
    );
}

#[test]
fn a_file_that_is_refused_is_wrong_usage() {
    let wrong = ROBOT.replace("4ms/20ms", "4ms/22ms");
    for command in ["check", "plan"] {
        let run = slots(command, &wrong, &[]);
        assert_eq!(run.status.code(), Some(2));
        let error = stderr(&run);
        let names = error.contains("robot.toml:9:1:") && error.contains("take 20ms");
        assert!(names, "{error}");
        let mut none = prorata(Path::new("/nonexistent/prorata/socket"));
        let run = output(none.args(["slots", command, "/nonexistent/robot.toml"]));
        assert_eq!(run.status.code(), Some(2));
        assert!(stderr(&run).contains("/nonexistent/robot.toml"));
    }
}
