//! Charging what ended children used.
//!
//! That time shows in the parent's sum once the parent has waited for the child. But a part of it
//! may have been charged before: to the child while it lived, or to the client of the child's own
//! children. So once a sum grows, the engine first finds out which processes have ended that may be
//! in it: children in other clients, children that slumber, and children outside of all clients.

use prorata_core::ids::ClientId;

use crate::client::Client;
use crate::slumber::{CROWD, ROUND_NS, Sampling};
use crate::tree::Tree;
use crate::waited::Waited;

/// When time of ended children is to be charged.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Charging {
    /// At once.
    Now,
    /// Some time later if many processes have to be sampled first.
    Soon,
}

impl Tree {
    /// Charges a client for children that its processes waited for. Returns the CPU time.
    pub(crate) fn charge_ended_children(
        &mut self,
        id: ClientId,
        now_ns: u64,
        charging: Charging,
    ) -> u64 {
        let Some(client) = self.client_mut(id) else {
            return 0;
        };
        let parents = client.parents_that_waited();
        let since_ns = client.reaped_since_ns.unwrap_or(now_ns);
        if parents.is_empty() {
            return 0;
        }
        let (clients, processes) = self.with_children_of(&parents, id);
        if charging == Charging::Soon && processes > CROWD && now_ns - since_ns < ROUND_NS {
            if let Some(client) = self.client_mut(id) {
                client.reaped_since_ns = Some(since_ns);
            }
            return 0;
        }
        for client in clients {
            self.sample(client, Sampling::All, now_ns);
        }
        self.review_zombies();
        self.tell_of_outsiders(&parents);
        self.client_mut(id).map_or(0, Client::charge_reaped)
    }

    /// The clients, besides this one, that have children of these processes or that such children
    /// foster, and this one if such children slumber. With the number of all their processes.
    fn with_children_of(&self, parents: &[u32], id: ClientId) -> (Vec<ClientId>, usize) {
        let has_some = |client: &Client| {
            let is_own = client.id == id;
            let mut processes = client.processes.iter();
            let mut foster_parents = client.foster_parents.iter();
            processes.any(|p| parents.contains(&p.parent) && (p.slumbers || !is_own))
                || !is_own && foster_parents.any(|f| parents.contains(&f.parent))
        };
        let (mut clients, mut processes) = (Vec::new(), 0);
        for client in self.clients().filter(|client| has_some(client)) {
            clients.push(client.id);
            processes += client.processes.len();
        }
        (clients, processes)
    }
}

impl Client {
    /// The processes, and foster parents, that waited for children whose time is not charged yet. A
    /// foster parent of several clients does not tell whose children these are.
    fn parents_that_waited(&mut self) -> Vec<u32> {
        let processes = self.processes.iter().filter(|process| process.reaped);
        let mut parents: Vec<u32> = processes.map(|process| process.id.pid).collect();
        for foster_parent in &mut self.foster_parents {
            let Ok(stat) = foster_parent.stat_file.read() else {
                continue;
            };
            if foster_parent.shared {
                foster_parent.waited = Waited::since(stat.waited_ns);
            } else if foster_parent.waited.has_grown(stat.waited_ns) {
                parents.push(foster_parent.id.pid);
            }
        }
        parents
    }

    /// Charges the time of ended children. To be called when it is known which of it was charged
    /// before.
    fn charge_reaped(&mut self) -> u64 {
        self.reaped_since_ns = None;
        let mut waited_ns = 0;
        for process in &mut self.processes {
            if std::mem::take(&mut process.reaped)
                && let Ok(stat) = process.stat()
            {
                waited_ns += process.waited.read(stat.waited_ns);
            }
        }
        for foster_parent in &mut self.foster_parents {
            if let Ok(stat) = foster_parent.stat_file.read() {
                waited_ns += match foster_parent.shared {
                    true => 0,
                    false => foster_parent.waited.read(stat.waited_ns),
                };
            }
        }
        self.account(waited_ns);
        waited_ns
    }
}
