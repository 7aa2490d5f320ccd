//! Real processes to share a CPU between, and an engine to do it.
//!
//! The programs under test are this very program run again under another
//! name, so nothing has to be built or installed for them.

#![allow(dead_code, reason = "tests and benches each use a part of it")]

pub mod control_groups;
pub mod helper;
pub mod spinner;
pub mod timetable;
pub mod witness;
mod world;

use std::io::{Read, Write};
use std::os::fd::BorrowedFd;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use prorata_user::ProcessId;
pub use world::*;

/// Where the programs' daemon would listen if there were one. Two runs of the tests at the
/// same time must not take each other's programs, by their markers, for their own.
pub fn socket() -> PathBuf {
    format!("/nonexistent/prorata-test/{}/socket", std::process::id()).into()
}

pub const MS: u64 = 1_000_000;

/// The CPU that all programs of a test share: the last that we may use.
pub fn shared_cpu() -> usize {
    let usable = rustix::thread::sched_getaffinity(None).expect("we have an affinity");
    (0..rustix::thread::CpuSet::MAX_CPU)
        .rfind(|&cpu| usable.is_set(cpu))
        .expect("some CPU is usable")
}

/// Runs `body` with this thread, and all that it starts, bound to CPUs.
pub fn bound_to<T>(cpus: &[usize], body: impl FnOnce() -> T) -> T {
    let before = rustix::thread::sched_getaffinity(None).expect("we have an affinity");
    let mut mask = rustix::thread::CpuSet::new();
    cpus.iter().for_each(|&cpu| mask.set(cpu));
    rustix::thread::sched_setaffinity(None, &mask).expect("these CPUs are usable");
    let result = body();
    rustix::thread::sched_setaffinity(None, &before).expect("they were usable before");
    result
}

/// A program, killed with all its children when it goes out of scope.
pub struct Program {
    child: Child,
}

impl Program {
    /// Starts a helper (see [`helper`]) in a process group of its own, on the
    /// shared CPU.
    pub fn start(arguments: &[&str]) -> Program {
        Self::start_on(&[shared_cpu()], arguments)
    }

    pub fn start_on(cpus: &[usize], arguments: &[&str]) -> Program {
        bound_to(cpus, || Self::start_as(arguments, |_| ()))
    }

    /// Starts a helper with another user, say, or another environment.
    pub fn start_as(arguments: &[&str], change: impl FnOnce(&mut Command)) -> Program {
        let mut command = command(arguments);
        change(&mut command);
        let child = command
            .process_group(0)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("a helper starts");
        Program { child }
    }

    /// Starts one that says when it is ready, and waits for that.
    pub fn ready(arguments: &[&str]) -> Program {
        let mut program = Self::start(arguments);
        assert_eq!(program.hear(), "ready");
        program
    }

