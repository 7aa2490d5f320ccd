//! `run`, `fundx`, `run-tickets` and `transfer ... -- CMD` as parents of a
//! command.

use std::io::BufRead;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, Stdio};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use prorata_protocol::{Funding, Request, Response, TransferPortion};

use crate::support::fake::{Fake, allowed_cpus};
use crate::support::{
    end_with_test, eventually, output, process_state, prorata, start_talking, stderr, stdout,
};

fn run(fake: &Fake, arguments: &[&str]) -> std::process::Output {
    output(prorata(&fake.socket()).args(arguments))
}

fn send(child: &Child, signal: Signal) {
    kill(Pid::from_raw(child.id() as i32), signal).unwrap();
}

#[test]
fn exit_codes_pass_through() {
    let fake = Fake::start();
    for code in [0, 1, 2, 77, 126, 127, 255] {
        let ended = run(&fake, &["run", "--", "sh", "-c", &format!("exit {code}")]);
        assert_eq!(ended.status.code(), Some(code));
    }
}

/// Shells start commands in the background with SIGINT ignored.
#[test]
fn a_background_command_of_a_script_survives_an_interrupt() {
    let fake = Fake::start();
    let script = "\"$0\" run sh -c 'echo begun; sleep 1; echo survived' & sleep 0.5; kill -INT $!; wait $!; echo code $?";
    let around = prorata(&fake.socket());
    let mut command = Command::new("sh");
    command.args(["-c", script]).arg(around.get_program());
    for (name, value) in around.get_envs() {
        command.env(name, value.unwrap_or_default());
    }
    let said = stdout(&output(&mut command));
    assert_eq!(said, "begun\nsurvived\ncode 0\n");
}

#[test]
fn fatal_signals_pass_through() {
    let fake = Fake::start();
    for signal in ["TERM", "KILL", "INT", "SEGV", "USR1", "PIPE"] {
        let ended = run(
            &fake,
            &["run", "--", "sh", "-c", &format!("kill -{signal} $$")],
        );
        let number = signal
            .parse::<Signal>()
            .or_else(|_| format!("SIG{signal}").parse())
            .unwrap() as i32;
        assert_eq!(ended.status.signal(), Some(number), "{signal}");
    }
}

#[test]
fn a_command_that_cannot_be_executed_ends_as_in_a_shell() {
    let fake = Fake::start();
    let missing = run(&fake, &["run", "--", "no-such-program-anywhere"]);
    assert_eq!(missing.status.code(), Some(127));
    assert_eq!(
        stderr(&missing),
        "prorata: cannot run \"no-such-program-anywhere\": there is no such program\n"
    );
    let plain_file = fake.directory().join("plain");
    std::fs::write(&plain_file, "text").unwrap();
    let refused = run(&fake, &["run", "--", plain_file.to_str().unwrap()]);
    assert_eq!(refused.status.code(), Some(126));
    assert!(
        stderr(&refused).contains("no permission to execute"),
        "{}",
        stderr(&refused)
    );
}

#[test]
fn the_command_of_a_refused_client_does_not_run() {
    let fake = Fake::answering(|request| {
        let refused = || Response::Refused {
            message: "no currency is called \"x\": see `prorata lscur`".to_owned(),
        };
        matches!(request, Request::Register { .. }).then(refused)
    });
    let trace = fake.directory().join("trace");
    let refused = run(
        &fake,
        &["run", "-c", "x", "--", "touch", trace.to_str().unwrap()],
    );
    assert_eq!(refused.status.code(), Some(1));
    assert_eq!(
        stderr(&refused),
        "prorata: no currency is called \"x\": see `prorata lscur`\n"
    );
    assert!(!trace.exists());
    let pid = fake.registered()[0];
    assert_eq!(process_state(pid), None, "no process is left");
}

#[test]
fn a_command_is_registered_under_its_pid_before_it_runs() {
    let fake = Fake::start();
    let said = run(
        &fake,
        &[
            "run",
            "-t",
            "300",
            "-c",
            "batch",
            "-n",
            "job",
            "--quantum",
            "4ms",
            "--",
            "sh",
            "-c",
            "echo $$ $PRORATA_CLIENT",
        ],
    );
    let pid = fake.registered()[0];
    assert_eq!(stdout(&said), format!("{pid} c7\n"));
    let funding = Funding {
        amount: 300,
        currency: Some("batch".to_owned()),
    };
    assert_eq!(
        fake.heard()[0],
        Request::Register {
            pid,
            name: Some("job".to_owned()),
            funding,
            quantum_ns: Some(4_000_000),
            max: None,
            adopts: true
        }
    );
    // Whether the currency is funded.
    let every = Request::Tickets { currency: None };
    assert_eq!(fake.heard()[1..], [Request::Currencies, every]);
}

