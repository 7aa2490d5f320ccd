//! Commands against a daemon that manages real processes.

use std::io::{BufRead, BufReader, Read};
use std::os::unix::process::ExitStatusExt;
use std::process::Stdio;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use prorata_protocol::ClientReport;
use serde_json::Value;

use crate::support::real::{Real, is_free};
use crate::support::{end_with_test, eventually, has_ended, output, process_state, stderr, stdout};

/// Waits until the clients with a share of the machine have these shares. A client
/// that waits for a page of its program has no share for a moment.
#[track_caller]
pub fn await_shares(real: &Real, shares: &[(&str, f64)]) {
    let has = |clients: &[ClientReport], (name, share): &(&str, f64)| {
        let mut clients = clients.iter().filter(|client| client.name == *name);
        clients.any(|client| (client.share - share).abs() < 1e-6)
    };
    eventually(&format!("they share {shares:?}"), || {
        let clients = real.clients();
        shares.iter().all(|share| has(&clients, share))
    });
}

#[test]
fn two_terminals_compete_under_one_ledger() {
    let real = Real::start();
    let _first = real.compute("first", "300");
    let _second = real.compute("second", "100");
    await_shares(&real, &[("first", 0.75), ("second", 0.25)]);
    // Time of the first client alone does not count, and a busy host takes long to
    // give both clients a second. A daemon without a CPU lets a turn last too long;
    // the longer the clients compete, the less this matters.
    let received = || {
        let clients = real.clients();
        ["first", "second"].map(|name| {
            let mut clients = clients.iter();
            let client = clients.find(|client| client.name == name).unwrap();
            client.received_ns
        })
    };
    let before = received();
    eventually("both have received what they should, coarsely", || {
        let now = received();
        let since = [now[0] - before[0], now[1] - before[1]];
        // Benches check precisely.
        let ratio = since[0] as f64 / since[1] as f64;
        since[0] + since[1] > 1_000_000_000 && (1.5..6.0).contains(&ratio)
    });
    // Turns may have any length here.
    real.done(&["quantum", "first", "4ms"]);
    assert_eq!(real.client("first").quantum_ns, Some(4_000_000));
    assert!(real.done(&["ps"]).contains("4 ms"));
    real.done(&["quantum", "first", "--reset"]);
    assert_eq!(real.client("first").quantum_ns, None);
    let owner = real.client("first").owner;
    assert_eq!(owner, rustix::process::getuid().as_raw());
    real.done(&["set", "second", "300"]);
    await_shares(&real, &[("first", 0.5), ("second", 0.5)]);
}

#[test]
fn exit_codes_and_signals_pass_through_a_real_daemon() {
    let real = Real::start();
    let run = |script: &str| output(real.prorata().args(["run", "--", "sh", "-c", script])).status;
    assert_eq!(run("exit 42").code(), Some(42));
    assert_eq!(run("kill -KILL $$").signal(), Some(9));
    assert_eq!(
        output(real.prorata().args(["run", "no-such-program-anywhere"]))
            .status
            .code(),
        Some(127)
    );
    eventually("nothing is managed", || real.clients().is_empty());
}

#[test]
fn children_share_their_clients_tickets() {
    let real = Real::start();
    let mut command = real.prorata();
    let script = "sh -c 'while :; do :; done' & sh -c 'while :; do :; done' & wait";
    command.args(["run", "-n", "family", "sh", "-c", script]);
    let mut family = end_with_test(&mut command).spawn().unwrap();
    eventually("three processes", || {
        real.clients().iter().any(|client| client.processes == 3)
    });
    let _single = real.compute("single", "100");
    await_shares(&real, &[("single", 0.5)]);
    real.done(&["release", "single"]);
    // A signal to the shell does not reach its children, which stay in the client.
    kill(Pid::from_raw(family.id() as i32), Signal::SIGTERM).unwrap();
    family.wait().unwrap();
    eventually("the orphans are managed still", || {
        real.clients()
            .iter()
            .any(|client| client.name == "family" && client.processes == 2)
    });
    kill_all_marked(&real, &real.client("family").id);
    eventually("nothing is managed", || real.clients().is_empty());
}

