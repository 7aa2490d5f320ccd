//! What the engine tells those who ask, without disturbing the decision
//! thread.

use std::collections::HashMap;

use prorata_core::ids::ClientId;

use crate::config::Mechanism;
use crate::process_id::ProcessId;

/// What a client is doing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ClientActivity {
    /// It won the last decision.
    Running,
    /// It competes and waits.
    Waiting,
    /// None of its threads wants to run.
    Blocked,
    /// Taken out by [`UserEngine::suspend`](crate::UserEngine::suspend).
    Suspended,
}

/// News for the directory.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Change {
    Joined(ClientId, ProcessId),
    Left(ClientId, ProcessId),
    Activity(ClientId, ClientActivity),
    Forgotten(ClientId),
    /// No process is left.
    Exited(ClientId),
}

#[derive(Debug)]
struct Listing {
    processes: Vec<ProcessId>,
    activity: ClientActivity,
}

/// Who is managed, as of the last decision.
#[derive(Debug)]
pub(crate) struct Directory {
    owners: HashMap<u32, ClientId>,
    clients: HashMap<ClientId, Listing>,
    pub(crate) exited: Vec<ClientId>,
    pub(crate) mechanism: Mechanism,
    pub(crate) decisions: u64,
    pub(crate) left_alone: u64,
    pub(crate) guardian: Option<u32>,
    /// Why nothing is enforced any more.
    pub(crate) failure: Option<String>,
}

impl Directory {
    pub(crate) fn new(mechanism: Mechanism) -> Self {
        Self {
            owners: HashMap::new(),
            clients: HashMap::new(),
            exited: Vec::new(),
            mechanism,
            decisions: 0,
            left_alone: 0,
            guardian: None,
            failure: None,
        }
    }

    pub(crate) fn apply(&mut self, change: Change) {
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
        }
    }

    /// Nobody is managed any more.
    pub(crate) fn clear(&mut self) {
        self.owners.clear();
        self.clients.clear();
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

    pub(crate) fn process_count(&self) -> u32 {
        self.owners.len() as u32
    }
}
