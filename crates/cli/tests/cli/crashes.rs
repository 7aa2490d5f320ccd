//! What is so after a daemon, its guardian or a wrapper was killed.

use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::ExitStatusExt;
use std::process::Stdio;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use prorata_core::rng::{SeedableRng as _, Xoshiro256PlusPlus, below};

use crate::managing::await_shares;
use crate::support::real::{Real, is_free};
use crate::support::{OrdinaryUser, end_with_test, eventually, has_ended, output};

fn an_ended_daemon_is_started_again(real: &Real, by: Signal) {
    let mut first = real.compute("first", "300");
    let mut second = real.compute("second", "100");
    await_shares(real, &[("second", 0.25)]);
    let before = [real.client("first"), real.client("second")];
    let old = real.daemon();
    kill(Pid::from_raw(old as i32), by).unwrap();
    eventually("a new daemon has them", || {
        real.daemon_if_any().is_some_and(|new| new != old) && real.clients().len() == 2
    });
    assert_eq!(
        real.json(&["status"])["cpus"].as_array().map(Vec::len),
        Some(1),
        "the same CPUs are shared out"
    );
    let after = [real.client("first"), real.client("second")];
    for (before, after) in before.iter().zip(&after) {
        assert_eq!(
            (&before.id, before.pid, &before.tickets),
            (&after.id, after.pid, &after.tickets)
        );
    }
    await_shares(real, &[("second", 0.25)]);
    for running in [&mut first, &mut second] {
        assert!(
            running.wrapper().try_wait().unwrap().is_none(),
            "its wrapper waits still"
        );
    }
}

#[test]
fn a_killed_daemon_is_started_again_and_knows_its_clients() {
    an_ended_daemon_is_started_again(&Real::start(), Signal::SIGKILL);
}

#[test]
fn a_terminated_daemon_is_started_again() {
    an_ended_daemon_is_started_again(&Real::start(), Signal::SIGTERM);
}

#[test]
fn a_killed_daemon_of_an_ordinary_user_is_started_again() {
    an_ended_daemon_is_started_again(&Real::start_as_ordinary_user(), Signal::SIGKILL);
}

/// The guardian of a daemon.
pub fn guardian(daemon: u32) -> u32 {
    let children = format!("/proc/{daemon}/task/{daemon}/children");
    let children = std::fs::read_to_string(children).unwrap();
    children.trim().parse().expect("a single child")
}

pub fn kill_by_pid(pid: u32) {
    kill(Pid::from_raw(pid as i32), Signal::SIGKILL).unwrap();
}

/// As `pkill -9 prorata` and `pkill -9 -f prorata` do.
#[test]
fn all_is_restored_when_every_process_called_prorata_is_killed() {
    let is_called = |pid: u32| {
        let says = |file| std::fs::read(format!("/proc/{pid}/{file}")).unwrap();
        let called = |text: Vec<u8>| text.windows(7).any(|part| part == b"prorata");
        called(says("comm")) || called(says("cmdline"))
    };
    for real in [Real::start(), Real::start_as_ordinary_user()] {
        for _ in 0..5 {
            let mut running = [real.compute("first", "300"), real.compute("second", "100")];
            let commands = [real.client("first").pid, real.client("second").pid];
            await_shares(&real, &[("second", 0.25)]);
            let daemon = real.daemon();
            let wrappers = running.each_mut().map(|running| running.wrapper().id());
            // A wrapper that outlived the daemon might start another one.
            let ours = [wrappers[0], wrappers[1], daemon, guardian(daemon)];
            let called: Vec<u32> = ours.into_iter().filter(|&pid| is_called(pid)).collect();
            assert_eq!(called.len(), 3, "all but the guardian");
            called.into_iter().for_each(kill_by_pid);
            eventually("both are restored", || commands.into_iter().all(is_free));
            commands.into_iter().for_each(kill_by_pid);
        }
    }
}

/// How often a test with chance in it is tried: `TRIES`, or few times.
fn tries() -> u64 {
    let few = match std::env::var_os("SHORT_TESTS") {
        Some(_) => 3,
        None => 10,
    };
    let tries = std::env::var("TRIES");
    tries.map_or(few, |tries| tries.parse().expect("TRIES is a number"))
}

/// A daemon, its guardian and a wrapper are killed in any order, within milliseconds. The other
/// wrapper restores what they left.
#[test]
fn all_is_restored_when_daemon_guardian_and_wrapper_are_killed() {
    let users = [Real::start(), Real::start_as_ordinary_user()];
    for (seed, real) in (0..tries()).zip(users.iter().cycle()) {
        let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
        let mut running = [real.compute("first", "300"), real.compute("second", "100")];
        let commands = [real.client("first").pid, real.client("second").pid];
        await_shares(real, &[("second", 0.25)]);
        let daemon = real.daemon();
        let wrapper = running[below(&mut random, 2) as usize].wrapper().id();
        let mut victims = [daemon, guardian(daemon), wrapper];
        for last in (1..victims.len()).rev() {
            victims.swap(last, below(&mut random, last as u64 + 1) as usize);
        }
        for victim in victims {
            kill_by_pid(victim);
            std::thread::sleep(Duration::from_micros(below(&mut random, 3000)));
        }
        eventually("a new daemon has both, or both are free", || {
            let is_managed = real.daemon_if_any().is_some_and(|new| new != daemon);
            is_managed && real.clients().len() == 2 || commands.into_iter().all(is_free)
        });
        output(real.prorata().arg("stop"));
        eventually(&format!("both are free (seed {seed})"), || {
            commands.into_iter().all(is_free)
        });
        commands.into_iter().for_each(kill_by_pid);
        eventually("all is over", || real.daemon_if_any().is_none());
    }
}

