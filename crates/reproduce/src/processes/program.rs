//! A worker process, as whoever started it sees it.

use std::fs::File;
use std::io::{self, Write};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use prorata_user::{EngineError, ProcessId};
use rustix::fs::{MemfdFlags, memfd_create};
use rustix::process::Pid;
use rustix::thread::{CpuSet, sched_setaffinity};

use super::worker::{NAME, State, Work};

/// How long a worker may take to get ready on a busy machine.
const TIME_TO_GET_READY: Duration = Duration::from_secs(10);

/// A process that waits to be let go, or runs. It never outlives this.
#[derive(Debug)]
pub(super) struct Program {
    child: Child,
    file: File,
}

impl Program {
    /// Starts a worker, bound to a CPU, and returns when it waits. What it
    /// used up to then was nobody's turn.
    pub(super) fn prepare(work: Work, cpu: usize) -> io::Result<Program> {
        let file = File::from(memfd_create(NAME, MemfdFlags::CLOEXEC)?);
        // By this link it is found even where the file itself was replaced.
        let child = Command::new("/proc/self/exe")
            .arg0(NAME)
            .arg(work.argument())
            // A group of its own: the terminal's signals are for us.
            .process_group(0)
            .stdin(Stdio::piped())
            .stdout(file.try_clone()?)
            .spawn()?;
        let program = Program { child, file };
        let mut cpus = CpuSet::new();
        cpus.set(cpu);
        sched_setaffinity(Some(Pid::from_child(&program.child)), &cpus)?;
        let deadline = Instant::now() + TIME_TO_GET_READY;
        while State::read(&program.file)?.is_none() {
            if Instant::now() >= deadline {
                return Err(io::ErrorKind::TimedOut.into());
            }
            sleep(Duration::from_millis(1));
        }
        Ok(program)
    }

    /// Who it is, for the engine.
    pub(super) fn process(&self) -> Result<ProcessId, EngineError> {
        ProcessId::of(self.child.id())
    }

    /// Lets it begin.
    pub(super) fn let_go(&mut self) -> io::Result<()> {
        match self.child.stdin.take() {
            Some(mut input) => input.write_all(b"!"),
            None => Ok(()),
        }
    }

    /// How far it has come.
    pub(super) fn state(&self) -> io::Result<State> {
        Ok(State::read(&self.file)?.unwrap_or(State::BEFORE))
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        // It may have ended by itself; then there is nothing to kill.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
