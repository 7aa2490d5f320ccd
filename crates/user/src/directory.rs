//! What the engine's callers can read without waiting for the decision
//! thread.

use std::collections::HashMap;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use prorata_core::ids::ClientId;

use crate::bell::Bell;
use crate::chronicle::{ClientEvent, LastEvents};
use crate::config::{Mechanism, MissingRight};
use crate::outside::OutsideLoad;
use crate::process_id::ProcessId;

/// What a client is doing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ClientActivity {
    /// It won a CPU with the last decision.
    Running,
    /// It is runnable and waits for its turn.
    Waiting,
    /// None of its threads is runnable.
    Blocked,
    /// It has used the CPU time that its limit allows for now.
    Limited,
    /// It is taken out of the competition by [`UserEngine::suspend`](crate::UserEngine::suspend).
    Suspended,
}

/// A change of what the directory says.
#[derive(Clone, Debug)]
pub(crate) enum Change {
    Joined(ClientId, ProcessId),
    Left(ClientId, ProcessId),
    Activity(ClientId, ClientActivity),
    Forgotten(ClientId),
    /// Its last process ended.
    Exited(ClientId),
    Happened(ClientEvent),
}

#[derive(Debug)]
struct Listing {
    processes: Vec<ProcessId>,
    activity: ClientActivity,
}

/// What the decision thread tells of the engine itself.
#[derive(Clone, Debug)]
pub(crate) struct EngineFacts {
    pub(crate) mechanism: Mechanism,
    pub(crate) missing_right: Option<MissingRight>,
    pub(crate) decisions: u64,
    pub(crate) guardian: Option<u32>,
    pub(crate) outside: Vec<OutsideLoad>,
}

/// The managed processes and their clients, as of the last decision.
#[derive(Debug)]
pub(crate) struct Directory {
    owners: HashMap<u32, ClientId>,
    clients: HashMap<ClientId, Listing>,
    exited: Vec<ClientId>,
    pub(crate) events: LastEvents,
    pub(crate) facts: EngineFacts,
    /// Why nothing is enforced any more.
    pub(crate) failure: Option<String>,
}

/// A directory that the decision thread writes and the engine's callers read.
#[derive(Clone, Debug)]
pub(crate) struct SharedDirectory {
    directory: Arc<Mutex<Directory>>,
    /// Rings while there are exited clients, and once the engine has failed.
    exits: Arc<Bell>,
}

impl SharedDirectory {
    pub(crate) fn new(
        mechanism: Mechanism,
        missing_right: Option<MissingRight>,
    ) -> std::io::Result<Self> {
        let directory = Directory::new(mechanism, missing_right);
        Ok(Self {
            directory: Arc::new(Mutex::new(directory)),
            exits: Arc::new(Bell::new()?),
        })
    }

    pub(crate) fn read(&self) -> MutexGuard<'_, Directory> {
        self.directory
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn exits(&self) -> BorrowedFd<'_> {
        self.exits.as_fd()
    }

    /// Clients that exited since the last call.
    pub(crate) fn take_exited(&self) -> Vec<ClientId> {
        let mut directory = self.read();
        if directory.failure.is_none() {
            self.exits.hush();
        }
        std::mem::take(&mut directory.exited)
    }

    /// Brings the directory up to date, at once: for the decision thread before an answer, so
    /// that the caller finds there what it asked for.
    pub(crate) fn publish(&self, changes: &mut Vec<Change>, facts: EngineFacts) {
        self.write(&mut self.read(), changes, facts);
    }

    /// Brings the directory up to date unless a reader holds its lock, perhaps without a CPU
    /// to run on; the changes wait then.
    pub(crate) fn try_publish(&self, changes: &mut Vec<Change>, facts: EngineFacts) {
        if let Ok(mut directory) = self.directory.try_lock() {
            self.write(&mut directory, changes, facts);
        }
    }

    fn write(&self, directory: &mut Directory, changes: &mut Vec<Change>, facts: EngineFacts) {
        let mut any_exited = false;
        for change in changes.drain(..) {
            any_exited |= matches!(change, Change::Exited(_));
            directory.apply(change);
        }
        directory.facts = facts;
        if any_exited {
            self.exits.ring();
        }
    }

    /// The engine has failed and released everything.
    pub(crate) fn fail(&self, message: String) {
        let mut directory = self.read();
        directory.owners.clear();
        directory.clients.clear();
        directory.failure = Some(message);
        self.exits.ring();
    }
}

impl Directory {
    fn new(mechanism: Mechanism, missing_right: Option<MissingRight>) -> Self {
        Self {
            owners: HashMap::new(),
            clients: HashMap::new(),
            exited: Vec::new(),
            events: LastEvents::default(),
            facts: EngineFacts {
                mechanism,
                missing_right,
                decisions: 0,
                guardian: None,
                outside: Vec::new(),
            },
            failure: None,
        }
    }

    fn apply(&mut self, change: Change) {
        match change {
            Change::Joined(id, process) => {
                self.owners.insert(process.pid, id);
                let new = || Listing {
                    processes: Vec::new(),
                    activity: ClientActivity::Blocked,
                };
                self.clients
                    .entry(id)
                    .or_insert_with(new)
                    .processes
                    .push(process);
            }
            Change::Left(id, process) => {
                self.owners.remove(&process.pid);
                if let Some(listing) = self.clients.get_mut(&id) {
                    listing.processes.retain(|listed| *listed != process);
                }
            }
            Change::Activity(id, activity) => {
                if let Some(listing) = self.clients.get_mut(&id) {
                    listing.activity = activity;
                }
            }
            Change::Forgotten(id) => {
                self.clients.remove(&id);
            }
            Change::Exited(id) => self.exited.push(id),
            Change::Happened(event) => self.events.push(event),
        }
    }

    pub(crate) fn find(&self, pid: u32) -> Option<ClientId> {
        self.owners.get(&pid).copied()
    }

    pub(crate) fn processes(&self, id: ClientId) -> Vec<ProcessId> {
        self.clients
            .get(&id)
            .map_or_else(Vec::new, |listing| listing.processes.clone())
    }

    pub(crate) fn activity(&self, id: ClientId) -> Option<ClientActivity> {
        self.clients.get(&id).map(|listing| listing.activity)
    }
}
