//! The programs that tests and benches share a CPU between.

use std::os::unix::process::CommandExt;
use std::process::Command;
use std::time::{Duration, Instant};

use prorata_user::{EngineError, Mechanism};

use super::timetable::{self, Bulletin};
use super::{MS, Program};

/// What a helper is called; by this name it knows itself.
pub const NAME: &str = "prorata-test-helper";

/// If this process was started as a helper, does a helper's work and ends the
/// process; returns at once otherwise.
pub fn helper_entry() {
    let mut arguments = std::env::args();
    if arguments.next().is_none_or(|name| name != NAME) {
        return;
    }
    // Not to outlive a test that is killed.
    let kill = Some(rustix::process::Signal::KILL);
    rustix::process::set_parent_process_death_signal(kill).expect("it is permitted");
    // If the test was killed before that, another process is the parent now.
    if rustix::process::getppid().is_none_or(|parent| parent.is_init()) {
        std::process::exit(1);
    }
    // The tests' parent may have had them ignore these.
    for signal in [libc::SIGHUP, libc::SIGINT, libc::SIGQUIT, libc::SIGTERM] {
        // SAFETY: the default is no handler.
        unsafe { libc::signal(signal, libc::SIG_DFL) };
    }
    // A bench may have lowered its own nice value.
    rustix::process::setpriority_process(None, 0).expect("niceness may rise");
    let arguments: Vec<String> = arguments.collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    // Any user may run the set-user-id copy, and must not get more from it.
    if rustix::process::geteuid() != rustix::process::getuid() {
        assert_eq!(arguments, ["masked"]);
    }
    match arguments[..] {
        ["hog"] => compute(),
        // Computes in so many threads.
        ["threads", count] => {
            let count: usize = count.parse().expect("a number");
            let threads: Vec<_> = (0..count)
                .map(|_| std::thread::spawn(|| compute()))
                .collect();
            threads
                .into_iter()
                .for_each(|thread| thread.join().expect("endless"));
        }
        // Computes in a second thread, after the first has ended, and in a child, whose pid it prints.
        ["leaderless"] => {
            std::thread::spawn(|| {
                println!("{}", start_beside(&["hog"]));
                compute()
            });
            end_thread();
        }
        // Computes, and prints a line from its handler when it gets a SIGTERM.
        ["handler"] => {
            handle(libc::SIGTERM, say_handled);
            println!("ready");
            compute();
        }
        // Computes, and handles the signals of a timer.
        ["timer", interval_us] => {
            handle(libc::SIGALRM, do_nothing);
            start_timer(number(interval_us));
            compute();
        }
        // Computes so long (CPU time), sleeps so long, again and again.
        ["bursts", run_us, sleep_us] => {
            let (run, sleep) = (micros(run_us), micros(sleep_us));
            loop {
                compute_for(run);
                std::thread::sleep(sleep);
            }
        }
        // Wakes on a schedule and computes each time, whether it was late or not. Prints the
        // 50th and 99th percentile of how late it was, in microseconds. The first wakes do not
        // count.
        ["wakes", first, count, period_us, work_us] => {
            let (period, work) = (micros(period_us), micros(work_us));
            let begin = Instant::now();
            let mut late_us: Vec<u64> = (1..=number::<u32>(first) + number::<u32>(count))
                .map(|wake| {
                    let due = begin + wake * period;
                    std::thread::sleep(due.saturating_duration_since(Instant::now()));
                    let late = due.elapsed();
                    compute_for(work);
                    late.as_micros() as u64
                })
                .skip(number(first))
                .collect();
            late_us.sort_unstable();
            let percentile = |percent| late_us[(late_us.len() - 1) * percent / 100];
            println!("{} {}", percentile(50), percentile(99));
            sleep_for_ever();
        }
        // Computes in a session of its own, in a child.
        ["session"] => {
            let mut child = super::command(&["session-leader"])
                .spawn()
                .expect("it starts");
            child.wait().expect("endless");
        }
        ["session-leader"] => {
            rustix::process::setsid().expect("no leader of a process group");
            compute();
        }
        // Becomes a program.
        ["run", program, ref arguments @ ..] => {
            let error = Command::new(program).args(arguments).exec();
            panic!("{program}: {error}");
        }
        // Inherits the orphans of a program that it starts.
        ["foster", program, ref arguments @ ..] => {
            rustix::process::set_child_subreaper(Some(rustix::process::getpid()))
                .expect("it is permitted");
            let mut child = Command::new(program)
                .args(arguments)
                .spawn()
                .expect("it starts");
            child.wait().expect("it ends");
            sleep_for_ever();
        }
        // Computes, and starts a helper with each line that it reads.
        ["breeder", ref child @ ..] => breed(child),
        // Chooses `SCHED_IDLE` and computes.
        ["idle-hog"] => {
            super::make_idle(std::process::id());
            compute();
        }
        // Starts a helper and waits for its end.
        ["waiter", ref child @ ..] => {
            let mut child = super::command(child).spawn().expect("it starts");
            child.wait().expect("it ends");
            sleep_for_ever();
        }
        // Starts a child that computes, and prints how often waitpid(2) finds it stopped until
        // another child ends.
        ["observer", seconds] => observe(seconds),
        // Reads a line, uses so much CPU time and ends.
        ["burn-later", ms] => {
            std::io::stdin()
                .read_line(&mut String::new())
                .expect("readable");
            compute_for(Duration::from_millis(number(ms)));
        }
        // Becomes a user that owns nothing, and another helper.
        ["nobody", ref arguments @ ..] => {
            // SAFETY: takes plain numbers, and an empty list.
            let groups = unsafe {
                [
                    libc::setgroups(0, std::ptr::null()),
                    libc::setresgid(NOBODY, NOBODY, NOBODY),
                ]
            };
            assert_eq!(groups, [0; 2], "root may");
            become_user(NOBODY, NOBODY);
            let error = super::command(arguments).exec();
            panic!("{arguments:?}: {error}");
        }
        // Computes until it reads a line, then goes on as the set-user-id
        // program at this path.
        ["mask", program] => {
            compute_until_line();
            let error = Command::new(program).arg0(NAME).arg("masked").exec();
            panic!("{program}: {error}");
        }
        // As such, computes until it reads a line, becomes root for good and has
        // a child.
        ["masked"] => {
            compute_until_line();
            become_user(0, 0);
            start_beside(&["hog"]);
            compute();
        }
        // In a child, because a leader of a process group cannot leave its
        // session.
        ["releaser", ref arguments @ ..] => {
            let mut child = super::command(&[&["releaser-child"], arguments].concat())
                .spawn()
                .expect("it starts");
            child.wait().expect("it ends");
        }
        ["releaser-child", mechanism, ref pids @ ..] => release_without_power(mechanism, pids),
        ["daemon", mechanism, directory, ref pids @ ..] => daemon(mechanism, directory, pids),
        ["spinner", seconds] => super::spinner::spin(number(seconds)),
        ["peer", first_ns, interval_ns, count] => {
            super::spinner::wake(number(first_ns), number(interval_ns), number(count));
        }
        ["slot-daemon", directory, ref pids @ ..] => slot_daemon(directory, pids),
        // Has so many children that sleep, and names them.
        ["crowd", children] => crowd(number(children)),
        // Manages three processes where descriptors suffice for two.
        ["limited", soft, hard] => limited(number(soft), number(hard)),
        _ => panic!("no such helper: {arguments:?}"),
    }
    std::process::exit(0);
}

