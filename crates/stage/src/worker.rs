//! The processes of a run, as they see it themselves: our own program, started again under
//! another name, plays one client of the scenario.
//!
//! ```text
//!   standard input    a socket: messages of the first thread
//!   standard output   a file in memory: all programs, and the seed
//!   argument          the number of this client's program
//!   more arguments    a program of the system to run instead, see `Cast`
//! ```
//!
//! Computing, sleeping and loops are a thread's own business; before each step
//! that involves others it asks the run, and waits for the answer.

use std::fs::File;
use std::hint::black_box;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::FileExt;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use prorata_core::rng::Rng as _;
use prorata_scenario::plan::{Code, Instruction};
use prorata_scenario::stream::{Purpose, SplitMix64, small_stream};
use rustix::io::{FdFlags, fcntl_setfd};
use rustix::process::{Signal, set_parent_process_death_signal};
use rustix::thread::{ClockId, sched_yield};
use rustix::time::{Timespec, clock_gettime};
use serde::{Deserialize, Serialize};

use crate::message::{Order, Report, pair};

/// The name by which such a process knows its part.
pub(crate) const NAME: &str = "prorata-client";

/// The programs and the seed, for all processes of a run.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Script {
    pub(crate) code: Code,
    pub(crate) seed: u64,
}

impl Script {
    pub(crate) fn write(&self, file: &File) -> io::Result<()> {
        let text = serde_json::to_vec(self)?;
        file.write_all_at(&text, 0)
    }

    fn read(file: &File) -> io::Result<Script> {
        let mut text = vec![0; file.metadata()?.len() as usize];
        file.read_exact_at(&mut text, 0)?;
        Ok(serde_json::from_slice(&text)?)
    }
}

/// If this process was started to play a client, plays it and ends the process; returns at
/// once otherwise. To be called first thing in `main` by every program that runs scenarios
/// on processes.
pub fn client_entry() {
    let mut arguments = std::env::args();
    if arguments.next().as_deref() != Some(NAME) {
        return;
    }
    let program = arguments.next().and_then(|program| program.parse().ok());
    // Only the exit code can tell of an error.
    let lived = program.is_some_and(|program| live(program, arguments.collect()).is_ok());
    std::process::exit(i32::from(!lived));
}

type Threads = Arc<Mutex<Vec<JoinHandle<io::Result<()>>>>>;

fn live(program: u32, cast: Vec<String>) -> io::Result<()> {
    set_parent_process_death_signal(Some(Signal::KILL))?;
    let script = File::from(io::stdout().as_fd().try_clone_to_owned()?);
    let socket = io::stdin().as_fd().try_clone_to_owned()?;
    // The run sees the end of a socket only if no other descriptor of it is open.
    rustix::stdio::dup2_stdin(&script)?;
    if !cast.is_empty() {
        return Err(become_program(socket, &cast));
    }
    let threads = Threads::default();
    let first = Thread {
        script: Arc::new(Script::read(&script)?),
        socket,
        program,
        threads: threads.clone(),
    };
    first.live()?;
    // The process ends with its last thread.
    let next = || threads.lock().unwrap_or_else(PoisonError::into_inner).pop();
    while let Some(thread) = next() {
        thread.join().map_err(|_| io::Error::other("a panic"))??;
    }
    Ok(())
}

/// Waits to begin, then becomes a program of the system. The program inherits the
/// socket, so that its end is heard. Returns only if that fails.
fn become_program(socket: OwnedFd, cast: &[String]) -> io::Error {
    let begin = || {
        Report::Ready.send(&socket)?;
        let Some(Order::Begin(_)) = Order::receive(&socket)? else {
            std::process::exit(0);
        };
        fcntl_setfd(&socket, FdFlags::empty())?;
        io::stderr().as_fd().try_clone_to_owned()
    };
    match (begin(), cast) {
        (Ok(output), [program, name, arguments @ ..]) => Command::new(program)
            .arg0(name)
            .args(arguments)
            .stdin(Stdio::null())
            .stdout(output)
            .exec(),
        (Ok(_), _) => io::ErrorKind::InvalidInput.into(),
        (Err(error), _) => error,
    }
}

/// A thread before it begins. Dropping its socket tells the run that it has exited.
struct Thread {
    script: Arc<Script>,
    socket: OwnedFd,
    program: u32,
    threads: Threads,
}

