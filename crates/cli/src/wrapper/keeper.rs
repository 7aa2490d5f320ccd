//! Keeping a client managed for as long as its command runs.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

use prorata_protocol::{Connection, Request, Response};
use rustix::process::{Pid, PidfdFlags, getpid, pidfd_open, set_child_subreaper};

use crate::caller::{Caller, ask, clients, status, tell, unexpected};

/// The mechanism that stops losers, as the daemon calls it.
const STOPPING: &str = "stop";

/// Whether the command noticed a stop signal. A process that the engine had
/// stopped does not, and whoever continues it throws the signal away.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Notice {
    /// The engine does not stop processes.
    Taken,
    /// It does, and had just continued them, perhaps after the signal came.
    PerhapsLost,
    /// It had stopped them.
    Lost,
}

/// Starts of a daemon within [`STARTS_TIME`] after which it is left to others
/// to start one that lasts.
const MOST_STARTS: usize = 5;

/// See [`MOST_STARTS`].
const STARTS_TIME: Duration = Duration::from_secs(60);

/// Pause between two looks for a daemon that others are to start.
const LOOK_AGAIN: Duration = Duration::from_secs(1);

/// Speaks to the daemon for one client, and starts a new daemon if the present
/// one ends without having been told to.
#[derive(Debug)]
pub struct Keeper<'a> {
    caller: &'a Caller,
    client: String,
    daemon: Daemon,
    /// What the user wants of the client. Every daemon that we settle with is
    /// told, as the one before may have ended without hearing of it.
    suspended: bool,
    /// When we started daemons, within [`STARTS_TIME`].
    starts: Vec<Instant>,
}

#[derive(Debug)]
enum Daemon {
    /// Readable when it ends.
    Runs(OwnedFd),
    /// None runs and we do not start one; look for one then.
    Sought(Instant),
    /// The client is managed no more.
    Left,
}

impl<'a> Keeper<'a> {
    /// Keeps `client`, which the daemon at the other end of `connection` has.
    pub fn new(caller: &'a Caller, client: String, connection: &mut Connection) -> Self {
        let daemon = process_of(connection).map_or(Daemon::Left, Daemon::Runs);
        Self {
            caller,
            client,
            daemon,
            suspended: false,
            starts: Vec::new(),
        }
    }

