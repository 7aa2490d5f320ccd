//! Keeps a client managed while its command runs, across crashes of the daemon.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

use prorata_protocol::{Connection, Request, Response};
use prorata_user::put_right_orphans;
use rustix::process::{Pid, PidfdFlags, getpid, pidfd_open, set_child_subreaper};

use crate::caller::{Caller, ask, clients, status, tell, unexpected};
use crate::output;
use crate::sentence::sentence;

/// The daemon's names for the mechanisms that may stop losers by signals. Control groups do not
/// hold every process.
const STOPPING: [&str; 3] = ["stop", "group-idle", "group-freeze"];

/// How long an ended command waits for a busy daemon to hear of its end.
const LONGEST_FAREWELL: Duration = Duration::from_secs(1);

/// Whether a stop signal reached the command. A process that the engine has
/// stopped does not see the signal, and continuing the process discards it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Notice {
    /// The engine does not stop processes.
    Taken,
    /// The engine stops processes, and may have continued them after the signal.
    PerhapsLost,
    /// The engine had stopped the processes.
    Lost,
}

/// After this many starts of a daemon within [`STARTS_TIME`], this process
/// starts no more and waits for a daemon that another process starts.
const MOST_STARTS: usize = 5;

/// See [`MOST_STARTS`].
const STARTS_TIME: Duration = Duration::from_secs(60);

/// Interval between two searches for a daemon that another process started.
const LOOK_AGAIN: Duration = Duration::from_secs(1);

/// Speaks to the daemon for one client, and starts a new daemon after a crash.
#[derive(Debug)]
pub struct Keeper<'a> {
    caller: &'a Caller,
    client: String,
    daemon: Daemon,
    /// Whether the user has suspended the client. Each new daemon is told, since
    /// the previous daemon may have crashed before the request reached it.
    suspended: bool,
    /// When the daemon ended that we saw ending, within [`STARTS_TIME`].
    starts: Vec<Instant>,
}

#[derive(Debug)]
enum Daemon {
    /// It runs; the descriptor becomes readable when it ends.
    Runs(OwnedFd),
    /// None runs. The next search is at this time.
    Sought(Instant),
    /// The client is no longer managed.
    Left,
}

impl<'a> Keeper<'a> {
    /// Keeps `client`, which the daemon behind `connection` manages.
    pub fn new(caller: &'a Caller, client: String, connection: &Connection) -> Self {
        let daemon = process_of(connection).map_or(Daemon::Left, Daemon::Runs);
        Self {
            caller,
            client,
            daemon,
            suspended: false,
            starts: Vec::new(),
        }
    }

