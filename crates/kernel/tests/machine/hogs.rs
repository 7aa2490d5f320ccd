//! Processes that use CPU time in some way.

use std::fs;
use std::io::{Read as _, Write as _};
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Barrier};
use std::thread;
use std::time::{Duration, Instant};

/// A process that is ended with its value.
pub struct Hog(Child);

impl Hog {
    /// Uses all the CPU time that it gets.
    pub fn start() -> Self {
        Self::work(&["hog"]).begun()
    }

    /// Uses CPU time for as long, then sleeps for as long, and so on.
    pub fn bursts(use_ms: u64, sleep_ms: u64) -> Self {
        Self::work(&["bursts", &use_ms.to_string(), &sleep_ms.to_string()]).begun()
    }

    /// Uses CPU time for as long at the same time in each period: so much after its begin by the
    /// machine's clock.
    pub fn in_periods(use_ms: u64, period_ms: u64, after_ms: u64) -> Self {
        let numbers = [use_ms, period_ms, after_ms].map(|number| number.to_string());
        let [use_ms, period_ms, after_ms] = numbers.each_ref().map(String::as_str);
        Self::work(&["periods", use_ms, period_ms, after_ms]).begun()
    }

    /// Uses CPU time for as long, then yields, and so on.
    pub fn yields(use_ms: u64) -> Self {
        Self::work(&["yields", &use_ms.to_string()]).begun()
    }

    /// Waits until the machine has read its program, page by page: a process that waits for
    /// turns, uses little of them and sleeps again gets less and is owed the rest.
    fn begun(mut self) -> Self {
        let mut said = [0];
        let from = self.0.stdout.as_mut().expect("it is a pipe");
        from.read_exact(&mut said).expect("it begins");
        self
    }

    /// Starts so many processes, all of which sleep, and use all they get
    /// after a signal (SIGUSR1).
    pub fn herd(count: u32) -> Self {
        Self::work(&["herd", &count.to_string()])
    }

    /// Starts one process after another, each of which uses so much and ends.
    pub fn relay(use_ms: u64) -> Self {
        Self::work(&["relay", &use_ms.to_string()]).begun()
    }

    /// Uses so much, executes its program again, and so on.
    pub fn execs(use_ms: u64) -> Self {
        Self::work(&["execs", &use_ms.to_string()])
    }

    /// Starts processes that end at once, as many as it can.
    pub fn forks() -> Self {
        Self::work(&["forks"])
    }

    /// After a second starts so many threads, each of which, when all are there,
    /// runs for half a millisecond every few seconds.
    pub fn crowd(count: u32) -> Self {
        Self::work(&["crowd", &count.to_string()])
    }

    fn work(role: &[&str]) -> Self {
        let program = std::env::current_exe().expect("it runs");
        let mut command = Command::new(program);
        command.arg(WORKER).args(role).stdin(Stdio::null());
        command.stdout(Stdio::piped());
        Self(command.spawn().expect("it can be started"))
    }

    /// Its first thread, too.
    pub fn pid(&self) -> u32 {
        self.0.id()
    }

    pub fn signal(&self, signal: i32) {
        // SAFETY: takes no pointers; the child has not been waited for.
        unsafe { libc::kill(self.pid().cast_signed(), signal) };
    }
}