fn compute() -> ! {
    let mut sum = 0u64;
    loop {
        sum = std::hint::black_box(sum.wrapping_mul(3).wrapping_add(1));
    }
}

#[expect(clippy::zombie_processes, reason = "waitpid(2) waits for all children")]
fn observe(seconds: &str) -> ! {
    let mut hog = super::command(&["hog"]).spawn().expect("it starts");
    let mut sleeper = Command::new("sleep");
    let sleeper = sleeper.arg(seconds).spawn().expect("it starts");
    println!("{}", count_stops_until_end_of(sleeper.id()));
    hog.kill().expect("it is ours");
    hog.wait().expect("it ends");
    sleep_for_ever()
}

fn count_stops_until_end_of(child: u32) -> u32 {
    let mut stops = 0;
    loop {
        let mut status = 0;
        // SAFETY: `status` outlives the call, which writes it.
        let pid = unsafe { libc::waitpid(-1, &mut status, libc::WUNTRACED | libc::WCONTINUED) };
        stops += u32::from(libc::WIFSTOPPED(status));
        if pid == child as libc::pid_t && libc::WIFEXITED(status) {
            return stops;
        }
    }
}

fn handle(signal: i32, handler: extern "C" fn(i32)) {
    let handler = handler as *const () as libc::sighandler_t;
    // SAFETY: the handlers here make at most one system call.
    unsafe { libc::signal(signal, handler) };
}