/// Kills the processes of a client without a wrapper, if they run our own loop:
/// other tests' daemons have clients with the same identifier.
fn kill_all_marked(real: &Real, client: &str) {
    let markers = [
        format!("PRORATA_CLIENT={client}"),
        format!("PRORATA_SOCKET={}", real.socket().display()),
    ];
    for entry in std::fs::read_dir("/proc").unwrap().flatten() {
        let Ok(pid) = entry.file_name().to_string_lossy().parse::<i32>() else {
            continue;
        };
        let read = |name: &str| std::fs::read(entry.path().join(name)).unwrap_or_default();
        let environment = read("environ");
        let marked = markers.iter().all(|marker| {
            environment
                .split(|&byte| byte == 0)
                .any(|variable| variable == marker.as_bytes())
        });
        if marked && read("cmdline").ends_with(b"while :; do :; done\0") {
            let _ = kill(Pid::from_raw(pid), Signal::SIGKILL);
        }
    }
}
#[test]
fn after_stop_no_daemon_starts_and_processes_continue() {
    let real = Real::start();
    let mut first = real.compute("first", "300");
    let mut second = real.compute("second", "1");
    let pids = [real.client("first").pid, real.client("second").pid];
    let mut third = real.prorata();
    third.args(["run", "-n", "third", "sh", "-c", "while :; do :; done"]);
    let mut third = end_with_test(third.stderr(Stdio::piped())).spawn().unwrap();
    let mut said = BufReader::new(third.stderr.take().unwrap());
    eventually("the third is managed", || real.clients().len() == 3);
    let id = real.client("third").id;
    real.done(&["stop"]);
    eventually("the daemon is gone", || real.is_gone());
    for pid in pids {
        eventually("it runs freely", || is_free(pid));
    }
    let mut word = String::new();
    said.read_line(&mut word).unwrap();
    let known = format!("prorata: `prorata stop` ended the daemon, so {id} continues unmanaged\n");
    assert_eq!(word, known);
    assert!(real.is_gone(), "no wrapper has started it again");
    kill(Pid::from_raw(third.id() as i32), Signal::SIGTERM).unwrap();
    third.wait().unwrap();
    let mut more = String::new();
    said.read_to_string(&mut more).unwrap();
    assert_eq!(more, "");
    for running in [&mut first, &mut second] {
        assert!(running.wrapper().try_wait().unwrap().is_none());
    }
}

#[test]
fn a_released_client_runs_freely() {
    let real = Real::start();
    let _first = real.compute("first", "1000000");
    let _second = real.compute("second", "1");
    let pid = real.client("second").pid;
    real.done(&["release", "second"]);
    eventually("it runs freely", || is_free(pid));
    assert!(real.refused(&["release", "second"]).contains("second"));
}

#[test]
fn a_daemon_without_start_ends_when_idle_and_settings_last() {
    let real = Real::start();
    let started = real.json(&["configure", "--quantum", "5ms"]);
    assert_eq!(started["stays"], true);
    real.done(&["stop"]);
    real.done(&["mkcur", "batch"]);
    let first = real.compute("first", "100");
    let itself = real.json(&["status"]);
    assert_eq!(itself["stays"], Value::Null);
    assert_eq!(
        (&itself["cpus"], &itself["quantum_ns"]),
        (&started["cpus"], &started["quantum_ns"])
    );
    let daemon = real.daemon();
    drop(first);
    // A request would keep the daemon alive.
    eventually("the daemon has gone", || has_ended(daemon));
    assert!(real.is_gone());
    // The next daemon has its state.
    assert!(real.done(&["lscur"]).contains("batch"));
}

#[test]
fn the_papers_commands_build_a_graph() {
    let real = Real::start();
    real.done(&["mkcur", "batch"]);
    let backing = real.done(&["mktkt", "1000", "--fund", "batch"]);
    let funding = real.done(&["mktkt", "50", "-c", "batch"]);
    let _first = real.compute("first", "100");
    real.done(&["fund", funding.trim(), "first"]);
    let listed = real.json(&["lstkt", "batch"]);
    assert_eq!(listed[0]["target"], "client:first");
    assert_eq!(listed[0]["amount"], 50);
    let currencies = real.json(&["lscur"]);
    let batch = currencies
        .as_array()
        .unwrap()
        .iter()
        .find(|currency| currency["name"] == "batch")
        .unwrap();
    assert_eq!(batch["backing"][0], backing.trim());
    assert!(real.done(&["graph"]).contains("batch"));
    assert!(
        real.done(&["graph", "--svg", "-"])
            .contains(">batch</text>")
    );
    assert!(real.refused(&["rmcur", "batch"]).contains("batch"));
    real.done(&["unfund", funding.trim()]);
    real.done(&["set", "--ticket", funding.trim(), "70"]);
    assert_eq!(real.json(&["lstkt", "batch"])[0]["amount"], 70);
    real.done(&["rmtkt", funding.trim()]);
    real.done(&["rmcur", "batch"]);
    assert!(!real.done(&["lscur"]).contains("batch"));
}

