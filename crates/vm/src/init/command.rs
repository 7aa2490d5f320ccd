//! Runs the job's command as process 1 must: sends its output to the host, and
//! reaps its orphans.

use std::io::{self, Read};
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread::{self, JoinHandle};

use rustix::process::{WaitOptions, wait};

use super::{Port, Result, send, step};
use crate::channel::{Ending, Frame, MAX_CONTENTS_BYTES};
use crate::job::Job;

/// Runs the command to its end, then ends all processes that it left.
pub fn run(job: &Job, port: &Port) -> Result<Ending> {
    let mut child = match start(job) {
        Ok(child) => child,
        Err(error) => return Ok(not_started(job, &error, port)),
    };
    let output = pump(child.stdout.take(), port, Frame::Output);
    let errors = pump(child.stderr.take(), port, Frame::Errors);
    let status = reap(&child)?;
    // The pumps end when no process holds the other ends of their pipes.
    kill_all();
    for pump in [output, errors] {
        let _ = pump.join();
    }
    Ok(ending(status))
}

fn start(job: &Job) -> io::Result<Child> {
    let [program, arguments @ ..] = job.command.as_slice() else {
        return Err(io::ErrorKind::InvalidInput.into());
    };
    Command::new(program)
        .args(arguments)
        .env_clear()
        .envs(job.environment.iter().map(|(name, value)| (name, value)))
        .current_dir(&job.directory)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(0)
        .spawn()
}

/// The codes of shells and of `prorata run`: 127 not found, 126 not executable.
fn not_started(job: &Job, error: &io::Error, port: &Port) -> Ending {
    let program = job.command.first().cloned().unwrap_or_default();
    let text = format!("prorata: cannot run {}: {error}\n", program.display());
    let _ = send(port, &Frame::Errors(text.into_bytes()));
    let found = error.kind() != io::ErrorKind::NotFound;
    Ending::Exited(if found { 126 } else { 127 })
}

fn pump<R: Read + Send + 'static>(
    pipe: Option<R>,
    port: &Port,
    frame: fn(Vec<u8>) -> Frame,
) -> JoinHandle<()> {
    let port = Port::clone(port);
    let mut pipe = pipe.expect("both are pipes");
    thread::spawn(move || {
        let mut buffer = vec![0; MAX_CONTENTS_BYTES];
        while let Ok(bytes @ 1..) = pipe.read(&mut buffer) {
            if send(&port, &frame(buffer[..bytes].to_vec())).is_err() {
                return;
            }
        }
    })
}

/// Waits for the command, and reaps the orphans that end before the command.
fn reap(child: &Child) -> Result<ExitStatus> {
    loop {
        let ended = step("wait for the command", wait(WaitOptions::empty()))?;
        if let Some((pid, status)) = ended
            && pid.as_raw_nonzero().get().unsigned_abs() == child.id()
        {
            return Ok(ExitStatus::from_raw(status.as_raw()));
        }
    }
}

/// Kills all processes but this one: the kernel spares process 1.
fn kill_all() {
    // SAFETY: the call takes plain numbers.
    let _ = unsafe { libc::kill(-1, libc::SIGKILL) };
}

fn ending(status: ExitStatus) -> Ending {
    match (status.code(), status.signal()) {
        (Some(code), _) => Ending::Exited(code as u8),
        (None, signal) => Ending::Killed(signal.unwrap_or_default() as u8),
    }
}