    /// Readable when [`look_after_daemon`](Self::look_after_daemon) has
    /// something to do.
    pub fn daemon(&self) -> Option<BorrowedFd<'_>> {
        match &self.daemon {
            Daemon::Runs(process) => Some(process.as_fd()),
            Daemon::Sought(_) | Daemon::Left => None,
        }
    }

    /// When it has something to do in any case.
    pub fn look_at(&self) -> Option<Instant> {
        match self.daemon {
            Daemon::Sought(time) => Some(time),
            Daemon::Runs(_) | Daemon::Left => None,
        }
    }

    /// The daemon has ended, or one that others have started is to be looked
    /// for. A daemon that was stopped says so; one that nobody needed takes its
    /// socket with it; any other is started again, to find its processes by its
    /// journal.
    pub fn look_after_daemon(&mut self) {
        let client = &self.client;
        let paths = self.caller.paths();
        if paths.was_stopped() {
            eprintln!(
                "prorata: the daemon was stopped by hand, so {client} runs on as if never managed"
            );
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
            // The new daemon must not become our child, as the command's
            // orphans do. That a flag which could be set can be changed is no
            // question.
            let _ = set_child_subreaper(None);
            let reopened = self.caller.open();
            let _ = set_child_subreaper(Some(getpid()));
            reopened.map_err(anyhow::Error::from)
        } else {
            Err(anyhow::anyhow!(
                "it ended {MOST_STARTS} times within a minute"
            ))
        };
        match reopened {
            Ok(mut connection) => self.settle_with(&mut connection),
            Err(error) => {
                eprintln!(
                    "prorata: the daemon died and is not started again, so {} runs without its share until somebody starts one: {error:#}",
                    self.client
                );
                self.daemon = Daemon::Sought(now + LOOK_AGAIN);
            }
        }
    }

    /// Joins a daemon that somebody else has started.
    fn join(&mut self) {
        self.daemon = Daemon::Sought(Instant::now() + LOOK_AGAIN);
        // One that cannot be reached now is asked again.
        if let Ok(Some(mut connection)) = self.caller.open_running() {
            self.settle_with(&mut connection);
            if let Daemon::Runs(_) = self.daemon {
                eprintln!("prorata: {} has its share again", self.client);
            }
        }
    }

    /// Keeps the client with another daemon than before, if that has it, in the
    /// state that the user wants.
    fn settle_with(&mut self, connection: &mut Connection) {
        let known = clients(connection)
            .map(|clients| clients.iter().any(|client| client.id == self.client));
        self.daemon = match (known, process_of(connection)) {
            (Ok(true), Ok(process)) if self.repeat_wish(connection).is_ok() => {
                Daemon::Runs(process)
            }
            (Ok(false), _) => {
                eprintln!(
                    "prorata: the new daemon does not know {}, which runs on as if never managed",
                    self.client
                );
                Daemon::Left
            }
            // It has ended too.
            _ => Daemon::Sought(Instant::now() + LOOK_AGAIN),
        };
    }

    /// The user stops the client: it is out of the competition, and whatever
    /// the engine did to its processes is undone.
    pub fn suspend(&mut self) -> Notice {
        // A client that just ended, or a daemon that just died, is not worth a
        // word to someone who pressed a key.
        self.try_suspend().unwrap_or(Notice::Taken)
    }

    fn try_suspend(&mut self) -> anyhow::Result<Notice> {
        self.suspended = true;
        let Some(mut connection) = self.reach()? else {
            return Ok(Notice::Taken);
        };
        let was_stopped = self.ask_to_suspend(&mut connection)?;
        Ok(
            match (was_stopped, status(&mut connection)?.mechanism == STOPPING) {
                (true, _) => Notice::Lost,
                (false, true) => Notice::PerhapsLost,
                (false, false) => Notice::Taken,
            },
        )
    }

    /// The user lets the client go on.
    pub fn resume(&mut self) {
        self.suspended = false;
        if let Ok(Some(mut connection)) = self.reach() {
            // As above.
            let _ = self.repeat_wish(&mut connection);
        }
    }

    /// The daemon, if it runs. None is started here: that is left to
    /// [`look_after_daemon`](Self::look_after_daemon), which knows whether one
    /// is wanted, and tells it what the user wants.
    fn reach(&self) -> anyhow::Result<Option<Connection>> {
        match self.daemon {
            Daemon::Runs(_) => Ok(self.caller.open_running()?),
            Daemon::Sought(_) | Daemon::Left => Ok(None),
        }
    }

    /// Tells the daemon what the user wants. A stop signal that it throws away
    /// by this is as one that came a moment before the daemon ended.
    fn repeat_wish(&self, connection: &mut Connection) -> anyhow::Result<()> {
        if self.suspended {
            return self.ask_to_suspend(connection).map(drop);
        }
        let client = self.client.clone();
        tell(connection, &Request::Resume { client })
    }

    /// Returns whether the engine had stopped the client.
    fn ask_to_suspend(&self, connection: &mut Connection) -> anyhow::Result<bool> {
        let client = self.client.clone();
        match ask(connection, &Request::Suspend { client })? {
            Response::Suspended { was_stopped } => Ok(was_stopped),
            other => Err(unexpected(&other)),
        }
    }
}

/// The daemon's process, to see it end. Its pid cannot have been used again,
/// as the daemon at the other end has just answered.
pub fn process_of(connection: &mut Connection) -> anyhow::Result<OwnedFd> {
    let pid = status(connection)?.pid;
    let pid = i32::try_from(pid)
        .ok()
        .and_then(Pid::from_raw)
        .ok_or_else(|| anyhow::anyhow!("{pid} is no pid"))?;
    Ok(pidfd_open(pid, PidfdFlags::empty())?)
}
