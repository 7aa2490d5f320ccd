//! The daemon with the kernel engine, in a machine: everything goes through the
//! command line, as users have it.

use std::collections::BTreeMap;

use libtest_mimic::Failed;
use serde_json::Value;

use super::{Check, PRORATA, machine};

pub const CHECKS: [(&str, Check); 8] = [
    ("kernel_engine_shares_follow_tickets", shares),
    ("kernel_engine_transfers_move_shares", transfers),
    ("kernel_engine_comes_back_after_a_kill", killed),
    ("kernel_engine_puts_policies_back", policies),
    ("kernel_engine_tells_why_it_was_unloaded", unloaded),
    ("kernel_engine_notices_ends", ends),
    ("kernel_engine_refusals", refusals),
    ("kernel_engine_demo", demo),
];

/// Begins every script: a daemon of its own, and programs that only compute.
/// What is to be looked at here comes between lines with its name.
const BEGIN: &str = r#"
set -eu
mkdir -m 700 /tmp/prorata.test
export PRORATA_SOCKET=/tmp/prorata.test/socket
show() { echo "=== $1"; shift; "$@"; echo; }
hog() { prorata run -t "$1" -n "$2" -- sha256sum /dev/zero >/dev/null & }
until_there() { while [ "$(prorata ps --json | grep -c '"id"')" != "$1" ]; do sleep 0.1; done; }
until_unloaded() { for _ in $(seq 100); do grep -q disabled /sys/kernel/sched_ext/state && break; sleep 0.1; done; }
# Field of a line of /proc/PID/stat after the name: 39 is the policy.
policy() { sed 's/.*) //' "/proc/$1/stat" | cut -d' ' -f39; }
prorata start --engine kernel --cpus 0 >/dev/null
"#;

/// Time between two looks. (The daemon and the looks themselves take their part
/// of it.)
const SECONDS: f64 = 4.0;

/// Nobody is off by more quanta of 20 ms than so many: one for each end of the
/// time, and as many for what it takes to look at one after another.
const TOLERANCE_NS: f64 = 4.0 * 20e6;

/// A script that takes longer hangs.
const LONGEST_S: &str = "120";

/// What a script shows, by name.
type Shown = BTreeMap<String, String>;

fn play(series: &str, script: &str) -> Result<Shown, Failed> {
    let program = PRORATA.replace('\'', "'\\''");
    let script = format!("prorata() {{ '{program}' \"$@\"; }}\n{BEGIN}{script}");
    let command = ["timeout", LONGEST_S, "sh", "-c", &script];
    let output = machine(series, &[], &command)?;
    let text = String::from_utf8(output.stdout.clone())?;
    if !output.status.success() {
        return Err(format!("{output:?}").into());
    }
    let parts = text.split("=== ").skip(1);
    let parts = parts.filter_map(|part| part.split_once('\n'));
    Ok(parts
        .map(|(name, text)| (name.to_owned(), text.trim().to_owned()))
        .collect())
}

fn part<'a>(shown: &'a Shown, name: &str) -> Result<&'a str, Failed> {
    let text = shown.get(name).map(String::as_str);
    text.ok_or_else(|| format!("no {name} in {shown:?}").into())
}

fn json(shown: &Shown, name: &str) -> Result<Value, Failed> {
    Ok(serde_json::from_str(part(shown, name)?)?)
}

/// CPU time that each client received between two looks, in nanoseconds.
fn received(shown: &Shown, before: &str, after: &str) -> Result<BTreeMap<String, f64>, Failed> {
    let times = |name: &str| -> Result<BTreeMap<String, f64>, Failed> {
        let clients = json(shown, name)?;
        let clients = clients.as_array().ok_or("no list of clients")?;
        let time = |client: &Value| {
            let name = client["name"].as_str()?.to_owned();
            Some((name, client["received_ns"].as_f64()?))
        };
        Ok(clients.iter().filter_map(time).collect())
    };
    let (before, mut times) = (times(before)?, times(after)?);
    for (name, time) in &mut times {
        *time -= before.get(name).unwrap_or(&0.0);
    }
    Ok(times)
}

/// Whether these clients, and no others, received time by their tickets.
fn near(shown: &Shown, [before, after]: [&str; 2], expected: &[(&str, f64)]) -> Result<(), Failed> {
    let times = received(shown, before, after)?;
    let time = |name: &str| times.get(name).copied().unwrap_or(0.0);
    let pairs: Vec<(f64, f64)> = expected
        .iter()
        .map(|(name, tickets)| (time(name), *tickets))
        .collect();
    match by_tickets(&pairs) && times.len() == expected.len() {
        true => Ok(()),
        false => Err(format!("{times:?} for {expected:?}: {shown:?}").into()),
    }
}

