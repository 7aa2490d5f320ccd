//! Limits of CPU time on real processes: as they are set, kept, shown and lifted.

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use prorata_protocol::ClientState;

use crate::crashes::{guardian, kill_by_pid};
use crate::support::real::{Real, is_free};
use crate::support::{eventually, has_ended};

/// So small a limit that a client pauses nearly always.
const LEAST: &str = "0.1%";

#[test]
fn a_limit_is_set_shown_and_ended() {
    let real = Real::start();
    let _running = real.compute("backup", "100");
    let pid = real.client("backup").pid;
    assert!(!real.done(&["ps"]).contains("MAX"));
    real.done(&["set", "backup", "--max", LEAST]);
    eventually("it pauses", || {
        real.client("backup").state == ClientState::Limited
    });
    let shown = real.done(&["ps"]);
    assert!(shown.contains("MAX") && shown.contains(LEAST), "{shown}");
    assert_eq!(real.json(&["ps"])[0]["max"], LEAST);
    real.done(&["set", "backup", "--max", "none"]);
    eventually("it runs", || {
        real.client("backup").state == ClientState::Running && is_free(pid)
    });
    let refusal = real.refused(&["set", "nobody", "--max", "50%"]);
    assert!(refusal.contains("no client named 'nobody'"), "{refusal}");
}

#[test]
fn nothing_stays_stopped_when_daemon_and_guardian_are_killed() {
    let real = Real::start();
    let mut running = real.compute("backup", "100");
    let pid = real.client("backup").pid;
    real.done(&["set", "backup", "--max", LEAST]);
    eventually("it is stopped", || {
        real.client("backup").state == ClientState::Limited && !is_free(pid)
    });
    let daemon = real.daemon();
    let guardian = guardian(daemon);
    // Otherwise the wrapper might start another daemon, or the daemon another guardian.
    let wrapper = Pid::from_raw(running.wrapper().id() as i32);
    kill(wrapper, Signal::SIGSTOP).unwrap();
    kill(Pid::from_raw(daemon as i32), Signal::SIGSTOP).unwrap();
    kill_by_pid(guardian);
    kill_by_pid(daemon);
    eventually("both have ended", || {
        has_ended(daemon) && has_ended(guardian)
    });
    kill(wrapper, Signal::SIGCONT).unwrap();
    eventually("the next daemon keeps the limit", || {
        real.daemon_if_any().is_some_and(|next| next != daemon)
            && real.clients().iter().any(|client| client.max.is_some())
    });
    real.done(&["set", "backup", "--max", "none"]);
    eventually("it runs", || is_free(pid));
    real.done(&["stop"]);
    assert!(is_free(pid));
}
