//! The guardian: a second process that undoes all deeds when the engine dies or stalls.
//!
//! ```text
//!   engine's process                      guardian
//!   ----------------                      --------
//!   spawn: its own program, argv = "share-guardian" twice, clients'
//!          socket in its environment; stdin = socket to the engine,
//!          stdout = table
//!                                         setsid, ignore signals, map table
//!                 <--------------- 'R' -- ready
//!   promise: a new promise before t       every 250 ms: later than t?
//!                                           yes: undo all, keep the records,
//!                                           again with each look
//!   keepers of slots promise, too                   yes: lower what is raised there
//!   dies in any way: socket closes        end of file: undo all, clear, end
//! ```
//!
//! The guardian is the engine's program run again, and not just a fork: a fork of a process with
//! several threads may not even allocate.

use std::ffi::CStr;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

use crate::control_groups;
use crate::marker::{CLIENT_MARKER, SOCKET_MARKER};
use crate::priority;
use crate::procfs;
use crate::pulse::Pulse;
use crate::scheduler;
use crate::sweep::{Records, lower, put_right};
use crate::table::{Table, flag};
use crate::time::monotonic_ns;

/// A process with this name is a guardian. `pkill prorata` must not end the guardian together with
/// the engine, so its name and its arguments are free of that word.
const NAME: &str = "share-guardian";
/// The same for the kernel, which permits 15 bytes.
const KERNEL_NAME: &CStr = c"share-guardian";

/// How often the engine looks whether a new guardian makes progress.
const PROGRESS_INTERVAL: Duration = Duration::from_millis(100);

/// A new guardian that sleeps for so long without using any CPU time has hung. One that
/// waits for a CPU or for the disk has not, however busy the machine.
const MAX_SLEEP: Duration = Duration::from_secs(10);

/// A program that neither becomes a guardian nor ends nor sleeps is given up on.
const MAX_START: Duration = Duration::from_secs(600);

/// How often the guardian looks whether the engine has stalled.
const LOOK_INTERVAL: Timespec = Timespec {
    tv_sec: 0,
    tv_nsec: 250_000_000,
};

/// How often the engine looks whether a guardian that is to end has ended.
const END_INTERVAL: Duration = Duration::from_millis(1);

/// A running guardian, as the engine sees it.
#[derive(Debug)]
pub(crate) struct Guardian {
    child: Child,
    /// Closing it is the message that the engine has ended.
    socket: UnixStream,
    pulse: Pulse,
}

impl Guardian {
    /// Starts a guardian over this table and waits until it is ready. Takes
    /// milliseconds, and far more on a busy machine: not for the decision thread.
    /// `clients_socket` is that by which the clients' programs are known.
    pub(crate) fn spawn(table: &Table, clients_socket: &Path) -> io::Result<Guardian> {
        let (socket, theirs) = UnixStream::pair()?;
        let child = Command::new("/proc/self/exe")
            .arg0(NAME)
            // A test harness that does not call `guardian_entry` runs no test of this name.
            .arg(NAME)
            .env(SOCKET_MARKER, clients_socket)
            // With both markers it would be a client's process.
            .env_remove(CLIENT_MARKER)
            .stdin(Stdio::from(OwnedFd::from(theirs)))
            .stdout(Stdio::from(table.as_fd().try_clone_to_owned()?))
            .stderr(Stdio::null())
            .spawn()?;
        let mut guardian = Guardian::new(child, socket);
        guardian.await_ready(MAX_SLEEP).inspect_err(|_| {
            let _ = guardian.child.kill();
            let _ = guardian.child.wait();
        })?;
        Ok(guardian)
    }

    fn new(child: Child, socket: UnixStream) -> Guardian {
        let pulse = Pulse::new(monotonic_ns());
        Guardian {
            child,
            socket,
            pulse,
        }
    }

    /// Whether it has stopped working though it has not ended. To be asked about once a second.
    pub(crate) fn has_hung(&mut self, now_ns: u64) -> bool {
        let (stat, cpu_ns) = (procfs::stat(self.pid()), scheduler::cpu_time_ns(self.pid()));
        let (Ok(stat), Some(cpu_ns)) = (stat, cpu_ns) else {
            return false;
        };
        self.pulse.has_stopped(now_ns, &stat, cpu_ns)
    }

    /// Ends it whatever it does.
    pub(crate) fn kill(&mut self) {
        let _ = self.child.kill();
    }

