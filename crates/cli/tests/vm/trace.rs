//! `prorata trace` in a micro-VM: the decisions and their check.

use libtest_mimic::Failed;
use serde_json::Value;

use super::{Check, PRORATA, machine};

pub const CHECKS: [(&str, Check); 2] = [
    ("decisions_are_traced_and_allowed", traced),
    ("decisions_on_several_cpus_are_allowed", several),
];

/// Traces two computing programs, one of them nicer, and one that sleeps now and then.
const SCRIPT: &str = r#"
sha256sum /dev/zero & nice -n 5 sha256sum /dev/zero &
(while :; do sleep 0.01; done) &
sleep 0.5
"$PRORATA" trace --seconds 3 --check --json --perfetto /tmp/trace.json
code=$?
echo "=== $code"
cat /tmp/trace.json
"#;

fn traced(series: &str) -> Result<(), Failed> {
    let script = format!("PRORATA='{PRORATA}'\n{SCRIPT}");
    let output = machine(series, &["--icount=8"], &["sh", "-c", &script])?;
    let text = String::from_utf8(output.stdout.clone())?;
    let parts = text.split_once("=== ");
    let parts = parts.and_then(|(summary, rest)| Some((summary, rest.split_once('\n')?)));
    let Some((summary, (code, trace))) = parts else {
        return Err(format!("{output:?}").into());
    };
    let summary: Value = serde_json::from_str(summary).map_err(|_| format!("{output:?}"))?;
    let checked = summary["checked"] == true && summary["not_allowed"].is_null();
    let picks = summary["picks"].as_u64().unwrap_or(0);
    if code != "0" || !checked || summary["lost"] != 0 || picks < 100 {
        return Err(format!("exit code {code}: {summary}").into());
    }
    // Their used times are as their weights, 1024 to 335, within four quanta.
    let hogs = summary["tasks"].as_array().into_iter().flatten();
    let hogs = hogs.filter(|task| task["name"] == "sha256sum");
    let used: Vec<f64> = hogs.filter_map(|task| task["used_ns"].as_f64()).collect();
    let [most, least] = used[..] else {
        return Err(format!("{used:?}: {summary}").into());
    };
    let due = (most + least) * 335.0 / (1024.0 + 335.0);
    if (least - due).abs() > 4.0 * 24e6 {
        return Err(format!("{least} ns instead of {due}: {summary}").into());
    }
    let trace: Value = serde_json::from_str(trace)?;
    let events = trace["traceEvents"].as_array().ok_or("no events")?;
    let slices = events.iter().filter(|event| event["ph"] == "X");
    let slices = slices.filter(|slice| slice["name"] == "sha256sum");
    let drawn: f64 = slices.filter_map(|slice| slice["dur"].as_f64()).sum();
    // The slices are the turns, in microseconds, on the thread's track and on the CPU's.
    if (drawn * 1e3 / (2.0 * (most + least)) - 1.0).abs() > 0.05 {
        return Err(format!("{drawn} us are drawn of {most} and {least} ns").into());
    }
    Ok(())
}

/// A loaded scheduler for the whole machine, and then a daemon's, both on three CPUs with
/// more computing programs than CPUs. Programs are nicer while the first is loaded, since
/// loading takes long in a micro-VM that counts instructions.
const SEVERAL: &str = r#"
prorata() { "$PRORATA" "$@"; }
hogs=
for nice in 15 16 17 18 19; do
    nice -n "$nice" sha256sum /dev/zero & hogs="$hogs $!"
done
nice -n 15 taskset 2 sha256sum /dev/zero & hogs="$hogs $!"
echo "=== own"
prorata trace --seconds 3 --check --json || echo "exit code $?"
kill $hogs
prorata start --engine kernel --clients-only --trace >/dev/null
for tickets in 1 2 3 4 5; do
    prorata run -t "$tickets" -- sh -c 'sha256sum /dev/zero & while :; do sleep 0.01; done' >/dev/null &
done
while [ "$(prorata ps --json | grep -c '"id"')" != 5 ]; do sleep 0.1; done
echo "=== daemon"
prorata trace --seconds 3 --check --json || echo "exit code $?"
"#;

fn several(series: &str) -> Result<(), Failed> {
    let script = format!("PRORATA='{PRORATA}'\n{SEVERAL}");
    let output = machine(
        series,
        &["--icount=2", "--cpus", "3"],
        &["sh", "-c", &script],
    )?;
    let text = String::from_utf8(output.stdout.clone())?;
    let summaries: Vec<&str> = text.split("=== ").skip(1).collect();
    if summaries.len() != 2 {
        return Err(format!("{output:?}").into());
    }
    for summary in summaries {
        let (scheduler, summary) = summary.split_once('\n').ok_or("no summary")?;
        let summary: Value =
            serde_json::from_str(summary).map_err(|_| format!("{scheduler}: {output:?}"))?;
        let checked = summary["checked"] == true && summary["not_allowed"].is_null();
        let picks = summary["picks"].as_u64().unwrap_or(0);
        if !checked || summary["lost"] != 0 || picks < 200 {
            return Err(format!("{scheduler}: {summary}").into());
        }
    }
    Ok(())
}