/// Whether times are to one another as tickets are, and enough to tell.
fn by_tickets(pairs: &[(f64, f64)]) -> bool {
    let total_ns: f64 = pairs.iter().map(|(time, _)| time).sum();
    let tickets: f64 = pairs.iter().map(|(_, tickets)| tickets).sum();
    let is_near =
        |(time, held): &(f64, f64)| (time - total_ns * held / tickets).abs() < TOLERANCE_NS;
    total_ns > SECONDS / 4.0 * 1e9 && pairs.iter().all(is_near)
}

fn check(condition: bool, what: &str, shown: &Shown) -> Result<(), Failed> {
    match condition {
        true => Ok(()),
        false => Err(format!("{what}: {shown:?}").into()),
    }
}

fn shares(series: &str) -> Result<(), Failed> {
    let script = format!(
        "hog 3 three; hog 2 two; hog 1 one; until_there 3; sleep 0.5
         show before prorata ps --json; sleep {SECONDS}; show after prorata ps --json
         prorata set one 4; sleep 0.2
         show inflated prorata ps --json; sleep {SECONDS}; show later prorata ps --json
         show status prorata status --json
         prorata stop
         until_unloaded
         show state cat /sys/kernel/sched_ext/state"
    );
    let shown = play(series, &script)?;
    let held = [("three", 3.0), ("two", 2.0), ("one", 1.0)];
    near(&shown, ["before", "after"], &held)?;
    let held = [("three", 3.0), ("two", 2.0), ("one", 4.0)];
    near(&shown, ["inflated", "later"], &held)?;
    // What should be is the kernel's account, too.
    let later = json(&shown, "later")?;
    for client in later.as_array().into_iter().flatten() {
        let error = client["error_quanta"].as_f64().unwrap_or(f64::INFINITY);
        check(error.abs() < 8.0, "the account differs", &shown)?;
        let turns = client["turns"]["turns"].as_u64().unwrap_or(0);
        check(turns > 0, "no turns", &shown)?;
    }
    let status = json(&shown, "status")?;
    check(status["engine"] == "kernel", "engine", &shown)?;
    check(status["mechanism"] == "partial", "mechanism", &shown)?;
    check(status["decisions"].as_u64() > Some(0), "decisions", &shown)?;
    check(status["trouble"].is_null(), "trouble", &shown)?;
    check(part(&shown, "state")? == "disabled", "not unloaded", &shown)
}

fn transfers(series: &str) -> Result<(), Failed> {
    let script = format!(
        "hog 4 giver; hog 1 taker; hog 1 other; until_there 3
         transfer=$(prorata transfer giver taker=3); sleep 0.5
         show before prorata ps --json; sleep {SECONDS}; show lent prorata ps --json
         prorata transfer --end \"$transfer\"; sleep 0.2
         show undone prorata ps --json; sleep {SECONDS}; show after prorata ps --json
         prorata stop"
    );
    let shown = play(series, &script)?;
    let held = [("giver", 1.0), ("taker", 4.0), ("other", 1.0)];
    near(&shown, ["before", "lent"], &held)?;
    let held = [("giver", 4.0), ("taker", 1.0), ("other", 1.0)];
    near(&shown, ["undone", "after"], &held)
}

