//! Charging what ended children used.
//!
//! That time shows in the parent's sum once the parent has waited for the child. But a part of it
//! may have been charged before: to the child while it lived, or to the client of the child's own
//! children. So once a sum grows, the engine reads it, then finds out which processes have ended that
//! may be in it, in any client and outside of all, and then charges the rest.

use std::collections::BTreeMap;

use prorata_core::ids::ClientId;

use crate::client::Client;
use crate::slumber::{CROWD, ROUND_NS, Sampling};
use crate::tree::Tree;
use crate::waited::Waited;

/// Sums over ended children, by process.
type Sums = BTreeMap<u32, u64>;

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
        // Before the look: all children in these sums are found to be gone.
        let sums = self.client(id).map(Client::waited_sums);
        for client in clients {
            self.sample(client, Sampling::All, now_ns);
        }
        self.review_zombies();
        self.tell_of_outsiders(&parents);
        let client = self.client_mut(id).zip(sums);
        client.map_or(0, |(client, sums)| client.charge_reaped(&sums))
    }

    /// The clients that have children of these processes, or, besides this one, that such children
    /// foster. With the number of all their processes.
    fn with_children_of(&self, parents: &[u32], id: ClientId) -> (Vec<ClientId>, usize) {
        let has_some = |client: &Client| {
            let is_own = client.id == id;
            let mut processes = client.processes.iter();
            let mut foster_parents = client.foster_parents.iter();
            processes.any(|p| parents.contains(&p.parent))
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

    /// The sums of its processes that waited, and of its foster parents.
    fn waited_sums(&self) -> Sums {
        let waited = self.processes.iter().filter(|process| process.reaped);
        let own = waited.map(|process| (process.id.pid, process.stat().ok()));
        let foster_parents = self.foster_parents.iter();
        let foster_parents =
            foster_parents.map(|parent| (parent.id.pid, parent.stat_file.read().ok()));
        let sums = own.chain(foster_parents);
        sums.filter_map(|(pid, stat)| Some((pid, stat?.waited_ns)))
            .collect()
    }

    /// Charges the time of ended children in these sums. To be called when it is known which of it
    /// was charged before. A process that waited since then is left for the next time.
    fn charge_reaped(&mut self, sums: &Sums) -> u64 {
        self.reaped_since_ns = None;
        let now = self.waited_sums();
        let mut waited_ns = 0;
        for process in &mut self.processes {
            if let Some(sum_ns) = sums.get(&process.id.pid) {
                process.reaped = false;
                let is_whole = now.get(&process.id.pid) == Some(sum_ns);
                waited_ns += process.waited.read(*sum_ns, is_whole);
            }
        }
        for foster_parent in &mut self.foster_parents {
            if let Some(sum_ns) = sums.get(&foster_parent.id.pid)
                && !foster_parent.shared
            {
                let is_whole = now.get(&foster_parent.id.pid) == Some(sum_ns);
                waited_ns += foster_parent.waited.read(*sum_ns, is_whole);
            }
        }
        self.account(waited_ns);
        waited_ns
    }
}
