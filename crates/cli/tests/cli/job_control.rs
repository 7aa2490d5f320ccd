//! Job control: the terminal's keys and the shell's jobs through the wrapper.

use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::thread::sleep;
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use prorata_protocol::{ClientState, Request, Response, StatusReport};

use crate::support::fake::{Fake, status};
use crate::support::pty::{CTRL_BACKSLASH, CTRL_C, CTRL_D, CTRL_Z, Pty};
use crate::support::real::Real;
use crate::support::{end_with_test, eventually, has_ended, output, process_state, stderr};

fn suspend() -> Request {
    Request::Suspend {
        client: "c7".to_owned(),
    }
}

fn resume() -> Request {
    Request::Resume {
        client: "c7".to_owned(),
    }
}

/// A shell with a sleeping job, and the command's pid.
fn sleeping_job(fake: &Fake) -> (Pty, u32) {
    let mut shell = Pty::bash(&fake.socket());
    shell.line("prorata run -- sh -c 'echo begun; exec sleep 100'");
    shell.expect("begun");
    (shell, fake.registered()[0])
}

#[test]
fn ctrl_c_interrupts_the_command_once() {
    let fake = Fake::start();
    let mut shell = Pty::bash(&fake.socket());
    // The command waits for the first interrupt, and a little for a second.
    shell.line("prorata run -- sh -c 'trap \"n=\\$((n+1))\" INT; echo begun; until [ $n ]; do sleep 0.1; done; sleep 0.3; sleep 0.3; echo times=$n'");
    shell.expect("begun");
    shell.keys(CTRL_C);
    shell.expect("times=1");
    shell.prompt();
    shell.line("prorata run -- sleep 100");
    eventually("registered", || fake.registered().len() == 2);
    shell.keys(CTRL_C);
    shell.prompt();
    shell.expect_code(130);
}

#[test]
fn ctrl_backslash_quits_the_command() {
    let fake = Fake::start();
    let mut shell = Pty::bash(&fake.socket());
    shell.line("ulimit -c 0; prorata run -- sh -c 'echo begun; exec sleep 100'");
    shell.expect("begun");
    shell.keys(CTRL_BACKSLASH);
    shell.expect("Quit");
    shell.prompt();
}

#[test]
fn a_job_can_be_stopped_listed_continued_and_ended() {
    let fake = Fake::start();
    let (mut shell, command) = sleeping_job(&fake);
    shell.stop_job();
    assert_eq!(process_state(command), Some('T'));
    assert_eq!(fake.heard()[1..], [suspend()]);
    shell.line("bg");
    shell.prompt();
    eventually("it goes on", || process_state(command) == Some('S'));
    eventually("it competes", || fake.heard()[2..] == [resume()]);
    shell.line("jobs");
    shell.expect("Running");
    shell.prompt();
    shell.line("fg");
    // The shell would receive a key typed before it hands over the terminal.
    shell.foreground(command);
    shell.stop_job();
    shell.line("fg");
    eventually("it goes on again", || {
        process_state(command) == Some('S') && fake.heard().len() == 5
    });
    shell.keys(CTRL_C);
    shell.prompt();
    shell.expect_code(130);
    assert_eq!(
        fake.heard()[1..],
        [suspend(), resume(), suspend(), resume()]
    );
}

/// The shell would report each turn of a rival as a stop of its job.
#[test]
fn a_job_of_another_shell_is_refused_where_it_would_be_stopped() {
    let stopping = Real::start_as_ordinary_user();
    let mut shell = stopping.bash();
    let job = background_job(&mut shell);
    let said = stopping.refused(&["set", &job, "10"]);
    let name = format!("process {job} is a job of the shell 'bash' (");
    assert!(
        said.starts_with(&name) && said.contains("`prorata run`"),
        "{said}"
    );
    assert!(stopping.clients().is_empty());
    if let Some(grouping) = Real::start_with_control_groups() {
        let mut shell = grouping.bash();
        let job = background_job(&mut shell);
        grouping.done(&["set", &job, "10"]);
        assert_eq!(grouping.clients().len(), 1);
        // The daemon's user may not move this one to a group.
        let mut outside = grouping.bash_outside();
        let job = background_job(&mut outside);
        grouping.refused(&["set", &job, "10"]);
    }
}

/// Starts a job in the background; returns its pid.
fn background_job(shell: &mut Pty) -> String {
    shell.line("sleep 1000 & echo pid=$!.");
    shell.expect("pid=");
    let pid = shell.expect(".");
    shell.prompt();
    pid
}

#[test]
fn a_background_reader_stops_until_it_is_in_the_foreground() {
    let fake = Fake::start();
    let mut shell = Pty::bash(&fake.socket());
    shell.line("prorata run -- cat &");
    shell.prompt();
    eventually("registered", || fake.registered().len() == 1);
    let command = fake.registered()[0];
    eventually("stopped by its read", || {
        process_state(command) == Some('T')
    });
    eventually("suspended", || fake.heard()[1..] == [suspend()]);
    // The wrapper tells the daemon before it stops, and the shell notices later.
    eventually("the shell knows", || {
        shell.line("jobs");
        shell.prompt().contains("Stopped ")
    });
    shell.line("fg");
    eventually("resumed", || fake.heard()[2..] == [resume()]);
    shell.line("spoken");
    shell.expect("spoken");
    shell.keys(CTRL_D);
    shell.prompt();
    shell.expect_code(0);
}