fn killed(series: &str) -> Result<(), Failed> {
    let script = format!(
        "pid() {{ prorata status --json | sed -n 's/.*\"pid\": \\([0-9]*\\).*/\\1/p'; }}
         hog 3 three; hog 1 one; until_there 2; sleep 0.5
         old=$(pid); kill -9 \"$old\"
         while :; do new=$(pid || true); [ -n \"$new\" ] && [ \"$new\" != \"$old\" ] && break; sleep 0.1; done
         until_there 2; sleep 0.5
         show status prorata status --json
         show before prorata ps --json; sleep {SECONDS}; show after prorata ps --json
         prorata stop"
    );
    let shown = play(series, &script)?;
    check(
        json(&shown, "status")?["engine"] == "kernel",
        "engine",
        &shown,
    )?;
    near(&shown, ["before", "after"], &[("three", 3.0), ("one", 1.0)])
}

fn policies(series: &str) -> Result<(), Failed> {
    let script = "
         chrt --batch 0 sh -c 'sha256sum /dev/zero & wait' & batch=$!
         sha256sum /dev/zero & other=$!
         sleep 0.3
         prorata set $batch 5 >/dev/null; prorata set $other 5 >/dev/null
         child=$(cat /proc/$batch/task/$batch/children)
         all() { for pid in $batch $child $other; do policy $pid; done | tr '\\n' ' '; }
         show managed all
         prorata release $batch; show released all
         # The daemon's end is a release too.
         prorata stop; show stopped all
         kill $batch $child $other";
    let shown = play(series, script)?;
    let seen = ["managed", "released", "stopped"].map(|name| part(&shown, name));
    for (seen, expected) in seen.into_iter().zip(["7 7 7", "3 3 7", "3 3 0"]) {
        check(seen? == expected, expected, &shown)?;
    }
    Ok(())
}

fn unloaded(series: &str) -> Result<(), Failed> {
    let script = "
         hog 3 three; hog 1 one; until_there 2; sleep 0.3
         echo S > /proc/sysrq-trigger
         while prorata status | grep -q partial; do sleep 0.1; done
         show status prorata status --json
         show policies sh -c 'for pid in $(pidof sha256sum); do sed \"s/.*) //\" /proc/$pid/stat | cut -d\" \" -f39; done | sort -u'
         show clients prorata ps --json
         prorata stop";
    let shown = play(series, script)?;
    let status = json(&shown, "status")?;
    let trouble = status["trouble"].as_str().unwrap_or_default();
    check(trouble.contains("sysrq"), "why it was unloaded", &shown)?;
    check(status["mechanism"] == "none", "mechanism", &shown)?;
    check(part(&shown, "policies")? == "0", "policies", &shown)?;
    let clients = json(&shown, "clients")?;
    check(
        clients.as_array().map(Vec::len) == Some(2),
        "clients",
        &shown,
    )
}

/// A client is there as long as anything of it, orphans included.
fn ends(series: &str) -> Result<(), Failed> {
    let script = "
         prorata run -n parent -- sh -c 'sleep 3 & exit 0' >/dev/null &
         until_there 1; sleep 1
         show orphan prorata ps --json
         until_there 0; show none prorata ps --json
         prorata stop";
    let shown = play(series, script)?;
    let clients = json(&shown, "orphan")?;
    let names = clients
        .as_array()
        .map(|all| all.iter().map(|client| &client["name"]));
    let names: Vec<&Value> = names.into_iter().flatten().collect();
    check(names == ["parent"], "the orphan's client", &shown)?;
    let none = json(&shown, "none")?;
    check(none.as_array().is_some_and(Vec::is_empty), "none", &shown)
}

/// There can be one scheduler, and only root has it.
fn refusals(series: &str) -> Result<(), Failed> {
    let script = format!(
        "prorata stop; until_unloaded
         refused() {{ \"$@\" 2>&1 && echo accepted || true; }}
         show occupied refused prorata floor '{PRORATA}' start --engine kernel
         mkdir -m 700 /tmp/nobody; chown 65534:65534 /tmp/nobody; export PRORATA_SOCKET=/tmp/nobody/socket
         show user refused setpriv --reuid 65534 --regid 65534 --clear-groups '{PRORATA}' start --engine kernel"
    );
    let shown = play(series, &script)?;
    let reasons = [
        ("occupied", "prorata_floor is loaded already"),
        ("user", "by root alone"),
    ];
    for (name, reason) in reasons {
        let told = part(&shown, name)?;
        check(
            told.contains(reason) && !told.contains("accepted"),
            name,
            &shown,
        )?;
    }
    Ok(())
}

fn demo(series: &str) -> Result<(), Failed> {
    let script = format!(
        "prorata stop; show demo prorata demo --engine kernel --seconds {} --json",
        SECONDS * 2.0
    );
    let shown = play(series, &script)?;
    let demo = json(&shown, "demo")?;
    check(demo["engine"] == "kernel", "engine", &shown)?;
    for (phase, tickets) in [[3.0, 2.0, 1.0], [3.0, 2.0, 4.0]].iter().enumerate() {
        let programs = &demo["phases"][phase]["programs"];
        let time = |program: usize| programs[program]["received_ns"].as_f64().unwrap_or(0.0);
        let pairs = [0, 1, 2].map(|program| (time(program), tickets[program]));
        check(by_tickets(&pairs), "shares", &shown)?;
    }
    Ok(())
}