    /// One that computes and nothing else.
    pub fn hog() -> Program {
        Self::start(&["hog"])
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    pub fn id(&self) -> ProcessId {
        ProcessId::of(self.pid()).expect("it runs")
    }

    pub fn child(&mut self) -> &mut Child {
        &mut self.child
    }

    /// Writes a line to its standard input.
    pub fn say(&mut self, line: &str) {
        let input = self.child.stdin.as_mut().expect("it has one");
        writeln!(input, "{line}").expect("it listens");
    }

    /// Reads a line from its standard output.
    pub fn hear(&mut self) -> String {
        let output = self.child.stdout.as_mut().expect("it has one");
        let mut line = Vec::new();
        let mut byte = [0];
        while output.read(&mut byte).expect("it is open") == 1 && byte != *b"\n" {
            line.push(byte[0]);
        }
        String::from_utf8(line).expect("it is text")
    }

    /// CPU time of the process itself, exact.
    pub fn cpu_ns(&self) -> u64 {
        cpu_ns(self.pid())
    }

    /// CPU time of the process and all descendants that were waited for.
    pub fn tree_cpu_ns(&self) -> u64 {
        let field = |number: usize| {
            stat_field(self.pid(), number)
                .parse::<u64>()
                .expect("a number")
        };
        (14..=17).map(field).sum::<u64>() * 10 * MS
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        let group = rustix::process::Pid::from_child(&self.child);
        let _ = rustix::process::kill_process_group(group, rustix::process::Signal::KILL);
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// This program, run again as a helper.
pub fn command(arguments: &[&str]) -> Command {
    let mut command = Command::new("/proc/self/exe");
    command.arg0(helper::NAME).args(arguments);
    command
}

/// CPU time of a process, zero if it is gone.
pub fn cpu_ns(pid: u32) -> u64 {
    prorata_user::cpu_time_ns(pid).unwrap_or(0)
}

/// A field of `/proc/PID/stat`, counted from 1 as in proc(5); empty if the
/// process is gone.
pub fn stat_field(pid: u32, number: usize) -> String {
    let line = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let rest = line.rsplit_once(") ").map_or("", |(_, rest)| rest);
    rest.split(' ')
        .nth(number - 3)
        .unwrap_or("")
        .trim()
        .to_owned()
}

/// Whether a process runs and all its threads and its control group are ordinary.
pub fn is_normal(pid: u32) -> bool {
    let stopped = matches!(stat_field(pid, 3).as_str(), "T" | "t" | "");
    let stopped = stopped || control_groups::is_held_down(pid);
    let idle = threads_of(pid).any(|tid| policy_of(tid) == libc::SCHED_IDLE);
    !stopped && !idle
}

/// Whether any thread of a process has a real-time policy.
pub fn is_raised(pid: u32) -> bool {
    let mut threads = threads_of(pid);
    threads.any(|tid| policy_of(tid) & !libc::SCHED_RESET_ON_FORK == libc::SCHED_FIFO)
}

/// How many of these are normal.
pub fn count_normal(programs: &[Program]) -> usize {
    let programs = programs.iter();
    programs.filter(|program| is_normal(program.pid())).count()
}

/// Whether a process is stopped or demoted; one that has ended is not.
pub fn is_held_down(pid: u32) -> bool {
    matches!(stat_field(pid, 3).as_str(), "T" | "t")
        || policy_of(pid) == libc::SCHED_IDLE
        || control_groups::is_held_down(pid)
}

/// Whether a process has ended, waited for or not: its parent may be slow.
pub fn has_ended(pid: u32) -> bool {
    matches!(stat_field(pid, 3).as_str(), "" | "Z" | "X")
}

/// Stops a process, and returns when all its threads have stopped.
pub fn freeze(pid: u32) {
    signal(pid, libc::SIGSTOP);
    wait_until("all its threads stop", || {
        threads_of(pid).all(|tid| stat_field(tid, 3) == "T")
    });
}

pub fn threads_of(pid: u32) -> impl Iterator<Item = u32> {
    let tasks = std::fs::read_dir(format!("/proc/{pid}/task")).expect("the process lives");
    tasks.map(|task| {
        let tid = task.expect("readable").file_name();
        tid.to_str().expect("a number").parse().expect("a number")
    })
}

/// How often the only thread of this process with this name has slept.
pub fn sleeps_of(name: &str) -> u64 {
    let me = std::process::id();
    let is_it = |tid: &u32| {
        let comm = std::fs::read_to_string(format!("/proc/{me}/task/{tid}/comm"));
        comm.is_ok_and(|comm| comm.trim_end() == name)
    };
    let tid = threads_of(me).find(is_it).expect("there is such a thread");
    let status = std::fs::read_to_string(format!("/proc/{me}/task/{tid}/status"));
    let status = status.expect("it runs");
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"));
    line.and_then(|count| count.trim().parse().ok())
        .expect("a number")
}

/// Clocks and the like as they are at one moment: reads again after an interruption.
pub fn at_once<T>(mut read: impl FnMut() -> T) -> T {
    loop {
        let begun = Instant::now();
        let result = read();
        if begun.elapsed() < Duration::from_millis(1) {
            return result;
        }
    }
}

/// How many CPUs each thread of a process may use.
pub fn cpus_of_threads(pid: u32) -> Vec<u32> {
    threads_of(pid)
        .map(|tid| {
            let tid = rustix::process::Pid::from_raw(tid as i32);
            rustix::thread::sched_getaffinity(tid).map_or(0, |cpus| cpus.count())
        })
        .collect()
}

/// Puts a process's first thread in `SCHED_IDLE`.
pub fn make_idle(pid: u32) {
    let parameter = libc::sched_param { sched_priority: 0 };
    // SAFETY: `parameter` outlives the call, which only reads it.
    let result =
        unsafe { libc::sched_setscheduler(pid as libc::pid_t, libc::SCHED_IDLE, &parameter) };
    assert_eq!(result, 0, "process {pid} may be demoted");
}

pub fn policy_of(tid: u32) -> i32 {
    // SAFETY: takes and returns plain numbers.
    unsafe { libc::sched_getscheduler(tid as libc::pid_t) }
}

/// Longest wait for anything: far more than needed, so that only a hang
/// reaches it, however busy the machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// Waits until `condition` holds; says what did not come about otherwise.
#[track_caller]
pub fn wait_until(what: &str, mut condition: impl FnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !condition() {
        assert!(Instant::now() < deadline, "not within {PATIENCE:?}: {what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// Says in one line why a test cannot run here. Where everything has to run,
/// that is a failure.
pub fn cannot_run(why: &str) {
    assert!(
        std::env::var_os("CI").is_none_or(|ci| ci != "true"),
        "cannot run here: {why}"
    );
    println!("skipped: {why}");
}

/// A copy of this program that runs as root for any user.
pub fn set_user_id_copy(directory: &Path) -> PathBuf {
    use std::os::unix::fs::PermissionsExt;
    let open = |mode| std::fs::Permissions::from_mode(mode);
    std::fs::set_permissions(directory, open(0o755)).expect("the directory is ours");
    let copy = directory.join("masked");
    std::fs::copy("/proc/self/exe", &copy).expect("there is room for a copy");
    std::fs::set_permissions(&copy, open(0o4755)).expect("the copy is ours");
    copy
}

/// Effective user id of a process.
pub fn effective_uid(pid: u32) -> Option<u32> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let uids = status.lines().find_map(|line| line.strip_prefix("Uid:"))?;
    uids.split_ascii_whitespace().nth(1)?.parse().ok()
}

/// Name of the program that a process runs.
pub fn program_of(pid: u32) -> String {
    let name = std::fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
    name.trim_end().to_owned()
}

/// Waits until a process has so many threads.
pub fn wait_for_threads(pid: u32, count: u32) {
    wait_until("its threads start", || {
        stat_field(pid, 20) == count.to_string()
    });
}

/// Waits until a descriptor is readable.
pub fn wait_readable(descriptor: BorrowedFd<'_>) {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    let timeout = Timespec::try_from(PATIENCE).expect("short");
    let mut descriptors = [PollFd::from_borrowed_fd(descriptor, PollFlags::IN)];
    assert_eq!(
        poll(&mut descriptors, Some(&timeout)),
        Ok(1),
        "not readable"
    );
}

/// Children of the first thread of a process.
pub fn children_of(pid: u32) -> Vec<u32> {
    let list = std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children"));
    let list = list.unwrap_or_default();
    list.split_whitespace()
        .map(|pid| pid.parse().expect("a number"))
        .collect()
}

/// Waits until a process has a child.
pub fn wait_for_child(pid: u32) -> u32 {
    wait_until("it has a child", || !children_of(pid).is_empty());
    children_of(pid)[0]
}

pub fn id_of(pid: u32) -> ProcessId {
    ProcessId::of(pid).expect("it runs")
}

pub fn signal(pid: u32, signal: i32) {
    // SAFETY: takes plain numbers.
    let result = unsafe { libc::kill(pid as libc::pid_t, signal) };
    assert_eq!(result, 0, "process {pid} can be signalled");
}

/// A process that belongs to root, other than the first.
pub fn process_of_root() -> Option<u32> {
    let processes = std::fs::read_dir("/proc").ok()?.flatten();
    processes
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .find(|&pid: &u32| {
            let status = std::fs::read_to_string(format!("/proc/{pid}/status"));
            let status = status.unwrap_or_default();
            pid > 2 && status.contains("\nUid:\t0\t0\t0\t0\n") && status.contains("\nVmSize:")
        })
}
