//! The daemon is killed, or the kernel unloads its scheduler.

use libtest_mimic::Failed;

use crate::script::{SECONDS, check, json, near, part, play};

/// Clients go on under the kernel's own scheduler, and the next daemon, which
/// whoever waits for them brings up, finds them.
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

/// The same where all of the machine was under the scheduler: nobody ends, and
/// the next daemon has all of it again.
pub fn killed_with_all() -> Result<(), Failed> {
    let script = "
         sha256sum /dev/zero & bystander=$!
         hog 1 one; until_there 1
         old=$(pid_of_daemon); kill -9 \"$old\"; until_another_than \"$old\"
         until_there 1
         show status prorata status --json
         kill -0 $bystander; kill $bystander
         prorata stop; until_unloaded";
    let shown = play("--all", script)?;
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

/// Somebody under a real-time policy keeps the CPU for so long that the kernel
/// takes the scheduler for the one to blame: it is loaded again, and says so.
pub fn stalled() -> Result<(), Failed> {
    let script = format!(
        "hog 3 three; hog 1 one; until_there 2; sleep 0.3
         # Newer kernels have something in reserve for everybody.
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
