//! `/proc/PID/stat`: the state of a process or thread.

use std::io;
use std::os::fd::OwnedFd;

use rustix::fs::OFlags;
use rustix::io::Errno;

use super::{ProcPath, number};
use crate::process_id::ProcessId;

/// Nanoseconds in a clock tick as `/proc` counts them; `USER_HZ` is 100 on
/// every architecture that Linux and Rust share.
pub(crate) const TICK_NS: u64 = 10_000_000;

/// The fields of `/proc/PID/stat` that an engine needs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Stat {
    /// One letter: `R` is runnable, `S` and `D` sleep, `T` is stopped, `t` is
    /// traced, `Z` has ended.
    pub state: u8,
    /// Pid of its parent.
    pub parent: u32,
    /// Its process group: a shell that does job control gives each job one.
    pub process_group: u32,
    /// Its session: the processes of one login or terminal.
    pub session: u32,
    /// Whether it has a controlling terminal.
    pub has_terminal: bool,
    flags: u32,
    /// CPU time of descendants that were waited for. User and system time are each
    /// rounded down to a clock tick.
    pub(crate) waited_ns: u64,
    /// Nice value.
    pub nice: i32,
    pub(crate) threads: u32,
    /// Clock ticks since boot.
    pub start_time_ticks: u64,
    exit_signal: i32,
    /// Scheduling policy, as the kernel numbers them.
    pub policy: u32,
}

impl Stat {
    /// Parses one line of the form that `proc(5)` describes.
    pub(crate) fn parse(line: &[u8]) -> Option<Stat> {
        // The name in parentheses may hold anything, parentheses included.
        let after_name = line.iter().rposition(|&b| b == b')')? + 2;
        let mut fields = line.get(after_name..)?.split(|&b| b == b' ' || b == b'\n');
        // Fields count from 1 as in proc(5); the state is the third.
        let mut next = 3;
        let mut field = |number: usize| -> Option<&[u8]> {
            let skipped = number - next;
            next = number + 1;
            fields.nth(skipped)
        };
        let state = *field(3)?.first()?;
        let parent = number(field(4)?)?;
        let process_group = number(field(5)?)?;
        let session = number(field(6)?)?;
        let has_terminal = number::<i32>(field(7)?)? != 0;
        let flags = number(field(9)?)?;
        let waited_ticks: i64 = number::<i64>(field(16)?)? + number::<i64>(field(17)?)?;
        let nice = number(field(19)?)?;
        let threads = number(field(20)?)?;
        let start_time_ticks = number(field(22)?)?;
        let exit_signal = number(field(38)?)?;
        let policy = number(field(41)?)?;
        Some(Stat {
            state,
            parent,
            process_group,
            session,
            has_terminal,
            flags,
            waited_ns: waited_ticks.max(0) as u64 * TICK_NS,
            nice,
            threads,
            start_time_ticks,
            exit_signal,
            policy,
        })
    }

    /// The state of a process that sleeps, born to this parent at this time.
    #[cfg(test)]
    pub(crate) fn born(parent: u32, start_time_ticks: u64) -> Stat {
        Stat {
            state: b'S',
            parent,
            process_group: 0,
            session: 0,
            has_terminal: false,
            flags: 0,
            waited_ns: 0,
            nice: 0,
            threads: 1,
            start_time_ticks,
            exit_signal: 17,
            policy: 0,
        }
    }

    /// Of a process in this state.
    #[cfg(test)]
    pub(crate) fn in_state(state: u8) -> Stat {
        Stat {
            state,
            ..Stat::born(1, 0)
        }
    }

    pub(crate) fn is_runnable(&self) -> bool {
        self.state == b'R'
    }

    /// Whether it sleeps uninterruptibly: it may hold a lock of the kernel.
    pub(crate) fn sleeps_in_kernel(&self) -> bool {
        self.state == b'D'
    }

    /// Whether it waits neither for a CPU nor for a disk.
    pub(crate) fn is_asleep(&self) -> bool {
        matches!(self.state, b'S' | b'T' | b't')
    }

    /// Whether it is stopped or traced.
    pub fn is_stopped(&self) -> bool {
        matches!(self.state, b'T' | b't')
    }

    /// Whether this thread has ended. Other threads of its process may go on.
    pub fn thread_has_ended(&self) -> bool {
        matches!(self.state, b'Z' | b'X' | b'x')
    }

    /// Whether a process has ended, with all its threads.
    pub fn has_ended(&self) -> bool {
        self.thread_has_ended() && self.threads <= 1
    }

    /// Whether a process goes on without its first thread.
    pub fn leader_has_ended(&self) -> bool {
        self.thread_has_ended() && self.threads > 1
    }

    /// Whether it is a thread other than its process's first.
    pub fn is_secondary_thread(&self) -> bool {
        self.exit_signal == -1
    }

    /// Whether it still runs the program that it was forked with (`PF_FORKNOEXEC`).
    pub fn has_not_executed(&self) -> bool {
        self.flags & 0x40 != 0
    }

