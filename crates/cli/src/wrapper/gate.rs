//! A process that exists before it is a program.
//!
//! A client is registered by the pid of its root, and must not run a single
//! instruction of its own before it is. So the child waits at a gate, a pipe,
//! until its parent has registered it and writes the client's identifier.

use std::io::{self, PipeReader, PipeWriter, Read, Write};
use std::os::unix::process::CommandExt;
use std::process::Command;

use nix::sys::signal::SigSet;
use nix::unistd::{ForkResult, Pid, fork};
use prorata_user::CLIENT_MARKER;

/// Exit code of a command that is not found, as of a shell.
const NOT_FOUND: i32 = 127;

/// Exit code of a command that cannot be executed, as of a shell.
const NOT_EXECUTABLE: i32 = 126;

/// A child that waits. Dropped, it goes away without having been a program.
#[derive(Debug)]
pub struct Gated {
    pid: Pid,
    gate: PipeWriter,
}

impl Gated {
    /// Forks a child that will be `command`, under the signal mask `mask`.
    ///
    /// Call it while the process has one thread only.
    pub fn fork(command: Command, mask: &SigSet) -> io::Result<Self> {
        let (reader, gate) = io::pipe()?;
        // SAFETY: this process has one thread (nothing in this program starts
        // another before a command runs), so the child finds every lock free
        // and may do whatever the parent could.
        match unsafe { fork() }? {
            ForkResult::Parent { child } => Ok(Self { pid: child, gate }),
            ForkResult::Child => {
                drop(gate);
                wait_and_become(command, reader, mask)
            }
        }
    }

    /// The child's pid, which it keeps as a program.
    pub fn pid(&self) -> Pid {
        self.pid
    }

    /// Lets the child become its program, as (part of) `client` if given.
    pub fn let_go(mut self, client: Option<&str>) -> io::Result<()> {
        // A name of no bytes would read like an end of file: begin with a byte
        // that is not part of it.
        self.gate
            .write_all(format!(">{}", client.unwrap_or_default()).as_bytes())
    }
}

/// The child's part. It ends by `_exit`, as the parent's buffers and guards are
/// not its own.
fn wait_and_become(mut command: Command, mut reader: PipeReader, mask: &SigSet) -> ! {
    let mut word = String::new();
    let code = match (reader.read_to_string(&mut word), word.strip_prefix('>')) {
        (Ok(_), Some(client)) => {
            if !client.is_empty() {
                command.env(CLIENT_MARKER, client);
            }
            // A mask that cannot be restored would only have been one that
            // could not be set.
            let _ = mask.thread_set_mask();
            let error = command.exec();
            eprintln!(
                "prorata: cannot run {:?}: {}",
                command.get_program(),
                reason(&error)
            );
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
        io::ErrorKind::PermissionDenied => "it is not executable by you".to_owned(),
        _ => error.to_string(),
    }
}
