//! What the daemon needs to know of the machine it runs on.

use std::ffi::{CStr, CString};
use std::fs;
use std::mem::MaybeUninit;
use std::os::unix::fs::MetadataExt;
use std::time::Duration;

use prorata_user::{cpu_time_ns, procfs};
use rustix::fs::{AtFlags, CWD, StatxFlags, statx};
use rustix::time::{ClockId, clock_gettime};

use crate::process::{ProcessId, ProcessInfo};

/// The machine's users and processes.
pub(crate) trait Host {
    /// A living process.
    fn process(&self, pid: u32) -> Option<ProcessInfo>;

    /// All processes.
    fn processes(&self) -> Vec<Listed>;

    /// Where a process comes from.
    fn origin(&self, pid: u32) -> Option<Origin>;

    /// Whether two processes run the same program.
    fn run_same_program(&self, one: u32, other: u32) -> bool;

    /// The word after the program's name on a process's command line.
    fn command(&self, pid: u32) -> String;

    /// What a process has used.
    fn cpu_use(&self, pid: u32) -> Option<CpuUse>;

    /// Whether a process lives and is not stopped.
    fn may_run(&self, process: ProcessId) -> bool;

    /// A file of the machine's configuration; empty without it.
    fn text(&self, path: &'static str) -> String;

    /// Changes with the file that has this path; `None` without it.
    fn stamp(&self, path: &'static str) -> Option<Stamp>;

    /// The nice value of a process's first thread.
    fn nice(&self, pid: u32) -> Option<i32>;

    /// The account of this login name.
    fn account_named(&self, name: &str) -> Option<UserAccount>;

    /// The account of this user id; many ids have none.
    fn account_of(&self, uid: u32) -> Option<UserAccount>;

    /// The process of a living thread, and when the thread started, in clock ticks since boot.
    fn thread(&self, tid: u32) -> Option<(u32, u64)>;

    /// The monotonic clock.
    fn now_ns(&self) -> u64;

    /// The daemon's own pid.
    fn own_pid(&self) -> u32;

    /// The user that the daemon runs as.
    fn own_uid(&self) -> u32;
}

/// What the directory of all processes tells of one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Listed {
    pub pid: u32,
    /// Another process with the same number has another one.
    pub inode: u64,
    /// Its effective user, or root while others may not look into it.
    pub owner: u32,
}

/// Where a process comes from.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub(crate) struct Origin {
    pub effective_uid: u32,
    /// Its control group, as the service manager names it.
    pub control_group: String,
}

/// What changes with a file: inode, size, and when it was changed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Stamp(pub u64, pub u64, pub (i64, i64));

/// CPU time that a process had used at some time.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) struct CpuUse {
    pub used: Duration,
    /// On the monotonic clock.
    pub at: Duration,
}

/// An entry of the user database.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct UserAccount {
    pub name: String,
    pub uid: u32,
    /// Primary group.
    pub gid: u32,
}

/// This Linux machine.
#[derive(Debug)]
pub(crate) struct Linux;

impl Host for Linux {
    fn process(&self, pid: u32) -> Option<ProcessInfo> {
        ProcessInfo::read(pid)
    }

    fn processes(&self) -> Vec<Listed> {
        let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
        let processes = entries.filter_map(|entry| {
            let pid = entry.file_name().to_str()?.parse().ok()?;
            let directory = entry.metadata().ok()?;
            Some(Listed {
                pid,
                inode: directory.ino(),
                owner: directory.uid(),
            })
        });
        processes.collect()
    }

    fn origin(&self, pid: u32) -> Option<Origin> {
        let groups = fs::read(format!("/proc/{pid}/cgroup")).unwrap_or_default();
        let groups = String::from_utf8_lossy(&groups);
        Some(Origin {
            effective_uid: procfs::effective_uid(pid)?,
            control_group: group_of_manager(&groups).to_owned(),
        })
    }

    fn run_same_program(&self, one: u32, other: u32) -> bool {
        // A program may be on a file system that does not answer. Its path is known without that.
        let path = |pid| fs::read_link(format!("/proc/{pid}/exe")).ok();
        let has_same_path = path(one).is_some_and(|own| Some(own) == path(other));
        has_same_path && file_of(one).is_some_and(|own| Some(own) == file_of(other))
    }

    fn command(&self, pid: u32) -> String {
        let words = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        let command = words.split(|byte| *byte == 0).nth(1).unwrap_or_default();
        String::from_utf8_lossy(command).into_owned()
    }

    fn cpu_use(&self, pid: u32) -> Option<CpuUse> {
        let at = clock_gettime(ClockId::Monotonic);
        Some(CpuUse {
            used: Duration::from_nanos(cpu_time_ns(pid)?),
            at: Duration::try_from(at).unwrap_or_default(),
        })
    }

    fn may_run(&self, process: ProcessId) -> bool {
        procfs::stat(process.pid).is_ok_and(|stat| {
            ProcessId::from_stat(process.pid, &stat) == process
                && !stat.has_ended()
                && !stat.is_stopped()
        })
    }

    fn text(&self, path: &'static str) -> String {
        fs::read_to_string(path).unwrap_or_default()
    }

    fn stamp(&self, path: &'static str) -> Option<Stamp> {
        let file = fs::metadata(path).ok()?;
        let changed = (file.ctime(), file.ctime_nsec());
        Some(Stamp(file.ino(), file.size(), changed))
    }