#[test]
fn a_transfer_is_undone_when_its_command_ends() {
    let real = Real::start();
    let _first = real.compute("first", "300");
    let _second = real.compute("second", "100");
    await_shares(&real, &[("second", 0.25)]);
    let look = format!("{} ps --json", env!("CARGO_BIN_EXE_prorata"));
    let held = real.done(&["transfer", "first", "second=200", "--", "sh", "-c", &look]);
    let during: Vec<ClientReport> = serde_json::from_str(&held).unwrap();
    let lent = ["first", "second"].map(|name| {
        let mut clients = during.iter();
        let client = clients.find(|client| client.name == name).unwrap();
        let amounts = client.tickets.iter().map(|(amount, _)| amount);
        amounts.sum::<u32>()
    });
    assert_eq!(lent, [100, 300], "{held}");
    await_shares(&real, &[("second", 0.25)]);
    let lasting = real.done(&["transfer", "first", "second", "--all"]);
    assert!(real.done(&["transfer", "--list"]).contains(lasting.trim()));
    await_shares(&real, &[("second", 1.0)]);
    real.done(&["transfer", "--end", lasting.trim()]);
    await_shares(&real, &[("second", 0.25)]);
}

#[test]
fn a_refused_request_changes_nothing() {
    let real = Real::start();
    let _first = real.compute("first", "100");
    real.done(&["mkcur", "a"]);
    real.done(&["mkcur", "b"]);
    real.done(&["mktkt", "5", "-c", "a", "--fund", "b"]);
    let own = real.client("first").tickets[0].1.clone();
    let before = (real.done(&["lstkt"]), real.done(&["lscur"]));
    let dead = {
        let mut child = std::process::Command::new("true").spawn().unwrap();
        child.wait().unwrap();
        child.id().to_string()
    };
    let wrong: [(&[&str], &str); 18] = [
        (&["run", "-c", "nowhere", "--", "true"], "nowhere"),
        (&["set", "nobody", "5"], "nobody"),
        (&["set", "first", "5", "-c", "b"], "b"),
        (&["set", &dead, "5"], &dead),
        (&["run", "--quantum", "999us", "--", "true"], "1ms"),
        (&["quantum", "first", "1001ms"], "1s"),
        (&["quantum", "nobody", "5ms"], "nobody"),
        (&["mkcur", "a"], "a"),
        (&["mkcur", ""], "name"),
        (&["rmcur", "base"], "base"),
        (&["rmcur", "a"], "a"),
        (&["mktkt", "5", "-c", "b", "--fund", "a"], "a"),
        (&["mktkt", "5", "--fund", "nobody"], "nobody"),
        (&["fund", "t99999", "first"], "t99999"),
        (&["rmtkt", "first"], "first"),
        (&["transfer", "first", "nobody=5"], "nobody"),
        (&["transfer", "first", "a=101"], "101"),
        (&["transfer", "--end", "x9"], "x9"),
    ];
    for (arguments, named) in wrong {
        let said = real.refused(arguments);
        assert!(said.contains(named), "{arguments:?}: {said}");
    }
    let cycle = real.refused(&["mktkt", "5", "-c", "b", "--fund", "a"]);
    assert!(cycle.contains("a -> b -> a"), "the cycle is named: {cycle}");
    // Only states and values may change from moment to moment.
    let amounts = |table: &str| -> Vec<Vec<String>> {
        table
            .lines()
            .map(|line| line.split_whitespace().take(5).map(str::to_owned).collect())
            .collect()
    };
    let after = (real.done(&["lstkt"]), real.done(&["lscur"]));
    assert_eq!(amounts(&before.0), amounts(&after.0));
    assert_eq!(amounts(&before.1), amounts(&after.1));
    assert_eq!(real.client("first").tickets, [(100, own)]);
}

#[test]
fn processes_of_other_users_are_refused() {
    let real = Real::start_as_ordinary_user();
    let said = real.refused(&["set", "1", "100"]);
    assert!(said.contains('1'), "{said}");
}

