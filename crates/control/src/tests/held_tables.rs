//! Timetables that end with the connection that opened them.

use std::time::Duration;

use prorata_protocol::slots::{Fraction, SlotsAnswer, SlotsRequest};
use prorata_protocol::{Connection, Request, Response};
use rustix::process::Signal;

use super::harness::{Daemon, LONG, directory};

const SHORT: Duration = Duration::from_millis(200);

fn open(connection: &mut Connection, hold: bool) {
    let request = SlotsRequest::Open {
        columns: 12,
        slot_ns: 10_000_000,
        reserve: Fraction {
            numerator: 1,
            denominator: 6,
        },
        hold,
    };
    let answer = connection.call(&Request::Slots(request)).unwrap();
    assert!(
        matches!(answer, Response::Slots(SlotsAnswer::Open(_))),
        "{answer:?}"
    );
}

fn has_table(daemon: &Daemon) -> bool {
    let answer = daemon.ask(Request::Slots(SlotsRequest::Status));
    matches!(answer, Response::Slots(SlotsAnswer::Open(_)))
}

#[test]
fn a_daemon_stays_for_a_timetable_that_lasts() {
    let mut daemon = Daemon::spawn(&directory(), SHORT);
    open(&mut daemon.connect(), false);
    std::thread::sleep(SHORT * 2);
    assert!(daemon.is_alive());
    assert!(has_table(&daemon));
}

#[test]
fn a_held_timetable_and_an_idle_daemon_end_after_their_connection() {
    let mut daemon = Daemon::spawn(&directory(), SHORT);
    let mut holder = daemon.connect();
    open(&mut holder, true);
    assert!(has_table(&daemon));
    drop(holder);
    assert_eq!(daemon.wait().code(), Some(0));
    let file = daemon.paths.runtime.join(prorata_bulletin::FILE_NAME);
    assert!(!file.exists());
}

#[test]
fn a_holder_does_not_end_a_timetable_of_another_connection() {
    for hold in [false, true] {
        let daemon = Daemon::spawn(&directory(), LONG);
        let [mut first, mut second] = [daemon.connect(), daemon.connect()];
        open(&mut first, true);
        open(&mut second, hold);
        // The daemon handles the end of a connection before it answers a later one.
        drop(first);
        assert!(has_table(&daemon), "{hold}");
        drop(second);
        assert_eq!(has_table(&daemon), !hold);
    }
}

/// A connection may open one table after another, and close one. It ends the last one at most.
#[test]
fn a_connection_ends_the_last_of_its_timetables() {
    let daemon = Daemon::spawn(&directory(), LONG);
    let mut holder = daemon.connect();
    open(&mut holder, true);
    open(&mut holder, true);
    drop(holder);
    assert!(!has_table(&daemon));
    let mut holder = daemon.connect();
    open(&mut holder, true);
    daemon.ask(Request::Slots(SlotsRequest::Close));
    assert!(!has_table(&daemon));
    drop(holder);
    open(&mut daemon.connect(), false);
    assert!(has_table(&daemon));
}

#[test]
fn the_next_daemon_does_not_open_a_held_timetable_again() {
    for signal in [Signal::TERM, Signal::KILL] {
        let directory = directory();
        let mut daemon = Daemon::spawn(&directory, LONG);
        let mut holder = daemon.connect();
        open(&mut holder, true);
        daemon.signal(signal);
        daemon.wait();

        let mut next = Daemon::spawn(&directory, SHORT);
        next.connect();
        assert_eq!(next.wait().code(), Some(0), "{signal:?}");
        let file = next.paths.runtime.join(prorata_bulletin::FILE_NAME);
        assert!(!file.exists(), "{signal:?}");
    }
}
