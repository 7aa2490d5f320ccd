//! `demo --slots`: what it measures, and that it leaves nothing behind. Its programs take both CPUs
//! in real time, so `scripts/test` runs these tests after all others.

use std::path::Path;
use std::process::{Child, Stdio};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;

use crate::demo::{assert_nothing_is_left, demo, processes, told};
use crate::support::{OrdinaryUser, end_with_test, eventually, has_ended, output, stderr, stdout};

/// The attempts of a demo that a busy host may spoil.
const ATTEMPTS: u32 = 5;

/// The results of a demo; `None` if the host was too busy to measure.
fn results(command: &mut std::process::Command) -> Option<Value> {
    let ended = output(command);
    let (complaint, text) = (stderr(&ended), stdout(&ended));
    if complaint.contains("too busy for a demo") {
        return None;
    }
    assert_eq!(complaint, "");
    let results: Value = serde_json::from_str(&text).unwrap();
    let promises = results["promises"].as_array().unwrap();
    let all_held = promises.iter().all(|promise| promise["held"] == true);
    // The exit code is honest, whatever this host did meanwhile.
    assert_eq!(ended.status.code(), Some(i32::from(!all_held)), "{text}");
    Some(results)
}

fn part<'a>(results: &'a Value, name: &str) -> &'a Value {
    let parts = results["parts"].as_array().unwrap();
    parts.iter().find(|part| part["name"] == name).unwrap()
}

/// Numbers that every part has that ran.
fn assert_measured(part: &Value) {
    // Two seconds have 100 periods of 20 ms.
    let deadlines = part["deadlines"].as_u64().unwrap();
    assert!((99..=101).contains(&deadlines), "{part}");
    assert!(part["missed"].as_u64().unwrap() <= deadlines);
    for name in ["barriers", "gang_cpu_ns", "jobs_ratio"] {
        assert!(part[name].as_f64().unwrap() > 0.0, "{name}: {part}");
    }
    let ran = |whose: &str| part[whose].as_array().unwrap().len();
    assert!(ran("controller_ran") + ran("gang_ran") > 0, "{part}");
}

/// One CPU shows no gang.
fn has_two_cpus() -> bool {
    std::thread::available_parallelism().unwrap().get() >= 2
}

#[test]
fn slots_are_measured_beside_all_that_this_user_may_run() {
    let directory = tempfile::tempdir().unwrap();
    if !has_two_cpus() {
        let ended = output(&mut demo(directory.path(), &["--slots"]));
        assert_eq!(ended.status.code(), Some(1));
        assert!(stderr(&ended).contains("needs two CPUs"), "{ended:?}");
        return;
    }
    let arguments = ["--slots", "--seconds", "2", "--json"];
    let held = (0..ATTEMPTS).any(|_| {
        let results = results(&mut demo(directory.path(), &arguments));
        assert_nothing_is_left(&directory);
        let Some(results) = results else {
            return false;
        };
        for part in results["parts"].as_array().unwrap() {
            match part["left_out"].as_str() {
                Some(reason) => assert!(reason.contains("needs root"), "{part}"),
                None => assert_measured(part),
            }
        }
        let slots = part(&results, "slots");
        let table = slots["table"].to_string();
        assert!(
            table.contains("controller") && table.contains("gang"),
            "{table}"
        );
        // Coarse: a demo of two seconds beside other load.
        slots["missed"].as_u64().unwrap() < 50 && slots["jobs_ratio"].as_f64().unwrap() > 1.5
    });
    assert!(held, "no demo showed what slots are for");
}

