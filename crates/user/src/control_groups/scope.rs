//! A scope of the user's service manager, delegated to this process.
//!
//! Only the service manager may make groups beside those that it made. On request it puts this
//! process in a new one, a scope, and leaves all below that to the process (systemd,
//! *Control Group APIs and Delegation*).

use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use super::hierarchy::{group_of, put_in, write};
use super::make;

/// How long the service manager may take to answer, and to move this process then.
const PATIENCE: Duration = Duration::from_secs(2);

/// How often this process looks whether it has been moved.
const LOOK_INTERVAL: Duration = Duration::from_millis(5);

/// Asks for a scope, and enables the cpu controller in it if it has that. Returns its directory.
///
/// The rule of version 2 is that a group with controllers holds groups or processes, not both. So
/// this process moves to a group of its own below the scope.
pub(super) fn request() -> io::Result<PathBuf> {
    let pid = std::process::id();
    let name = format!("prorata-{pid}.scope");
    ask_for(&name, pid)?;
    let scope = wait_for(&name, pid)?;
    if std::fs::metadata(&scope)?.uid() != rustix::process::geteuid().as_raw() {
        return Err(io::Error::other("the scope is not delegated to this user"));
    }
    let engine = scope.join("engine");
    make(&engine)?;
    put_in(&engine, pid)?;
    // Where the controller is missing, the groups do without.
    let _ = write(&scope, "cgroup.subtree_control", "+cpu");
    Ok(scope)
}

/// `busctl` comes with systemd.
fn ask_for(name: &str, pid: u32) -> io::Result<()> {
    let mut child = Command::new("busctl")
        .args(["--user", "--quiet"])
        .arg(format!("--timeout={}", PATIENCE.as_secs()))
        .arg("call")
        .args(["org.freedesktop.systemd1", "/org/freedesktop/systemd1"])
        .args(["org.freedesktop.systemd1.Manager", "StartTransientUnit"])
        .args(["ssa(sv)a(sa(sv))", name, "fail"])
        .args(["3", "PIDs", "au", "1", &pid.to_string()])
        .args(["Delegate", "b", "true"])
        .args(["CollectMode", "s", "inactive-or-failed"])
        .arg("0")
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .spawn()?;
    let begun = Instant::now();
    loop {
        match child.try_wait()? {
            Some(status) if status.success() => return Ok(()),
            Some(_) => return Err(io::Error::other("the service manager gives none")),
            None if begun.elapsed() > PATIENCE => {
                let _ = child.kill();
                let _ = child.wait();
                return Err(io::ErrorKind::TimedOut.into());
            }
            None => std::thread::sleep(LOOK_INTERVAL),
        }
    }
}

fn wait_for(name: &str, pid: u32) -> io::Result<PathBuf> {
    let begun = Instant::now();
    loop {
        let group = group_of(pid)?;
        if group.file_name() == Some(Path::new(name).as_os_str()) {
            return Ok(group);
        }
        if begun.elapsed() > PATIENCE {
            let message = "the service manager does not move this process to a scope";
            return Err(io::Error::new(io::ErrorKind::TimedOut, message));
        }
        std::thread::sleep(LOOK_INTERVAL);
    }
}
