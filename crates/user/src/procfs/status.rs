//! `/proc/PID/status`: users, and pending signals.

use std::io;
use std::os::fd::OwnedFd;

use rustix::fs::OFlags;
use rustix::io::Errno;

use super::{ProcPath, number};

/// The process that a thread belongs to.
pub fn process_of_thread(tid: u32) -> io::Result<u32> {
    status_number(tid, b"Tgid:\t", 0)
}

/// One of the numbers in the line of `/proc/PID/status` that begins so.
fn status_number(tid: u32, label: &[u8], index: usize) -> io::Result<u32> {
    let file = ProcPath::new(format_args!("/proc/{tid}/status")).open(OFlags::RDONLY)?;
    // The lines that callers ask for come first.
    let mut buffer = [0; 512];
    let length = rustix::io::pread(&file, &mut buffer, 0)?;
    buffer[..length]
        .split(|&b| b == b'\n')
        .find_map(|line| line.strip_prefix(label))
        .and_then(|rest| number(rest.split(|&b| b == b'\t').nth(index)?))
        .ok_or_else(|| io::Error::from(Errno::SRCH))
}

/// Signals of a thread and of its process, as sets: bit `n - 1` is signal `n`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct SignalSets {
    /// Pending for this thread.
    pub(crate) own: u64,
    /// Pending for its process: for any thread that does not block the signal.
    pub(crate) shared: u64,
    /// Blocked by this thread.
    pub(crate) blocked: u64,
    pub(crate) ignored: u64,
    /// With a handler.
    pub(crate) caught: u64,
}

impl SignalSets {
    /// Parses a text of the form that `proc(5)` describes for `/proc/PID/status`.
    fn parse(status: &[u8]) -> Option<SignalSets> {
        let labels: [&[u8]; 5] = [
            b"SigPnd:\t",
            b"ShdPnd:\t",
            b"SigBlk:\t",
            b"SigIgn:\t",
            b"SigCgt:\t",
        ];
        // The lines stand together and in this order.
        let mut lines = status.split(|&b| b == b'\n');
        let mut sets = [0; 5];
        for (set, label) in sets.iter_mut().zip(labels) {
            let digits = lines.find_map(|line| line.strip_prefix(label))?;
            *set = u64::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()?;
        }
        let [own, shared, blocked, ignored, caught] = sets;
        Some(SignalSets {
            own,
            shared,
            blocked,
            ignored,
            caught,
        })
    }
}

/// Longest `status` that is read. A process in thousands of groups has a longer one.
const MAX_STATUS_BYTES: usize = 8192;

/// What `/proc/PID/status` tells of a thread.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Status {
    /// As in [`super::Stat`].
    state: u8,
    /// Threads of its process.
    threads: u32,
    /// It has given its memory back, as a thread does early on its way to its end.
    is_without_memory: bool,
    pub(crate) signals: SignalSets,
}

impl Status {
    /// Parses a text of the form that `proc(5)` describes.
    fn parse(status: &[u8]) -> Option<Status> {
        let mut lines = status.split(|&b| b == b'\n');
        let mut field = |label: &[u8]| lines.find_map(|line| line.strip_prefix(label));
        let state = *field(b"State:\t")?.first()?;
        let mut is_without_memory = true;
        let threads = lines.find_map(|line| {
            is_without_memory &= !line.starts_with(b"VmSize:");
            number(line.strip_prefix(b"Threads:\t")?)
        })?;
        Some(Status {
            state,
            threads,
            is_without_memory,
            signals: SignalSets::parse(status)?,
        })
    }

    /// As [`super::Stat::is_stopped`].
    pub(crate) fn is_stopped(&self) -> bool {
        matches!(self.state, b'T' | b't')
    }

    /// Whether its process has no other thread.
    pub(crate) fn has_one_thread(&self) -> bool {
        self.threads == 1
    }

    /// As [`super::Stat::is_asleep`].
    pub(crate) fn is_asleep(&self) -> bool {
        matches!(self.state, b'S' | b'T' | b't')
    }

    /// As [`super::Stat::thread_has_ended`].
    pub(crate) fn thread_has_ended(&self) -> bool {
        matches!(self.state, b'Z' | b'X' | b'x')
    }

    /// As [`super::Stat::has_ended`].
    pub(crate) fn has_ended(&self) -> bool {
        self.thread_has_ended() && self.threads <= 1
    }

