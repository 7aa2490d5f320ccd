//! `prorata trace` of the daemon's scheduler.

use libtest_mimic::Failed;
use serde_json::Value;

use crate::script::{check, json, part, play};

/// The group of the CPUs' tracks.
const CPUS: u32 = 1 << 22;

/// Two that compute, and one that sleeps now and then; the daemon's settings and
/// clients are its own.
pub fn traced() -> Result<(), Failed> {
    let script = "
         hog 3 three; hog 1 one
         prorata run -t 2 -n two -- sh -c 'while :; do sleep 0.01; done' >/dev/null &
         until_there 3
         show status prorata status --json
         show trace prorata trace --seconds 3 --json --perfetto /tmp/prorata.test/trace.json
         show events cat /tmp/prorata.test/trace.json
         show clients prorata ps --json
         prorata stop";
    let shown = play("--trace", script)?;
    check(json(&shown, "status")?["traced"] == true, "traced", &shown)?;
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
    // A track for each CPU, beside those of the threads, with the same turns.
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

/// A scheduler that was loaded without a trace has none, and settings are the
/// daemon's.
pub fn refused() -> Result<(), Failed> {
    let script = "
         refused() { \"$@\" 2>&1 && echo accepted || true; }
         show untraced refused prorata trace --seconds 1
         prorata stop; until_unloaded
         prorata start --engine kernel --cpus 0 --trace >/dev/null
         show settings refused prorata trace --seconds 1 --quantum 5ms
         show check refused prorata trace --seconds 1 --check
         prorata stop";
    let shown = play("", script)?;
    for (name, reason) in [
        ("untraced", "prorata start --engine kernel --trace"),
        ("settings", "prorata configure"),
        ("check", "prorata stop"),
    ] {
        let told = part(&shown, name)?;
        let is_refused = told.contains(reason) && !told.contains("accepted");
        check(is_refused, name, &shown)?;
    }
    Ok(())
}
