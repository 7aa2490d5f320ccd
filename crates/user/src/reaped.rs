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

/// So often children that have ended are looked for, while more end.
const MOST_ATTEMPTS: u32 = 3;

/// Sums over ended children, where they could be read: [`Client::waited_sums`].
type Sums = Vec<Option<u64>>;

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
        let sums = (0..MOST_ATTEMPTS).find_map(|_| self.know_ended(id, &clients, now_ns));
        if sums.is_none() && charging == Charging::Soon && now_ns - since_ns < 2 * ROUND_NS {
            if let Some(client) = self.client_mut(id) {
                client.reaped_since_ns = Some(since_ns);
            }
            return 0;
        }
        self.tell_of_outsiders(&parents);
        self.client_mut(id)
            .map_or(0, |client| client.charge_reaped(sums))
    }

    /// Samples these clients, and so finds out which children have ended. Returns the sums that hold
    /// the time of those. None if more ended meanwhile: time that was charged before would be charged
    /// again.
    fn know_ended(&mut self, id: ClientId, clients: &[ClientId], now_ns: u64) -> Option<Sums> {
        let sums = |tree: &Self| tree.client(id).map(Client::waited_sums);
        let before = sums(self);
        for client in clients {
            self.sample(*client, Sampling::All, now_ns);
        }
        self.review_zombies();
        before.filter(|before| sums(self).as_ref() == Some(before))
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

    /// The sums of its processes that waited, and of its foster parents.
    fn waited_sums(&self) -> Sums {
        let waited = self.processes.iter().filter(|process| process.reaped);
        let own = waited.map(|process| process.stat().ok());
        let foster_parents = self.foster_parents.iter();
        let foster_parents = foster_parents.map(|parent| parent.stat_file.read().ok());
        let stats = own.chain(foster_parents);
        stats.map(|stat| Some(stat?.waited_ns)).collect()
    }

    /// Charges the time of ended children. To be called when it is known which of it was charged
    /// before: that in these sums, or else by now.
    fn charge_reaped(&mut self, sums: Option<Sums>) -> u64 {
        self.reaped_since_ns = None;
        let mut sums = sums.unwrap_or_else(|| self.waited_sums()).into_iter();
        let mut waited_ns = 0;
        for process in &mut self.processes {
            if std::mem::take(&mut process.reaped)
                && let Some(sum_ns) = sums.next().flatten()
            {
                waited_ns += process.waited.read(sum_ns);
            }
        }
        for foster_parent in &mut self.foster_parents {
            if let Some(sum_ns) = sums.next().flatten()
                && !foster_parent.shared
            {
                waited_ns += foster_parent.waited.read(sum_ns);
            }
        }
        self.account(waited_ns);
        waited_ns
    }
}
