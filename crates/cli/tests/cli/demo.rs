//! `demo`: its output, and that it leaves nothing behind.

use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Command, Stdio};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;
use tempfile::TempDir;

use crate::support::pty::{CTRL_C, Pty};
use crate::support::{OrdinaryUser, end_with_test, eventually, output, stderr, stdout};

/// A demo with its own directory for temporary files, which identifies all its
/// processes.
pub fn demo(directory: &Path, arguments: &[&str]) -> Command {
    told(
        Command::new(env!("CARGO_BIN_EXE_prorata")),
        directory,
        arguments,
    )
}

pub fn told(mut command: Command, directory: &Path, arguments: &[&str]) -> Command {
    command
        .arg("demo")
        .args(arguments)
        .env("TMPDIR", directory)
        .stdin(Stdio::null());
    command
}

/// Processes with this directory for temporary files.
pub fn processes(directory: &Path) -> Vec<String> {
    let marker = format!("TMPDIR={}", directory.display());
    let mut found = Vec::new();
    for entry in std::fs::read_dir("/proc").unwrap().flatten() {
        let environment = std::fs::read(entry.path().join("environ")).unwrap_or_default();
        if environment
            .split(|&byte| byte == 0)
            .any(|variable| variable == marker.as_bytes())
        {
            found.push(entry.file_name().to_string_lossy().into_owned());
        }
    }
    found
}

fn files(directory: &Path) -> usize {
    std::fs::read_dir(directory).unwrap().count()
}

#[track_caller]
pub fn assert_nothing_is_left(directory: &TempDir) {
    eventually("all processes have ended", || {
        processes(directory.path()).is_empty()
    });
    assert_eq!(files(directory.path()), 0, "all files are gone");
}

/// Whether every program got its share in both phases.
fn shares_hold(summary: &Value) -> bool {
    let quantum_s = summary["quantum_ns"].as_f64().unwrap() / 1e9;
    let phases = [[3.0, 2.0, 1.0], [3.0, 2.0, 4.0]];
    phases.iter().enumerate().all(|(phase, tickets)| {
        let of_phase = |name: &str| summary["phases"][phase][name].as_f64().unwrap();
        // On a busy host a phase has few quanta, and no quantum is divided.
        let quantum = quantum_s / (of_phase("cpu_share") * of_phase("seconds"));
        let total: f64 = tickets.iter().sum();
        tickets.iter().enumerate().all(|(program, wanted)| {
            let program = &summary["phases"][phase]["programs"][program];
            let number = |name: &str| program[name].as_f64().unwrap();
            assert_eq!(number("tickets"), *wanted);
            let specified = number("specified_share");
            // Coarse, because benches check precisely.
            (specified - wanted / total).abs() < quantum.max(0.02)
                && (number("received_share") - specified).abs() < (4.0 * quantum).max(0.1)
        })
    })
}

#[test]
fn shares_follow_inflation_and_nothing_is_left() {
    let directory = tempfile::tempdir().unwrap();
    let drawing = tempfile::NamedTempFile::new().unwrap();
    let svg = drawing.path().to_str().unwrap();
    let demonstrate = || {
        let ended = output(&mut demo(
            directory.path(),
            &["--seconds", "4", "--json", "--svg", svg],
        ));
        assert_eq!(
            (ended.status.code(), stderr(&ended).as_str()),
            (Some(0), "")
        );
        assert_nothing_is_left(&directory);
        serde_json::from_str::<Value>(&stdout(&ended)).unwrap()
    };
    // A daemon without a CPU lets a turn last too long, and two seconds may be too
    // short to compensate. So the test repeats if that happened.
    let held = (0..5).any(|_| shares_hold(&demonstrate()));
    assert!(held, "five demos have missed their shares");
    let drawn = std::fs::read_to_string(drawing.path()).unwrap();
    assert!(
        drawn.contains("third inflated") && drawn.contains("1, then 4 tickets"),
        "{drawn}"
    );
}