    fn nice(&self, pid: u32) -> Option<i32> {
        Some(procfs::stat(pid).ok()?.nice)
    }

    fn account_named(&self, name: &str) -> Option<UserAccount> {
        let name = CString::new(name).ok()?;
        look_up(|entry, buffer, found| {
            // SAFETY: `name` is a C string; the others are as `look_up` says.
            unsafe {
                libc::getpwnam_r(
                    name.as_ptr(),
                    entry.as_mut_ptr(),
                    buffer.as_mut_ptr().cast(),
                    buffer.len(),
                    found,
                )
            }
        })
    }

    fn account_of(&self, uid: u32) -> Option<UserAccount> {
        look_up(|entry, buffer, found| {
            // SAFETY: all are as `look_up` says.
            unsafe {
                libc::getpwuid_r(
                    uid,
                    entry.as_mut_ptr(),
                    buffer.as_mut_ptr().cast(),
                    buffer.len(),
                    found,
                )
            }
        })
    }

    fn thread(&self, tid: u32) -> Option<(u32, u64)> {
        let pid = procfs::process_of_thread(tid).ok()?;
        let stat = procfs::thread_stat(pid, tid).ok()?;
        Some((pid, stat.start_time_ticks))
    }

    fn now_ns(&self) -> u64 {
        let now = clock_gettime(ClockId::Monotonic);
        now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
    }

    fn own_pid(&self) -> u32 {
        std::process::id()
    }

    fn own_uid(&self) -> u32 {
        rustix::process::getuid().as_raw()
    }
}

/// Device and inode of a process's program, as far as they are known without waiting.
fn file_of(pid: u32) -> Option<(u32, u32, u64)> {
    let path = format!("/proc/{pid}/exe");
    let file = statx(CWD, path, AtFlags::STATX_DONT_SYNC, StatxFlags::INO).ok()?;
    Some((file.stx_dev_major, file.stx_dev_minor, file.stx_ino))
}

/// The group in a `/proc/PID/cgroup` by which the service manager knows a process: that of the
/// manager's own hierarchy, or of the unified one.
fn group_of_manager(groups: &str) -> &str {
    let path = |prefix: &str| {
        let mut lines = groups.lines().filter_map(|line| line.split_once(':'));
        lines.find_map(|(_, rest)| rest.strip_prefix(prefix))
    };
    path("name=systemd:").or_else(|| path(":")).unwrap_or("")
}

/// Longest entry of the user database that is read.
const MAX_ENTRY_BYTES: usize = 1 << 20;

/// Calls one of the reentrant look-ups of getpwnam(3) with an entry to fill,
/// a buffer for its texts, and where to say whether there is one.
fn look_up(
    mut ask: impl FnMut(&mut MaybeUninit<libc::passwd>, &mut [u8], &mut *mut libc::passwd) -> i32,
) -> Option<UserAccount> {
    let mut buffer = vec![0; 1 << 10];
    loop {
        let mut entry = MaybeUninit::uninit();
        let mut found = std::ptr::null_mut();
        match ask(&mut entry, &mut buffer, &mut found) {
            0 if found.is_null() => return None,
            0 => {
                // SAFETY: the look-up succeeded, so it filled the entry, whose
                // name is a C string in `buffer`, alive until we return.
                let (name, uid, gid) = unsafe {
                    let entry = entry.assume_init_ref();
                    (CStr::from_ptr(entry.pw_name), entry.pw_uid, entry.pw_gid)
                };
                let name = name.to_str().ok()?.to_owned();
                return Some(UserAccount { name, uid, gid });
            }
            libc::ERANGE if buffer.len() < MAX_ENTRY_BYTES => buffer.resize(buffer.len() * 2, 0),
            libc::EINTR => {}
            _ => return None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn root_is_found_by_name_and_by_number() {
        let root = UserAccount {
            name: "root".into(),
            uid: 0,
            gid: 0,
        };
        assert_eq!(Linux.account_named("root"), Some(root.clone()));
        assert_eq!(Linux.account_of(0), Some(root));
    }

    #[test]
    fn processes_run_the_same_program_or_another() {
        let sleep = || {
            std::process::Command::new("sleep")
                .arg("100")
                .spawn()
                .unwrap()
        };
        let (mut one, mut other) = (sleep(), sleep());
        while [&one, &other].map(|child| Linux.command(child.id())) != ["100", "100"] {}
        assert!(Linux.run_same_program(one.id(), other.id()));
        assert!(!Linux.run_same_program(one.id(), std::process::id()));
        for child in [&mut one, &mut other] {
            child.kill().unwrap();
            child.wait().unwrap();
        }
        assert!(!Linux.run_same_program(one.id(), one.id()));
    }

    #[test]
    fn a_file_that_changes_has_another_stamp() {
        assert_eq!(Linux.stamp("/no such file"), None);
        let passwd = Linux.stamp("/etc/passwd");
        assert!(passwd.is_some() && passwd == Linux.stamp("/etc/passwd"));
        assert_ne!(passwd, Linux.stamp("/etc/group"));
    }

    #[test]
    fn users_without_an_account_are_not_found() {
        assert_eq!(Linux.account_named("no such user"), None);
        assert_eq!(Linux.account_named("nul\0"), None);
        assert_eq!(Linux.account_of(u32::MAX - 5), None);
    }
}
