//! `prorata trace` of the daemon's scheduler.

use libtest_mimic::Failed;
use serde_json::Value;

use crate::script::{GROUP, Shown, check, json, part, play, play_whole};
use crate::whole::SERVICES;

/// The number of the CPUs' group of tracks.
const CPUS: u32 = 1 << 22;

/// Traces a daemon with two computing clients and one that sleeps now and then.
pub fn traced() -> Result<(), Failed> {
    let script = "
         hog 3 three; hog 1 one
         prorata run -t 2 -n two -- sh -c 'while :; do sleep 0.01; done' >/dev/null &
         until_there 3
         show status prorata status --json
         show trace prorata trace --seconds 3 --json --perfetto /tmp/prorata.test/trace.json
         show events cat /tmp/prorata.test/trace.json
         show clients prorata ps --json
         show happened prorata events -n 40 --json
         prorata stop";
    let shown = play("--trace", script)?;
    check(json(&shown, "status")?["traced"] == true, "traced", &shown)?;
    happened(&shown)?;
    let trace = json(&shown, "trace")?;
    let picks = trace["picks"].as_u64().unwrap_or(0);
    if trace["lost"] != 0 || picks < 50 {
        return Err(format!("{trace}").into());
    }
    let clients = json(&shown, "clients")?;
    check(
        clients.as_array().map(Vec::len) == Some(3),
        "clients",
        &shown,
    )?;
    let events = json(&shown, "events")?;
    let events = events["traceEvents"].as_array().ok_or("no events")?;
    // Each CPU has a track with the turns of the threads' tracks.
    let drawn = |on_cpus: bool| -> f64 {
        let slices = events.iter().filter(|event| event["ph"] == "X");
        slices
            .filter(|slice| (slice["pid"] == CPUS) == on_cpus)
            .filter_map(|slice| slice["dur"].as_f64())
            .sum()
    };
    let named = |event: &&Value| event["args"]["name"] == "CPU 0";
    let is_drawn = drawn(true) > 1e6 && (drawn(true) - drawn(false)).abs() < 1.0;
    if events.iter().filter(named).count() != 1 || !is_drawn {
        return Err(format!("{} us on CPUs, {} in threads", drawn(true), drawn(false)).into());
    }
    Ok(())
}

/// Ends of turns, sleeps and wakes with their reasons, of clients.
fn happened(shown: &Shown) -> Result<(), Failed> {
    let events = json(shown, "happened")?;
    let events = events.as_array().ok_or("no events")?;
    let any = |is_it: &dyn Fn(&Value) -> bool| events.iter().any(|event| is_it(&event["what"]));
    let is_told = events.len() == 40
        && any(&|what| what["event"] == "turn-ended" && what["reason"] == "sleep")
        && any(&|what| what["event"] == "slept")
        && any(&|what| what["event"] == "woke" && what["early"] == true);
    check(is_told, "events", shown)?;
    let is_client = |event: &Value| event["client"].is_string() && event["thread"].is_number();
    check(events.iter().any(is_client), "clients of events", shown)
}

/// Replays the decisions from the middle of a daemon's life, while everything changes
/// that a daemon can change.
pub fn allowed() -> Result<(), Failed> {
    let script = "
         hog 3 three; hog 1 one
         prorata run -t 2 -n two -- sh -c 'while :; do sleep 0.01; done' >/dev/null &
         until_there 3; sleep 0.5
         prorata trace --seconds 10 --check --json > /tmp/prorata.test/checked & trace=$!
         sleep 1
         prorata set one 4; prorata mkcur ours; prorata mktkt 2 --fund ours >/dev/null
         sleep 0.5
         transfer=$(prorata transfer three one=2)
         prorata run -t 100 --currency ours -n four --quantum 5ms -- timeout 2 sha256sum /dev/zero >/dev/null &
         until_there 4; sleep 0.5
         prorata transfer --end \"$transfer\"
         prorata quantum one 40ms; prorata configure --quantum 10ms >/dev/null
         until_there 3
         hog 2 five; until_there 4
         wait $trace && show code echo 0
         show checked cat /tmp/prorata.test/checked
         prorata stop";
    let shown = play("--trace", script)?;
    is_allowed(&shown)
}

/// The same for the whole machine, with control groups that come and go.
pub fn all_allowed() -> Result<(), Failed> {
    let script = format!(
        "GROUP={GROUP}
         {SERVICES}
         hog 3 three; service a 300 1; service b 100 3
         until_there 1; sleep 0.5
         prorata trace --seconds 8 --check --json > /tmp/prorata.test/checked & trace=$!
         sleep 1
         service c 50 2
         sleep 0.5
         prorata set three 6000; echo 300 > $GROUP/b/cpu.weight
         sleep 0.5
         echo 1 > $GROUP/c/cgroup.kill; while ! rmdir $GROUP/c; do sleep 0.1; done
         service d 80 1
         hog 1 one; until_there 2
         wait $trace && show code echo 0
         show checked cat /tmp/prorata.test/checked
         prorata stop; until_unloaded"
    );
    is_allowed(&play_whole("--trace", &script)?)
}

fn is_allowed(shown: &Shown) -> Result<(), Failed> {
    let checked = json(shown, "checked")?;
    let picks = checked["picks"].as_u64().unwrap_or(0);
    let is_clean = checked["checked"] == true && checked["not_allowed"].is_null();
    if !is_clean || checked["lost"] != 0 || picks < 100 {
        return Err(format!("{checked}").into());
    }
    check(part(shown, "code")? == "0", "the exit code", shown)
}

/// A scheduler loaded without `--trace` has no trace, and the daemon's settings cannot
/// be overridden.
pub fn refused() -> Result<(), Failed> {
    let script = "
         refused() { \"$@\" 2>&1 && echo accepted || true; }
         show untraced refused prorata trace --seconds 1
         prorata stop; until_unloaded
         prorata start --engine kernel --cpus 0 --trace >/dev/null
         show settings refused prorata trace --seconds 1 --quantum 5ms
         prorata configure --policy lottery >/dev/null
         show lottery refused prorata trace --seconds 1 --check
         prorata stop";
    let shown = play("", script)?;
    for (name, reason) in [
        ("untraced", "prorata start --engine kernel --trace"),
        ("settings", "prorata configure"),
        ("lottery", "prorata configure --policy stride"),
    ] {
        let told = part(&shown, name)?;
        let is_refused = told.contains(reason) && !told.contains("accepted");
        check(is_refused, name, &shown)?;
    }
    Ok(())
}