    /// Whether it is a thread of the kernel (`PF_KTHREAD`).
    pub fn is_kernel_thread(&self) -> bool {
        self.flags & 0x0020_0000 != 0
    }
}

/// The `stat` file of one process. It never shows a later process with the same pid.
#[derive(Debug)]
pub(crate) enum StatFile {
    /// Kept open: it stays with the process for which it was opened.
    Kept(OwnedFd),
    /// Opened for each reading, so that it takes no descriptor.
    OnDemand(ProcessId),
}

impl StatFile {
    /// Of a process that has this name.
    pub(crate) fn of(process: ProcessId, is_kept: bool) -> io::Result<Self> {
        Ok(match is_kept {
            true => Self::Kept(open(process.pid)?),
            false => Self::OnDemand(process),
        })
    }

    /// Cost: about 1.5 us, or 4 us on demand. Fails with `ESRCH` once the process is gone.
    pub(crate) fn read(&self) -> io::Result<Stat> {
        match self {
            Self::Kept(file) => read(file),
            Self::OnDemand(process) => match stat(process.pid) {
                Ok(stat) if ProcessId::from_stat(process.pid, &stat) == *process => Ok(stat),
                Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
                _ => Err(Errno::SRCH.into()),
            },
        }
    }
}

fn open(pid: u32) -> rustix::io::Result<OwnedFd> {
    ProcPath::new(format_args!("/proc/{pid}/stat")).open(OFlags::RDONLY)
}

fn read(file: &OwnedFd) -> io::Result<Stat> {
    let mut buffer = [0; 1024];
    let length = rustix::io::pread(file, &mut buffer, 0)?;
    Stat::parse(&buffer[..length]).ok_or_else(|| io::Error::from(Errno::SRCH))
}

/// Reads a process's `stat` once.
pub fn stat(pid: u32) -> io::Result<Stat> {
    read(&open(pid)?)
}

/// Reads one thread's `stat` once.
pub fn thread_stat(pid: u32, tid: u32) -> io::Result<Stat> {
    let path = ProcPath::new(format_args!("/proc/{pid}/task/{tid}/stat"));
    read(&path.open(OFlags::RDONLY)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINE: &[u8] = b"9 (a) b (c)) R 4 9 7 0 -1 4194304 1 2 3 4 50 60 11 22 20 0 5 0 \
        8888 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 17 1 0 5 0 0 0 0 0 0 0 0 0 0 0\n";

    #[test]
    fn a_stat_line_is_parsed_with_any_name() {
        let stat = Stat::parse(LINE).expect("well-formed");
        assert_eq!(stat.parent, 4);
        assert_eq!(stat.session, 7);
        assert_eq!(stat.waited_ns, 33 * TICK_NS);
        assert_eq!(stat.threads, 5);
        assert_eq!(stat.start_time_ticks, 8888);
        assert_eq!((stat.exit_signal, stat.policy), (17, 5));
        assert!(stat.is_runnable() && !stat.has_ended() && !stat.is_stopped());
    }

    #[test]
    fn an_ended_first_thread_is_not_the_end_of_its_process() {
        let alive = Stat::born(4, 8888);
        assert!(!alive.thread_has_ended() && !alive.has_ended());
        let state = b'Z';
        let ended = Stat { state, ..alive };
        assert!(ended.has_ended() && ended.thread_has_ended() && !ended.leader_has_ended());
        let leaderless = Stat {
            threads: 2,
            ..ended
        };
        assert!(leaderless.thread_has_ended() && leaderless.leader_has_ended());
        assert!(!leaderless.has_ended());
    }

    #[test]
    fn both_ways_to_read_a_stat_file_fail_once_its_process_is_gone() {
        let mut child = std::process::Command::new("sleep")
            .arg("100")
            .spawn()
            .expect("spawns");
        let id = ProcessId::of(child.id()).expect("it runs");
        let earlier = ProcessId {
            start_time_ticks: id.start_time_ticks - 1,
            ..id
        };
        let files = [true, false].map(|is_kept| StatFile::of(id, is_kept).expect("it runs"));
        for file in &files {
            assert_eq!(file.read().expect("it runs").parent, std::process::id());
        }
        let gone = |file: &StatFile| file.read().map_err(|error| error.raw_os_error());
        let of_earlier = StatFile::of(earlier, false).expect("nothing is opened");
        assert_eq!(gone(&of_earlier), Err(Some(libc::ESRCH)));
        child.kill().expect("it runs");
        child.wait().expect("it ends");
        for file in &files {
            assert_eq!(gone(file), Err(Some(libc::ESRCH)));
        }
    }

    #[test]
    fn a_stat_line_cut_short_is_refused() {
        for length in 0..LINE.len() - 40 {
            // Without all fields it is no line, and the parser never panics.
            let parsed = Stat::parse(&LINE[..length]);
            assert!(parsed.is_none() || length > LINE.len() - 60, "{length}");
        }
    }
}
