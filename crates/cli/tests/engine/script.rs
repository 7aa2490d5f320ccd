//! Shell scripts, each with its own daemon, and their output.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Read as _, Seek as _};
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use libtest_mimic::Failed;
use serde_json::Value;

use crate::PRORATA;

/// Control group of a script's processes, which end with the script.
pub const GROUP: &str = "/sys/fs/cgroup/script";

/// The start of every script: a daemon and computing programs. Output for the test
/// stands between lines with its name.
const BEGIN: &str = r#"
set -eu
mkdir -m 700 /tmp/prorata.test
export PRORATA_SOCKET=/tmp/prorata.test/socket
show() { echo "=== $1"; shift; "$@"; echo; }
hog() { prorata run -t "$1" -n "$2" -- sha256sum /dev/zero >/dev/null & }
until_there() { while [ "$(prorata ps --json | grep -c '"id"')" != "$1" ]; do sleep 0.1; done; }
until_unloaded() { while ! grep -q disabled /sys/kernel/sched_ext/state; do sleep 0.1; done; }
pid_of_daemon() { prorata status --json | sed -n 's/.*"pid": \([0-9]*\).*/\1/p'; }
until_another_than() { while new=$(pid_of_daemon || true); [ -z "$new" ] || [ "$new" = "$1" ]; do sleep 0.1; done; }
# Field of a line of /proc/PID/stat after the name: 39 is the policy.
policy() { sed 's/.*) //' "/proc/$1/stat" | cut -d' ' -f39; }
"#;

/// Time between two readings. (The daemon and the readings use a part of it.)
pub const SECONDS: f64 = 4.0;

/// Largest error in turns: one for each end of the time, and two because the clients
/// are read one after another. A turn is a quantum of 20 ms and the rest of a tick of
/// 4 ms.
const TOLERANCE_NS: f64 = 4.0 * 24e6;

/// A script that takes longer than this hangs.
const LONGEST_S: &str = "120";

/// The output of a script, by name.
pub type Shown = BTreeMap<String, String>;

/// Runs a script under a daemon that schedules its clients alone, with these options, and leaves
/// nothing behind.
pub fn play(options: &str, script: &str) -> Result<Shown, Failed> {
    play_whole(&format!("--clients-only {options}"), script)
}

/// The same under a daemon that schedules the whole machine.
pub fn play_whole(options: &str, script: &str) -> Result<Shown, Failed> {
    let program = PRORATA.replace('\'', "'\\''");
    let script = format!(
        "echo 0 > {GROUP}/own/cgroup.procs
         prorata() {{ '{program}' \"$@\"; }}
         {BEGIN}
         prorata start --engine kernel --cpus 0 {options} >/dev/null
         {script}"
    );
    fs::create_dir_all(Path::new(GROUP).join("own"))?;
    let mut command = Command::new("timeout");
    command.args(["--foreground", LONGEST_S, "sh", "-c", &script]);
    // Output goes to files, since leftover processes would hold pipes open.
    let mut said = [tempfile::tempfile()?, tempfile::tempfile()?];
    command.stdin(Stdio::null());
    command.stdout(said[0].try_clone()?);
    command.stderr(said[1].try_clone()?);
    let status = command.status();
    let cleared = clear();
    let mut text = String::new();
    let mut errors = String::new();
    for (file, text) in said.iter_mut().zip([&mut text, &mut errors]) {
        file.rewind()?;
        file.read_to_string(text)?;
    }
    let status = status?;
    if !status.success() {
        return Err(format!("{status}: {text}\n{errors}").into());
    }
    cleared?;
    let parts = text.split("=== ").skip(1);
    let parts = parts.filter_map(|part| part.split_once('\n'));
    Ok(parts
        .map(|(name, text)| (name.to_owned(), text.trim().to_owned()))
        .collect())
}

/// Ends a script's leftover processes. The daemon's end unloads its scheduler.
fn clear() -> Result<(), Failed> {
    fs::write(Path::new(GROUP).join("cgroup.kill"), "1")?;
    wait_for("the script's processes end", || {
        remove(Path::new(GROUP)).is_ok()
    })?;
    wait_for("the scheduler is unloaded", || {
        let state = fs::read_to_string("/sys/kernel/sched_ext/state");
        state.is_ok_and(|state| state.trim_end() == "disabled")
    })?;
    Ok(fs::remove_dir_all("/tmp/prorata.test")?)
}

/// Removes a control group and the groups below it.
fn remove(group: &Path) -> io::Result<()> {
    for entry in fs::read_dir(group)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            remove(&entry.path())?;
        }
    }
    fs::remove_dir(group)
}

fn wait_for(what: &str, mut is_so: impl FnMut() -> bool) -> Result<(), Failed> {
    for _ in 0..1000 {
        if is_so() {
            return Ok(());
        }
        thread::sleep(Duration::from_millis(20));
    }
    Err(format!("waited in vain until {what}").into())
}

pub fn part<'a>(shown: &'a Shown, name: &str) -> Result<&'a str, Failed> {
    let text = shown.get(name).map(String::as_str);
    text.ok_or_else(|| format!("no {name} in {shown:?}").into())
}

pub fn json(shown: &Shown, name: &str) -> Result<Value, Failed> {
    Ok(serde_json::from_str(part(shown, name)?)?)
}

/// CPU time of each client between two readings, in nanoseconds.
pub fn received(shown: &Shown, before: &str, after: &str) -> Result<BTreeMap<String, f64>, Failed> {
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

/// Checks that exactly these clients received time, in proportion to their tickets.
pub fn near(
    shown: &Shown,
    [before, after]: [&str; 2],
    expected: &[(&str, f64)],
) -> Result<(), Failed> {
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

/// Checks that times are proportional to tickets, and long enough to judge.
pub fn by_tickets(pairs: &[(f64, f64)]) -> bool {
    by_tickets_within(pairs, TOLERANCE_NS)
}

/// As [`by_tickets`], with another tolerance.
pub fn by_tickets_within(pairs: &[(f64, f64)], tolerance_ns: f64) -> bool {
    let total_ns: f64 = pairs.iter().map(|(time, _)| time).sum();
    let tickets: f64 = pairs.iter().map(|(_, tickets)| tickets).sum();
    let is_near =
        |(time, held): &(f64, f64)| (time - total_ns * held / tickets).abs() < tolerance_ns;
    total_ns > SECONDS / 4.0 * 1e9 && pairs.iter().all(is_near)
}

pub fn check(condition: bool, what: &str, shown: &Shown) -> Result<(), Failed> {
    match condition {
        true => Ok(()),
        false => Err(format!("{what}: {shown:?}").into()),
    }
}