#[test]
fn a_client_has_a_default_name_and_default_tickets() {
    let fake = Fake::start();
    run(&fake, &["run", "/bin/true"]);
    run(&fake, &["run-tickets", "7", "true", "--flag"]);
    run(&fake, &["fundx", "9", "exit 3 # $0", "-c", "batch"]);
    let asked: Vec<(Option<String>, Funding)> = fake
        .heard()
        .into_iter()
        .filter_map(|request| match request {
            Request::Register { name, funding, .. } => Some((name, funding)),
            _ => None,
        })
        .collect();
    let of = |name: &str, amount, currency: Option<&str>| {
        (
            Some(name.to_owned()),
            Funding {
                amount,
                currency: currency.map(str::to_owned),
            },
        )
    };
    assert_eq!(
        asked,
        [
            of("true", 100, None),
            of("true", 7, None),
            of("sh", 9, Some("batch"))
        ]
    );
}

#[test]
fn fundx_runs_a_shell_command() {
    let fake = Fake::start();
    let ended = run(&fake, &["fundx", "5", "cd / && pwd; exit 3"]);
    assert_eq!(
        (ended.status.code(), stdout(&ended).as_str()),
        (Some(3), "/\n")
    );
}

#[test]
fn options_after_the_command_belong_to_it() {
    let fake = Fake::start();
    let said = run(&fake, &["run", "echo", "-t", "5", "--help", "--", "-x"]);
    assert_eq!(stdout(&said), "-t 5 --help -- -x\n");
}

#[test]
fn trouble_with_the_engine_is_said_before_the_command_runs() {
    let fake = Fake::answering(|request| {
        let status = prorata_protocol::StatusReport {
            trouble: Some("the user engine decides".to_owned()),
            ..crate::support::fake::status()
        };
        matches!(request, Request::Status).then_some(Response::Status(status))
    });
    let said = run(&fake, &["run", "echo", "hello"]);
    assert_eq!(
        (stdout(&said).as_str(), stderr(&said).as_str()),
        ("hello\n", "prorata: the user engine decides\n")
    );
}

#[test]
fn a_command_is_bound_to_the_daemons_cpus() {
    let last = *allowed_cpus().last().unwrap();
    let fake = Fake::answering(move |request| {
        let status = prorata_protocol::StatusReport {
            // One CPU more than the host has: the wrapper's own affinity counts.
            cpus: vec![last, 1000],
            ..crate::support::fake::status()
        };
        matches!(request, Request::Status).then_some(Response::Status(status))
    });
    let list = |arguments: &[&str]| {
        let said = run(
            &fake,
            &[
                arguments,
                &["grep", "Cpus_allowed_list", "/proc/self/status"],
            ]
            .concat(),
        );
        stdout(&said).split_whitespace().last().map(str::to_owned)
    };
    assert_eq!(list(&["run"]), Some(last.to_string()));
    let first = allowed_cpus()[0].to_string();
    assert_eq!(list(&["run", "--cpus", &first]), Some(first));
    let refused = run(&fake, &["run", "--cpus", "1023", "true"]);
    assert_eq!(refused.status.code(), Some(1));
    assert!(
        stderr(&refused).contains("CPUs 1023"),
        "{}",
        stderr(&refused)
    );
}

#[test]
fn signals_to_the_wrapper_reach_the_command() {
    let fake = Fake::start();
    for signal in [
        Signal::SIGTERM,
        Signal::SIGHUP,
        Signal::SIGINT,
        Signal::SIGUSR1,
        Signal::SIGUSR2,
        Signal::SIGALRM,
    ] {
        let script = format!(
            "trap 'exit 42' {}; echo begun; while :; do sleep 0.01; done",
            &signal.as_str()[3..]
        );
        let (mut child, _reader) =
            start_talking(prorata(&fake.socket()).args(["run", "--", "sh", "-c", &script]));
        send(&child, signal);
        assert_eq!(child.wait().unwrap().code(), Some(42), "{signal}");
    }
}