#[test]
fn snapshots_are_printed_without_a_terminal() {
    let directory = tempfile::tempdir().unwrap();
    let printed = stdout(&output(&mut demo(directory.path(), &["--seconds", "2"])));
    // A stalled host skips some snapshots.
    let tables = printed.matches("PROGRAM").count();
    assert!(
        (2..=5).contains(&tables),
        "at most four snapshots, and a summary: {printed}"
    );
    assert!(printed.contains("2.0 of 2 s"), "the last one: {printed}");
    assert!(
        printed.contains("3:2:1") && printed.contains("3:2:4"),
        "{printed}"
    );
    assert!(!printed.contains('\u{1b}'), "{printed}");
    assert_nothing_is_left(&directory);
}

#[test]
fn a_terminal_shows_the_demo_in_place() {
    let directory = tempfile::tempdir().unwrap();
    let mut terminal = Pty::spawn(&mut demo(directory.path(), &["--seconds", "2"]));
    terminal.expect("RECEIVED");
    terminal.expect("Summary:");
    terminal.expect("prorata --help");
    assert_eq!(terminal.child().wait().unwrap().code(), Some(0));
    assert_nothing_is_left(&directory);
}

#[test]
fn an_interrupted_demo_cleans_up() {
    let directory = tempfile::tempdir().unwrap();
    let mut terminal = Pty::spawn(&mut demo(directory.path(), &["--seconds", "600"]));
    terminal.expect("RECEIVED");
    // The table is redrawn in place.
    terminal.expect("A\rPROGRAM");
    terminal.keys(CTRL_C);
    // The cursor shows again.
    terminal.expect("\u{1b}[?25h");
    assert_eq!(
        terminal.child().wait().unwrap().signal(),
        Some(Signal::SIGINT as i32)
    );
    assert_nothing_is_left(&directory);
}

#[test]
fn a_demo_on_a_closed_terminal_cleans_up() {
    let directory = tempfile::tempdir().unwrap();
    let mut terminal = Pty::spawn(&mut demo(directory.path(), &["--seconds", "600"]));
    terminal.expect("RECEIVED");
    terminal.close();
    terminal.child().wait().unwrap();
    assert_nothing_is_left(&directory);
}

#[test]
fn a_terminated_demo_cleans_up() {
    let directory = tempfile::tempdir().unwrap();
    let mut demo = demo(directory.path(), &["--seconds", "600"]);
    let mut running = end_with_test(demo.stdout(Stdio::null())).spawn().unwrap();
    eventually("it runs", || processes(directory.path()).len() >= 5);
    kill(Pid::from_raw(running.id() as i32), Signal::SIGTERM).unwrap();
    assert_eq!(
        running.wait().unwrap().signal(),
        Some(Signal::SIGTERM as i32)
    );
    assert_nothing_is_left(&directory);
}

#[test]
fn a_killed_demo_leaves_no_process() {
    let directory = tempfile::tempdir().unwrap();
    let mut demo = demo(directory.path(), &["--seconds", "600"]);
    let mut running = end_with_test(demo.stdout(Stdio::null())).spawn().unwrap();
    eventually("it runs", || processes(directory.path()).len() >= 5);
    running.kill().unwrap();
    running.wait().unwrap();
    eventually("all processes have ended", || {
        processes(directory.path()).is_empty()
    });
}

#[test]
fn the_demo_runs_as_an_ordinary_user() {
    let directory = tempfile::tempdir().unwrap();
    let user = OrdinaryUser::new();
    user.give(directory.path());
    let ended = output(&mut told(
        user.command(),
        directory.path(),
        &["--seconds", "2", "--json"],
    ));
    assert_eq!(
        (ended.status.code(), stderr(&ended).as_str()),
        (Some(0), "")
    );
    let summary: Value = serde_json::from_str(&stdout(&ended)).unwrap();
    assert_eq!(
        summary["phases"].as_array().map(Vec::len),
        Some(2),
        "{summary:#}"
    );
    assert_nothing_is_left(&directory);
}
