//! Control groups of the programs under test.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

/// Where the unified hierarchy is, alone or beside older ones.
const MOUNTS: [&str; 2] = ["/sys/fs/cgroup", "/sys/fs/cgroup/unified"];

fn mount() -> Option<PathBuf> {
    let mut mounts = MOUNTS.iter().map(PathBuf::from);
    mounts.find(|mount| mount.join("cgroup.controllers").exists())
}

/// The group of a process, as a directory.
pub fn group_of(pid: u32) -> Option<PathBuf> {
    let membership = std::fs::read_to_string(format!("/proc/{pid}/cgroup")).ok()?;
    let path = membership
        .lines()
        .find_map(|line| line.strip_prefix("0::"))?;
    Some(mount()?.join(path.trim_start_matches('/')))
}

fn says(group: &Path, file: &str) -> bool {
    let text = std::fs::read_to_string(group.join(file));
    text.is_ok_and(|text| text.trim() == "1")
}

/// Whether the group of a process, or one around that, is frozen or runs on idle CPUs only.
pub fn is_held_down(pid: u32) -> bool {
    group_of(pid).is_some_and(|group| holds_down(&group))
}

/// Whether a control group, or one that it is in, holds its processes down.
pub fn holds_down(group: &Path) -> bool {
    let mut around = group.ancestors();
    around.any(|group| says(group, "cgroup.freeze") || says(group, "cpu.idle"))
}

pub fn put_in(group: &Path, pid: u32) {
    let procs = group.join("cgroup.procs");
    std::fs::write(procs, pid.to_string()).expect("root may move it");
}

/// Sets a file of the group of a process.
pub fn set(pid: u32, file: &str) {
    let group = group_of(pid).expect("control groups are there");
    std::fs::write(group.join(file), "1").expect("the group is ours");
}

/// A group that root makes for an ordinary user. Removed when it goes out of scope.
pub struct Delegated(PathBuf);

impl Delegated {
    /// With the cpu controller, where that can be had. `None` where control groups of version 2 are
    /// missing.
    pub fn to(user: u32) -> Option<Delegated> {
        let mount = mount()?;
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let group = mount.join(format!("prorata-test-{}-{count}", std::process::id()));
        let inner = group.join("programs");
        std::fs::create_dir(&group).expect("root may make it");
        for around in [&mount, &group] {
            let _ = std::fs::write(around.join("cgroup.subtree_control"), "+cpu");
        }
        std::fs::create_dir(&inner).expect("it is new");
        for group in [&group, &inner] {
            for file in ["", "cgroup.procs", "cgroup.subtree_control"] {
                let chown = std::os::unix::fs::chown(group.join(file), Some(user), Some(user));
                chown.expect("root may give it away");
            }
        }
        Some(Delegated(group))
    }

    /// Puts a process there.
    pub fn admit(&self, pid: u32) {
        put_in(&self.0.join("programs"), pid);
    }

    /// Starts programs in a group below.
    pub fn around<T>(&self, start: impl FnOnce() -> T) -> T {
        let own = group_of(std::process::id()).expect("control groups are there");
        // A group with a service manager in it may have controllers, and then holds no process.
        let inner = self.0.join("programs/init.scope");
        let inner = if inner.exists() {
            inner
        } else {
            self.0.join("programs")
        };
        put_in(&inner, std::process::id());
        let result = start();
        put_in(&own, std::process::id());
        result
    }
}

impl Drop for Delegated {
    fn drop(&mut self) {
        remove_all(&self.0);
    }
}

/// Removes a group and all below it, as far as no process is there.
fn remove_all(group: &Path) {
    for entry in std::fs::read_dir(group).into_iter().flatten().flatten() {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            remove_all(&entry.path());
        }
    }
    let _ = std::fs::remove_dir(group);
}

/// Whether an engine of this user can make groups, and whether these have the cpu controller.
pub fn can_be_had() -> Option<bool> {
    let directory = tempfile::tempdir().expect("a directory");
    let starts = |mechanism| {
        let config = super::config(directory.path(), Some(mechanism), None);
        super::start_engine(config, 20 * super::MS).is_ok()
    };
    starts(prorata_user::Mechanism::GroupFreeze).then(|| starts(prorata_user::Mechanism::GroupIdle))
}