    /// Whether its process is on its way to its end. The memory is that of the first thread, which
    /// may have ended before the others.
    pub(crate) fn is_ending(&self) -> bool {
        self.is_without_memory && !(self.thread_has_ended() && self.threads > 1)
    }
}

/// An open `status` file. It stays with the thread for which it was opened.
#[derive(Debug)]
pub(crate) struct StatusFile(OwnedFd);

impl StatusFile {
    pub(crate) fn of_thread(pid: u32, tid: u32) -> io::Result<Self> {
        let path = ProcPath::new(format_args!("/proc/{pid}/task/{tid}/status"));
        Ok(Self(path.open(OFlags::RDONLY)?))
    }

    /// Cost: about 3 us. Fails with `ESRCH` once the thread is gone.
    pub(crate) fn read(&self) -> io::Result<Status> {
        let mut buffer = [0; MAX_STATUS_BYTES];
        let length = rustix::io::pread(&self.0, &mut buffer, 0)?;
        Status::parse(&buffer[..length]).ok_or_else(|| io::Error::from(Errno::SRCH))
    }
}

/// Reads one thread's signal sets once.
pub(crate) fn signal_sets(pid: u32, tid: u32) -> io::Result<SignalSets> {
    Ok(StatusFile::of_thread(pid, tid)?.read()?.signals)
}

/// Real user id of a process.
pub fn real_uid(pid: u32) -> Option<u32> {
    status_number(pid, b"Uid:\t", 0).ok()
}

/// Effective user id of a process.
pub fn effective_uid(pid: u32) -> Option<u32> {
    status_number(pid, b"Uid:\t", 1).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::procfs::stat;

    #[test]
    fn a_process_has_its_real_user() {
        let own = rustix::process::getuid().as_raw();
        assert_eq!(real_uid(std::process::id()), Some(own));
        assert_eq!(effective_uid(std::process::id()), Some(own));
        assert_eq!((real_uid(0), effective_uid(0)), (None, None));
    }

    #[test]
    fn signal_sets_are_parsed_and_a_text_without_them_is_refused() {
        let status = b"Name:\tSigPnd:\nSigQ:\t0/9\nSigPnd:\t0000000000000100\n\
            ShdPnd:\t0000000000004000\nSigBlk:\t8000000000000000\nSigIgn:\t0000000000001000\n\
            SigCgt:\t0000000000000002\nCapInh:\t0000000000000000\n";
        let sets = SignalSets {
            own: 1 << (libc::SIGKILL - 1),
            shared: 1 << (libc::SIGTERM - 1),
            blocked: 1 << 63,
            ignored: 1 << (libc::SIGPIPE - 1),
            caught: 1 << (libc::SIGINT - 1),
        };
        assert_eq!(SignalSets::parse(status), Some(sets));
        let head = |text: &[u8]| Status::parse(&[text, status].concat());
        let ending = head(b"Name:\ta\nState:\tR (running)\nThreads:\t1\n").expect("well-formed");
        assert!(ending.is_ending() && !ending.has_ended() && ending.signals == sets);
        let memory = b"State:\tT (stopped)\nVmSize:\t1 kB\nThreads:\t1\n";
        let stopped = head(memory).expect("well-formed");
        assert!(stopped.is_stopped() && !stopped.is_ending());
        let ended = head(b"State:\tZ (zombie)\nThreads:\t1\n").expect("well-formed");
        assert!(ended.has_ended());
        let leaderless = head(b"State:\tZ (zombie)\nThreads:\t2\n").expect("well-formed");
        assert!(
            leaderless.thread_has_ended() && !leaderless.has_ended() && !leaderless.is_ending()
        );
        assert_eq!(SignalSets::parse(b"Name:\ta\nSigPnd:\t0\n"), None);
        let me = std::process::id();
        assert!(signal_sets(me, me).is_ok() && signal_sets(0, 0).is_err());
    }

    #[test]
    fn a_thread_names_its_process_and_is_secondary() {
        let (tell, told) = std::sync::mpsc::channel();
        let (end, ended) = std::sync::mpsc::channel::<()>();
        let thread = std::thread::spawn(move || {
            let tid = rustix::thread::gettid().as_raw_pid() as u32;
            tell.send(tid).expect("the test waits");
            let _ = ended.recv();
        });
        let tid = told.recv().expect("the thread tells");
        assert_eq!(
            process_of_thread(tid).expect("it lives"),
            std::process::id()
        );
        assert!(stat(tid).expect("it lives").is_secondary_thread());
        drop(end);
        thread.join().expect("it ends");
    }
}
