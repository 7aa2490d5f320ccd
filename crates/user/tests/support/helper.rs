//! The programs that tests and benches share a CPU between.

use std::fs::File;
use std::io::Write;
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::time::Duration;

use prorata_core::policy::Stride;
use prorata_user::{EngineConfig, EngineError, Mechanism, UserEngine};

use super::{MS, Program};

/// What a helper is called, by which it knows itself.
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
    // Nor to be as nice, or not, as a bench that keeps its own nose in front.
    rustix::process::setpriority_process(None, 0).expect("niceness may rise");
    let arguments: Vec<String> = arguments.collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
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
        // Computes so long (CPU time), sleeps so long, again and again.
        ["bursts", run_us, sleep_us] => {
            let run = Duration::from_micros(number(run_us));
            let sleep = Duration::from_micros(number(sleep_us));
            loop {
                compute_for(run);
                std::thread::sleep(sleep);
            }
        }
        // Counts units of work into a file, a number of eight bytes.
        ["count", path] => count_into(&open(path)),
        // Writes down when it ran again after a pause.
        ["pauses", path] => note_pauses(&open(path)),
        // Like bursts, and writes down when each sleep begins.
        ["noted-bursts", run_us, sleep_us, path] => {
            let mut file = open(path);
            let run = Duration::from_micros(number(run_us));
            let sleep = Duration::from_micros(number(sleep_us));
            loop {
                compute_for(run);
                note(&mut file, monotonic_ns());
                std::thread::sleep(sleep);
            }
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
        ["daemon", mechanism, directory, ref pids @ ..] => daemon(mechanism, directory, pids),
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

fn open(path: &str) -> File {
    File::options()
        .write(true)
        .create(true)
        .truncate(true)
        .open(path)
        .expect("a file that we may write")
}

/// Appends a number of eight bytes.
fn note(file: &mut File, number: u64) {
    file.write_all(&number.to_le_bytes())
        .expect("there is room");
}

fn monotonic_ns() -> u64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    now.tv_sec as u64 * 1000 * MS + now.tv_nsec as u64
}

/// Work between two notes: well below a millisecond.
const UNITS_AT_ONCE: u64 = 100_000;

fn count_into(file: &File) -> ! {
    let mut sum = 0u64;
    for units in 1.. {
        for _ in 0..UNITS_AT_ONCE {
            sum = std::hint::black_box(sum.wrapping_mul(3).wrapping_add(1));
        }
        let units: u64 = units;
        rustix::io::pwrite(file, &units.to_le_bytes(), 0).expect("there is room");
    }
    unreachable!("numbers do not end that soon")
}

/// Longer than a look at the clock takes, shorter than any turn.
const PAUSE_NS: u64 = 200_000;

fn note_pauses(mut file: &File) -> ! {
    let mut before_ns = monotonic_ns();
    loop {
        let now_ns = monotonic_ns();
        if now_ns - before_ns > PAUSE_NS {
            file.write_all(&now_ns.to_le_bytes())
                .expect("there is room");
        }
        before_ns = now_ns;
    }
}

fn number<T: std::str::FromStr>(text: &str) -> T {
    text.parse().ok().expect("a number")
}

fn sleep_for_ever() -> ! {
    loop {
        std::thread::sleep(Duration::from_secs(3600));
    }
}

/// Runs an engine that shares a CPU equally between processes, until it dies
/// of something.
fn daemon(mechanism: &str, directory: &str, pids: &[&str]) -> ! {
    let dispatcher = super::dispatcher(Box::new(Stride::new()), 20 * MS);
    let config = EngineConfig {
        cpus: None,
        state_directory: directory.into(),
        socket: super::socket(),
        mechanism: Some(match mechanism {
            "Idle" => Mechanism::Idle,
            _ => Mechanism::Stop,
        }),
    };
    let engine = UserEngine::start(config, dispatcher.clone()).expect("the engine starts");
    for pid in pids {
        let client = {
            let mut dispatcher = dispatcher.lock().expect("nobody panicked");
            super::create_client(&mut dispatcher, pid, 1)
        };
        engine
            .manage(client, super::id_of(number(pid)))
            .expect("it can be managed");
    }
    println!("ready");
    sleep_for_ever()
}

fn limited(soft: u64, hard: u64) {
    let limit = rustix::process::Rlimit {
        current: Some(soft),
        maximum: Some(hard),
    };
    rustix::process::setrlimit(rustix::process::Resource::Nofile, limit).expect("it is lower");
    let world = super::World::new(None, 20 * MS);
    let client = world.client("client", 1);
    let hogs = [Program::hog(), Program::hog(), Program::hog()];
    let managed = hogs
        .iter()
        .filter(|hog| match world.engine().manage(client, hog.id()) {
            Ok(()) => true,
            Err(EngineError::TooManyProcesses { limit: 2, .. }) => false,
            Err(error) => panic!("{error}"),
        });
    println!("{} of {}", managed.count(), hogs.len());
}
