//! Processes: what the daemon asks `/proc` of them.

use std::fs;

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
}

/// `PF_KTHREAD` in the kernel's `include/linux/sched.h`.
const KERNEL_THREAD: u32 = 0x0020_0000;

impl ProcessInfo {
    /// Looks up a process that lives: not one that has ended and only waits
    /// for its parent to notice.
    pub fn read(pid: u32) -> Option<ProcessInfo> {
        let stat = fs::read(format!("/proc/{pid}/stat")).ok()?;
        let status = fs::read(format!("/proc/{pid}/status")).ok()?;
        Self::parse(pid, &stat, &status)
    }

    fn parse(pid: u32, stat: &[u8], status: &[u8]) -> Option<ProcessInfo> {
        // The name may hold spaces and parentheses: it ends at the last one.
        let open = stat.iter().position(|&byte| byte == b'(')?;
        let close = stat.iter().rposition(|&byte| byte == b')')?;
        let name = String::from_utf8_lossy(stat.get(open + 1..close)?).into_owned();
        let rest = std::str::from_utf8(stat.get(close + 1..)?).ok()?;
        // Fields are counted from 1 as in proc(5); the first here is the third.
        let fields: Vec<&str> = rest.split_ascii_whitespace().collect();
        let field = |number: usize| fields.get(number - 3).copied();
        let threads: u32 = field(20)?.parse().ok()?;
        // A process whose first thread has ended may go on in others.
        if matches!(field(3)?, "Z" | "X" | "x") && threads <= 1 {
            return None;
        }
        let status = String::from_utf8_lossy(status);
        let entry = |name: &str| {
            let text = status.lines().find_map(|line| line.strip_prefix(name))?;
            text.split_ascii_whitespace().next()?.parse::<u32>().ok()
        };
        // Threads are found under /proc by number too, though not listed.
        if entry("Tgid:")? != pid {
            return None;
        }
        Some(ProcessInfo {
            id: ProcessId {
                pid,
                start_time_ticks: field(22)?.parse().ok()?,
            },
            parent: field(4)?.parse().ok()?,
            uid: entry("Uid:")?,
            name,
            is_kernel_thread: field(9)?.parse::<u32>().ok()? & KERNEL_THREAD != 0,
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
    use super::*;

    #[test]
    fn this_process_is_found_with_its_own_user() {
        let own = ProcessInfo::read(std::process::id()).unwrap();
        assert_eq!(own.uid, rustix::process::getuid().as_raw());
        assert!(!own.is_kernel_thread);
        assert!(own.id.start_time_ticks > 0);
        let init = ProcessInfo::read(1).unwrap();
        assert_eq!(init.parent, 0);
    }

    #[test]
    fn a_name_may_hold_anything_and_the_dead_are_not_found() {
        let tail = "1 7 7 0 -1 4194304 0 0 0 0 0 0 0 0 20 0 1 0 12345 0 0";
        let status = b"Name:\tx\nTgid:\t7\nUid:\t1000\t0\t0\t0\n";
        let stat = |state: &str| format!("7 (a) (b c)) {state} {tail}").into_bytes();
        let info = ProcessInfo::parse(7, &stat("S"), status).unwrap();
        assert_eq!(info.name, "a) (b c)");
        assert_eq!(
            (info.uid, info.parent, info.id.start_time_ticks),
            (1000, 1, 12345)
        );
        assert_eq!(ProcessInfo::parse(7, &stat("Z"), status), None);
        assert_eq!(ProcessInfo::parse(8, &stat("S"), status), None);
        assert_eq!(ProcessInfo::parse(7, b"7 (", status), None);
        assert_eq!(ProcessInfo::parse(7, b"", status), None);
    }
}
