//! The engine on real processes, as this user and, where that is root, as an
//! ordinary user once more.
//!
//! Shares are parts of the CPU time that the programs of a test received together, with
//! tolerances in quanta, so that other load on the machine does not matter. A failure that other
//! load can cause counts only without evidence of delay ([`support::witness`]).

#[path = "../support/mod.rs"]
mod support;

mod choices;
mod refusals;
mod reluctance;
mod safety;
mod shares;
mod signals;
mod sleepers;
mod trees;

use std::os::unix::fs::PermissionsExt;
use std::process::{Command, ExitCode};

use libtest_mimic::{Arguments, Trial};
use prorata_user::Mechanism;

fn main() -> ExitCode {
    prorata_user::guardian_entry();
    support::helper::helper_entry();
    let mut arguments = Arguments::from_args();
    // All tests share one CPU.
    arguments.test_threads = Some(1);
    // A short run judges shares as root only.
    let judges_shares = !is_after_root() || std::env::var_os("SHORT_TESTS").is_none();
    let mut trials = Vec::new();
    for mechanism in permitted_mechanisms() {
        let shares = [shares::TESTS, signals::TESTS, sleepers::TESTS, trees::TESTS].concat();
        let shares = shares.into_iter().filter(|_| judges_shares);
        for (name, test) in shares.chain(safety::TESTS.iter().copied()) {
            add(&mut trials, name, mechanism, test);
        }
        if judges_shares {
            sleepers::list(mechanism, &mut trials);
        }
        signals::list(mechanism, &mut trials);
        safety::list(mechanism, &mut trials);
    }
    for (name, test) in [safety::TESTS_OF_ROOT, choices::TESTS, reluctance::TESTS].concat() {
        add_for_root(&mut trials, name, test);
    }
    for (name, test) in refusals::TESTS {
        add_once(&mut trials, name, test);
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

/// Both where this user may bring processes back from `SCHED_IDLE`.
fn permitted_mechanisms() -> Vec<Mechanism> {
    if rustix::process::geteuid().is_root() {
        vec![Mechanism::Idle, Mechanism::Stop]
    } else {
        vec![Mechanism::Stop]
    }
}

/// Tests with either mechanism.
type MechanismTests = &'static [(&'static str, fn(Mechanism))];

/// Tests that do not depend on the mechanism, or choose it.
type Tests = &'static [(&'static str, fn())];

/// A user and a group that own nothing.
const NOBODY: &str = "65534";

fn run_as_ordinary_user() -> ExitCode {
    println!("as an ordinary user:");
    let directory = tempfile::tempdir().expect("a directory");
    let program = directory.path().join("processes");
    let everyone = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(directory.path(), everyone).expect("the directory is ours");
    std::fs::copy("/proc/self/exe", &program).expect("there is room for a copy");
    let status = Command::new("setpriv")
        .args(["--reuid", NOBODY, "--regid", NOBODY, "--clear-groups"])
        .arg(&program)
        .args(std::env::args_os().skip(1))
        .env(AFTER_ROOT, "1")
        .current_dir("/")
        .status()
        .expect("setpriv (util-linux) is installed");
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
