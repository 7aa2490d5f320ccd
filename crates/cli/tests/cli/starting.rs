//! A daemon that takes long to start, since the daemon before it takes long to
//! end.

use std::fs::DirBuilder;
use std::io::{BufRead, BufReader, Read};
use std::os::unix::fs::DirBuilderExt;
use std::process::{Child, Stdio};

use prorata_protocol::LockFile;

use crate::support::real::Real;
use crate::support::{end_with_test, eventually, output, stderr};

/// Holds the journal of the daemon's directories, as a daemon that is ending.
fn predecessor(real: &Real) -> LockFile {
    let state = real.socket().with_file_name("state");
    DirBuilder::new().mode(0o700).create(&state).unwrap();
    let lock = LockFile::open(state.join("journal.lock")).unwrap();
    assert!(lock.try_take().unwrap());
    lock.note("ends");
    lock
}

fn spawn(real: &Real, command: &str) -> Child {
    let mut prorata = real.prorata();
    prorata
        .arg(command)
        .stdout(Stdio::null())
        .stderr(Stdio::piped());
    end_with_test(&mut prorata).spawn().unwrap()
}

#[test]
fn a_slow_start_is_waited_for_and_tells_what_it_does() {
    let real = Real::without_daemon();
    let predecessor = predecessor(&real);
    let mut start = spawn(&real, "start");
    let mut said = BufReader::new(start.stderr.take().unwrap());
    let mut line = String::new();
    said.read_line(&mut line).unwrap();
    assert!(
        line.starts_with("prorata: waiting: the daemon (process "),
        "{line}"
    );
    assert!(real.refused(&["status"]).contains("just starting"));
    drop(predecessor);
    assert_eq!(start.wait().unwrap().code(), Some(0));
    assert_eq!(real.json(&["status"])["stays"], true);
}

#[test]
fn a_starting_daemon_is_stopped_and_its_starter_says_so() {
    let real = Real::without_daemon();
    let predecessor = predecessor(&real);
    let mut start = spawn(&real, "start");
    eventually("the daemon is starting", || {
        stderr(&output(real.prorata().arg("status"))).contains("just starting")
    });
    let mut stop = spawn(&real, "stop");
    std::thread::sleep(std::time::Duration::from_millis(300));
    assert!(
        stop.try_wait().unwrap().is_none(),
        "it waits for the daemon"
    );
    drop(predecessor);
    assert_eq!(stop.wait().unwrap().code(), Some(0));
    eventually("the daemon is gone", || real.is_gone());
    // The starter may have heard of the daemon first.
    let mut said = String::new();
    start
        .stderr
        .take()
        .unwrap()
        .read_to_string(&mut said)
        .unwrap();
    match start.wait().unwrap().code() {
        Some(0) => {}
        Some(1) => assert!(said.contains("prorata: "), "{said}"),
        code => panic!("{code:?}: {said}"),
    }
}

#[test]
fn a_second_start_joins_the_daemon_that_runs() {
    let real = Real::start();
    let daemon = real.daemon();
    assert_eq!(real.json(&["start"])["pid"], daemon);
    let other = real.refused(&["start", "--quantum", "5ms", "--cpus", "1000"]);
    assert!(other.contains("prorata stop"), "{other}");
    assert_eq!(
        real.json(&["status"])["quantum_ns"],
        20_000_000,
        "all or nothing"
    );
}
