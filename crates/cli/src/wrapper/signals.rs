//! Blocked signals, read from a descriptor.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::process::ExitCode;

use anyhow::Context as _;
use nix::errno::Errno;
use nix::sys::signal::{SigSet, Signal, raise};
use nix::sys::signalfd::{SfdFlags, SignalFd};

use super::ending::Ending;

/// Signals held by a command that cleans up before it ends. They include
/// SIGTSTP: a stop by the terminal would leave the command's processes running.
pub const CLEARING: [Signal; 5] = [
    Signal::SIGHUP,
    Signal::SIGINT,
    Signal::SIGQUIT,
    Signal::SIGTERM,
    Signal::SIGTSTP,
];

/// Blocked signals, read from a descriptor. Drop restores the mask.
#[derive(Debug)]
pub struct Signals {
    fd: SignalFd,
    before: SigSet,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Received {
    pub signal: Signal,
    /// Whether the kernel sent it to the whole process group, as for a key on
    /// the terminal. A process may have sent the signal to us alone.
    pub by_kernel: bool,
}

/// Largest `si_code` of a signal sent by a process; the kernel's own are larger
/// (sigaction(2)).
const BY_PROCESS: i32 = 0;

impl Signals {
    /// Blocks `wanted`, except signals that this process was started to ignore
    /// (as by nohup(1)). The process and its children go on ignoring those.
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

    /// The mask in force before, for children.
    pub fn mask_before(&self) -> &SigSet {
        &self.before
    }

    /// The next signal, if one has arrived.
    pub fn next(&self) -> io::Result<Option<Received>> {
        loop {
            let Some(info) = self.fd.read_signal()? else {
                return Ok(None);
            };
            // Only known signals are blocked, so others cannot arrive.
            if let Ok(signal) = Signal::try_from(info.ssi_signo as i32) {
                return Ok(Some(Received {
                    signal,
                    by_kernel: info.ssi_code > BY_PROCESS,
                }));
            }
        }
    }

    /// The first received signal other than SIGTSTP, which does not end us.
    pub fn next_to_end(&self) -> Option<Signal> {
        while let Ok(Some(received)) = self.next() {
            if received.signal != Signal::SIGTSTP {
                return Some(received.signal);
            }
        }
        None
    }

    /// Lets the blocked `signal` take its default effect on this process. After
    /// a stop, returns at SIGCONT.
    pub fn suffer(signal: Signal) -> io::Result<()> {
        let set: SigSet = [signal].into_iter().collect();
        // Raised while blocked, it merges with a pending one and takes effect
        // once.
        raise(signal)?;
        set.thread_unblock()?;
        set.thread_block()?;
        Ok(())
    }
}

/// Watches for the first signal that ends a command.
#[derive(Debug)]
pub struct Interruption {
    signals: Signals,
    signal: Option<Signal>,
}

impl Interruption {
    /// Holds `signals` from now on.
    pub fn block(signals: &[Signal]) -> anyhow::Result<Self> {
        Ok(Self {
            signals: Signals::block(signals).context("cannot handle signals")?,
            signal: None,
        })
    }

    /// The signal that came, if any.
    pub fn signal(&mut self) -> Option<Signal> {
        self.signal = self.signal.or_else(|| self.signals.next_to_end());
        self.signal
    }

    /// The mask in force before, for children.
    pub fn mask_before(&self) -> &SigSet {
        self.signals.mask_before()
    }

    /// Ends this process by the signal that came.
    pub fn pass_on(&self) -> ExitCode {
        self.signal
            .map_or(ExitCode::FAILURE, |signal| Ending::Killed(signal).pass_on())
    }
}

impl AsFd for Signals {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

impl Drop for Signals {
    fn drop(&mut self) {
        // This mask was in force before, so setting it cannot fail.
        let _ = self.before.thread_set_mask();
    }
}

fn bit(signal: Signal) -> u64 {
    1 << (signal as u64 - 1)
}

fn ignored() -> io::Result<u64> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let digits = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    digits
        .and_then(|digits| u64::from_str_radix(digits.trim(), 16).ok())
        .ok_or_else(|| io::Error::from(Errno::ENOSYS))
}
