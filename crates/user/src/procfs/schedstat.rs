//! `/proc/PID/task/TID/schedstat`: how long a thread ran, and how long it waited for a CPU.
//!
//! The kernel has no other clock of one thread of another process: `clock_gettime(2)` takes only the
//! caller's own threads.

use std::io;
use std::os::fd::OwnedFd;

use rustix::fs::OFlags;

use super::{ProcPath, number};

/// The times of a thread's life.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) struct SchedStat {
    /// Up to a tick late while the thread runs, else exact.
    pub(crate) ran_ns: u64,
    pub(crate) waited_ns: u64,
}

/// The file, which stays with its thread. Where descriptors are few, each reading opens it.
#[derive(Debug)]
pub(crate) struct SchedStatFile {
    pid: u32,
    tid: u32,
    kept: Option<OwnedFd>,
}

impl SchedStatFile {
    pub(crate) fn of(pid: u32, tid: u32) -> Self {
        let kept = open(pid, tid).ok();
        Self { pid, tid, kept }
    }

    /// None once the thread is gone. Cost: 1 us.
    pub(crate) fn read(&self) -> Option<SchedStat> {
        let mut buffer = [0; 80];
        let length = match &self.kept {
            Some(file) => rustix::io::pread(file, &mut buffer, 0).ok()?,
            None => rustix::io::pread(open(self.pid, self.tid).ok()?, &mut buffer, 0).ok()?,
        };
        parse(&buffer[..length])
    }
}

fn open(pid: u32, tid: u32) -> io::Result<OwnedFd> {
    let path = ProcPath::new(format_args!("/proc/{pid}/task/{tid}/schedstat"));
    Ok(path.open(OFlags::RDONLY)?)
}

fn parse(text: &[u8]) -> Option<SchedStat> {
    let mut words = text.split(u8::is_ascii_whitespace);
    Some(SchedStat {
        ran_ns: number(words.next()?)?,
        waited_ns: number(words.next()?)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_of_another_process_has_a_clock() {
        let mut child = std::process::Command::new("sh");
        let child = child.args(["-c", "while :; do :; done"]).spawn();
        let mut child = child.expect("starts");
        let file = SchedStatFile::of(child.id(), child.id());
        let ran_ns = || file.read().map(|times| times.ran_ns);
        let first_ns = ran_ns().expect("it runs");
        while ran_ns().expect("it runs") < first_ns + 20_000_000 {
            std::thread::yield_now();
        }
        child.kill().expect("it runs");
        child.wait().expect("it ends");
        assert_eq!(ran_ns(), None);
    }

    #[test]
    fn only_two_numbers_are_taken() {
        let times = SchedStat {
            ran_ns: 197,
            waited_ns: 55,
        };
        assert_eq!(parse(b"197 55 17\n"), Some(times));
        assert_eq!(parse(b"197\n"), None);
        assert_eq!(parse(b""), None);
    }
}