#[test]
fn the_wrapper_stops_with_its_command() {
    let fake = Fake::start();
    let mut shell = Pty::bash(&fake.socket());
    // Editors stop like this on a key of their own: only the process gets the signal.
    shell.line("prorata run -- sh -c 'echo begun; kill -TSTP $$; echo still-$((40+2))'");
    shell.expect("begun");
    shell.expect("Stopped ");
    shell.prompt();
    assert_eq!(fake.heard()[1..], [suspend()]);
    shell.line("fg");
    shell.expect("still-42");
    shell.prompt();
    assert_eq!(fake.heard()[2..], [resume()]);
}

/// The engine stops losers with SIGSTOP. A stopped process does not notice SIGTSTP,
/// and continuing it discards the signal.
#[test]
fn a_stop_signal_lost_by_the_engine_is_repeated() {
    let stopped = std::sync::Arc::new(std::sync::Mutex::new(None));
    let shared = std::sync::Arc::clone(&stopped);
    let fake = Fake::answering(move |request| {
        let pid: Option<Pid> = *shared.lock().unwrap();
        if let (Request::Suspend { .. }, Some(pid)) = (request, pid) {
            kill(pid, Signal::SIGCONT).unwrap();
            return Some(Response::Suspended { was_stopped: true });
        }
        None
    });
    let (mut shell, command) = sleeping_job(&fake);
    let pid = Pid::from_raw(command as i32);
    kill(pid, Signal::SIGSTOP).unwrap();
    eventually("stopped by the engine", || {
        process_state(command) == Some('T')
    });
    *stopped.lock().unwrap() = Some(pid);
    shell.stop_job();
    assert_eq!(process_state(command), Some('T'));
    shell.line("fg");
    eventually("it goes on", || process_state(command) == Some('S'));
    shell.keys(CTRL_C);
    shell.prompt();
}

#[test]
fn a_closed_terminal_ends_the_command() {
    let fake = Fake::start();
    let (mut shell, command) = sleeping_job(&fake);
    assert!(shell.child().try_wait().unwrap().is_none());
    shell.close();
    eventually("hung up", || has_ended(command));
    shell.child().wait().unwrap();
}

#[test]
fn a_pipeline_stops_and_continues_as_one() {
    let fake = Fake::start();
    let mut shell = Pty::bash(&fake.socket());
    shell.line("prorata run -- sh -c 'echo begun >&2; exec yes tick' | prorata run -- cat");
    shell.expect("begun");
    eventually("both registered", || fake.registered().len() == 2);
    let commands = fake.registered();
    shell.expect("\ntick");
    shell.keys(CTRL_Z);
    shell.expect("Stopped ");
    eventually("both stopped", || {
        commands.iter().all(|&pid| process_state(pid) == Some('T'))
    });
    shell.line("fg");
    shell.expect("\ntick");
    shell.keys(CTRL_C);
    shell.prompt();
    eventually("both ended", || commands.iter().all(|&pid| has_ended(pid)));
}

/// The daemon ends while the job is stopped. The next daemon knows from its journal
/// that the client is suspended.
#[test]
fn a_job_continued_without_a_daemon_competes_under_the_next() {
    let mut process = end_with_test(Command::new("sleep").arg("100"))
        .spawn()
        .unwrap();
    // Whether the daemon is away, and whether it was told to resume before.
    let (away, resumed) = (
        Arc::new(AtomicBool::new(false)),
        Arc::new(AtomicBool::new(false)),
    );
    let (shared, first) = ((Arc::clone(&away), Arc::clone(&resumed)), process.id());
    let pid = Arc::new(AtomicU32::new(first));
    let present = Arc::clone(&pid);
    let fake = Fake::answering(move |request| {
        let (away, resumed) = &shared;
        if away.load(Ordering::SeqCst) {
            return Some(Response::Refused {
                message: "gone".to_owned(),
            });
        }
        resumed.fetch_or(*request == resume(), Ordering::SeqCst);
        let status = StatusReport {
            pid: present.load(Ordering::SeqCst),
            ..status()
        };
        (*request == Request::Status).then_some(Response::Status(status))
    });
    let (mut shell, command) = sleeping_job(&fake);
    shell.stop_job();
    assert_eq!(fake.heard()[1..], [suspend()]);

    away.store(true, Ordering::SeqCst);
    pid.store(std::process::id(), Ordering::SeqCst);
    process.kill().unwrap();
    process.wait().unwrap();
    shell.line("fg");
    shell.expect("until `prorata start`");
    eventually("it goes on meanwhile", || {
        process_state(command) == Some('S')
    });
    assert!(!resumed.load(Ordering::SeqCst));

    away.store(false, Ordering::SeqCst);
    shell.expect("has its share again");
    assert!(resumed.load(Ordering::SeqCst));
    shell.keys(CTRL_C);
    shell.prompt();
}

