//! A control group that root makes for an ordinary user.

use std::fs::{self, File};
use std::io::Write;
use std::os::unix::fs::chown;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};

/// Where the unified hierarchy is, alone or beside older ones.
const MOUNTS: [&str; 2] = ["/sys/fs/cgroup", "/sys/fs/cgroup/unified"];

/// Removed when it goes out of scope, with the groups below it.
pub struct Delegated(PathBuf);

impl Delegated {
    /// With the cpu controller, where that can be had. `None` where control groups of version 2
    /// are missing, or if the tests run as an ordinary user.
    pub fn to(uid: u32) -> Option<Self> {
        let has_groups = |mount: &&&str| Path::new(mount).join("cgroup.controllers").exists();
        let mount = Path::new(MOUNTS.iter().find(has_groups)?);
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let group = mount.join(format!("prorata-cli-{}-{count}", std::process::id()));
        fs::create_dir(&group).ok()?;
        let delegated = Self(group);
        let group = &delegated.0;
        for around in [mount, group] {
            let _ = fs::write(around.join("cgroup.subtree_control"), "+cpu");
        }
        fs::create_dir(delegated.programs()).unwrap();
        for group in [group, &delegated.programs()] {
            for file in ["", "cgroup.procs", "cgroup.subtree_control"] {
                chown(group.join(file), Some(uid), Some(uid)).unwrap();
            }
        }
        Some(delegated)
    }

    fn programs(&self) -> PathBuf {
        self.0.join("programs")
    }

    /// Lets a command start in the group. Opening the file as root permits the move.
    pub fn admit(&self, command: &mut Command) {
        let procs = self.programs().join("cgroup.procs");
        let procs = File::options().write(true).open(procs).unwrap();
        // SAFETY: between fork and exec one system call is made.
        unsafe { command.pre_exec(move || (&procs).write_all(b"0")) };
    }
}

impl Drop for Delegated {
    fn drop(&mut self) {
        remove(&self.0);
    }
}

/// Removes a group and all groups below it that hold no process.
fn remove(group: &Path) {
    for entry in fs::read_dir(group).into_iter().flatten().flatten() {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            remove(&entry.path());
        }
    }
    let _ = fs::remove_dir(group);
}