    fn await_ready(&mut self, max_sleep: Duration) -> io::Result<()> {
        self.socket.set_read_timeout(Some(PROGRESS_INTERVAL))?;
        let mut progress = Progress::new(Instant::now(), max_sleep);
        loop {
            let mut ready = [0];
            match self.socket.read(&mut ready) {
                Ok(1) if ready == [READY] => return Ok(()),
                Ok(_) => {
                    return Err(io::Error::other(
                        "the program that was started as guardian did not become one: \
                         call prorata_user::guardian_entry first thing in main",
                    ));
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            }
            let sleeps = procfs::stat(self.pid()).is_ok_and(|stat| stat.is_asleep());
            let cpu_ns = scheduler::cpu_time_ns(self.pid()).unwrap_or(0);
            progress.check(Instant::now(), sleeps, cpu_ns)?;
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
    /// Lets the guardian end and waits for it, but not for one that is stopped.
    fn drop(&mut self) {
        let _ = self.socket.shutdown(std::net::Shutdown::Both);
        while matches!(self.child.try_wait(), Ok(None)) {
            if procfs::stat(self.pid()).is_ok_and(|stat| stat.is_stopped()) {
                let _ = self.child.kill();
                let _ = self.child.wait();
                return;
            }
            std::thread::sleep(END_INTERVAL);
        }
    }
}

/// What is known of a guardian that is not ready yet.
#[derive(Debug)]
struct Progress {
    begun: Instant,
    /// When it last was found to use CPU time or to wait for it.
    last: Instant,
    cpu_ns: u64,
    max_sleep: Duration,
}

impl Progress {
    fn new(begun: Instant, max_sleep: Duration) -> Self {
        Self {
            begun,
            last: begun,
            cpu_ns: 0,
            max_sleep,
        }
    }

    /// Takes note of a look at it. Fails if it has hung.
    fn check(&mut self, now: Instant, sleeps: bool, cpu_ns: u64) -> io::Result<()> {
        if !sleeps || cpu_ns > self.cpu_ns {
            self.last = now;
            self.cpu_ns = cpu_ns;
        }
        let hung = |time: Duration, what| {
            let message = format!("for {} s it {what} without getting ready", time.as_secs());
            Err(io::Error::new(io::ErrorKind::TimedOut, message))
        };
        if now - self.last > self.max_sleep {
            hung(self.max_sleep, "sleeps")
        } else if now - self.begun > MAX_START {
            hung(MAX_START, "runs")
        } else {
            Ok(())
        }
    }
}

const READY: u8 = b'R';

/// Does a guardian's work and ends the process, if it was started as a guardian; returns at once
/// otherwise. Every program that starts a [`UserEngine`](crate::UserEngine) calls this first
/// thing in `main`.
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
    // If the engine has ended already, the loop finds that out.
    let _ = socket.write_all(&[READY]);
    let clients_socket = std::env::var_os(SOCKET_MARKER).unwrap_or_default();
    let clients_socket = Path::new(&clients_socket);
    loop {
        if engine_has_ended(&socket) {
            put_right(&table, clients_socket, Records::Clear);
            return Ok(());
        }
        // Again with each look: a slow engine may still do deeds that it wrote down before.
        let owes_release = || table.is_anything(flag::TOUCHED) || control_groups::are_held(&table);
        if monotonic_ns() > table.promised_ns() && owes_release() {
            table.announce_release();
            put_right(&table, clients_socket, Records::Keep);
            continue;
        }
        let stalled = table.stalled_keepers(monotonic_ns());
        if stalled.count() > 0 && table.is_anything(flag::RAISED) {
            table.announce_lowering();
            lower(&table, clients_socket, &stalled);
        }
    }
}

/// Leaves the engine's terminal and directory, and ignores signals: those that end the engine
/// must not end the guardian.
fn detach() {
    let _ = rustix::process::setsid();
    let _ = std::env::set_current_dir("/");
    let _ = rustix::thread::set_name(KERNEL_NAME);
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
    priority::wake_promptly(priority::GUARDIAN);
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Whether a guardian that is looked at so often is still waited for.
    fn is_waited_for(seconds: u64, look: impl Fn(u64) -> (bool, u64)) -> bool {
        let begun = Instant::now();
        let mut progress = Progress::new(begun, MAX_SLEEP);
        (0..=seconds).all(|second| {
            let (sleeps, cpu_ns) = look(second);
            let now = begun + Duration::from_secs(second);
            progress.check(now, sleeps, cpu_ns).is_ok()
        })
    }

    #[test]
    fn a_guardian_that_waits_for_a_cpu_is_waited_for() {
        assert!(is_waited_for(MAX_START.as_secs(), |_| (false, 0)));
    }

    #[test]
    fn a_guardian_that_uses_some_cpu_time_between_sleeps_is_waited_for() {
        assert!(is_waited_for(MAX_START.as_secs(), |now| (true, now / 10)));
    }

    #[test]
    fn a_guardian_that_only_sleeps_or_runs_for_ever_is_given_up_on() {
        assert!(is_waited_for(MAX_SLEEP.as_secs(), |_| (true, 5)));
        assert!(!is_waited_for(MAX_SLEEP.as_secs() + 1, |_| (true, 5)));
        assert!(!is_waited_for(MAX_START.as_secs() + 1, |now| (false, now)));
    }

    /// Waits for such a program to become a guardian.
    fn wait_for(program: &str, argument: &str) -> io::Result<()> {
        let (socket, theirs) = UnixStream::pair()?;
        let child = Command::new(program)
            .arg(argument)
            .stdin(Stdio::from(OwnedFd::from(theirs)))
            .spawn()?;
        let mut guardian = Guardian::new(child, socket);
        let result = guardian.await_ready(Duration::from_millis(300));
        let _ = guardian.child.kill();
        result
    }

    #[test]
    fn a_program_that_does_not_become_a_guardian_is_told_from_one() {
        let asleep = wait_for("sleep", "1000").expect_err("it is no guardian");
        assert_eq!(asleep.kind(), io::ErrorKind::TimedOut, "{asleep}");
        let ended = wait_for("true", "").expect_err("it is no guardian");
        assert!(ended.to_string().contains("guardian_entry"), "{ended}");
    }
}
