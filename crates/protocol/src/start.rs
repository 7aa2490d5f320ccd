//! Starting one daemon, however many programs want one.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::connection::Connection;
use crate::error::{ConnectError, StartError};
use crate::lock::{LockFile, is_taken};
use crate::paths::DaemonPaths;
use crate::progress::ProgressWatch;
use crate::turn::{LONGEST_WAIT, Turn};

/// Pause between two looks at a lock or a socket that another process is about
/// to change.
const LOOK_AGAIN: Duration = Duration::from_millis(10);

/// Longest pause between two looks at the lock of a starting program.
const LONGEST_PAUSE: Duration = Duration::from_millis(500);

/// A daemon that left its lock free for so long is gone. The lock is free for a
/// moment between two daemons.
const GONE: Duration = Duration::from_secs(5);

/// What a daemon writes to its starter once it listens.
pub const READY: &str = "ready\n";

/// Connects to the daemon of `paths`, and starts one by `starter` if none
/// listens. If several programs find none at the same time, one of them starts
/// it and the others wait. Where the daemon has no room for a connection, waits
/// for a turn. `tell` gets messages for the user.
///
/// `starter` returns once the daemon listens or has failed; see
/// [`start_daemon`].
pub fn open_or_start(
    paths: &DaemonPaths,
    starter: &dyn Fn() -> io::Result<()>,
    tell: &dyn Fn(&str),
) -> Result<Connection, ConnectError> {
    let mut turn = Turn::new(LONGEST_WAIT, tell);
    let mut open = || open_in_turn(paths, &mut turn);
    if let Some(connection) = open()? {
        return Ok(connection);
    }
    paths.prepare_runtime()?;
    let mut progress = watch(paths, tell);
    let lock = LockFile::open(paths.start_lock())?;
    let begun = Instant::now();
    while !lock.try_take()? {
        progress.look()?;
        // Many programs may wait for a slow start. After a fast one a wrapper joins the new daemon
        // at once, before that one may crash too.
        sleep((begun.elapsed() / 32).clamp(LOOK_AGAIN, LONGEST_PAUSE));
        if let Some(connection) = open()? {
            return Ok(connection);
        }
    }
    if let Some(connection) = open()? {
        return Ok(connection);
    }
    starter().map_err(|error| StartError::Failed(error.to_string()))?;
    // The daemon listened a moment ago, and may be gone since.
    let mut held_last = Instant::now();
    loop {
        if let Some(connection) = open()? {
            return Ok(connection);
        }
        if is_taken(&paths.daemon_lock()) {
            held_last = Instant::now();
        } else if held_last.elapsed() >= GONE {
            return Err(StartError::Failed(why_it_ended(&paths.log())).into());
        }
        progress.look()?;
        sleep(LOOK_AGAIN);
    }
}

/// Connects to the running daemon, or waits for the starting one; `None`
/// without either.
pub fn open_if_started(
    paths: &DaemonPaths,
    tell: &dyn Fn(&str),
) -> Result<Option<Connection>, ConnectError> {
    let mut turn = Turn::new(LONGEST_WAIT, tell);
    let mut progress = watch(paths, tell);
    loop {
        // Looked at before the socket: a daemon holds its lock during its whole
        // life.
        let is_starting = is_starting(paths);
        let connection = open_in_turn(paths, &mut turn)?;
        if connection.is_some() || !is_starting {
            return Ok(connection);
        }
        progress.look()?;
        sleep(LOOK_AGAIN);
    }
}

/// Connects to the running daemon once it has room; `None` where none listens.
fn open_in_turn(
    paths: &DaemonPaths,
    turn: &mut Turn<'_>,
) -> Result<Option<Connection>, ConnectError> {
    loop {
        match Connection::open_if_running(&paths.socket) {
            Err(ConnectError::Full { ref message, .. })
                if turn.wait(&format!("the daemon {message}")) => {}
            result => return result,
        }
    }
}

/// Whether a daemon is starting, runs, or is ending.
pub fn is_starting(paths: &DaemonPaths) -> bool {
    is_taken(&paths.start_lock()) || is_taken(&paths.daemon_lock())
}

fn watch<'a>(paths: &DaemonPaths, tell: &'a dyn Fn(&str)) -> ProgressWatch<'a> {
    ProgressWatch::new(paths.daemon_lock(), paths.log(), tell)
}

/// Starts `daemon`, a program that serves on the same `paths`. It gets a
/// session of its own that outlives its starter, `/` as its directory and the
/// log for its errors. Returns when the daemon listens. The error is the
/// daemon's own explanation, if it gave one.
///
/// The daemon is no child of its starter, so `wait` does not show it.
pub fn start_daemon(
    paths: &DaemonPaths,
    mut daemon: Command,
    tell: &dyn Fn(&str),
) -> io::Result<()> {
    paths.prepare_runtime().map_err(io::Error::other)?;
    let log = OpenOptions::new()
        .create(true)
        .append(true)
        .mode(0o600)
        .custom_flags(libc::O_NOFOLLOW)
        .open(paths.log())
        .map_err(|error| {
            let log = paths.log();
            io::Error::other(format!(
                "its log {} cannot be opened: {error}",
                log.display()
            ))
        })?;
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
    // This copy of the writing end must not keep the pipe open.
    drop(daemon);
    match read_answer(answer, &mut watch(paths, tell))?.as_str() {
        READY => Ok(()),
        "" => Err(io::Error::other(why_it_ended(&paths.log()))),
        reason => Err(io::Error::other(reason.trim_end().to_owned())),
    }
}

/// Reads until the daemon is ready, has ended, or is stuck.
fn read_answer(mut answer: io::PipeReader, progress: &mut ProgressWatch<'_>) -> io::Result<String> {
    const PAUSE: Timespec = Timespec {
        tv_sec: 0,
        tv_nsec: 100_000_000,
    };
    let mut text = Vec::new();
    let mut chunk = [0; 1024];
    while text.len() < 16 << 10 && !text.ends_with(b"\n") {
        match poll(&mut [PollFd::new(&answer, PollFlags::IN)], Some(&PAUSE)) {
            Ok(0) => progress.look().map_err(io::Error::other)?,
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

/// The last line of the log, in which the daemon says why it ended.
fn why_it_ended(log: &Path) -> String {
    last_line(log).unwrap_or_else(|| {
        format!(
            "it was killed before it wrote to {}: look for the cause in the kernel's log (dmesg)",
            log.display()
        )
    })
}

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
