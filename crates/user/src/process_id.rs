//! Names and handles of processes that never mean another process.

use std::os::fd::{AsRawFd, OwnedFd};

use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

use crate::error::EngineError;
use crate::procfs::{self, Stat};

/// Names a process for ever: another process may get the same pid, but not with the same start
/// time.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct ProcessId {
    /// Process identifier.
    pub pid: u32,
    /// Field 22 of `/proc/PID/stat`: clock ticks since boot.
    pub start_time_ticks: u64,
}

impl ProcessId {
    /// Names the process that has this pid now.
    pub fn of(pid: u32) -> Result<ProcessId, EngineError> {
        let stat = procfs::stat(pid).map_err(|_| EngineError::NoSuchProcess(pid))?;
        Ok(Self::from_stat(pid, &stat))
    }

    /// Names the process, or the thread, that this was read of.
    pub fn from_stat(pid: u32, stat: &Stat) -> ProcessId {
        ProcessId {
            pid,
            start_time_ticks: stat.start_time_ticks,
        }
    }

    /// Whether it lives; a zombie does not.
    pub fn is_alive(self) -> bool {
        procfs::stat(self.pid)
            .is_ok_and(|stat| Self::from_stat(self.pid, &stat) == self && !stat.has_ended())
    }

    /// A handle on this process. Fails with `ESRCH` if it is gone.
    pub(crate) fn open(self) -> rustix::io::Result<Handle> {
        self.pidfd().map(Handle::Kept)
    }

    fn pidfd(self) -> rustix::io::Result<OwnedFd> {
        let pid = Pid::from_raw(self.pid as i32).ok_or(Errno::SRCH)?;
        let pidfd = pidfd_open(pid, PidfdFlags::empty())?;
        // If the process of the pidfd exists after the start time was read, the pid was its own
        // all the while, and the start time is its own.
        let stat = procfs::stat(self.pid).map_err(|_| Errno::SRCH)?;
        if Self::from_stat(self.pid, &stat) != self || !exists(&pidfd)? {
            return Err(Errno::SRCH);
        }
        Ok(pidfd)
    }
}

/// A handle on a process. It never reaches a later process with the same pid.
#[derive(Debug)]
pub(crate) enum Handle {
    Kept(OwnedFd),
    /// Opened for each use, so that it takes no descriptor.
    OnDemand(ProcessId),
}

impl Handle {
    /// Cost: 1 us, or 8 us on demand.
    pub(crate) fn signal(&self, signal: Signal) -> rustix::io::Result<()> {
        match self {
            Handle::Kept(pidfd) => pidfd_send_signal(pidfd, signal),
            Handle::OnDemand(process) => pidfd_send_signal(process.pidfd()?, signal),
        }
    }

    /// Whether it runs or is a zombie. Fails if this user may not signal it.
    pub(crate) fn exists(&self) -> rustix::io::Result<bool> {
        match self {
            Handle::Kept(pidfd) => exists(pidfd),
            Handle::OnDemand(process) => match process.pidfd() {
                Ok(_) => Ok(true),
                Err(Errno::SRCH) => Ok(false),
                Err(error) => Err(error),
            },
        }
    }

    /// Tells by an event when the process ends, if it is kept.
    pub(crate) fn kept(&self) -> Option<&OwnedFd> {
        match self {
            Handle::Kept(pidfd) => Some(pidfd),
            Handle::OnDemand(_) => None,
        }
    }
}

fn exists(pidfd: &OwnedFd) -> rustix::io::Result<bool> {
    let nothing = std::ptr::null::<libc::siginfo_t>();
    // SAFETY: the descriptor is open; signal 0 tests for existence and
    // permission and is never delivered; a null siginfo is allowed.
    let result = unsafe {
        libc::syscall(
            libc::SYS_pidfd_send_signal,
            pidfd.as_raw_fd(),
            0,
            nothing,
            0,
        )
    };
    if result == 0 {
        return Ok(true);
    }
    match Errno::from_io_error(&std::io::Error::last_os_error()).unwrap_or(Errno::SRCH) {
        Errno::SRCH => Ok(false),
        error => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_handles_reach_their_process_alone() {
        let mut child = std::process::Command::new("sleep");
        let mut child = child.arg("100").spawn().expect("spawns");
        let id = ProcessId::of(child.id()).expect("it runs");
        let earlier = ProcessId {
            start_time_ticks: id.start_time_ticks - 1,
            ..id
        };
        assert_eq!(earlier.open().err(), Some(Errno::SRCH));
        assert_eq!(Handle::OnDemand(earlier).exists(), Ok(false));
        let refused = Handle::OnDemand(earlier).signal(Signal::KILL);
        assert_eq!(refused, Err(Errno::SRCH));
        let handles = [id.open().expect("it runs"), Handle::OnDemand(id)];
        for handle in &handles {
            assert_eq!(handle.exists(), Ok(true));
            handle.signal(Signal::CONT).expect("it runs");
        }
        assert!(handles[0].kept().is_some() && handles[1].kept().is_none());
        child.kill().expect("it runs");
        child.wait().expect("it ends");
        for handle in &handles {
            assert_eq!(handle.exists(), Ok(false));
            assert_eq!(handle.signal(Signal::CONT), Err(Errno::SRCH));
        }
    }
}
