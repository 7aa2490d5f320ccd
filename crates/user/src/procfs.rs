//! What `/proc` tells about processes and threads. Nothing here allocates
//! except [`environment_variable`] and [`all_processes`].

mod idle_times;

use std::ffi::CStr;
use std::fmt;
use std::io::{self, Write};
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;

use rustix::fs::{Mode, OFlags, RawDir};
use rustix::io::Errno;

pub(crate) use idle_times::IdleTimes;

/// A short path, built in place.
struct ProcPath {
    bytes: [u8; 64],
}

impl ProcPath {
    fn new(path: fmt::Arguments<'_>) -> Self {
        let mut bytes = [0; 64];
        // The last byte stays zero and ends the string.
        (&mut bytes[..63])
            .write_fmt(path)
            .expect("paths in /proc are short");
        Self { bytes }
    }

    fn as_c_str(&self) -> &CStr {
        CStr::from_bytes_until_nul(&self.bytes).expect("the last byte is zero")
    }

    fn open(&self, flags: OFlags) -> rustix::io::Result<OwnedFd> {
        rustix::fs::open(self.as_c_str(), flags | OFlags::CLOEXEC, Mode::empty())
    }
}

/// Nanoseconds in a clock tick as `/proc` counts them; `USER_HZ` is 100 on
/// every architecture that Linux and Rust share.
pub(crate) const TICK_NS: u64 = 10_000_000;

/// The fields of `/proc/PID/stat` that an engine needs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Stat {
    /// One letter: `R` is runnable, `S` and `D` sleep, `T` is stopped, `t` is
    /// traced, `Z` has ended.
    pub(crate) state: u8,
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

    /// Whether it waits neither for a CPU nor for a disk.
    pub(crate) fn is_asleep(&self) -> bool {
        matches!(self.state, b'S' | b'T' | b't')
    }

    /// Whether it is stopped or traced.
    pub(crate) fn is_stopped(&self) -> bool {
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

    /// Whether it is a thread of the kernel (`PF_KTHREAD`).
    pub fn is_kernel_thread(&self) -> bool {
        self.flags & 0x0020_0000 != 0
    }
}

fn number<T: std::str::FromStr>(field: &[u8]) -> Option<T> {
    std::str::from_utf8(field).ok()?.parse().ok()
}

/// An open `stat` file. It stays with the process for which it was opened,
/// even if the pid is used again.
#[derive(Debug)]
pub(crate) struct StatFile(OwnedFd);

impl StatFile {
    pub(crate) fn of_process(pid: u32) -> io::Result<Self> {
        let path = ProcPath::new(format_args!("/proc/{pid}/stat"));
        Ok(Self(path.open(OFlags::RDONLY)?))
    }

    /// Cost: about 1.5 us. Fails with `ESRCH` once the process is gone.
    pub(crate) fn read(&self) -> io::Result<Stat> {
        let mut buffer = [0; 1024];
        let length = rustix::io::pread(&self.0, &mut buffer, 0)?;
        Stat::parse(&buffer[..length]).ok_or_else(|| io::Error::from(Errno::SRCH))
    }
}

/// Reads a process's `stat` once.
pub fn stat(pid: u32) -> io::Result<Stat> {
    StatFile::of_process(pid)?.read()
}

/// Reads one thread's `stat` once.
pub fn thread_stat(pid: u32, tid: u32) -> io::Result<Stat> {
    let path = ProcPath::new(format_args!("/proc/{pid}/task/{tid}/stat"));
    StatFile(path.open(OFlags::RDONLY)?).read()
}

/// The process that a thread belongs to.
pub fn process_of_thread(tid: u32) -> io::Result<u32> {
    status_number(tid, b"Tgid:\t")
}

