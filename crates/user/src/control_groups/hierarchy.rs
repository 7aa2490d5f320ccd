//! The hierarchy of control groups, version 2: where it is mounted, where a process is in it, and
//! which limits a group sets.

use std::fs::OpenOptions;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

/// Where the hierarchy is mounted, alone or beside older ones.
pub(crate) const MOUNTS: [&str; 2] = ["/sys/fs/cgroup", "/sys/fs/cgroup/unified"];

/// The directory where the hierarchy is mounted. Found out once.
pub(super) fn mount() -> io::Result<&'static Path> {
    static MOUNT: LazyLock<Option<&Path>> = LazyLock::new(|| {
        let mut mounts = MOUNTS.iter().map(Path::new);
        mounts.find(|mount| mount.join("cgroup.controllers").exists())
    });
    let missing = "control groups of version 2 are not mounted";
    MOUNT.ok_or_else(|| io::Error::new(io::ErrorKind::NotFound, missing))
}

/// The group of a process in a `/proc/PID/cgroup`: a path from the mount on, such as `/a/b`.
pub(crate) fn unified_path(membership: &str) -> Option<&str> {
    membership.lines().find_map(|line| line.strip_prefix("0::"))
}

/// The directory of the group that a process is in. Cost: 10 us.
pub(super) fn group_of(pid: u32) -> io::Result<PathBuf> {
    let membership = std::fs::read_to_string(format!("/proc/{pid}/cgroup"))?;
    let path = unified_path(&membership).ok_or(io::ErrorKind::NotFound)?;
    Ok(mount()?.join(path.trim_start_matches('/')))
}

/// Writes to a file of a group.
pub(super) fn write(group: &Path, file: &str, text: &str) -> io::Result<()> {
    let mut file = OpenOptions::new().write(true).open(group.join(file))?;
    file.write_all(text.as_bytes())
}

/// Whether a file of a group lists this word.
pub(super) fn lists(group: &Path, file: &str, word: &str) -> bool {
    let text = std::fs::read_to_string(group.join(file)).unwrap_or_default();
    text.split_whitespace().any(|listed| listed == word)
}

/// Puts a process with all its threads in a group.
pub(super) fn put_in(group: &Path, pid: u32) -> io::Result<()> {
    write(group, "cgroup.procs", &pid.to_string())
}

/// The processes in a group.
pub(super) fn processes_of(group: &Path) -> Vec<u32> {
    let pids = std::fs::read_to_string(group.join("cgroup.procs")).unwrap_or_default();
    pids.lines().filter_map(|pid| pid.parse().ok()).collect()
}

/// The groups right below a group.
pub(super) fn below(group: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(group).into_iter().flatten().flatten();
    let is_group = |entry: &std::fs::DirEntry| entry.file_type().is_ok_and(|kind| kind.is_dir());
    let groups = entries.filter(is_group).map(|entry| entry.path());
    groups.collect()
}

/// Limits that a process escapes by leaving its group. A number of processes is none of them: the
/// service manager sets one for each scope, and users may start as many scopes as they like.
const LIMITS: [&str; 7] = [
    "cpu.max",
    "cpuset.cpus",
    "cpuset.mems",
    "io.max",
    "memory.high",
    "memory.max",
    "memory.swap.max",
];

/// A limit that only root can help a user to escape.
const LIMIT_OF_USERS: &str = "pids.max";

/// Whether its service manager takes a service for ended once its group is empty.
pub(super) fn is_of_service(group: &Path) -> bool {
    group.extension().is_some_and(|kind| kind == "service")
}

/// Whether a process that moves from one group to another escapes a limit: one of its group, or
/// of a group around it that is not around the other too.
pub(super) fn limits_what_leaves_for(from: &Path, to: &Path) -> bool {
    let left = from.ancestors().take_while(|group| !to.starts_with(group));
    let of_users = rustix::process::geteuid()
        .is_root()
        .then_some(LIMIT_OF_USERS);
    let limits = || LIMITS.into_iter().chain(of_users);
    let mut limits = left.flat_map(|group| limits().map(|limit| group.join(limit)));
    limits.any(|limit| {
        let text = std::fs::read_to_string(limit).unwrap_or_default();
        text.split_whitespace()
            .next()
            .is_some_and(|first| first != "max")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_unified_group_of_a_process_is_found_beside_older_hierarchies() {
        let membership = "9:name=systemd:/x\n1:cpu:/jobs\n0::/user.slice/a b\n";
        assert_eq!(unified_path(membership), Some("/user.slice/a b"));
        assert_eq!(unified_path("1:cpu:/jobs\n"), None);
    }

    #[test]
    fn a_limit_counts_if_the_other_group_is_not_below_it() {
        let root = tempfile::tempdir().expect("a directory");
        let group = |path: &str| {
            let group = root.path().join(path);
            std::fs::create_dir_all(&group).expect("it is ours");
            group
        };
        let limit = |path: &str, text: &str| {
            std::fs::write(group(path).join("memory.max"), text).expect("it is ours");
        };
        limit("user", "1000\n");
        limit("user/free", "max\n");
        limit("user/small", "4096\n");
        group("user/small/below");
        let to = group("user/other");
        for (from, limited) in [
            ("user/free", false),
            ("user/small", true),
            ("user/small/below", true),
            ("user", false),
        ] {
            assert_eq!(limits_what_leaves_for(&group(from), &to), limited, "{from}");
        }
    }
}
