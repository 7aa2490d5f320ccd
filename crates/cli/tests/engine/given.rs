//! Clients under the scheduler in partial mode: shares, transfers, ends, and the state
//! after the daemon's end.

use libtest_mimic::Failed;
use serde_json::Value;

use crate::PRORATA;
use crate::script::{SECONDS, Shown, by_tickets, check, json, near, part, play, received};

pub fn shares() -> Result<(), Failed> {
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
    let shown = play("", &script)?;
    let held = [("three", 3.0), ("two", 2.0), ("one", 1.0)];
    near(&shown, ["before", "after"], &held)?;
    let held = [("three", 3.0), ("two", 2.0), ("one", 4.0)];
    near(&shown, ["inflated", "later"], &held)?;
    // The kernel's account has the specified time, too.
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
    let advice = status["advice"].as_str().unwrap_or_default();
    check(advice.contains("--clients-only"), "advice", &shown)?;
    check(status["decisions"].as_u64() > Some(0), "decisions", &shown)?;
    check(status["trouble"].is_null(), "trouble", &shown)?;
    check(part(&shown, "state")? == "disabled", "not unloaded", &shown)
}

/// Two users share alike, one with one process and one with five, under both engines.
pub fn users() -> Result<(), Failed> {
    let script = format!(
        "user() {{ setpriv --reuid=$1 --regid=$1 --clear-groups sha256sum /dev/zero >/dev/null & }}
         user 1001; for n in 1 2 3 4 5; do user 1002; done; until_there 2; sleep 0.5
         show before prorata ps --json; sleep {SECONDS}; show after prorata ps --json
         prorata set-funding 1002 3000; sleep 0.2
         show funded prorata ps --json; sleep {SECONDS}; show later prorata ps --json
         show status prorata status
         prorata stop; until_unloaded
         prorata start --engine user --cpus 0 --users >/dev/null; until_there 2; sleep 0.5
         show again prorata ps --json; sleep {SECONDS}; show last prorata ps --json
         prorata stop"
    );
    let shown = play("--users", &script)?;
    let (one, five) = ("rest-of-uid1001", "rest-of-uid1002");
    near(&shown, ["before", "after"], &[(one, 1.0), (five, 1.0)])?;
    near(&shown, ["funded", "later"], &[(one, 1.0), (five, 3.0)])?;
    near(&shown, ["again", "last"], &[(one, 1.0), (five, 3.0)])?;
    let told = part(&shown, "status")?.contains("a client each");
    check(told, "the status", &shown)
}

/// Programs with root's rights are no part of their users' clients, though they were born there.
pub fn roots_programs() -> Result<(), Failed> {
    let script = r#"
         for program in sleep setpriv; do
             cp $(command -v $program) /tmp/roots-$program; chmod 4755 /tmp/roots-$program
         done
         mkfifo /tmp/line
         setpriv --reuid=1001 --regid=1001 --clear-groups bash -c '
             read line; /tmp/roots-sleep 1000 & /tmp/roots-setpriv --ruid=0 --euid=0 sleep 1001 &
             sleep 1002 & wait' < /tmp/line >/dev/null 2>&1 &
         exec 3> /tmp/line; until_there 1; show alone prorata ps --json
         processes() { prorata ps --json | sed -n 's/.*"processes": \([0-9]*\).*/\1/p'; }
         echo go >&3; while [ "$(pgrep -c sleep)" != 3 ]; do sleep 0.1; done
         while [ "$(processes)" = 1 ] || [ "$(processes)" = 4 ]; do sleep 0.5; done
         sleep 6; show after prorata ps --json
         show sleepers pgrep -c sleep; kill $(pgrep sleep); prorata stop"#;
    let shown = play("--users", script)?;
    let count = |name| -> Result<Option<u64>, Failed> {
        let clients = json(&shown, name)?;
        Ok(clients[0]["processes"].as_u64())
    };
    check(count("alone")? == Some(1), "the shell", &shown)?;
    let sleepers = part(&shown, "sleepers")?.trim() == "3";
    check(sleepers, "all three run", &shown)?;
    // The shell, and what it runs without root's rights.
    check(count("after")? == Some(2), "the others", &shown)
}

pub fn transfers() -> Result<(), Failed> {
    let script = format!(
        "hog 4 giver; hog 1 taker; hog 1 other; until_there 3
         transfer=$(prorata transfer giver taker=3); sleep 0.5
         show before prorata ps --json; sleep {SECONDS}; show lent prorata ps --json
         prorata transfer --end \"$transfer\"; sleep 0.2
         show undone prorata ps --json; sleep {SECONDS}; show after prorata ps --json
         prorata stop"
    );
    let shown = play("", &script)?;
    let held = [("giver", 1.0), ("taker", 4.0), ("other", 1.0)];
    near(&shown, ["before", "lent"], &held)?;
    let held = [("giver", 4.0), ("taker", 1.0), ("other", 1.0)];
    near(&shown, ["undone", "after"], &held)
}

