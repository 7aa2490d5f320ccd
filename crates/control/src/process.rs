//! Processes: what the daemon asks `/proc` of them.

use std::fs;

use prorata_user::procfs;

/// A process named for ever, within one boot.
pub use prorata_user::ProcessId;

/// What must be known of a process before it is managed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct ProcessInfo {
    pub id: ProcessId,
    /// Pid of its parent.
    pub parent: u32,
    /// Real user id.
    pub uid: u32,
    /// Name of its program, as far as the kernel keeps it.
    pub name: String,
    pub is_kernel_thread: bool,
    /// It still runs the program that it was forked with.
    pub has_not_executed: bool,
    pub process_group: u32,
    pub session: u32,
    /// Whether it has a controlling terminal.
    pub has_terminal: bool,
}

impl ProcessInfo {
    /// Looks up a living process: neither a zombie nor a single thread.
    pub fn read(pid: u32) -> Option<ProcessInfo> {
        let stat = procfs::stat(pid).ok()?;
        // Threads are found under /proc by number too, though not listed.
        if stat.has_ended() || stat.is_secondary_thread() {
            return None;
        }
        let name = fs::read(format!("/proc/{pid}/comm")).ok()?;
        Some(ProcessInfo {
            id: ProcessId::from_stat(pid, &stat),
            parent: stat.parent,
            uid: procfs::real_uid(pid)?,
            name: String::from_utf8_lossy(name.strip_suffix(b"\n").unwrap_or(&name)).into_owned(),
            is_kernel_thread: stat.is_kernel_thread(),
            has_not_executed: stat.has_not_executed(),
            process_group: stat.process_group,
            session: stat.session,
            has_terminal: stat.has_terminal,
        })
    }
}

/// Names this boot of the machine: start times of other boots mean nothing.
pub(crate) fn boot_id() -> String {
    fs::read_to_string("/proc/sys/kernel/random/boot_id")
        .unwrap_or_default()
        .trim()
        .to_owned()
}

#[cfg(test)]
mod tests {
    use rustix::process::{Pid, WaitId, WaitIdOptions, waitid};

    use super::*;

    #[test]
    fn this_process_is_found_with_its_own_user() {
        let own = ProcessInfo::read(std::process::id()).unwrap();
        assert_eq!(own.uid, rustix::process::getuid().as_raw());
        assert!(!own.is_kernel_thread);
        assert!(own.id.start_time_ticks > 0);
        assert!(!own.has_not_executed);
        let init = ProcessInfo::read(1).unwrap();
        assert_eq!(init.parent, 0);
    }

    #[test]
    fn a_zombie_is_no_process() {
        let mut child = std::process::Command::new("true").spawn().unwrap();
        let pid = Pid::from_raw(child.id() as i32).unwrap();
        let until_it_ends = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
        waitid(WaitId::Pid(pid), until_it_ends).unwrap();
        assert_eq!(ProcessInfo::read(child.id()), None);
        child.wait().unwrap();
        assert_eq!(ProcessInfo::read(child.id()), None);
    }

    #[test]
    fn a_single_thread_is_no_process() {
        let (tell, told) = std::sync::mpsc::channel();
        let (end, ended) = std::sync::mpsc::channel::<()>();
        let thread = std::thread::spawn(move || {
            tell.send(rustix::thread::gettid()).unwrap();
            let _ = ended.recv();
        });
        let tid = told.recv().unwrap();
        assert_eq!(ProcessInfo::read(tid.as_raw_pid() as u32), None);
        drop(end);
        thread.join().unwrap();
    }
}
