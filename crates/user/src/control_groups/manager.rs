//! Requests to service managers, by `busctl`, which comes with systemd.

use std::io::{self, Read};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// How long a service manager may take to answer.
pub(super) const PATIENCE: Duration = Duration::from_secs(2);

/// How often this process looks whether it has.
pub(super) const LOOK_INTERVAL: Duration = Duration::from_millis(5);

const MANAGER: [&str; 3] = [
    "org.freedesktop.systemd1",
    "/org/freedesktop/systemd1",
    "org.freedesktop.systemd1.Manager",
];

/// Asks the user's service manager for a scope with this process, delegated to it.
pub(super) fn start_scope(name: &str, pid: u32) -> io::Result<()> {
    let mut call = busctl("--user");
    call.arg("call").args(MANAGER);
    call.args(["StartTransientUnit", "ssa(sv)a(sa(sv))", name, "fail"])
        .args(["3", "PIDs", "au", "1", &pid.to_string()])
        .args(["Delegate", "b", "true"])
        .args(["CollectMode", "s", "inactive-or-failed"])
        .arg("0");
    answer(call).map(drop)
}

/// Asks the user's service manager to move processes to a group in a scope.
pub(super) fn attach(scope: &Path, group: &Path, pids: &[u32]) -> io::Result<()> {
    let unit = scope.file_name().ok_or(io::ErrorKind::InvalidInput)?;
    let below = group.strip_prefix(scope).map_err(io::Error::other)?;
    let mut call = busctl("--user");
    call.arg("call").args(MANAGER);
    call.args(["AttachProcessesToUnit", "ssau"])
        .arg(unit)
        .arg(Path::new("/").join(below))
        .arg(pids.len().to_string())
        .args(pids.iter().map(u32::to_string));
    answer(call).map(drop)
}

/// Whether the services of a user go on after the last logout.
pub(super) fn lingers(user: u32) -> io::Result<bool> {
    let mut property = busctl("--system");
    property.args(["get-property", "org.freedesktop.login1"]);
    property.arg(format!("/org/freedesktop/login1/user/_{user}"));
    property.args(["org.freedesktop.login1.User", "Linger"]);
    Ok(answer(property)?.trim() == "b true")
}

fn busctl(bus: &str) -> Command {
    let mut command = Command::new("busctl");
    command
        .args([bus, "--quiet"])
        .arg(format!("--timeout={}", PATIENCE.as_secs()));
    command
}

/// Runs a short `busctl`; returns what it prints.
fn answer(mut busctl: Command) -> io::Result<String> {
    let mut child = busctl
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()?;
    let begun = Instant::now();
    let status = loop {
        match child.try_wait()? {
            Some(status) => break status,
            None if begun.elapsed() > PATIENCE => {
                let _ = child.kill();
                let _ = child.wait();
                return Err(io::ErrorKind::TimedOut.into());
            }
            None => std::thread::sleep(LOOK_INTERVAL),
        }
    };
    if !status.success() {
        return Err(io::Error::other("the service manager refuses"));
    }
    let mut printed = String::new();
    if let Some(mut output) = child.stdout.take() {
        output.read_to_string(&mut printed)?;
    }
    Ok(printed)
}
