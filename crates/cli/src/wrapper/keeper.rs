//! Keeping a client managed for as long as its command runs.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use prorata_control::Connection;
use prorata_control::protocol::{Request, Response};
use rustix::process::{Pid, PidfdFlags, getpid, pidfd_open, set_child_subreaper};

use crate::caller::{Caller, ask, status, tell, unexpected};

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

/// Speaks to the daemon for one client, and starts a new daemon if the present
/// one dies.
#[derive(Debug)]
pub struct Keeper<'a> {
    caller: &'a Caller,
    client: String,
    /// Readable when the daemon ends; none if it ended in good order or could
    /// not be started again: then the client is no longer managed.
    daemon: Option<OwnedFd>,
}

impl<'a> Keeper<'a> {
    /// Keeps `client`, which the daemon at the other end of `connection` has.
    pub fn new(caller: &'a Caller, client: String, connection: &mut Connection) -> Self {
        let daemon = process_of(connection).ok();
        Self {
            caller,
            client,
            daemon,
        }
    }

    /// Readable when [`look_after_daemon`](Self::look_after_daemon) has
    /// something to do.
    pub fn daemon(&self) -> Option<BorrowedFd<'_>> {
        self.daemon.as_ref().map(AsFd::as_fd)
    }

    /// The daemon has ended. In good order (somebody stopped it) it takes its
    /// socket with it, and that is that; a dead one leaves it, and is started
    /// again to find its processes by its journal.
    pub fn look_after_daemon(&mut self) {
        self.daemon = None;
        if !self.caller.place().socket.path().exists() {
            return;
        }
        // The new daemon must not become our child, as the command's orphans
        // do. That a flag which could be set can be changed is no question.
        let _ = set_child_subreaper(None);
        let reopened = self.open().and_then(|mut new| process_of(&mut new));
        let _ = set_child_subreaper(Some(getpid()));
        match reopened {
            Ok(daemon) => self.daemon = Some(daemon),
            Err(error) => eprintln!(
                "prorata: the daemon died and cannot be started again, so {} runs without its share: {error:#}",
                self.client
            ),
        }
    }

    /// The user stops the client: it is out of the competition, and whatever
    /// the engine did to its processes is undone.
    pub fn suspend(&mut self) -> Notice {
        // A client that just ended, or a daemon that just died, is not worth a
        // word to someone who pressed a key.
        self.try_suspend().unwrap_or(Notice::Taken)
    }

    fn try_suspend(&mut self) -> anyhow::Result<Notice> {
        if self.daemon.is_none() {
            return Ok(Notice::Taken);
        }
        let mut connection = self.open()?;
        let request = Request::Suspend {
            client: self.client.clone(),
        };
        let was_stopped = match ask(&mut connection, &request)? {
            Response::Suspended { was_stopped } => was_stopped,
            other => return Err(unexpected(&other)),
        };
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
        if self.daemon.is_some() {
            let request = Request::Resume {
                client: self.client.clone(),
            };
            // As above.
            let _ = self
                .open()
                .and_then(|mut connection| tell(&mut connection, &request));
        }
    }

    fn open(&self) -> anyhow::Result<Connection> {
        Ok(self.caller.open()?)
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