/// The first number in the line of `/proc/PID/status` that begins so.
fn status_number(tid: u32, label: &[u8]) -> io::Result<u32> {
    let file = ProcPath::new(format_args!("/proc/{tid}/status")).open(OFlags::RDONLY)?;
    // The lines that callers ask for come first.
    let mut buffer = [0; 512];
    let length = rustix::io::pread(&file, &mut buffer, 0)?;
    buffer[..length]
        .split(|&b| b == b'\n')
        .find_map(|line| line.strip_prefix(label))
        .and_then(|rest| number(rest.split(|&b| b == b'\t').next()?))
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
    /// As in [`Stat`].
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

    /// As [`Stat::is_stopped`].
    pub(crate) fn is_stopped(&self) -> bool {
        matches!(self.state, b'T' | b't')
    }

    /// As [`Stat::thread_has_ended`].
    pub(crate) fn thread_has_ended(&self) -> bool {
        matches!(self.state, b'Z' | b'X' | b'x')
    }

    /// As [`Stat::has_ended`].
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

/// Calls `visit` with every process of the system.
pub fn for_each_process(visit: impl FnMut(u32)) -> io::Result<()> {
    for_each_number(c"/proc", visit)
}

/// Calls `visit` with every thread of a process.
pub fn for_each_thread(pid: u32, visit: impl FnMut(u32)) -> io::Result<()> {
    let path = ProcPath::new(format_args!("/proc/{pid}/task"));
    for_each_number(path.as_c_str(), visit)
}

/// All processes of the system, oldest first. Cost: 5 us each.
pub fn all_processes() -> Vec<(u32, Stat)> {
    let mut all = Vec::new();
    let _ = for_each_process(|pid| {
        if let Ok(stat) = stat(pid) {
            all.push((pid, stat));
        }
    });
    all.sort_by_key(|(pid, stat)| (stat.start_time_ticks, *pid));
    all
}

fn for_each_number(path: &CStr, mut visit: impl FnMut(u32)) -> io::Result<()> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let directory = rustix::fs::open(path, flags, Mode::empty())?;
    let mut buffer = [MaybeUninit::uninit(); 8192];
    let mut entries = RawDir::new(directory, &mut buffer);
    while let Some(entry) = entries.next() {
        if let Some(entry) = number(entry?.file_name().to_bytes()) {
            visit(entry);
        }
    }
    Ok(())
}

/// An open `/proc/loadavg`. Its last field is the number that the kernel gave out last to a
/// process or thread of this pid namespace.
#[derive(Debug)]
pub struct LastBorn(OwnedFd);

impl LastBorn {
    /// Fails without a `/proc`.
    pub fn open() -> io::Result<Self> {
        let path = ProcPath::new(format_args!("/proc/loadavg"));
        Ok(Self(path.open(OFlags::RDONLY)?))
    }

    /// The number. Cost: 1.5 us.
    pub fn read(&self) -> io::Result<u32> {
        let mut buffer = [0; 128];
        let length = rustix::io::pread(&self.0, &mut buffer, 0)?;
        buffer[..length]
            .trim_ascii_end()
            .rsplit(|&b| b == b' ')
            .next()
            .and_then(number)
            .ok_or_else(|| io::Error::from(io::ErrorKind::InvalidData))
    }
}

/// Longest environment that is searched for a marker.
const MAX_ENVIRONMENT_BYTES: u64 = 256 << 10;

/// Real user id of a process.
pub fn real_uid(pid: u32) -> Option<u32> {
    status_number(pid, b"Uid:\t").ok()
}

/// The value of environment variable `name` that a process was started with,
/// if this user may read it.
pub fn environment_variable(pid: u32, name: &str) -> Option<String> {
    use std::io::Read;
    let mut environment = Vec::new();
    let file = std::fs::File::open(format!("/proc/{pid}/environ")).ok()?;
    file.take(MAX_ENVIRONMENT_BYTES)
        .read_to_end(&mut environment)
        .ok()?;
    environment
        .split(|&b| b == 0)
        .find_map(|variable| variable.strip_prefix(name.as_bytes())?.strip_prefix(b"="))
        .and_then(|value| String::from_utf8(value.to_vec()).ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINE: &[u8] = b"9 (a) b (c)) R 4 9 7 0 -1 4194304 1 2 3 4 50 60 11 22 20 0 5 0 \
        8888 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 17 1 0 5 0 0 0 0 0 0 0 0 0 0 0\n";

    #[test]
    fn a_process_has_its_real_user() {
        let own = rustix::process::getuid().as_raw();
        assert_eq!(real_uid(std::process::id()), Some(own));
        assert_eq!(real_uid(0), None);
    }

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
    fn a_stat_line_cut_short_is_refused() {
        for length in 0..LINE.len() - 40 {
            // Without all fields it is no line, and the parser never panics.
            let parsed = Stat::parse(&LINE[..length]);
            assert!(parsed.is_none() || length > LINE.len() - 60, "{length}");
        }
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
    fn this_process_is_found() {
        let me = std::process::id();
        let stat = stat(me).expect("we exist");
        assert!(!stat.is_kernel_thread() && !stat.is_secondary_thread());
        let mut found = false;
        for_each_process(|pid| found |= pid == me).expect("/proc is readable");
        assert!(found);
        let mut threads = 0;
        for_each_thread(me, |_| threads += 1).expect("/proc is readable");
        assert!(threads >= 1);
        assert_eq!(environment_variable(me, "NO SUCH VARIABLE"), None);
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

    #[test]
    fn births_show_in_the_pid_given_out_last() {
        let file = LastBorn::open().expect("/proc is readable");
        let mut child = std::process::Command::new("true").spawn().expect("spawns");
        // Other processes are born too, so only the order of the numbers is certain, unless they
        // wrap.
        let last = file.read().expect("readable");
        assert!(last >= child.id() || last < 1000);
        child.wait().expect("ends");
    }
}
