//! Events of real clients.

use std::process::Stdio;

use serde_json::Value;

use crate::support::real::Real;
use crate::support::{end_with_test, eventually, output, stderr};

#[test]
fn events_tell_why_turns_ended_and_who_woke() {
    let real = Real::start();
    let _hogs = ["one", "other"].map(|name| real.compute(name, "1"));
    let nap = "while :; do sleep 0.05; done";
    let mut sleeper = real.prorata();
    sleeper.args(["run", "-n", "sleeper", "--", "sh", "-c", nap]);
    let sleeper = sleeper.stdout(Stdio::null()).stderr(Stdio::null());
    let mut sleeper = end_with_test(sleeper).spawn().unwrap();
    let is_told = |name: &str, event: &str, field: &str, content: Value| {
        let events = real.json(&["events", "-n", "1000"]);
        let events = events.as_array().unwrap();
        assert!(events.len() <= 1000);
        let times = events.iter().map(|event| event["time_ns"].as_u64());
        assert!(times.is_sorted());
        events.iter().any(|told| {
            let what = &told["what"];
            told["name"] == name && what["event"] == event && what[field] == content
        })
    };
    eventually("a quantum is over", || {
        is_told("one", "turn-ended", "reason", "quantum".into())
    });
    eventually("a client sleeps", || {
        is_told("sleeper", "slept", "on", "user".into())
    });
    eventually("it wakes early", || {
        is_told("sleeper", "woke", "early", true.into())
    });
    let shown = real.done(&["events", "-n", "3"]);
    assert_eq!(shown.lines().count(), 4, "{shown}");
    assert!(shown.trim_start().starts_with("TIME"), "{shown}");
    // Not the command's wrapper alone, which would leave the command behind.
    real.done(&["kill", "--signal", "KILL", "sleeper"]);
    sleeper.wait().unwrap();
    for number in ["0", "1001"] {
        let ended = output(real.prorata().args(["events", "-n", number]));
        assert_eq!(ended.status.code(), Some(2), "{}", stderr(&ended));
    }
}