extern "C" fn do_nothing(_: i32) {}

extern "C" fn say_handled(_: i32) {
    let _ = rustix::io::write(rustix::stdio::stdout(), b"handled\n");
}

fn start_timer(interval_us: libc::suseconds_t) {
    let interval = libc::timeval {
        tv_sec: 0,
        tv_usec: interval_us,
    };
    let timer = libc::itimerval {
        it_interval: interval,
        it_value: interval,
    };
    // SAFETY: `timer` outlives the call, which only reads it.
    let result = unsafe { libc::setitimer(libc::ITIMER_REAL, &timer, std::ptr::null_mut()) };
    assert_eq!(result, 0, "timers can be had");
}

/// Uses so much CPU time.
fn compute_for(time: Duration) {
    let start = thread_cpu();
    let mut sum = 0u64;
    while thread_cpu() - start < time {
        for _ in 0..1000 {
            sum = std::hint::black_box(sum.wrapping_mul(3).wrapping_add(1));
        }
    }
}

fn thread_cpu() -> Duration {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::new(now.tv_sec as u64, now.tv_nsec as u32)
}

fn micros(text: &str) -> Duration {
    Duration::from_micros(number(text))
}

fn number<T: std::str::FromStr>(text: &str) -> T {
    text.parse().ok().expect("a number")
}

fn crowd(children: u32) -> ! {
    let mut pids = Vec::new();
    for _ in 0..children {
        // SAFETY: this process has one thread, so its child may do anything. The child ends with
        // its parent.
        let pid = unsafe { libc::fork() };
        match pid {
            0 => {
                // SAFETY: takes plain numbers.
                unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) };
                sleep_for_ever();
            }
            pid => pids.push(
                u32::try_from(pid)
                    .expect("processes can be had")
                    .to_string(),
            ),
        }
    }
    println!("{}", pids.join(" "));
    sleep_for_ever()
}

fn sleep_for_ever() -> ! {
    loop {
        std::thread::sleep(Duration::from_secs(3600));
    }
}

/// Runs an engine that shares a CPU equally between processes, until a signal ends it.
fn daemon(mechanism: &str, directory: &str, pids: &[&str]) -> ! {
    let mechanism = Some(mechanism_named(mechanism));
    let config = super::config(directory.as_ref(), mechanism, None);
    let (dispatcher, engine) = super::start_engine(config, 20 * MS).expect("the engine starts");
    for pid in pids {
        let client = super::create_client(&dispatcher, pid, 1);
        let managed = engine.manage(client, super::id_of(number(pid)));
        managed.expect("it can be managed");
    }
    println!("ready");
    sleep_for_ever()
}

/// The same, as root, with a timetable in which each process has one column of 20 ms after another.
/// One column stays free.
fn slot_daemon(directory: &str, pids: &[&str]) -> ! {
    let cpu = super::shared_cpu() as u32;
    let config = super::config(directory.as_ref(), None, None);
    let (dispatcher, engine) = super::start_engine(config, 20 * MS).expect("the engine starts");
    let columns = pids.len() as u32 + 1;
    let mut bulletin = Bulletin::open(directory.as_ref(), &[cpu], columns, 20);
    for (column, pid) in (0..).zip(pids) {
        let client = super::create_client(&dispatcher, pid, 1);
        let pid = number(pid);
        let managed = engine.manage(client, super::id_of(pid));
        managed.expect("it can be managed");
        bulletin.claim(0, column..column + 1, timetable::process(pid));
    }
    let mechanism = engine.set_timetable(Some(bulletin.reader()));
    println!("{:?}", mechanism.expect("the keeper starts"));
    sleep_for_ever()
}

