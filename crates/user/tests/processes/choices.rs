//! A process gets back the policy that it chose for itself. A child keeps the policy that it
//! chose, and loses the one that it only inherited from a demoted parent.

use std::thread::sleep;
use std::time::Duration;

use prorata_user::Mechanism;

use crate::Tests;
use crate::support::{self, MS, Program, World, wait_until};

pub const TESTS: Tests = &[
    ("a child that chose SCHED_IDLE stays there", idle_child),
    (
        "a child of a parent that chose SCHED_IDLE stays there",
        child_of_idle,
    ),
    ("a sweep spares a child that chose SCHED_IDLE", || {
        sweep(&["idle-hog"], Turn::Won, libc::SCHED_IDLE)
    }),
    ("a sweep promotes a child born to a demoted parent", || {
        sweep(&["hog"], Turn::Lost, libc::SCHED_OTHER)
    }),
];

fn is_idle(pid: u32) -> bool {
    support::policy_of(pid) == libc::SCHED_IDLE
}

/// The parent has no rival, and so was not demoted lately.
fn idle_child() {
    let mut world = World::new(Some(Mechanism::Idle), 20 * MS);
    let mut parent = Program::start(&["breeder", "idle-hog"]);
    let client = world.enter("parent", 1, &parent);
    parent.say("a child");
    let child = support::wait_for_child(parent.pid());
    wait_until("the child chooses", || is_idle(child));
    wait_until("the child joins", || {
        world.engine().find(child) == Some(client)
    });
    // Several turns, in which they lose and win.
    let hog = Program::hog();
    world.enter("hog", 1, &hog);
    for _ in 0..3 {
        wait_until("the parent loses", || is_idle(parent.pid()));
        wait_until("the parent wins", || !is_idle(parent.pid()));
    }
    world.end_engine();
    assert!(is_idle(child) && !is_idle(parent.pid()));
}

/// Without the engine a child would have inherited its parent's own policy.
fn child_of_idle() {
    let mut world = World::new(Some(Mechanism::Idle), 20 * MS);
    let mut parent = Program::start(&["run", "chrt", "-i", "0", "sh", "-c", BREED]);
    let hog = Program::hog();
    wait_until("it has chosen", || is_idle(parent.pid()));
    world.enter("parent", 1, &parent);
    world.enter("hog", 1, &hog);
    sleep(Duration::from_millis(200));
    parent.say("a child");
    let child = support::wait_for_child(parent.pid());
    // Several turns, in which it loses and wins.
    sleep(Duration::from_millis(500));
    world.end_engine();
    assert!(is_idle(child) && is_idle(parent.pid()) && !is_idle(hog.pid()));
}

/// Computes, has a child that computes, and takes it along when it ends.
const BREED: &str = "read x; (while [ -d /proc/$$ ]; do :; done) & while :; do :; done";

#[derive(Clone, Copy, PartialEq, Eq)]
enum Turn {
    Won,
    Lost,
}

/// A child is born to a parent that had won or lost when the engine stalled. The engine then
/// dies without having seen the child.
fn sweep(child: &[&str], turn: Turn, expected: i32) {
    let arguments: Vec<&str> = ["breeder"].iter().chain(child).copied().collect();
    let mut parent = Program::start(&arguments);
    let hog = Program::hog();
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().to_str().expect("plain text");
    let pids = [parent.pid(), hog.pid()].map(|pid| pid.to_string());
    let daemon = Program::ready(&["daemon", "Idle", path, &pids[0], &pids[1]]);
    wait_until("one of them loses", || {
        is_idle(parent.pid()) != is_idle(hog.pid())
    });
    wait_until("it stalls at the right time", || {
        support::freeze(daemon.pid());
        let states = [is_idle(parent.pid()), is_idle(hog.pid())];
        if states == [turn == Turn::Lost, turn == Turn::Won] {
            return true;
        }
        support::signal(daemon.pid(), libc::SIGCONT);
        false
    });
    // Leaves the CPU to the parent, demoted or not, before the guardian steps in.
    support::signal(hog.pid(), libc::SIGSTOP);
    parent.say("a child");
    let child = support::wait_for_child(parent.pid());
    if expected == libc::SCHED_IDLE {
        wait_until("the child chooses", || is_idle(child));
    }
    support::signal(daemon.pid(), libc::SIGKILL);
    wait_until("the parent is put right", || {
        !is_idle(parent.pid()) && !is_idle(hog.pid())
    });
    wait_until("the guardian is done", || {
        support::policy_of(child) == expected
    });
    sleep(Duration::from_millis(500));
    assert_eq!(support::policy_of(child), expected);
}