/// The policy changes to a lottery while programs run, and back to stride scheduling.
pub fn settings() -> Result<(), Failed> {
    let script = format!(
        "hog 3 three; hog 1 one; until_there 2; sleep 0.5
         show lottery prorata configure --policy lottery --quantum 4ms --json
         show drawn prorata ps --json; sleep {SECONDS}; show lots prorata ps --json
         show stride prorata configure --policy stride --quantum 20ms --json
         show before prorata ps --json; sleep {SECONDS}; show after prorata ps --json
         prorata stop"
    );
    let shown = play("", &script)?;
    for policy in ["lottery", "stride"] {
        check(json(&shown, policy)?["policy"] == policy, policy, &shown)?;
    }
    // A turn lasts until the next tick, so 8 ms at most. With probability 3/4 the wins in n
    // turns have a standard deviation of (3 n)^1/2 / 4; the tolerance is five of these.
    let lots = received(&shown, "drawn", "lots")?;
    let total_ns: f64 = lots.values().sum();
    let three = lots.get("three").copied().unwrap_or(0.0);
    let turn_ns = 8e6;
    let deviation_ns = (3.0 * total_ns / turn_ns).sqrt() / 4.0 * turn_ns;
    let is_near = (three - 0.75 * total_ns).abs() < 5.0 * deviation_ns;
    check(is_near && total_ns > 1e9, "the lottery's shares", &shown)?;
    near(&shown, ["before", "after"], &[("three", 3.0), ("one", 1.0)])
}

/// Shares do not depend on quanta. (Tests of the scheduler alone check the lengths of
/// turns, since a daemon preempts turns too often.)
pub fn quanta() -> Result<(), Failed> {
    let script = format!(
        "prorata run -t 3 -n long -- sha256sum /dev/zero >/dev/null &
         prorata run -t 1 -n short --quantum 4ms -- sha256sum /dev/zero >/dev/null &
         until_there 2; sleep 2
         show before prorata ps --json; sleep {SECONDS}; show after prorata ps --json
         prorata quantum short --reset; prorata quantum long 40ms; sleep 0.2
         show later prorata ps --json; sleep {SECONDS}; show last prorata ps --json
         prorata stop"
    );
    let shown = play("", &script)?;
    let held = [("long", 3.0), ("short", 1.0)];
    near(&shown, ["before", "after"], &held)?;
    near(&shown, ["later", "last"], &held)?;
    let quantum_ns_of = |part: &str, name: &str| -> Result<f64, Failed> {
        let client = client(&shown, part, name)?;
        Ok(client["quantum_ns"].as_f64().unwrap_or(0.0))
    };
    for (part, name, quantum_ns) in [
        ("before", "short", 4e6),
        ("before", "long", 0.0),
        ("last", "short", 0.0),
        ("last", "long", 4e7),
    ] {
        let is_told = quantum_ns_of(part, name)? == quantum_ns;
        check(is_told, "quanta are told", &shown)?;
    }
    Ok(())
}

