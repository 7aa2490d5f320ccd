//! A killed daemon, and a scheduler that the kernel unloads.

use libtest_mimic::Failed;

use crate::script::{SECONDS, check, json, near, part, play, play_whole};

/// Clients continue under the kernel's own scheduler. Their wrappers start the next
/// daemon, which finds them.
pub fn killed() -> Result<(), Failed> {
    let script = format!(
        "hog 3 three; hog 1 one; until_there 2; sleep 0.5
         old=$(pid_of_daemon); kill -9 \"$old\"; until_another_than \"$old\"
         until_there 2; sleep 0.5
         show status prorata status --json
         show before prorata ps --json; sleep {SECONDS}; show after prorata ps --json
         prorata stop"
    );
    let shown = play("", &script)?;
    let status = json(&shown, "status")?;
    check(status["engine"] == "kernel", "engine", &shown)?;
    near(&shown, ["before", "after"], &[("three", 3.0), ("one", 1.0)])
}

/// The same for the whole machine: no process ends, and the next daemon schedules the
/// whole machine again.
pub fn killed_with_all() -> Result<(), Failed> {
    let script = "
         sha256sum /dev/zero & bystander=$!
         hog 1 one; until_there 1
         old=$(pid_of_daemon); kill -9 \"$old\"; until_another_than \"$old\"
         until_there 1
         show status prorata status --json
         kill -0 $bystander; kill $bystander
         prorata stop; until_unloaded";
    let shown = play_whole("", script)?;
    let status = json(&shown, "status")?;
    check(status["mechanism"] == "all", "mechanism", &shown)?;
    check(status["trouble"].is_null(), "trouble", &shown)
}

pub fn unloaded() -> Result<(), Failed> {
    let script = "
         hog 3 three; hog 1 one; until_there 2; sleep 0.3
         echo S > /proc/sysrq-trigger
         while prorata status | grep -q partial; do sleep 0.1; done
         show status prorata status --json
         show policies sh -c 'for pid in $(pidof sha256sum); do sed \"s/.*) //\" /proc/$pid/stat | cut -d\" \" -f39; done | sort -u'
         show clients prorata ps --json
         prorata stop";
    let shown = play("", script)?;
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

/// A real-time task keeps the CPU so long that the kernel blames the scheduler and
/// unloads it. The daemon loads it again and reports this.
pub fn stalled() -> Result<(), Failed> {
    let script = format!(
        "hog 3 three; hog 1 one; until_there 2; sleep 0.3
         # Newer kernels reserve some time for every class.
         mount -t debugfs debugfs /sys/kernel/debug
         for reserve in /sys/kernel/debug/sched/ext_server/cpu*/runtime; do
             [ ! -e \"$reserve\" ] || echo 0 > \"$reserve\"
         done
         chrt --fifo 1 sh -c 'while read state < /sys/kernel/sched_ext/state && [ $state = enabled ]; do :; done'
         while ! prorata status | grep -q 'loaded again'; do sleep 0.1; done
         sleep 0.5
         show status prorata status --json
         show before prorata ps --json; sleep {SECONDS}; show after prorata ps --json
         prorata stop; until_unloaded"
    );
    let shown = play("", &script)?;
    let status = json(&shown, "status")?;
    let trouble = status["trouble"].as_str().unwrap_or_default();
    check(trouble.contains("stall"), "why it was unloaded", &shown)?;
    check(status["mechanism"] == "partial", "mechanism", &shown)?;
    near(&shown, ["before", "after"], &[("three", 3.0), ("one", 1.0)])
}
