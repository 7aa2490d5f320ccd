//! Signals as something to read, in order, instead of something that happens.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};

use nix::errno::Errno;
use nix::sys::signal::{SigSet, Signal, raise};
use nix::sys::signalfd::{SfdFlags, SignalFd};

/// Signals that end a command early which clears away before it ends. Of these,
/// the last is to keep the terminal from stopping it half-way, with processes
/// running on.
pub const CLEARING: [Signal; 5] = [
    Signal::SIGHUP,
    Signal::SIGINT,
    Signal::SIGQUIT,
    Signal::SIGTERM,
    Signal::SIGTSTP,
];

/// Blocked signals that are read from a descriptor. Dropped, the mask is as
/// it was.
#[derive(Debug)]
pub struct Signals {
    fd: SignalFd,
    before: SigSet,
}

/// A signal that arrived.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Received {
    /// Which one.
    pub signal: Signal,
    /// Sent by the kernel, as for a key on the terminal, to the whole process
    /// group; else by a process, perhaps to us alone.
    pub by_kernel: bool,
}

/// `si_code` of signals that the kernel itself sends is above 0; of those that
/// processes send it is 0 or below (sigaction(2)).
const BY_PROCESS: i32 = 0;

impl Signals {
    /// Blocks `wanted`, except those that this process was started to ignore
    /// (as by nohup(1)): they stay ignored, by it and by its children.
    pub fn block(wanted: &[Signal]) -> io::Result<Self> {
        let ignored = ignored()?;
        let set: SigSet = wanted
            .iter()
            .copied()
            .filter(|&signal| ignored & bit(signal) == 0)
            .collect();
        let before = SigSet::thread_get_mask()?;
        set.thread_block()?;
        let fd = SignalFd::with_flags(&set, SfdFlags::SFD_NONBLOCK | SfdFlags::SFD_CLOEXEC)?;
        Ok(Self { fd, before })
    }

    /// The mask that was in force before, for children.
    pub fn mask_before(&self) -> &SigSet {
        &self.before
    }

    /// The next signal, if one has arrived.
    pub fn next(&self) -> io::Result<Option<Received>> {
        loop {
            let Some(info) = self.fd.read_signal()? else {
                return Ok(None);
            };
            // Numbers that are no known signal are not among those blocked.
            if let Ok(signal) = Signal::try_from(info.ssi_signo as i32) {
                return Ok(Some(Received {
                    signal,
                    by_kernel: info.ssi_code > BY_PROCESS,
                }));
            }
        }
    }

    /// The first signal that arrived of those that are to end us; SIGTSTP is
    /// not.
    pub fn next_to_end(&self) -> Option<Signal> {
        while let Ok(Some(received)) = self.next() {
            if received.signal != Signal::SIGTSTP {
                return Some(received.signal);
            }
        }
        None
    }

    /// Lets `signal`, one of those blocked, do to us what it does by default,
    /// and returns when that is over (SIGCONT after a stop).
    pub fn suffer(signal: Signal) -> io::Result<()> {
        let set: SigSet = [signal].into_iter().collect();
        // Raised while blocked, it joins one that may be pending already, so
        // that it happens once.
        raise(signal)?;
        set.thread_unblock()?;
        set.thread_block()?;
        Ok(())
    }
}

impl AsFd for Signals {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

impl Drop for Signals {
    fn drop(&mut self) {
        // It was in force before, so it can be again.
        let _ = self.before.thread_set_mask();
    }
}

fn bit(signal: Signal) -> u64 {
    1 << (signal as u64 - 1)
}

/// Signals that this process ignores.
fn ignored() -> io::Result<u64> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let digits = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    digits
        .and_then(|digits| u64::from_str_radix(digits.trim(), 16).ok())
        .ok_or_else(|| io::Error::from(Errno::ENOSYS))
}
