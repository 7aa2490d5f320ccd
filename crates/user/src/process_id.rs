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
        let pid = Pid::from_raw(self.pid as i32).ok_or(Errno::SRCH)?;
        let handle = Handle(pidfd_open(pid, PidfdFlags::empty())?);
        // If the process of the handle exists after the start time was read, the pid was its own
        // all the while, and the start time is its own.
        let stat = procfs::stat(self.pid).map_err(|_| Errno::SRCH)?;
        if Self::from_stat(self.pid, &stat) != self || !handle.exists()? {
            return Err(Errno::SRCH);
        }
        Ok(handle)
    }
}

/// A handle on a process. It never reaches a later process with the same pid.
#[derive(Debug)]
pub(crate) struct Handle(pub(crate) OwnedFd);

impl Handle {
    pub(crate) fn signal(&self, signal: Signal) -> rustix::io::Result<()> {
        pidfd_send_signal(&self.0, signal)
    }

    /// Whether it runs or is a zombie. Fails if this user may not signal it.
    pub(crate) fn exists(&self) -> rustix::io::Result<bool> {
        let nothing = std::ptr::null::<libc::siginfo_t>();
        // SAFETY: the descriptor is open; signal 0 tests for existence and
        // permission and is never delivered; a null siginfo is allowed.
        let result = unsafe {
            libc::syscall(
                libc::SYS_pidfd_send_signal,
                self.0.as_raw_fd(),
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
}
