//! `prorata kill`: the end of a client and of all its processes.

use std::io::BufReader;
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, ChildStdout, Command};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use prorata_protocol::ClientState;

use crate::support::real::Real;
use crate::support::{end_with_test, eventually, has_ended, output, start_talking};

/// Starts a shell script as client `loser` with one ticket, beside a client with a million. The
/// script prints a line once it is ready.
fn start_loser(real: &Real, script: &str) -> (Child, BufReader<ChildStdout>) {
    let mut command = real.prorata();
    command.args(["run", "-t", "1", "-n", "loser", "--", "sh", "-c", script]);
    start_talking(&mut command)
}

fn is_listed(real: &Real, name: &str) -> bool {
    real.clients().iter().any(|client| client.name == name)
}

#[test]
fn a_loser_ends_with_all_its_children() {
    let real = Real::start();
    let _winner = real.compute("winner", "1000000");
    let children = "while :; do :; done & while :; do :; done & echo begun; wait";
    let (mut loser, _) = start_loser(&real, children);
    eventually("three processes", || real.client("loser").processes == 3);
    assert_eq!(real.done(&["kill", "loser"]), "");
    assert!(!is_listed(&real, "loser") && is_listed(&real, "winner"));
    let ended = loser.wait().unwrap();
    assert_eq!(ended.signal(), Some(Signal::SIGTERM as i32));
    assert!(real.refused(&["kill", "loser"]).contains("no client named"));
}

#[test]
fn a_process_that_is_born_meanwhile_ends_too() {
    let real = Real::start();
    let script = "trap 'sleep 600 & exit 7' TERM; echo begun; while :; do :; done";
    let (mut loser, _) = start_loser(&real, script);
    let killed = real.json(&["kill", "loser"]);
    assert_eq!(killed["signalled"], 2, "{killed}");
    assert_eq!(killed["left"].as_array().map(Vec::len), Some(0));
    assert_eq!(loser.wait().unwrap().code(), Some(7));
}

#[test]
fn a_process_that_ignores_the_signal_is_named_and_ends_by_kill() {
    let real = Real::start();
    let script = "trap '' TERM; echo begun; while :; do :; done";
    let (mut loser, _) = start_loser(&real, script);
    let client = real.client("loser");
    let said = real.refused(&["kill", "loser"]);
    let (pid, id) = (client.pid, client.id);
    assert_eq!(
        said,
        format!(
            "client {id} goes on 5 s after the signal, with process {pid}: wait for it, or use --signal KILL"
        )
    );
    real.done(&["kill", &pid.to_string(), "--signal", "sigkill"]);
    assert_eq!(loser.wait().unwrap().signal(), Some(Signal::SIGKILL as i32));
}

#[test]
fn a_suspended_client_ends() {
    let real = Real::start();
    let (mut loser, _) = start_loser(&real, "echo begun; while :; do :; done");
    let wrapper = Pid::from_raw(loser.id() as i32);
    kill(wrapper, Signal::SIGTSTP).unwrap();
    eventually("it is suspended", || {
        real.client("loser").state == ClientState::Suspended
    });
    real.done(&["kill", "loser"]);
    kill(wrapper, Signal::SIGCONT).unwrap();
    assert_eq!(loser.wait().unwrap().signal(), Some(Signal::SIGTERM as i32));
}

#[test]
fn a_client_may_end_itself() {
    let real = Real::start();
    let program = env!("CARGO_BIN_EXE_prorata");
    let script = format!("{program} kill $PRORATA_CLIENT; exit 3");
    let ended = output(real.prorata().args(["run", "sh", "-c", &script]));
    assert_eq!(ended.status.signal(), Some(Signal::SIGTERM as i32));
    eventually("nothing is managed", || real.clients().is_empty());
}

#[test]
fn a_process_without_a_client_is_refused_and_goes_on() {
    let real = Real::start();
    let mut bystander = end_with_test(Command::new("sleep").arg("600"))
        .spawn()
        .unwrap();
    let said = real.refused(&["kill", &bystander.id().to_string()]);
    assert!(said.contains("is not managed"), "{said}");
    assert!(!has_ended(bystander.id()));
    bystander.kill().unwrap();
    bystander.wait().unwrap();
}