impl Drop for Hog {
    fn drop(&mut self) {
        // Those that it started, too: they are in its process group.
        // SAFETY: takes no pointers; the child has not been waited for.
        unsafe { libc::kill(-self.pid().cast_signed(), libc::SIGKILL) };
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// CPU time of a process's first thread.
pub fn used_ns(pid: u32) -> u64 {
    let text = fs::read_to_string(format!("/proc/{pid}/schedstat")).unwrap_or_default();
    let used = text.split_whitespace().next();
    used.and_then(|used| used.parse().ok()).unwrap_or(0)
}

/// The first argument of a process that is to work.
pub const WORKER: &str = "--worker";

/// Works as asked for.
pub fn work(arguments: &[String]) {
    // SAFETY: takes no pointers.
    unsafe { libc::setpgid(0, 0) };
    let number = |index: usize| arguments[index].parse::<u64>().expect("a number");
    match arguments[0].as_str() {
        "hog" => {
            say_begun();
            burn(Duration::MAX);
        }
        "periods" => {
            say_begun();
            let period_ms = number(2);
            loop {
                let now_ms = uptime().as_millis() as u64;
                let begin_ms = (now_ms + period_ms - number(3)) / period_ms * period_ms + number(3);
                thread::sleep(Duration::from_millis(begin_ms).saturating_sub(uptime()));
                burn(Duration::from_millis(number(1)));
            }
        }
        "bursts" => {
            say_begun();
            loop {
                burn(Duration::from_millis(number(1)));
                thread::sleep(Duration::from_millis(number(2)));
            }
        }
        "yields" => {
            say_begun();
            loop {
                burn(Duration::from_millis(number(1)));
                thread::yield_now();
            }
        }
        "herd" => herd(number(1)),
        "relay" => {
            let relay = || {
                let child = fork(|| burn(Duration::from_millis(number(1))));
                // SAFETY: a null status is permitted.
                unsafe { libc::waitpid(child, std::ptr::null_mut(), 0) };
            };
            relay();
            say_begun();
            loop {
                relay();
            }
        }
        "execs" => {
            burn(Duration::from_millis(number(1)));
            let program = std::env::current_exe().expect("it runs");
            let error = Command::new(program).arg(WORKER).args(arguments).exec();
            panic!("{error}");
        }
        "forks" => loop {
            fork(|| ());
            // SAFETY: a null status is permitted.
            while unsafe { libc::waitpid(-1, std::ptr::null_mut(), libc::WNOHANG) } > 0 {}
        },
        "crowd" => crowd(number(1)),
        other => panic!("no such role: {other}"),
    }
}

/// Tells the parent that this process has what it needs to use CPU time.
fn say_begun() {
    burn(Duration::from_millis(20));
    let mut to = std::io::stdout();
    let said = to.write_all(b".").and_then(|()| to.flush());
    said.expect("the parent reads it");
}

/// Uses as much CPU time. A machine that counts instructions executes one of its CPUs at a
/// time while the clocks of all go on, and the next when that one pauses: without pauses some
/// would stand still for many ticks, and take that for time used.
fn burn(time: Duration) {
    let begin = thread_time();
    while thread_time() - begin < time {
        for number in 0..1000u32 {
            std::hint::black_box(number);
        }
        std::hint::spin_loop();
    }
}

/// By the monotonic clock.
pub fn uptime() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

fn thread_time() -> Duration {
    // SAFETY: all bits zero is a time, and the kernel writes one.
    let mut time: libc::timespec = unsafe { std::mem::zeroed() };
    // SAFETY: as above.
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &raw mut time) };
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

fn crowd(count: u64) {
    // It is given meanwhile.
    thread::sleep(Duration::from_secs(1));
    let all = Arc::new(Barrier::new(count as usize + 1));
    for index in 0..count {
        let all = Arc::clone(&all);
        let work = move || {
            all.wait();
            loop {
                thread::sleep(Duration::from_millis(3000 + index % 4000));
                burn(Duration::from_micros(500));
            }
        };
        let thread = thread::Builder::new().stack_size(16 << 10).spawn(work);
        thread.expect("there is room for its stack");
    }
    all.wait();
    thread::sleep(Duration::from_secs(3600));
}

fn herd(count: u64) {
    // SAFETY: an empty set is made by the kernel's own function.
    let mut signals: libc::sigset_t = unsafe { std::mem::zeroed() };
    // SAFETY: the set lives; blocked signals are inherited by those forked.
    unsafe {
        libc::sigemptyset(&raw mut signals);
        libc::sigaddset(&raw mut signals, libc::SIGUSR1);
        libc::sigprocmask(libc::SIG_BLOCK, &raw const signals, std::ptr::null_mut());
    }
    let children: Vec<i32> = (0..count)
        .map(|_| {
            fork(|| {
                let mut signal = 0;
                // SAFETY: both live.
                unsafe { libc::sigwait(&raw const signals, &raw mut signal) };
                burn(Duration::MAX);
            })
        })
        .collect();
    let mut signal = 0;
    // SAFETY: both live.
    unsafe { libc::sigwait(&raw const signals, &raw mut signal) };
    for child in children {
        // SAFETY: takes no pointers.
        unsafe { libc::kill(child, libc::SIGUSR1) };
    }
    thread::sleep(Duration::from_secs(3600));
}

/// A process that does this and ends.
fn fork(work: impl FnOnce()) -> i32 {
    // SAFETY: there is one thread only, so what the child finds is whole.
    match unsafe { libc::fork() } {
        0 => {
            work();
            // SAFETY: ends the process at once.
            unsafe { libc::_exit(0) }
        }
        child => child,
    }
}

/// Waits until something is so; false if it is not for long.
pub fn wait_until(mut is_so: impl FnMut() -> bool) -> bool {
    let begin = Instant::now();
    while !is_so() {
        if begin.elapsed() > Duration::from_secs(20) {
            return false;
        }
        thread::sleep(Duration::from_millis(5));
    }
    true
}