#[test]
fn an_ordinary_user_sees_slots_and_why_the_rest_is_left_out() {
    if !has_two_cpus() {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let user = OrdinaryUser::new();
    user.give(directory.path());
    let arguments = ["--slots", "--seconds", "2", "--json"];
    let shown = (0..ATTEMPTS).find_map(|_| {
        let results = results(&mut told(user.command(), directory.path(), &arguments));
        assert_nothing_is_left(&directory);
        results
    });
    let results = shown.expect("the host was too busy for five demos");
    for name in ["nice -20", "SCHED_DEADLINE"] {
        let reason = part(&results, name)["left_out"].as_str().unwrap();
        assert!(reason.contains("needs root"), "{reason}");
    }
    for name in ["plain Linux", "slots"] {
        assert_measured(part(&results, name));
    }
}

#[test]
fn a_terminated_demo_with_slots_cleans_up() {
    let directory = tempfile::tempdir().unwrap();
    let mut demo = demo(directory.path(), &["--slots", "--seconds", "600"]);
    let mut running = end_with_test(demo.stdout(Stdio::null())).spawn().unwrap();
    if has_two_cpus() {
        eventually("its programs run", || {
            processes(directory.path()).len() >= 5
        });
        kill(Pid::from_raw(running.id() as i32), Signal::SIGTERM).unwrap();
    }
    assert!(!running.wait().unwrap().success());
    assert_nothing_is_left(&directory);
}

/// A demo in its part with slots, as soon as the daemon and all clients run.
fn demo_with_clients(user: &OrdinaryUser, directory: &Path) -> Child {
    user.give(directory);
    // An ordinary user's second part is that with slots.
    let arguments = ["--slots", "--seconds", "2"];
    let mut demo = told(user.command(), directory, &arguments);
    let running = end_with_test(demo.stdout(Stdio::null())).spawn().unwrap();
    eventually("the daemon and all clients run", || {
        processes(directory).len() >= 10
    });
    running
}

#[test]
fn a_killed_demo_leaves_neither_daemon_nor_programs() {
    if !has_two_cpus() {
        return;
    }
    let (directory, user) = (tempfile::tempdir().unwrap(), OrdinaryUser::new());
    let mut running = demo_with_clients(&user, directory.path());
    running.kill().unwrap();
    running.wait().unwrap();
    eventually("all processes have ended", || {
        processes(directory.path()).is_empty()
    });
}

/// Processes of a demo whose command line, without the program's path, begins with these words.
fn processes_with(directory: &Path, words: &str) -> Vec<u32> {
    let is_one = |pid: &String| {
        let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        let line = String::from_utf8_lossy(&line).replace('\0', " ");
        line.split_once(' ')
            .is_some_and(|(_, arguments)| arguments.starts_with(words))
    };
    let found = processes(directory).into_iter().filter(is_one);
    found.map(|pid| pid.parse().unwrap()).collect()
}

/// A stopped process, which continues at the latest when this value is dropped.
struct Stopped(Pid);

impl Stopped {
    fn new(pid: Pid) -> Self {
        kill(pid, Signal::SIGSTOP).unwrap();
        Self(pid)
    }
}

impl Drop for Stopped {
    fn drop(&mut self) {
        let _ = kill(self.0, Signal::SIGCONT);
    }
}

#[test]
fn a_daemon_that_a_client_starts_after_a_killed_demo_ends() {
    if !has_two_cpus() {
        return;
    }
    let (directory, user) = (tempfile::tempdir().unwrap(), OrdinaryUser::new());
    let mut running = demo_with_clients(&user, directory.path());
    eventually("the wrappers of the jobs watch the daemon", || {
        processes_with(directory.path(), "load jobs ").len() == 2
    });
    let only = |words: &str| match processes_with(directory.path(), words)[..] {
        [pid] => pid,
        ref others => panic!("{others:?}"),
    };
    let (daemon, wrapper) = (only("daemon "), only("run -n jobs-3 "));
    // The wrapper sees the end of the daemon before it handles its own signal, so it starts the next
    // daemon.
    let stopped = Stopped::new(Pid::from_raw(wrapper as i32));
    running.kill().unwrap();
    running.wait().unwrap();
    eventually("the demo's daemon has ended", || has_ended(daemon));
    drop(stopped);
    eventually("all processes have ended", || {
        processes(directory.path()).is_empty()
    });
    let mut left = std::fs::read_dir(directory.path()).unwrap();
    let log = left.next().unwrap().unwrap().path().join("log");
    let log = std::fs::read_to_string(log).unwrap();
    assert_eq!(log.matches("listening on").count(), 2, "{log}");
}
