//! The engine on real processes, as this user and, where that is root, as an
//! ordinary user once more.
//!
//! Shares are parts of the CPU time that the programs of a test received together, with
//! tolerances in quanta, so that other load on the machine does not matter. A failure that other
//! load can cause counts only without evidence of delay ([`support::witness`]).

#[path = "../support/mod.rs"]
mod support;

mod choices;
mod crowd;
mod groups;
mod limits;
mod nice;
mod outside;
mod refusals;
mod reluctance;
mod safety;
mod scope;
mod shares;
mod signals;
mod sleepers;
mod slot_charges;
mod slots;
mod slumber;
mod strays;
mod trees;

use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::process::{Command, ExitCode, Stdio};

use libtest_mimic::{Arguments, Trial};
use prorata_user::Mechanism;
use support::control_groups::Delegated;

fn main() -> ExitCode {
    prorata_user::guardian_entry();
    support::helper::helper_entry();
    let mut arguments = Arguments::from_args();
    // All tests share one CPU.
    arguments.test_threads = Some(1);
    let is_short = std::env::var_os("SHORT_TESTS").is_some();
    let mut trials = Vec::new();
    for mechanism in mechanisms_to_try(is_short) {
        // A short run judges shares as root only, and without control groups.
        let judges_shares = !is_short || !is_after_root() && !uses_groups(mechanism);
        let shares = [
            shares::TESTS,
            limits::TESTS,
            nice::TESTS,
            outside::TESTS,
            signals::TESTS,
            sleepers::TESTS,
            slumber::TESTS,
            strays::TESTS,
            trees::TESTS,
        ];
        let shares = shares.concat();
        let shares = shares.into_iter().filter(|_| judges_shares);
        for (name, test) in shares.chain(safety::TESTS.iter().copied()) {
            add(&mut trials, name, mechanism, test);
        }
        if judges_shares {
            sleepers::list(mechanism, &mut trials);
        }
        signals::list(mechanism, &mut trials);
        safety::list(mechanism, &mut trials);
        if uses_groups(mechanism) {
            groups::list(mechanism, &mut trials);
        }
    }
    for (name, test) in [safety::TESTS_OF_ROOT, choices::TESTS, reluctance::TESTS].concat() {
        add_for_root(&mut trials, name, test);
    }
    let of_slots = [slots::TESTS_OF_ROOT, slot_charges::TESTS_OF_ROOT].concat();
    for (name, test) in of_slots {
        add_for_root(&mut trials, name, move || slots::above_slots(test));
    }
    if scope::can_be_had() {
        let name = "a service manager gives an engine a scope (GroupIdle)";
        add_for_root(&mut trials, name, scope::delegated);
        let name = "a service manager moves processes of a login to the scope (GroupIdle)";
        add_for_root(&mut trials, name, scope::moved);
    } else {
        println!("in the project's machine only: an engine below a service manager");
    }
    for (name, test) in [safety::TESTS_ONCE, refusals::TESTS, crowd::TESTS].concat() {
        add_once(&mut trials, name, test);
    }
    if !rustix::process::geteuid().is_root() {
        for (name, test) in slots::tests_of_user() {
            add_once(&mut trials, name, test);
        }
    }
    let conclusion = libtest_mimic::run(&arguments, trials);
    if conclusion.has_failed() {
        return ExitCode::FAILURE;
    }
    if rustix::process::geteuid().is_root() && !arguments.list {
        return run_as_ordinary_user();
    }
    ExitCode::SUCCESS
}

/// Those that work here: root may bring processes back from `SCHED_IDLE`, and control groups can be
/// had or not, with the cpu controller or without. In a short run only an ordinary user's freeze.
fn mechanisms_to_try(is_short: bool) -> Vec<Mechanism> {
    let is_root = rustix::process::geteuid().is_root();
    let mut mechanisms = vec![Mechanism::Stop];
    if is_root {
        mechanisms.push(Mechanism::Idle);
    }
    let has_idle = support::control_groups::can_be_had();
    if has_idle == Some(true) {
        mechanisms.push(Mechanism::GroupIdle);
    }
    if has_idle.is_some() && !(is_short && is_root) {
        mechanisms.push(Mechanism::GroupFreeze);
    }
    mechanisms
}

fn uses_groups(mechanism: Mechanism) -> bool {
    matches!(mechanism, Mechanism::GroupIdle | Mechanism::GroupFreeze)
}

/// Tests with each mechanism.
type MechanismTests = &'static [(&'static str, fn(Mechanism))];

/// Tests that do not depend on the mechanism, or choose it.
type Tests = &'static [(&'static str, fn())];

/// A user and a group that own nothing.
const NOBODY: u32 = 65534;

fn run_as_ordinary_user() -> ExitCode {
    println!("as an ordinary user:");
    let directory = tempfile::tempdir().expect("a directory");
    let program = directory.path().join("processes");
    let everyone = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(directory.path(), everyone).expect("the directory is ours");
    std::fs::copy("/proc/self/exe", &program).expect("there is room for a copy");
    let group = Delegated::to(NOBODY);
    let mut child = Command::new("sh");
    // It enters the group as root: another user may not enter from outside.
    child.args(["-c", "read go && exec setpriv \"$@\"", "sh"]);
    let nobody = NOBODY.to_string();
    let mut child = child
        .args(["--reuid", &nobody, "--regid", &nobody, "--clear-groups"])
        .arg(&program)
        .args(std::env::args_os().skip(1))
        .env(AFTER_ROOT, "1")
        .current_dir("/")
        .stdin(Stdio::piped())
        .spawn()
        .expect("setpriv (util-linux) is installed");
    if let Some(group) = &group {
        group.admit(child.id());
    }
    let mut go = child.stdin.take().expect("it has one");
    go.write_all(b"go\n").expect("it listens");
    drop(go);
    let status = child.wait().expect("it ends");
    if status.success() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

/// Adds a test for a mechanism. A test fails by panicking.
fn add(
    trials: &mut Vec<Trial>,
    name: &str,
    mechanism: Mechanism,
    test: impl FnOnce(Mechanism) + Send + 'static,
) {
    let name = format!("{name} ({mechanism:?})");
    trials.push(Trial::test(name, move || {
        test(mechanism);
        Ok(())
    }));
}

/// Set where root has run the tests before, those which need root included.
const AFTER_ROOT: &str = "PRORATA_TEST_AFTER_ROOT";

fn is_after_root() -> bool {
    std::env::var_os(AFTER_ROOT).is_some()
}

/// Adds a test that only root can run, of something that only root can do.
fn add_for_root(trials: &mut Vec<Trial>, name: &str, test: impl FnOnce() + Send + 'static) {
    if rustix::process::geteuid().is_root() {
        add_once(trials, name, test);
    } else if !is_after_root() {
        add_once(trials, name, || support::cannot_run("it needs root"));
    }
}

/// Adds a test that has nothing to do with the mechanism.
fn add_once(trials: &mut Vec<Trial>, name: &str, test: impl FnOnce() + Send + 'static) {
    trials.push(Trial::test(name, move || {
        test();
        Ok(())
    }));
}
