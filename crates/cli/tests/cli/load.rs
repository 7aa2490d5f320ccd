//! `prorata load`, by itself and under a daemon.

use std::path::Path;
use std::process::{Command, Output};
use std::thread::sleep;
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;

use crate::support::pty::{CTRL_C, Pty};
use crate::support::real::Real;
use crate::support::{end_with_test, eventually, output, prorata, stderr, stdout};

fn load(arguments: &[&str]) -> Output {
    let mut command = prorata(Path::new("/nonexistent/prorata/socket"));
    output(command.arg("load").args(arguments))
}

/// Runs a load with a limit on open files, set by `ulimit` with this option.
fn with_files(option: &str, files: u32, arguments: &str) -> Output {
    let program = env!("CARGO_BIN_EXE_prorata");
    let line = format!("ulimit {option} {files} && exec '{program}' load {arguments}");
    output(Command::new("bash").args(["-c", &line]))
}

const SMALL: &str = "chat --rooms 2 --users 4 --messages 25";

fn small(more: &[&'static str]) -> Vec<&'static str> {
    SMALL.split(' ').chain(more.iter().copied()).collect()
}

#[test]
fn chat_reports_in_words_and_as_json() {
    let chat = load(&small(&[]));
    assert_eq!(
        (chat.status.code(), stderr(&chat)),
        (Some(0), String::new())
    );
    for wanted in [
        "threads 32\n",
        "\n600 messages in ",
        "voluntary",
        "run queue: ",
    ] {
        assert!(stdout(&chat).contains(wanted), "{}", stdout(&chat));
    }
    let chat = load(&small(&["--transport", "unix", "--json"]));
    assert_eq!(chat.status.code(), Some(0));
    let report: Value = serde_json::from_str(&stdout(&chat)).unwrap();
    assert_eq!(report["delivered"], 600);
    assert_eq!(report["transport"], "unix");
    let seconds = report["elapsed-ns"].as_f64().unwrap() / 1e9;
    let throughput = report["messages-per-second"].as_f64().unwrap();
    assert!((throughput * seconds - 600.0).abs() < 1e-6, "{report}");
}

#[test]
fn reflex_reports_in_words_and_as_json() {
    let arguments = ["reflex", "--active-sets", "3", "--threads", "2"];
    let reflex = load(&[&arguments[..], &["--rounds", "200"]].concat());
    assert_eq!(reflex.status.code(), Some(0), "{}", stderr(&reflex));
    assert!(stdout(&reflex).contains("600 rounds in "));
    let never = ["--rounds", "200", "--yield-probability", "0", "--json"];
    let reflex = load(&[&arguments[..], &never].concat());
    let report: Value = serde_json::from_str(&stdout(&reflex)).unwrap();
    assert_eq!(report["yields"], 0);
    assert_eq!(report["passes"], 597);
    assert_eq!(report["all-rounds"], 600);
}

#[test]
fn wake_reports_in_words_and_as_json() {
    let arguments = ["wake", "--period", "1ms", "--wakes", "50"];
    let wake = load(&arguments);
    assert_eq!(wake.status.code(), Some(0), "{}", stderr(&wake));
    for wanted in ["50 wakes in ", "latency: p50 ", "run queue: "] {
        assert!(stdout(&wake).contains(wanted), "{}", stdout(&wake));
    }
    let wake = load(&[&arguments[..], &["--json"]].concat());
    let report: Value = serde_json::from_str(&stdout(&wake)).unwrap();
    assert_eq!(report["wakes"], 50);
    assert!(report["latencies"]["p999-ns"].as_u64() <= report["latencies"]["max-ns"].as_u64());
    let refused = load(&["wake", "--period", "11s"]);
    assert_eq!(refused.status.code(), Some(1));
    let said = stderr(&refused);
    assert!(
        said.starts_with("prorata: period 11000000000 is out of range"),
        "{said}"
    );
}

#[test]
fn too_many_threads_or_files_are_refused_in_one_sentence() {
    let refused = load(&["chat", "--rooms", "4096", "--users", "2"]);
    assert_eq!(refused.status.code(), Some(1));
    assert!(stderr(&refused).starts_with("prorata: this would take 32768 threads"));
    let refused = with_files("-n", 64, "chat --rooms 1 --users 20 --messages 1");
    assert_eq!(
        (refused.status.code(), stdout(&refused).as_str()),
        (Some(1), "")
    );
    let said = stderr(&refused);
    assert!(
        said.contains("and this process may have 64: ask for fewer"),
        "{said}"
    );
    assert_eq!(said.lines().count(), 1);
    // The program may raise the soft limit.
    let chat = with_files("-Sn", 64, "chat --rooms 1 --users 20 --messages 1");
    assert_eq!(chat.status.code(), Some(0), "{}", stderr(&chat));
}

#[test]
fn a_load_of_a_demo_that_starts_after_its_window_has_no_result() {
    for arguments in [
        "controller --work 4ms/20ms",
        "gang --threads 2 --work 500us",
        "jobs --threads 2",
    ] {
        let words: Vec<_> = arguments.split(' ').collect();
        let late = load(&[&words[..], &["--begin", "1", "--end", "2"]].concat());
        assert_eq!(
            (late.status.code(), stdout(&late).as_str()),
            (Some(0), "null\n")
        );
        let empty = load(&[&words[..], &["--begin", "2", "--end", "2"]].concat());
        assert_eq!(empty.status.code(), Some(1));
        assert!(stderr(&empty).contains("is empty"), "{arguments}");
    }
}

#[test]
fn a_load_shows_progress_and_ends_by_a_key() {
    let mut shell = Pty::bash(Path::new("/nonexistent/prorata/socket"));
    for endless in [
        "chat --messages 1000000",
        "reflex --rounds 1000000000",
        "wake --wakes 10000000",
    ] {
        shell.line(&format!("prorata load {endless}"));
        shell.expect(" % of ");
        shell.keys(CTRL_C);
        shell.prompt();
        shell.expect_code(130);
        shell.prompt();
    }
}

#[test]
fn a_load_runs_as_a_client() {
    let real = Real::start();
    let chat = [
        &[
            "run",
            "-t",
            "300",
            "--",
            env!("CARGO_BIN_EXE_prorata"),
            "load",
        ],
        &small(&["--json"])[..],
    ];
    let report: Value = serde_json::from_str(&real.done(&chat.concat())).unwrap();
    assert_eq!(report["delivered"], 600);
}

/// Its main thread waits for a CPU among hundreds of threads of a client that mostly loses.
#[test]
fn a_load_that_loses_ends_at_once() {
    let real = Real::start();
    let _rival = real.compute("rival", "1000");
    let mut command = real.prorata();
    let program = env!("CARGO_BIN_EXE_prorata");
    command.args([
        "run", "-t", "1", "-n", "load", "--", program, "load", "chat",
    ]);
    let command = command.args(["--messages", "1000000"]);
    let mut load = end_with_test(command).spawn().unwrap();
    eventually("the load is a client", || {
        real.clients().iter().any(|client| client.name == "load")
    });
    sleep(Duration::from_secs(2));
    let rival = real.client("rival").pid;
    let before_ns = prorata_user::cpu_time_ns(rival).unwrap();
    kill(Pid::from_raw(load.id() as i32), Signal::SIGTERM).unwrap();
    load.wait().unwrap();
    let took_ns = prorata_user::cpu_time_ns(rival).unwrap() - before_ns;
    assert!(
        took_ns < 1_000_000_000,
        "the rival ran for {took_ns} ns meanwhile"
    );
}