    /// Becomes readable when [`look_after_daemon`](Self::look_after_daemon) is
    /// due.
    pub fn daemon(&self) -> Option<BorrowedFd<'_>> {
        match &self.daemon {
            Daemon::Runs(process) => Some(process.as_fd()),
            Daemon::Sought(_) | Daemon::Left => None,
        }
    }

    /// The time at which [`look_after_daemon`](Self::look_after_daemon) is due.
    pub fn look_at(&self) -> Option<Instant> {
        match self.daemon {
            Daemon::Sought(time) => Some(time),
            Daemon::Runs(_) | Daemon::Left => None,
        }
    }

    /// Handles the end of the daemon, or searches for a new daemon. A daemon
    /// ended by `prorata stop` leaves a note, and an idle daemon removes its
    /// socket. After any other end this process starts a new daemon, which finds
    /// its clients in the journal.
    pub fn look_after_daemon(&mut self) {
        let client = &self.client;
        let paths = self.caller.paths();
        if paths.was_stopped() {
            output::say(format_args!(
                "`prorata stop` ended the daemon, so {client} continues unmanaged"
            ));
            self.daemon = Daemon::Left;
        } else if let Daemon::Sought(_) = self.daemon {
            self.join();
        } else if paths.socket.path().exists() {
            self.start_again();
        } else {
            self.daemon = Daemon::Left;
        }
    }

    fn start_again(&mut self) {
        let now = Instant::now();
        self.starts
            .retain(|start| now.duration_since(*start) < STARTS_TIME);
        let reopened = if self.starts.len() < MOST_STARTS {
            self.starts.push(now);
            // The new daemon must not become our child, as the command's orphans
            // do. Setting the flag succeeded before, so it cannot fail here.
            let _ = set_child_subreaper(None);
            let reopened = self.caller.open();
            let _ = set_child_subreaper(Some(getpid()));
            reopened.map_err(anyhow::Error::from)
        } else {
            Err(anyhow::anyhow!(
                "the daemon crashed {MOST_STARTS} times within a minute"
            ))
        };
        match reopened {
            Ok(mut connection) => self.settle_with(&mut connection),
            Err(error) => {
                output::say(format_args!(
                    "the daemon crashed and cannot be restarted, so {} runs without its share until `prorata start`: {}",
                    self.client,
                    sentence(&error)
                ));
                self.restore();
                self.daemon = Daemon::Sought(now + LOOK_AGAIN);
            }
        }
    }

    /// Restores processes that the daemon left stopped. Its guardian does that, unless the guardian
    /// has ended too. (Only root can restore what root's daemon left.) The next search for a daemon
    /// tries again what fails.
    fn restore(&self) {
        let paths = self.caller.paths();
        let _ = put_right_orphans(&paths.engine(), paths.socket.path());
    }

    /// Joins a daemon that another process has started, if there is one.
    fn join(&mut self) {
        self.daemon = Daemon::Sought(Instant::now() + LOOK_AGAIN);
        match self.caller.open_running() {
            Ok(Some(mut connection)) => {
                self.settle_with(&mut connection);
                if let Daemon::Runs(_) = self.daemon {
                    output::say(format_args!("{} has its share again", self.client));
                }
            }
            Ok(None) => self.restore(),
            // The next search retries an unreachable daemon.
            Err(_) => {}
        }
    }

    /// Continues with a new daemon if it knows the client, and restores the
    /// client's suspension.
    fn settle_with(&mut self, connection: &mut Connection) {
        let known = clients(connection)
            .map(|clients| clients.iter().any(|client| client.id == self.client));
        self.daemon = match (known, process_of(connection)) {
            (Ok(true), Ok(process)) if self.repeat_wish(connection).is_ok() => {
                Daemon::Runs(process)
            }
            (Ok(false), _) => {
                output::say(format_args!(
                    "the new daemon does not know {}, which continues unmanaged",
                    self.client
                ));
                Daemon::Left
            }
            // The new daemon has ended too.
            _ => {
                self.starts.push(Instant::now());
                Daemon::Sought(Instant::now() + LOOK_AGAIN)
            }
        };
    }

    /// Suspends the client after a stop by the user: it no longer competes, and
    /// the engine restores its processes.
    pub fn suspend(&mut self) -> Notice {
        // The client or the daemon may just have ended. A message would only
        // disturb a user after Ctrl-Z.
        self.try_suspend().unwrap_or(Notice::Taken)
    }

    fn try_suspend(&mut self) -> anyhow::Result<Notice> {
        self.suspended = true;
        let Some(mut connection) = self.reach()? else {
            return Ok(Notice::Taken);
        };
        let was_stopped = self.ask_to_suspend(&mut connection)?;
        let mechanism = status(&mut connection)?.mechanism;
        Ok(
            match (was_stopped, STOPPING.contains(&mechanism.as_str())) {
                (true, _) => Notice::Lost,
                (false, true) => Notice::PerhapsLost,
                (false, false) => Notice::Taken,
            },
        )
    }

    /// Resumes the client after the user continued it.
    pub fn resume(&mut self) {
        self.suspended = false;
        if let Ok(Some(mut connection)) = self.reach() {
            // As above.
            let _ = self.repeat_wish(&mut connection);
        }
    }

    /// The command has ended and left no process: the daemon forgets the client now, and not when
    /// its engine looks again. So no list shows the client once this process has ended.
    pub fn finish(&self) {
        let socket = &self.caller.paths().socket;
        if let Daemon::Runs(_) = self.daemon
            && let Ok(mut connection) = Connection::open_within(socket, LONGEST_FAREWELL)
        {
            // Its engine may have noticed already.
            let client = self.client.clone();
            let _ = tell(&mut connection, &Request::Release { client });
        }
    }

    /// A connection to the daemon, if it runs. Only
    /// [`look_after_daemon`](Self::look_after_daemon) starts daemons, since it
    /// knows whether one is wanted.
    fn reach(&self) -> anyhow::Result<Option<Connection>> {
        match self.daemon {
            Daemon::Runs(_) => Ok(self.caller.open_running()?),
            Daemon::Sought(_) | Daemon::Left => Ok(None),
        }
    }

    /// Tells the daemon whether the client is suspended. The answer is ignored: a
    /// stop signal lost here might as well have come before the daemon's end.
    fn repeat_wish(&self, connection: &mut Connection) -> anyhow::Result<()> {
        if self.suspended {
            return self.ask_to_suspend(connection).map(drop);
        }
        let client = self.client.clone();
        tell(connection, &Request::Resume { client })
    }

    /// Suspends the client; returns whether the engine had stopped it.
    fn ask_to_suspend(&self, connection: &mut Connection) -> anyhow::Result<bool> {
        let client = self.client.clone();
        match ask(connection, &Request::Suspend { client })? {
            Response::Suspended { was_stopped } => Ok(was_stopped),
            other => Err(unexpected(&other)),
        }
    }
}

/// A descriptor of the daemon's process, which becomes readable at its end. The
/// pid cannot have been reused, since the daemon has just answered.
pub fn process_of(connection: &Connection) -> anyhow::Result<OwnedFd> {
    let pid = connection.status().pid;
    let pid = i32::try_from(pid)
        .ok()
        .and_then(Pid::from_raw)
        .ok_or_else(|| anyhow::anyhow!("{pid} is no pid"))?;
    Ok(pidfd_open(pid, PidfdFlags::empty())?)
}
