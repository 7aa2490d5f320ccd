//! A scope of the user's service manager, delegated to this process.
//!
//! Only the service manager may make groups beside those that it made. On request it puts this
//! process in a new one, a scope, and leaves all below that to the process (systemd,
//! *Control Group APIs and Delegation*).

use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Instant;

use super::hierarchy::{group_of, put_in, write};
use super::make;
use super::manager::{LOOK_INTERVAL, PATIENCE, start_scope};

/// Asks for a scope, and enables the cpu controller in it if it has that. Returns its directory.
///
/// The rule of version 2 is that a group with controllers holds groups or processes, not both. So
/// this process moves to a group of its own below the scope.
pub(super) fn request() -> io::Result<PathBuf> {
    let pid = std::process::id();
    let name = format!("prorata-{pid}.scope");
    start_scope(&name, pid)?;
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