/// A napping client waits for the end of a hog's quantum, up to some 20 ms, but not with
/// the mechanisms of hybrid lottery scheduling, which are on unless refused. An unmanaged program
/// wakes it, and so interrupts the hog.
pub fn hybrid() -> Result<(), Failed> {
    let script = "
         hog 1 hog
         mkfifo /tmp/prorata.test/wakes /tmp/prorata.test/silence
         prorata run -t 9 -n prompt -- cat /tmp/prorata.test/wakes >/dev/null &
         until_there 2
         # It waits inside the shell, so it runs for a moment only.
         bash -c 'exec 3<>/tmp/prorata.test/silence
             while :; do read -t 0.033 -u 3; echo; done' > /tmp/prorata.test/wakes &
         sleep 1; show status prorata status --json
         show before prorata ps --json; sleep 3; show after prorata ps --json
         refused() { \"$@\" 2>&1 && echo accepted || true; }
         show refused refused prorata configure --hybrid=kernel-priorities
         kill $!; prorata stop";
    for (options, boost, is_abbreviated) in [
        ("--hybrid=none", false, false),
        ("--abbreviated", false, true),
        ("", true, true),
    ] {
        let shown = play(options, script)?;
        let told = &json(&shown, "status")?["hybrid"];
        let is_told = told["abbreviated-quanta"] == is_abbreviated && told["ticket-boost"] == boost;
        check(is_told, "hybrid", &shown)?;
        let [before, after] = ["before", "after"].map(|part| turns_of(&shown, part, "prompt"));
        let ((turns, waited_ns), (turns_before, waited_before_ns)) = (after?, before?);
        check(turns - turns_before > 30.0, "turns", &shown)?;
        let mean_ns = (waited_ns - waited_before_ns) / (turns - turns_before);
        println!(
            "{options:?}: {mean_ns:.0} ns a wait, {} turns",
            turns - turns_before
        );
        // Waits for the waking program itself take one or two milliseconds here.
        let waits_for_turns = mean_ns > 4e6;
        check(
            waits_for_turns != is_abbreviated,
            &format!("{mean_ns} ns a wait"),
            &shown,
        )?;
        let refusal = part(&shown, "refused")?;
        check(refusal.contains("cannot change"), refusal, &shown)?;
        let judged =
            |name: &str| Ok::<Value, Failed>(client(&shown, "after", name)?["hybrid"].clone());
        let (prompt, hog) = (judged("prompt")?, judged("hog")?);
        let is_judged = match (boost, prompt["boost"].as_f64(), hog["boost"].as_f64()) {
            (false, ..) => prompt.is_null() != is_abbreviated,
            (true, Some(prompt), Some(hog)) => prompt > 2.0 && prompt > hog && hog >= 1.0,
            (true, ..) => false,
        };
        check(is_judged, "boosts", &shown)?;
    }
    Ok(())
}

fn client(shown: &Shown, part: &str, name: &str) -> Result<Value, Failed> {
    let clients = json(shown, part)?;
    let mut clients = clients.as_array().into_iter().flatten();
    let client = clients.find(|client| client["name"] == name);
    Ok(client.ok_or("no such client")?.clone())
}

/// Turns of a client, and its waiting time.
fn turns_of(shown: &Shown, part: &str, name: &str) -> Result<(f64, f64), Failed> {
    let turns = &client(shown, part, name)?["turns"];
    let number = |field: &str| turns[field].as_f64().unwrap_or(0.0);
    Ok((number("turns"), number("waited_ns")))
}

pub fn policies() -> Result<(), Failed> {
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
    let shown = play("", script)?;
    let seen = ["managed", "released", "stopped"].map(|name| part(&shown, name));
    for (seen, expected) in seen.into_iter().zip(["7 7 7", "3 3 7", "3 3 0"]) {
        check(seen? == expected, expected, &shown)?;
    }
    Ok(())
}

/// A client exists as long as any of its processes, orphans included.
pub fn ends() -> Result<(), Failed> {
    let script = "
         mkfifo /tmp/prorata.test/end
         prorata run -n parent -- sh -c 'cat /tmp/prorata.test/end & exit 0' >/dev/null &
         until_there 1; sleep 1
         show orphan prorata ps --json
         echo > /tmp/prorata.test/end
         until_there 0; show none prorata ps --json
         prorata stop";
    let shown = play("", script)?;
    let clients = json(&shown, "orphan")?;
    let names = clients
        .as_array()
        .map(|all| all.iter().map(|client| &client["name"]));
    let names: Vec<&Value> = names.into_iter().flatten().collect();
    check(names == ["parent"], "the orphan's client", &shown)?;
    let none = json(&shown, "none")?;
    check(none.as_array().is_some_and(Vec::is_empty), "none", &shown)
}

/// Only one scheduler can be loaded, and only by root.
pub fn refusals() -> Result<(), Failed> {
    let script = format!(
        "prorata stop; until_unloaded
         refused() {{ \"$@\" 2>&1 && echo accepted || true; }}
         show occupied refused prorata floor '{PRORATA}' start --engine kernel
         mkdir -m 700 /tmp/nobody; chown 65534:65534 /tmp/nobody; export PRORATA_SOCKET=/tmp/nobody/socket
         show user refused setpriv --reuid 65534 --regid 65534 --clear-groups '{PRORATA}' start --engine kernel"
    );
    let shown = play("", &script)?;
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

pub fn demo() -> Result<(), Failed> {
    let script = format!(
        "prorata stop; show demo prorata demo --engine kernel --seconds {} --json",
        SECONDS * 2.0
    );
    let shown = play("", &script)?;
    let demo = json(&shown, "demo")?;
    check(demo["engine"] == "kernel", "engine", &shown)?;
    for (phase, tickets) in [[3.0, 2.0, 1.0], [3.0, 2.0, 4.0]].iter().enumerate() {
        let programs = &demo["phases"][phase]["programs"];
        let figure = |program: usize, name| programs[program][name].as_f64().unwrap_or(0.0);
        // A program whose file is still being read has nothing due.
        let due = [0, 1, 2].map(|program| figure(program, "specified_share"));
        let pairs = [0, 1, 2].map(|program| (figure(program, "received_ns"), due[program]));
        check(by_tickets(&pairs), "shares", &shown)?;
        let all: f64 = tickets.iter().sum();
        let mut by_tickets = due.iter().zip(tickets);
        let is_near = by_tickets.all(|(due, tickets)| (due - tickets / all).abs() < 0.1);
        check(is_near, "what is due", &shown)?;
    }
    Ok(())
}
