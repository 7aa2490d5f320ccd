//! A worker process, as whoever started it sees it.

use std::fs::File;
use std::io::{self, Write};
use std::process::{ChildStdin, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use prorata_stage::Process;
use rustix::fs::{MemfdFlags, memfd_create};

use super::worker::{NAME, State, Work};

/// How long a worker may take to get ready on a busy machine.
const TIME_TO_GET_READY: Duration = Duration::from_secs(10);

/// A process that waits to be let go, or runs. It never outlives this.
#[derive(Debug)]
pub(super) struct Program {
    pub(super) process: Process,
    /// Until it is let go.
    input: Option<ChildStdin>,
    file: File,
}

impl Program {
    /// Starts a worker, bound to CPUs, and returns when it waits. What it
    /// used up to then was nobody's turn.
    pub(super) fn prepare(work: Work, cpus: &[u32]) -> io::Result<Program> {
        let file = File::from(memfd_create(NAME, MemfdFlags::CLOEXEC)?);
        let output = file.try_clone()?;
        let mut process = Process::start(NAME, cpus, |command| {
            command
                .arg(work.argument())
                .stdin(Stdio::piped())
                .stdout(output);
        })?;
        let program = Program {
            input: process.take_input(),
            process,
            file,
        };
        let deadline = Instant::now() + TIME_TO_GET_READY;
        while State::read(&program.file)?.is_none() {
            if Instant::now() >= deadline {
                return Err(io::ErrorKind::TimedOut.into());
            }
            sleep(Duration::from_millis(1));
        }
        Ok(program)
    }

    /// Lets it begin.
    pub(super) fn let_go(&mut self) -> io::Result<()> {
        match self.input.take() {
            Some(mut input) => input.write_all(b"!"),
            None => Ok(()),
        }
    }

    /// How far it has come.
    pub(super) fn state(&self) -> io::Result<State> {
        Ok(State::read(&self.file)?.unwrap_or(State::BEFORE))
    }
}