#[test]
fn set_takes_over_a_running_process() {
    let real = Real::start();
    let mut child =
        end_with_test(std::process::Command::new("sh").args(["-c", "while :; do :; done"]))
            .spawn()
            .unwrap();
    let pid = child.id().to_string();
    let created = real.json(&["set", &pid, "100"]);
    let client = &real.clients()[0];
    assert_eq!(created["created"], *client.id);
    assert_eq!(client.pid, child.id());
    real.done(&["release", &pid]);
    eventually("it runs freely", || is_free(child.id()));
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(process_state(child.id()), None);
}

#[test]
fn a_process_belongs_to_one_daemon() {
    let (first, second) = (Real::start(), Real::start());
    let _running = first.compute("first", "100");
    let client = first.client("first");
    let pid = client.pid.to_string();
    let belongs = format!(
        "belongs to client {} of the daemon on {}, and",
        client.id,
        first.socket().display()
    );
    let said = second.refused(&["set", &pid, "50"]);
    assert!(
        said.starts_with(&format!("process {pid} {belongs}")),
        "{said}"
    );
    // A command inside a client belongs to the same daemon.
    let run = format!(
        "{} --socket {} run true; exit $?",
        env!("CARGO_BIN_EXE_prorata"),
        second.socket().display()
    );
    let ended = output(first.prorata().args(["run", "sh", "-c", &run]));
    assert_eq!(ended.status.code(), Some(1));
    let said = stderr(&ended);
    assert!(said.contains("no process belongs to two daemons"), "{said}");
    assert_eq!(second.clients(), []);
    first.done(&["release", "first"]);
    second.done(&["set", &pid, "50"]);
    assert_eq!(second.clients()[0].pid, client.pid);
}

#[test]
fn a_tree_shows_the_processes_of_each_client() {
    let real = Real::start();
    let mut command = real.prorata();
    command.args(["run", "-n", "family", "sh", "-c", "sleep 600 & wait"]);
    let mut family = end_with_test(&mut command).spawn().unwrap();
    eventually("two processes", || {
        real.clients().iter().any(|client| client.processes == 2)
    });
    let shell = real.client("family").pid;
    let trees = real.json(&["ps", "--tree"]);
    let processes = trees[0]["processes"].as_array().unwrap();
    assert_eq!(processes[0]["pid"], shell);
    assert_eq!(processes[1]["parent"], shell);
    let tree = real.done(&["ps", "--tree"]);
    let lines: Vec<&str> = tree.lines().collect();
    assert!(lines[0].contains("family"), "{tree}");
    assert_eq!(lines[1], format!("└─ {shell} sh -c sleep 600 & wait"));
    assert!(
        lines[2].starts_with("   └─ ") && lines[2].ends_with(" sleep 600"),
        "{tree}"
    );
    real.done(&["kill", "family"]);
    family.wait().unwrap();
}

#[test]
fn a_client_is_gone_when_its_command_returns() {
    let real = Real::start();
    for _ in 0..10 {
        real.done(&["run", "true"]);
        assert_eq!(real.clients(), []);
    }
    // An orphan is left of this one.
    real.done(&[
        "run",
        "-n",
        "family",
        "sh",
        "-c",
        "sleep 600 > /dev/null 2>&1 &",
    ]);
    eventually("only the orphan is left", || {
        real.client("family").processes == 1
    });
    real.done(&["kill", "family"]);
}

#[test]
fn many_clients_come_and_go() {
    let real = Real::start();
    let commands: Vec<_> = (0..20)
        .map(|_| {
            real.prorata()
                .args(["run", "--", "sh", "-c", "exit 7"])
                .spawn()
                .unwrap()
        })
        .collect();
    for mut command in commands {
        assert_eq!(command.wait().unwrap().code(), Some(7));
    }
    eventually("nothing is managed", || real.clients().is_empty());
    assert_eq!(
        stdout(&output(real.prorata().args(["run", "echo", "still here"]))),
        "still here\n"
    );
}

#[test]
fn a_client_without_tickets_in_force_is_warned_of_and_runs_on_an_idle_cpu() {
    let real = Real::start();
    real.done(&["mkcur", "batch"]);
    let run = ["run", "-c", "batch", "--", "sh", "-c", "echo done"];
    let ended = output(real.prorata().args(run));
    assert_eq!(
        (ended.status.code(), stdout(&ended).as_str()),
        (Some(0), "done\n")
    );
    let said = stderr(&ended);
    assert!(
        said.starts_with("prorata: nothing funds currency batch"),
        "{said}"
    );
    assert_eq!(said.lines().count(), 1);
    real.done(&["mktkt", "100", "--fund", "batch"]);
    assert_eq!(real.done(&run), "done\n");
}
