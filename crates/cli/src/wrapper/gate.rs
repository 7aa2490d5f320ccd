//! A child that waits before it executes its command.
//!
//! The daemon must know a client's first process before the command executes
//! an instruction. So the forked child waits at a gate, a pipe, until its parent
//! has registered its pid and writes the client's identifier.

use std::io::{self, PipeReader, PipeWriter, Read, Write};
use std::os::unix::process::CommandExt;
use std::process::Command;

use nix::sys::signal::SigSet;
use nix::unistd::{ForkResult, Pid, fork};
use prorata_user::CLIENT_MARKER;

use super::supervise::STOPS;
use crate::output;

/// Exit code of a command that is not found, as in a shell.
const NOT_FOUND: i32 = 127;

/// Exit code of a command that cannot be executed, as in a shell.
const NOT_EXECUTABLE: i32 = 126;

/// A waiting child. If this is dropped, the child exits without executing its
/// command.
#[derive(Debug)]
pub struct Gated {
    pid: Pid,
    gate: PipeWriter,
}

impl Gated {
    /// Forks a child that will execute `command` with the signal mask `mask`.
    ///
    /// The calling process must have a single thread.
    pub fn fork(command: Command, mask: &SigSet) -> io::Result<Self> {
        let (reader, gate) = io::pipe()?;
        let (mut arrival, arriving) = io::pipe()?;
        // SAFETY: this process has a single thread (no command starts another
        // before this point), so every lock is free in the child.
        match unsafe { fork() }? {
            ForkResult::Parent { child } => {
                drop(arriving);
                // Ends without a byte when the child has arrived, or has ended.
                arrival.read_to_end(&mut Vec::new())?;
                Ok(Self { pid: child, gate })
            }
            ForkResult::Child => {
                drop(gate);
                // From here on the engine may stop the child. It continues the child for a signal,
                // but only for one that is not blocked. A stop signal has to wait, or the child
                // might never arrive.
                let mut at_gate = *mask;
                STOPS.into_iter().for_each(|signal| at_gate.add(signal));
                // Setting a mask cannot fail.
                let _ = at_gate.thread_set_mask();
                drop(arriving);
                wait_and_become(command, reader, mask)
            }
        }
    }

    /// The child's pid, which the command keeps.
    pub fn pid(&self) -> Pid {
        self.pid
    }

    /// Lets the child execute its command, as part of `client` if given.
    pub fn let_go(mut self, client: Option<&str>) {
        // The leading byte tells an empty name from an end of file. Writing fails if a signal has
        // ended the child, and its parent finds that out when it waits for the child.
        let _ = self
            .gate
            .write_all(format!(">{}", client.unwrap_or_default()).as_bytes());
    }
}

/// The child's part. It ends with `_exit`: the buffers and guards are copies of
/// the parent's and must not be flushed or dropped.
fn wait_and_become(mut command: Command, mut reader: PipeReader, mask: &SigSet) -> ! {
    let mut word = String::new();
    let code = match (reader.read_to_string(&mut word), word.strip_prefix('>')) {
        (Ok(_), Some(client)) => {
            if !client.is_empty() {
                command.env(CLIENT_MARKER, client);
            }
            let _ = mask.thread_set_mask();
            let error = command.exec();
            output::say(format_args!(
                "cannot run {:?}: {}",
                command.get_program(),
                reason(&error)
            ));
            if error.kind() == io::ErrorKind::NotFound {
                NOT_FOUND
            } else {
                NOT_EXECUTABLE
            }
        }
        _ => 1,
    };
    // SAFETY: `_exit` has no preconditions.
    unsafe { nix::libc::_exit(code) }
}

fn reason(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::NotFound => "there is no such program".to_owned(),
        io::ErrorKind::PermissionDenied => "you have no permission to execute it".to_owned(),
        _ => error.to_string(),
    }
}
