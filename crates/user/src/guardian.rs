//! The guardian: a second process that outlives the engine by as long as it
//! takes to put everything right.
//!
//! ```text
//!   engine's process                      guardian
//!   ----------------                      --------
//!   spawn: our own program, argv = "prorata-guardian" twice, clients'
//!          socket; stdin = socket between us, stdout = table
//!                                         setsid, ignore signals, map table
//!                 <--------------- 'R' -- ready
//!   promise: heard of before t            every 250 ms: later than t?
//!                                           yes: put right, keep the records,
//!                                           again with each look
//!   dies in any way: socket closes        end of file: put right, clear, end
//! ```
//!
//! It is our own program run again, and not a fork that goes on, because a
//! fork of a process with several threads may not even allocate.

use std::ffi::CStr;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

use crate::scheduler;
use crate::sweep::{Records, put_right};
use crate::table::Table;
use crate::time::monotonic_ns;

/// What a guardian is called, by which it knows itself.
const NAME: &str = "prorata-guardian";
/// The same within the kernel's limit of 15 bytes.
const SHORT_NAME: &CStr = c"prorata-guard";

/// How long a guardian may take to get ready on a busy machine.
const START_PATIENCE: Duration = Duration::from_secs(10);

/// How often it looks whether the engine has stalled.
const LOOK_INTERVAL: Timespec = Timespec {
    tv_sec: 0,
    tv_nsec: 250_000_000,
};

/// A running guardian, as the engine sees it.
#[derive(Debug)]
pub(crate) struct Guardian {
    child: Child,
    /// Closing it is the message that the engine has ended.
    socket: UnixStream,
}

impl Guardian {
    /// Starts a guardian over this table and waits until it is ready. Takes
    /// milliseconds: not for the decision thread.
    /// `clients_socket` is that by which the clients' programs are known.
    pub(crate) fn spawn(table: &Table, clients_socket: &Path) -> io::Result<Guardian> {
        let (socket, theirs) = UnixStream::pair()?;
        let child = Command::new("/proc/self/exe")
            .arg0(NAME)
            // A program whose main is a test harness and does not know
            // guardians takes this for the name of a test that it has not.
            .arg(NAME)
            .arg(clients_socket)
            .stdin(Stdio::from(OwnedFd::from(theirs)))
            .stdout(Stdio::from(table.as_fd().try_clone_to_owned()?))
            .stderr(Stdio::null())
            .spawn()?;
        let mut guardian = Guardian { child, socket };
        guardian.await_ready().inspect_err(|_| {
            let _ = guardian.child.kill();
            let _ = guardian.child.wait();
        })?;
        Ok(guardian)
    }

    fn await_ready(&mut self) -> io::Result<()> {
        self.socket.set_read_timeout(Some(START_PATIENCE))?;
        let mut ready = [0];
        match self.socket.read(&mut ready) {
            Ok(1) if ready == [READY] => Ok(()),
            Ok(_) => Err(io::Error::other(
                "the program that was started as guardian did not become one: \
                 call prorata_user::guardian_entry first thing in main",
            )),
            Err(error) => Err(error),
        }
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Readable once the guardian is gone.
    pub(crate) fn end(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

impl Drop for Guardian {
    /// Lets the guardian end and waits for it.
    fn drop(&mut self) {
        let _ = self.socket.shutdown(std::net::Shutdown::Both);
        let _ = self.child.wait();
    }
}

const READY: u8 = b'R';

/// If this process was started as a guardian, does a guardian's work and ends
/// the process; returns at once otherwise. To be called first thing in `main`
/// by every program that starts a [`UserEngine`](crate::UserEngine).
pub fn guardian_entry() {
    if std::env::args_os().next().is_some_and(|name| name == NAME) {
        let code = if guard().is_ok() { 0 } else { 1 };
        std::process::exit(code);
    }
}

fn guard() -> io::Result<()> {
    detach();
    let table = Table::map(io::stdout().as_fd().try_clone_to_owned()?)?;
    let mut socket = UnixStream::from(io::stdin().as_fd().try_clone_to_owned()?);
    // If the engine has ended already, the loop finds that out and does its duty.
    let _ = socket.write_all(&[READY]);
    let clients_socket = std::env::args_os().nth(2).unwrap_or_default();
    let clients_socket = Path::new(&clients_socket);
    loop {
        if engine_has_ended(&socket) {
            put_right(&table, clients_socket, Records::Clear);
            return Ok(());
        }
        // With each look: an engine that is only slow may still do what it had
        // written down before.
        if monotonic_ns() > table.promised_ns() && table.is_anything_touched() {
            table.announce_release();
            put_right(&table, clients_socket, Records::Keep);
        }
    }
}

/// Leaves the engine's terminal and directory; what ends the engine must not
/// end the guardian too.
fn detach() {
    let _ = rustix::process::setsid();
    let _ = std::env::set_current_dir("/");
    let _ = rustix::thread::set_name(SHORT_NAME);
    for signal in [
        libc::SIGHUP,
        libc::SIGINT,
        libc::SIGQUIT,
        libc::SIGTERM,
        libc::SIGPIPE,
        libc::SIGUSR1,
        libc::SIGUSR2,
    ] {
        // SAFETY: ignoring a signal installs no handler.
        unsafe { libc::signal(signal, libc::SIG_IGN) };
    }
    scheduler::wake_promptly();
}

/// Waits for the next look, or until the engine's end of the socket closes.
fn engine_has_ended(socket: &UnixStream) -> bool {
    let mut descriptors = [PollFd::new(socket, PollFlags::IN)];
    match poll(&mut descriptors, Some(&LOOK_INTERVAL)) {
        Ok(0) | Err(Errno::INTR) => false,
        // The engine never writes: readable means closed.
        _ => true,
    }
}