fn breed(child: &[&str]) -> ! {
    loop {
        compute_until_line();
        start_beside(child);
    }
}

/// Starts a helper and returns its pid; another thread waits for its end.
fn start_beside(arguments: &[&str]) -> u32 {
    let mut child = super::command(arguments).spawn().expect("it starts");
    let pid = child.id();
    std::thread::spawn(move || child.wait());
    pid
}

/// Ends this thread and no other.
fn end_thread() -> ! {
    // SAFETY: takes a plain number. The thread's stack stays, whatever others borrow from it.
    unsafe { libc::syscall(libc::SYS_exit, 0) };
    unreachable!("the thread has ended");
}

/// Computes until there is a line on standard input, and returns that.
fn compute_until_line() -> String {
    let (tell, told) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        let mut line = String::new();
        // Unbuffered: the program that the helper becomes may read the next line.
        let mut byte = [0];
        while rustix::io::read(std::io::stdin(), &mut byte) == Ok(1) && byte != *b"\n" {
            line.push(char::from(byte[0]));
        }
        let _ = tell.send(line);
    });
    loop {
        compute_for(Duration::from_micros(100));
        if let Ok(line) = told.try_recv() {
            return line;
        }
    }
}

/// A user and a group that own nothing.
const NOBODY: u32 = 65534;

/// Becomes a user, and may become `saved` again.
fn become_user(user: libc::uid_t, saved: libc::uid_t) {
    // SAFETY: takes plain numbers.
    assert_eq!(unsafe { libc::setresuid(user, user, saved) }, 0);
}

/// Manages two processes, of which the first nearly always loses, and prints where the
/// engine's state is. Then obeys the lines that it reads: it loses all power over the
/// processes, releases the first, or regains its power. It prints a line after each.
fn release_without_power(mechanism: &str, pids: &[&str]) -> ! {
    // A process may continue any other of its own session.
    rustix::process::setsid().expect("no leader of a process group");
    let world = super::World::new(Some(mechanism_named(mechanism)), 100 * MS);
    let clients = [1, 1000].map(|tickets| world.client(&tickets.to_string(), tickets));
    for (client, pid) in clients.iter().zip(pids) {
        let process = super::id_of(number(pid));
        world.engine().manage(*client, process).expect("it can be");
    }
    println!("{}", world.directory.path().display());
    for line in std::io::stdin().lines() {
        match line.expect("it is text").as_str() {
            "lose" => become_user(NOBODY, 0),
            "regain" => become_user(0, 0),
            "release" => world.engine().release(clients[0]),
            order => panic!("no such order: {order}"),
        }
        println!("done");
    }
    // The test has ended. (A change of user cleared the parent death signal.)
    drop(world);
    std::process::exit(0)
}

fn mechanism_named(name: &str) -> Mechanism {
    match name {
        "Idle" => Mechanism::Idle,
        "GroupIdle" => Mechanism::GroupIdle,
        "GroupFreeze" => Mechanism::GroupFreeze,
        "Stop" => Mechanism::Stop,
        _ => panic!("no mechanism is named {name}"),
    }
}

fn limited(soft: u64, hard: u64) {
    let limit = rustix::process::Rlimit {
        current: Some(soft),
        maximum: Some(hard),
    };
    rustix::process::setrlimit(rustix::process::Resource::Nofile, limit).expect("it is lower");
    // Root could raise the hard limit again.
    let mut sets = rustix::thread::capabilities(None).expect("we exist");
    for set in [&mut sets.effective, &mut sets.permitted] {
        set.remove(rustix::thread::CapabilitySet::SYS_RESOURCE);
    }
    rustix::thread::set_capabilities(None, sets).expect("it is less");
    let world = super::World::new(None, 20 * MS);
    let client = world.client("client", 1);
    let hogs = [Program::hog(), Program::hog(), Program::hog()];
    let managed = hogs
        .iter()
        .filter(|hog| match world.engine().manage(client, hog.id()) {
            Ok(()) => true,
            Err(EngineError::TooFewFiles { limit: 2, .. }) => false,
            Err(error) => panic!("{error}"),
        });
    println!("{} of {}", managed.count(), hogs.len());
}
