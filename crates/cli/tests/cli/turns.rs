//! Programs wait for their turn at a full daemon, but not at a stopped one.

use std::io::{BufRead, BufReader};
use std::process::Stdio;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use prorata_protocol::{ConnectError, Connection, SocketPath};

use crate::support::end_with_test;
use crate::support::real::Real;

#[test]
fn a_program_waits_for_its_turn_at_a_full_daemon() {
    let real = Real::start();
    let socket = SocketPath::new(real.socket()).unwrap();
    let mut connections = Vec::new();
    let message = loop {
        match Connection::open(&socket) {
            Ok(connection) => connections.push(connection),
            Err(ConnectError::Full { message, .. }) => break message,
            Err(error) => panic!("{error}"),
        }
    };
    let mut command = real.prorata();
    command.args(["run", "sh", "-c", "exit 7"]);
    let mut waiting = end_with_test(command.stderr(Stdio::piped()))
        .spawn()
        .unwrap();
    let mut said = BufReader::new(waiting.stderr.take().unwrap());
    let mut line = String::new();
    said.read_line(&mut line).unwrap();
    assert!(
        line.starts_with(&format!("prorata: waiting: the daemon {message}: ")),
        "{line}"
    );
    assert!(waiting.try_wait().unwrap().is_none());
    drop(connections);
    assert_eq!(waiting.wait().unwrap().code(), Some(7));
}

/// More than the daemon's connections, for any user.
const BURST: usize = 300;

#[test]
fn all_programs_of_a_burst_run() {
    let real = Real::start();
    let start = |_| {
        let mut command = real.prorata();
        command.args(["run", "sh", "-c", "test -n \"$PRORATA_CLIENT\" && exit 7"]);
        end_with_test(&mut command).spawn().unwrap()
    };
    let programs: Vec<_> = (0..BURST).map(start).collect();
    for mut program in programs {
        assert_eq!(program.wait().unwrap().code(), Some(7));
    }
}

#[test]
fn a_stopped_daemon_is_named_soon() {
    let real = Real::start();
    let daemon = real.daemon();
    let pid = Pid::from_raw(daemon as i32);
    kill(pid, Signal::SIGSTOP).unwrap();
    let said = real.refused(&["ps"]);
    kill(pid, Signal::SIGCONT).unwrap();
    assert_eq!(
        said,
        format!(
            "the daemon (process {daemon}) did not answer within 2 s and does nothing: continue it \
             with `kill -CONT {daemon}`, or end it with `kill -KILL {daemon}`"
        )
    );
}