/// Starts a job under a real daemon and stops it with Ctrl-Z.
fn stopped_job(real: &Real) -> Pty {
    let mut shell = real.bash();
    shell.line("prorata run -n job -- sh -c 'echo begun; while :; do :; done'");
    shell.expect("begun");
    shell.stop_job();
    assert_eq!(real.client("job").state, ClientState::Suspended);
    shell
}

#[test]
fn a_wrapper_starts_a_daemon_that_is_not_its_child() {
    let real = Real::start();
    let mut shell = stopped_job(&real);
    let (old, command) = (real.daemon(), real.client("job").pid);
    kill(Pid::from_raw(old as i32), Signal::SIGKILL).unwrap();
    shell.line("fg");
    eventually("it competes under a new daemon", || {
        real.daemon_if_any().is_some_and(|new| new != old)
            && real
                .clients()
                .iter()
                .any(|client| client.name == "job" && client.state != ClientState::Suspended)
    });
    assert_ne!(
        parent(real.daemon()),
        parent(command),
        "the wrapper's child"
    );
    shell.foreground(command);
    shell.keys(CTRL_C);
    shell.prompt();
}

#[test]
fn a_wrapper_starts_no_daemon_after_stop() {
    let real = Real::start();
    let mut shell = stopped_job(&real);
    let command = real.client("job").pid;
    real.done(&["stop"]);
    eventually("the daemon is gone", || real.is_gone());
    shell.line("fg");
    shell.expect("`prorata stop` ended the daemon");
    assert!(real.is_gone(), "no wrapper has started it again");
    shell.foreground(command);
    shell.keys(CTRL_C);
    shell.prompt();
}

/// The parent's pid (proc_pid_stat(5)).
fn parent(pid: u32) -> u32 {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    let mut fields = stat.rsplit_once(')').unwrap().1.split_whitespace();
    fields.nth(1).unwrap().parse().unwrap()
}

/// The daemon alternates between the job and a rival, so Ctrl-Z comes while the job
/// runs and while it waits.
fn stopped_means_stopped(real: &Real) {
    let _rival = real.compute("rival", "100");
    let mut shell = real.bash();
    shell.line("prorata run -n job -- sh -c 'echo begun; while :; do :; done'");
    shell.expect("begun");
    let command = real.client("job").pid;
    for _ in 0..4 {
        shell.stop_job();
        assert_eq!(real.client("job").state, ClientState::Suspended);
        for _ in 0..30 {
            assert_eq!(
                process_state(command),
                Some('T'),
                "the engine leaves it stopped"
            );
            sleep(Duration::from_millis(10));
        }
        shell.line("fg");
        eventually("it competes again", || {
            (real.client("job").share - 0.5).abs() < 1e-6
        });
    }
    shell.keys(CTRL_C);
    shell.prompt();
    shell.expect_code(130);
}

#[test]
fn a_stopped_job_stays_stopped() {
    stopped_means_stopped(&Real::start());
}

#[test]
fn a_stopped_job_of_an_ordinary_user_stays_stopped() {
    stopped_means_stopped(&Real::start_as_ordinary_user());
}

/// A shell inside a client has jobs of its own, which the engine stops and continues.
#[test]
fn a_shell_in_a_client_sees_no_job_stopped() {
    let real = Real::start_as_ordinary_user();
    let _rival = real.compute("rival", "100");
    let mut shell = real.bash();
    shell.line("prorata run -n shell -- bash --norc --noprofile -i");
    shell.prompt();
    shell.line("while :; do :; done &");
    shell.prompt();
    sleep(Duration::from_secs(2));
    shell.line("jobs");
    let jobs = shell.prompt();
    assert!(
        jobs.contains("Running") && !jobs.contains("Stopped"),
        "{jobs}"
    );
    shell.line("sh -c 'echo begun; while :; do :; done'");
    shell.expect("begun");
    sleep(Duration::from_secs(2));
    shell.keys(CTRL_C);
    let printed = shell.prompt();
    assert!(!printed.contains("Stopped"), "{printed}");
    shell.line("kill %1; exit");
    shell.prompt();
}

/// Only on a terminal, so that redirected output is the same as without prorata.
#[test]
fn run_tells_the_mechanism_to_a_terminal_once() {
    for real in [Real::start(), Real::start_as_ordinary_user()] {
        real.forget_told();
        let run = || {
            let mut run = real.prorata();
            run.args(["run", "--", "echo", "done"]);
            run
        };
        assert_eq!(stderr(&output(&mut run())), "");
        let on_terminal = || Pty::spawn(&mut run()).rest();
        let first = on_terminal();
        let list = std::fs::read_to_string(real.socket().with_file_name("told")).unwrap();
        let told = format!("(mechanism {}, told once)\r\n", list.trim());
        assert!(
            first.starts_with("prorata: ") && first.contains(&told),
            "{first}"
        );
        assert_eq!(on_terminal(), "done\r\n");
    }
}