/// A wrapper starts no daemon after five crashes within a minute.
#[test]
fn wrappers_restore_what_a_daemon_and_its_guardian_left() {
    let real = Real::start_as_ordinary_user();
    let _running = [real.compute("first", "300"), real.compute("second", "100")];
    let commands = [real.client("first").pid, real.client("second").pid];
    // The second wrapper may miss a daemon that the first one started.
    let mut crashes = 1..=2 * 5 + 1;
    let last = crashes.find(|_| {
        await_shares(&real, &[("second", 0.25)]);
        let daemon = real.daemon();
        let guardian = guardian(daemon);
        // Otherwise it might replace the guardian in between.
        kill(Pid::from_raw(daemon as i32), Signal::SIGSTOP).unwrap();
        kill_by_pid(guardian);
        kill_by_pid(daemon);
        eventually("it has ended", || has_ended(daemon));
        eventually("a new daemon has them, or none will", || {
            real.daemon_if_any().is_some() || commands.into_iter().all(is_free)
        });
        !comes_again(&real)
    });
    assert!(last.is_some_and(|last| last > 5), "{last:?} crashes");
    assert!(commands.into_iter().all(is_free));
}

/// Whether a wrapper starts a daemon within the time in which each looks for one.
fn comes_again(real: &Real) -> bool {
    let begun = Instant::now();
    while begun.elapsed() < Duration::from_secs(3) {
        if real.daemon_if_any().is_some() {
            return true;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    false
}

/// Only its new parent, the wrapper, identifies an orphan without a marker.
#[test]
fn orphans_are_found_after_a_restart() {
    let real = Real::start();
    let go = real.socket().with_file_name("go");
    let mut command = real.prorata();
    let script = "echo begun; until test -e $0; do sleep 0.05; done
        env -i sh -c 'for n in 1 2 3 4 5; do sleep 60 & done'; exec sleep 60";
    command
        .args(["run", "-n", "family", "sh", "-c", script])
        .arg(&go);
    let mut family = end_with_test(&mut command).spawn().unwrap();
    eventually("it is managed", || real.clients().len() == 1);
    let old = real.daemon();
    kill(Pid::from_raw(old as i32), Signal::SIGKILL).unwrap();
    eventually("a new daemon has it", || {
        real.daemon_if_any().is_some_and(|new| new != old) && real.clients().len() == 1
    });
    std::fs::write(&go, "").unwrap();
    eventually("the orphans are its own", || {
        real.client("family").processes == 6
    });
    let orphans = format!("/proc/{0}/task/{0}/children", family.id());
    for orphan in std::fs::read_to_string(orphans).unwrap().split_whitespace() {
        kill(Pid::from_raw(orphan.parse().unwrap()), Signal::SIGTERM).unwrap();
    }
    family.wait().unwrap();
}

/// Only root can start root's daemon.
#[test]
fn other_users_join_roots_next_daemon() {
    if !rustix::process::getuid().is_root() {
        let ci = std::env::var("CI").is_ok_and(|ci| ci == "true");
        assert!(!ci, "only root can act as another user");
        println!("not run: only root can act as another user");
        return;
    }
    let real = Real::start();
    let place = real.socket().parent().unwrap().to_path_buf();
    std::fs::set_permissions(&place, std::fs::Permissions::from_mode(0o755)).unwrap();
    let user = OrdinaryUser::new();
    let mut command = user.command();
    command
        .env("PRORATA_SOCKET", real.socket())
        .env_remove("PRORATA_CLIENT")
        .args(["run", "-n", "theirs", "sh", "-c", "while :; do :; done"]);
    let mut theirs = end_with_test(command.stdin(Stdio::null()).stderr(Stdio::piped()))
        .spawn()
        .unwrap();
    let mut said = BufReader::new(theirs.stderr.take().unwrap()).lines();
    eventually("it is managed", || real.clients().len() == 1);
    kill(Pid::from_raw(real.daemon() as i32), Signal::SIGKILL).unwrap();
    let died = said.next().unwrap().unwrap();
    assert!(
        died.contains("until `prorata start`") && died.contains("only its owner"),
        "{died}"
    );
    real.done(&["start"]);
    let joined = said.next().unwrap().unwrap();
    let id = real.client("theirs").id;
    assert_eq!(joined, format!("prorata: {id} has its share again"));
    kill(Pid::from_raw(theirs.id() as i32), Signal::SIGTERM).unwrap();
    assert_eq!(theirs.wait().unwrap().signal(), Some(15));
}