#[test]
fn ignored_signals_stay_ignored() {
    let fake = Fake::start();
    let mut nohup = Command::new("sh");
    nohup.args(["-c", "trap '' HUP; exec \"$0\" run -- sh -c 'echo begun; grep SigIgn /proc/self/status; read line'"]);
    nohup
        .arg(env!("CARGO_BIN_EXE_prorata"))
        .env("PRORATA_SOCKET", fake.socket())
        .stdin(Stdio::piped());
    let (mut child, mut reader) = start_talking(&mut nohup);
    let mut mask = String::new();
    reader.read_line(&mut mask).unwrap();
    let mask = u64::from_str_radix(mask.split_whitespace().last().unwrap(), 16).unwrap();
    assert_eq!(mask & 1, 1, "the command ignores SIGHUP, as by nohup");
    send(&child, Signal::SIGHUP);
    // The shell reads an end of file and exits with 1, so SIGHUP was ignored.
    drop(child.stdin.take());
    assert_eq!(child.wait().unwrap().code(), Some(1));
}

#[test]
fn the_command_has_the_signal_mask_of_the_caller() {
    let fake = Fake::start();
    let arguments = ["-E", "SigBlk|SigIgn|SigCgt", "/proc/self/status"];
    let without = output(Command::new("grep").args(arguments));
    let with = run(&fake, &[&["run", "--", "grep"], &arguments[..]].concat());
    assert_eq!(stdout(&with), stdout(&without));
}

#[test]
fn orphans_outlive_the_command_and_are_reaped() {
    let fake = Fake::start();
    // The orphan ends while the command runs, and the wrapper must reap it.
    let script = "sh -c 'sleep 0.05 & echo $!' > $0; while test -e /proc/$(cat $0); do sleep 0.01; done; echo reaped";
    let file = fake.directory().join("orphan");
    let said = run(
        &fake,
        &["run", "--", "sh", "-c", script, file.to_str().unwrap()],
    );
    assert_eq!(stdout(&said), "reaped\n");
    // The orphan continues after the end of the command.
    let said = run(
        &fake,
        &[
            "run",
            "--",
            "sh",
            "-c",
            "sleep 100 >/dev/null 2>&1 & echo $!",
        ],
    );
    let pid: u32 = stdout(&said).trim().parse().unwrap();
    assert!(process_state(pid).is_some());
    kill(Pid::from_raw(pid as i32), Signal::SIGKILL).unwrap();
}

#[test]
fn a_stop_signal_to_the_wrapper_stops_both_and_suspends_the_client() {
    let fake = Fake::start();
    let script = "echo begun; exec sleep 100";
    // The wrapper gets a process group whose parent is in the same session: the
    // kernel does not stop an orphaned process group, and the tests may run in
    // one.
    let (mut child, _reader) = start_talking(
        prorata(&fake.socket())
            .args(["run", "--", "sh", "-c", script])
            .process_group(0),
    );
    let command = fake.registered()[0];
    send(&child, Signal::SIGTSTP);
    eventually("both stop", || {
        process_state(command) == Some('T') && process_state(child.id()) == Some('T')
    });
    assert_eq!(
        fake.heard()[1..],
        [Request::Suspend {
            client: "c7".to_owned()
        }]
    );
    send(&child, Signal::SIGCONT);
    eventually("both go on", || {
        process_state(command) == Some('S') && process_state(child.id()) == Some('S')
    });
    eventually("resumed", || {
        fake.heard()[2..]
            == [Request::Resume {
                client: "c7".to_owned(),
            }]
    });
    send(&child, Signal::SIGTERM);
    assert_eq!(child.wait().unwrap().signal(), Some(Signal::SIGTERM as i32));
}

#[test]
fn a_command_that_does_not_stop_competes_again() {
    let fake = Fake::start();
    let script = "trap '' TSTP; echo begun; exec sleep 100";
    let (mut child, _reader) =
        start_talking(prorata(&fake.socket()).args(["run", "--", "sh", "-c", script]));
    send(&child, Signal::SIGTSTP);
    eventually("resumed", || {
        fake.heard().last()
            == Some(&Request::Resume {
                client: "c7".to_owned(),
            })
    });
    assert_ne!(
        process_state(child.id()),
        Some('T'),
        "the wrapper does not stop alone"
    );
    send(&child, Signal::SIGTERM);
    assert_eq!(child.wait().unwrap().signal(), Some(Signal::SIGTERM as i32));
}

