//! Keeping a client managed for as long as its command runs.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use prorata_control::Connection;
use prorata_control::protocol::{Request, Response};
use rustix::process::{Pid, PidfdFlags, pidfd_open};

use crate::caller::{Caller, ask, status, tell, unexpected};

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
        let reopened = self
            .caller
            .open()
            .map_err(anyhow::Error::from)
            .and_then(|mut new| process_of(&mut new));
        match reopened {
            Ok(daemon) => self.daemon = Some(daemon),
            Err(error) => eprintln!(
                "prorata: the daemon died and cannot be started again, so {} runs without its share: {error:#}",
                self.client
            ),
        }
    }

    /// The user stops the client. Whether the engine had its processes
    /// stopped, so that they have not noticed the signal.
    pub fn suspend(&mut self) -> bool {
        if self.daemon.is_none() {
            return false;
        }
        let request = Request::Suspend {
            client: self.client.clone(),
        };
        let answer = self
            .open()
            .and_then(|mut connection| match ask(&mut connection, &request)? {
                Response::Suspended { was_stopped } => Ok(was_stopped),
                other => Err(unexpected(&other)),
            });
        // A client that just ended, or a daemon that just died, is not worth a
        // word to someone who pressed a key.
        answer.unwrap_or(false)
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