/// The state of a thread.
struct Mind {
    /// Number of the instruction that comes next.
    next: u32,
    registers: Vec<u32>,
    lots: SplitMix64,
}

impl Thread {
    /// Runs its program to the end, or until the run ends.
    fn live(self) -> io::Result<()> {
        Report::Ready.send(&self.socket)?;
        let Some(Order::Begin(number)) = Order::receive(&self.socket)? else {
            return Ok(());
        };
        let code = &self.script.code;
        let entry = code.entries[self.program as usize];
        let mut mind = Mind {
            next: entry.start,
            registers: vec![0; entry.registers.into()],
            lots: small_stream(self.script.seed, Purpose::Durations, number),
        };
        loop {
            let number = mind.next;
            mind.next += 1;
            let goes_on = match code.instructions[number as usize] {
                Instruction::Compute(draw) => {
                    burn(mind.draw(code, draw));
                    true
                }
                Instruction::Sleep(draw) => self.sleep(mind.draw(code, draw))?,
                Instruction::Set { register, to } => {
                    mind.registers[usize::from(register)] = to;
                    true
                }
                Instruction::Again { register, to } => {
                    let left = &mut mind.registers[usize::from(register)];
                    *left -= 1;
                    if *left > 0 {
                        mind.next = to;
                    }
                    true
                }
                Instruction::Jump(to) => {
                    mind.next = to;
                    true
                }
                Instruction::Unless { chance, to } => {
                    if mind.lots.next_u64() >> 32 >= u64::from(chance) {
                        mind.next = to;
                    }
                    true
                }
                Instruction::Past { .. } => unreachable!("loops with a time are refused"),
                Instruction::Yield => {
                    sched_yield();
                    true
                }
                Instruction::Fork(program) => self.fork(program)?,
                Instruction::Exit => false,
                _ => self.ask(&Report::Meets(number))?,
            };
            if !goes_on {
                return Ok(());
            }
        }
    }

    /// Asks the run and waits for its answer. Returns whether there was one.
    fn ask(&self, report: &Report) -> io::Result<bool> {
        report.send(&self.socket)?;
        match Order::receive(&self.socket)? {
            None => return Ok(false),
            Some(Order::Wake(since_ns)) => self.woke(since_ns)?,
            Some(Order::Yield) => sched_yield(),
            Some(Order::GoOn | Order::Begin(_)) => {}
        }
        Ok(true)
    }

    fn sleep(&self, sleep_ns: u64) -> io::Result<bool> {
        let end_ns = monotonic_ns() + sleep_ns;
        let end = Timespec {
            tv_sec: (end_ns / 1_000_000_000) as i64,
            tv_nsec: (end_ns % 1_000_000_000) as i64,
        };
        // A signal is no reason to wake.
        while rustix::thread::clock_nanosleep_absolute(ClockId::Monotonic, &end).is_err() {}
        self.woke(end_ns)?;
        Ok(true)
    }

    /// It was runnable since then.
    fn woke(&self, since_ns: u64) -> io::Result<()> {
        Report::Woke(monotonic_ns().saturating_sub(since_ns)).send(&self.socket)
    }

    fn fork(&self, program: u32) -> io::Result<bool> {
        let (socket, theirs) = pair()?;
        let thread = Thread {
            script: self.script.clone(),
            socket,
            program,
            threads: self.threads.clone(),
        };
        let handle = std::thread::Builder::new().spawn(|| thread.live())?;
        self.threads
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(handle);
        self.ask(&Report::Forks(theirs))
    }
}

impl Mind {
    fn draw(&mut self, code: &Code, draw: u32) -> u64 {
        code.draws[draw as usize].next(&mut self.lots, &mut self.registers)
    }
}

/// Uses so much CPU time of this thread.
fn burn(time_ns: u64) {
    let end_ns = thread_cpu_ns().saturating_add(time_ns);
    let mut number = 1u64;
    while thread_cpu_ns() < end_ns {
        // Some microseconds.
        for _ in 0..2_000 {
            number = black_box(number.wrapping_mul(3).wrapping_add(1));
        }
    }
}

fn thread_cpu_ns() -> u64 {
    clock_ns(rustix::time::ClockId::ThreadCPUTime)
}

/// The clock that sleeps and waits are measured by.
pub(crate) fn monotonic_ns() -> u64 {
    clock_ns(rustix::time::ClockId::Monotonic)
}

fn clock_ns(clock: rustix::time::ClockId) -> u64 {
    let time = clock_gettime(clock);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}
