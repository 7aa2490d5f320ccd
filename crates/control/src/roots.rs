//! Notices when a client's root process ends.

use std::collections::{BTreeSet, HashMap};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use prorata_core::ids::ClientId;
use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};
use rustix::process::{Pid, PidfdFlags, pidfd_open};

use crate::process::{ProcessId, ProcessInfo};

/// Watches processes by pidfd: a process that has not ended costs nothing.
#[derive(Debug)]
pub(crate) struct RootWatch {
    /// Readable while a watched process has ended. Every entry's data is the
    /// pid.
    epoll: OwnedFd,
    /// By pid.
    watched: HashMap<u32, Watched>,
    /// The pids that each client was watched by last. Some may have ended.
    pids: HashMap<ClientId, Vec<u32>>,
    /// Clients with a root that could not be watched, most often because it had
    /// ended.
    missed: BTreeSet<ClientId>,
}

#[derive(Debug)]
struct Watched {
    client: ClientId,
    pidfd: OwnedFd,
}

impl RootWatch {
    pub fn new() -> std::io::Result<Self> {
        Ok(Self {
            epoll: epoll::create(CreateFlags::CLOEXEC)?,
            watched: HashMap::new(),
            pids: HashMap::new(),
            missed: BTreeSet::new(),
        })
    }

    /// Watches these processes of a client, and no others of it.
    pub fn watch(&mut self, client: ClientId, roots: &[ProcessId]) {
        self.forget(client);
        let pids = roots.iter().map(|root| root.pid).collect();
        self.pids.insert(client, pids);
        for root in roots {
            match self.open(*root) {
                Some(pidfd) => drop(self.watched.insert(root.pid, Watched { client, pidfd })),
                None => drop(self.missed.insert(client)),
            }
        }
    }

    fn open(&self, root: ProcessId) -> Option<OwnedFd> {
        let pid = Pid::from_raw(i32::try_from(root.pid).ok()?)?;
        let pidfd = pidfd_open(pid, PidfdFlags::empty()).ok()?;
        // The pidfd is the root's only if no other process had the pid by then.
        if ProcessInfo::read(root.pid)?.id != root {
            return None;
        }
        let data = EventData::new_u64(root.pid.into());
        epoll::add(&self.epoll, &pidfd, data, EventFlags::IN).ok()?;
        Some(pidfd)
    }

    /// Stops watching this client.
    pub fn forget(&mut self, client: ClientId) {
        for pid in self.pids.remove(&client).unwrap_or_default() {
            // A later process of another client may have the number.
            if self
                .watched
                .get(&pid)
                .is_some_and(|watched| watched.client == client)
                && let Some(watched) = self.watched.remove(&pid)
            {
                // Closing the pidfd removes it from the epoll too, unless another
                // process holds a copy.
                let _ = epoll::delete(&self.epoll, &watched.pidfd);
            }
        }
        self.missed.remove(&client);
    }

    /// Readable while [`Self::take_ended`] has something to tell.
    pub fn as_fd(&self) -> BorrowedFd<'_> {
        self.epoll.as_fd()
    }

    /// Whether there is such a client that the epoll does not show.
    pub fn has_missed(&self) -> bool {
        !self.missed.is_empty()
    }

    /// Clients with a root that has ended since the last call.
    pub fn take_ended(&mut self) -> BTreeSet<ClientId> {
        let mut ended = std::mem::take(&mut self.missed);
        let mut events = Vec::with_capacity(64);
        let at_once = rustix::event::Timespec {
            tv_sec: 0,
            tv_nsec: 0,
        };
        let buffer = rustix::buffer::spare_capacity(&mut events);
        // An interrupted wait finds the same events the next time.
        let _ = epoll::wait(&self.epoll, buffer, Some(&at_once));
        for event in events {
            let pid = event.data.u64() as u32;
            if let Some(Watched { client, pidfd }) = self.watched.remove(&pid) {
                let _ = epoll::delete(&self.epoll, &pidfd);
                ended.insert(client);
            }
        }
        ended
    }
}
