//! Starting a daemon when none listens, once, however many programs want one.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{FlockOperation, flock};

use crate::connection::{ConnectError, Connection};
use crate::paths::DaemonPaths;

/// Longest wait for a daemon to listen. Replaying a journal of the largest
/// size takes seconds; nothing else does.
pub const START_TIMEOUT: Duration = Duration::from_secs(20);

/// Pause between two looks at a lock or a socket that somebody else is about
/// to change.
const LOOK_AGAIN: Duration = Duration::from_millis(10);

/// What a daemon says to its starter once it listens.
pub const READY: &str = "ready\n";

/// Why a daemon did not start.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StartError {
    /// It said why.
    #[error("the daemon did not start: {0}")]
    Failed(String),
    /// It runs, or somebody else is starting it, but it does not answer.
    #[error(
        "the daemon did not answer within {} s of its start: see {log}",
        START_TIMEOUT.as_secs()
    )]
    Silent {
        /// Where to look.
        log: String,
    },
    /// The lock file could not be used.
    #[error("no daemon can be started, since the lock {path} cannot be used: {source}")]
    Lock {
        /// Which file.
        path: String,
        /// Why not.
        source: io::Error,
    },
}

/// Takes the start lock, looks again whether someone was quicker, and starts.
pub fn open_starting(
    paths: &DaemonPaths,
    starter: &dyn Fn() -> io::Result<()>,
) -> Result<Connection, ConnectError> {
    paths.prepare_runtime()?;
    let deadline = Instant::now() + START_TIMEOUT;
    let silent = || StartError::Silent {
        log: paths.log().display().to_string(),
    };
    let _lock = lock_until(&paths.start_lock(), deadline)?.ok_or_else(silent)?;
    if let Some(connection) = Connection::open_if_running(&paths.socket)? {
        return Ok(connection);
    }
    starter().map_err(|error| StartError::Failed(error.to_string()))?;
    loop {
        if let Some(connection) = Connection::open_if_running(&paths.socket)? {
            return Ok(connection);
        }
        if Instant::now() >= deadline {
            return Err(last_line(&paths.log())
                .map_or_else(silent, StartError::Failed)
                .into());
        }
        std::thread::sleep(LOOK_AGAIN);
    }
}

/// `None` if someone else holds the lock at `deadline` still.
pub fn lock_until(path: &Path, deadline: Instant) -> Result<Option<File>, StartError> {
    let failed = |source| StartError::Lock {
        path: path.display().to_string(),
        source,
    };
    let file = OpenOptions::new()
        .create(true)
        .truncate(false)
        .read(true)
        .write(true)
        .mode(0o600)
        .custom_flags(libc::O_NOFOLLOW | libc::O_CLOEXEC)
        .open(path)
        .map_err(failed)?;
    loop {
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => return Ok(Some(file)),
            Err(rustix::io::Errno::WOULDBLOCK) if Instant::now() >= deadline => return Ok(None),
            Err(rustix::io::Errno::WOULDBLOCK) => std::thread::sleep(LOOK_AGAIN),
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(failed(error.into())),
        }
    }
}

/// Starts `daemon` (a program that ends up in [`crate::daemon_main`] with the
/// same `paths`) as a session of its own that outlives us, with `/` as its
/// directory and the log for its errors. Returns when it listens; the error is
/// its own explanation where it gave one.
///
/// It becomes no child of ours, so that it does not turn up in `wait`.
pub fn start_daemon(paths: &DaemonPaths, mut daemon: Command) -> io::Result<()> {
    paths.prepare_runtime().map_err(io::Error::other)?;
    let log = OpenOptions::new()
        .create(true)
        .append(true)
        .mode(0o600)
        .custom_flags(libc::O_NOFOLLOW)
        .open(paths.log())?;
    let (answer, speaker) = io::pipe()?;
    daemon
        .env("PRORATA_SOCKET", paths.socket.path())
        .current_dir("/")
        .stdin(Stdio::null())
        .stdout(speaker)
        .stderr(log);
    // SAFETY: between fork and exec only async-signal-safe calls are made
    // (signal-safety(7)): setsid, fork and _exit. The second fork leaves the
    // program to be executed in a process whose parent is gone.
    unsafe {
        daemon.pre_exec(|| {
            rustix::process::setsid()?;
            match libc::fork() {
                -1 => Err(io::Error::last_os_error()),
                0 => Ok(()),
                _ => libc::_exit(0),
            }
        });
    }
    let mut parent = daemon.spawn()?;
    parent.wait()?;
    // Our copy of the writing end must not keep the pipe open.
    drop(daemon);
    match read_answer(answer)?.as_str() {
        READY => Ok(()),
        "" => Err(io::Error::other(
            last_line(&paths.log()).unwrap_or_else(|| String::from("it ended without a word")),
        )),
        reason => Err(io::Error::other(reason.trim_end().to_owned())),
    }
}

/// Reads until the daemon is ready, ends, or takes too long (which is no
/// error here: whoever waits for the socket will say so).
fn read_answer(mut answer: io::PipeReader) -> io::Result<String> {
    let deadline = Instant::now() + START_TIMEOUT;
    let mut text = Vec::new();
    let mut chunk = [0; 1024];
    while text.len() < 16 << 10 && !text.ends_with(b"\n") {
        let left = deadline.saturating_duration_since(Instant::now());
        let timeout = Timespec::try_from(left).expect("twenty seconds fit");
        match poll(&mut [PollFd::new(&answer, PollFlags::IN)], Some(&timeout)) {
            Ok(0) => return Ok(READY.to_owned()),
            Ok(_) => match answer.read(&mut chunk)? {
                0 => break,
                length => text.extend_from_slice(&chunk[..length]),
            },
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(String::from_utf8_lossy(&text).into_owned())
}

/// The last line of a log, which says why its writer ended.
fn last_line(log: &Path) -> Option<String> {
    let mut file = File::open(log).ok()?;
    let length = file.metadata().ok()?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(4 << 10)))
        .ok()?;
    let mut tail = Vec::new();
    file.read_to_end(&mut tail).ok()?;
    let text = String::from_utf8_lossy(&tail);
    text.lines()
        .rev()
        .find(|line| !line.trim().is_empty())
        .map(str::to_owned)
}