#[test]
fn the_wrapper_ignores_stops_by_the_engine() {
    let fake = Fake::start();
    let script = "trap 'exit 5' TERM; echo begun; while :; do sleep 0.01; done";
    let (mut child, _reader) =
        start_talking(prorata(&fake.socket()).args(["run", "--", "sh", "-c", script]));
    let command = Pid::from_raw(fake.registered()[0] as i32);
    for _ in 0..20 {
        kill(command, Signal::SIGSTOP).unwrap();
        eventually("stopped", || {
            process_state(command.as_raw() as u32) == Some('T')
        });
        assert_ne!(process_state(child.id()), Some('T'));
        kill(command, Signal::SIGCONT).unwrap();
    }
    send(&child, Signal::SIGTERM);
    assert_eq!(child.wait().unwrap().code(), Some(5));
    assert_eq!(fake.heard().len(), 1, "{:?}", fake.heard());
}

/// A fake daemon whose pid is first that of a process that the test ends, and
/// then that of the test.
fn under_a_daemon_that_ends(known_after: bool) -> (Fake, String) {
    let mut process = end_with_test(Command::new("sleep").arg("100"))
        .spawn()
        .unwrap();
    let pid = std::sync::Arc::new(std::sync::atomic::AtomicU32::new(process.id()));
    let shared = std::sync::Arc::clone(&pid);
    let fake = Fake::answering(move |request| {
        let pid = shared.load(std::sync::atomic::Ordering::Relaxed);
        let status = prorata_protocol::StatusReport {
            pid,
            ..crate::support::fake::status()
        };
        match request {
            Request::Status => Some(Response::Status(status)),
            Request::Clients if !known_after => Some(Response::Clients(Vec::new())),
            _ => None,
        }
    });
    let script = "echo begun; read line";
    let (mut child, _reader) = start_talking(
        prorata(&fake.socket())
            .args(["run", "--", "sh", "-c", script])
            .stdin(Stdio::piped())
            .stderr(Stdio::piped()),
    );
    pid.store(std::process::id(), std::sync::atomic::Ordering::Relaxed);
    process.kill().unwrap();
    process.wait().unwrap();
    eventually("the client is asked for", || {
        fake.heard().contains(&Request::Clients)
    });
    drop(child.stdin.take());
    let ended = child.wait_with_output().unwrap();
    assert_eq!(ended.status.code(), Some(1), "the command's own end");
    (fake, stderr(&ended))
}

#[test]
fn the_wrapper_joins_a_daemon_of_another_process() {
    assert_eq!(under_a_daemon_that_ends(true).1, "");
}

#[test]
fn the_wrapper_leaves_a_daemon_that_lacks_the_client() {
    let said = under_a_daemon_that_ends(false).1;
    assert_eq!(
        said,
        "prorata: the new daemon does not know c7, which continues unmanaged\n"
    );
}

#[test]
fn a_transfer_lasts_as_long_as_its_command() {
    let fake = Fake::start();
    let ended = run(
        &fake,
        &[
            "transfer",
            "build",
            "viewer=50",
            "-c",
            "batch",
            "--",
            "sh",
            "-c",
            "exit 9",
        ],
    );
    assert_eq!(ended.status.code(), Some(9));
    let shares = vec![("viewer".to_owned(), 50)];
    let portion = TransferPortion::Part {
        currency: Some("batch".to_owned()),
        shares,
    };
    assert_eq!(
        fake.heard(),
        [Request::Transfer {
            from: "build".to_owned(),
            portion,
            hold: true
        }]
    );
}

#[test]
fn a_lasting_transfer_has_a_name_and_can_be_ended() {
    let fake = Fake::start();
    assert_eq!(
        stdout(&run(&fake, &["transfer", "build", "viewer", "x", "--all"])),
        "x1\n"
    );
    run(&fake, &["transfer", "--end", "x1"]);
    let portion = TransferPortion::Whole(vec!["viewer".to_owned(), "x".to_owned()]);
    let lent = Request::Transfer {
        from: "build".to_owned(),
        portion,
        hold: false,
    };
    assert_eq!(
        fake.heard(),
        [
            lent,
            Request::EndTransfer {
                transfer: "x1".to_owned()
            }
        ]
    );
}
