//! Processes outside of clients whose parents may be clients': `prorata run`, and children that left
//! a client that gives way.
//!
//! Once such a parent waits for such a child, the kernel adds the child's whole life to the parent's
//! sum. The parent's client must not be charged for it: what a `prorata run` waited for was charged to
//! the client that it fosters, and a set-uid program of another user is no part of the client.

use crate::client::{Client, FosterParent};
use crate::process::Process;
use crate::process_id::ProcessId;
use crate::procfs::StatFile;
use crate::tree::Tree;

/// Most that are remembered. Without room, the one with the lowest number is forgotten.
const MOST: usize = 1024;

/// After so many surveys since its end, one is forgotten: its parent has waited for it.
const SURVEYS: u32 = 3;

/// A process outside of clients.
#[derive(Debug)]
pub(crate) struct Outsider {
    id: ProcessId,
    parent: u32,
    stat_file: StatFile,
    /// CPU time of its life that was charged to some client.
    charged_ns: u64,
    /// All of its life that is not its own clock is in that. Otherwise nothing of it that was not
    /// charged is to be charged.
    is_exact: bool,
    /// Surveys since its end.
    surveys: u32,
}

impl Outsider {
    fn is_gone(&self) -> bool {
        self.stat_file.read().is_err()
    }
}

impl Tree {
    /// Notes a process that is outside of clients from now on. So much of its life was charged.
    pub(crate) fn note_outsider(&mut self, id: ProcessId, parent: u32, charged_ns: u64) {
        self.note(id, parent, charged_ns, false);
    }

    /// The same for the foster parents of a client that is about to be forgotten.
    pub(crate) fn note_fosterers(&mut self, client: &mut Client) {
        let ended = client
            .processes
            .iter()
            .filter(|process| !process.is_alive());
        let lives_ns: Vec<u64> = ended.map(Process::life_ns).collect();
        // A process that is released goes on, and is charged to nobody or to another client.
        let all_ended = lives_ns.len() == client.processes.len();
        for foster_parent in &mut client.foster_parents {
            let FosterParent {
                id, parent, shared, ..
            } = *foster_parent;
            if self.owners.contains_key(&id.pid) {
                continue;
            }
            // It has still to wait for these.
            let waited = &mut foster_parent.waited;
            lives_ns
                .iter()
                .for_each(|life_ns| waited.child_gone(*life_ns));
            let charged_ns = waited.accounted_ns();
            self.note(id, parent, charged_ns, all_ended && !shared);
        }
    }

    fn note(&mut self, id: ProcessId, parent: u32, charged_ns: u64, is_exact: bool) {
        let known = self.outsiders.get_mut(&id.pid);
        if let Some(known) = known.filter(|known| known.id == id) {
            known.charged_ns += charged_ns;
            known.is_exact |= is_exact;
            return;
        }
        let Ok(stat_file) = StatFile::of(id, false) else {
            return;
        };
        if self.outsiders.len() >= MOST {
            self.outsiders.pop_first();
        }
        let outsider = Outsider {
            id,
            parent,
            stat_file,
            charged_ns,
            is_exact,
            surveys: 0,
        };
        self.outsiders.insert(id.pid, outsider);
    }

    pub(crate) fn is_outsider(&self, id: ProcessId) -> bool {
        let known = self.outsiders.get(&id.pid);
        known.is_some_and(|known| known.id == id)
    }

    /// Tells these processes which children outside of clients are gone that they waited for.
    pub(crate) fn tell_of_outsiders(&mut self, parents: &[u32]) {
        let of_parents = self
            .outsiders
            .values()
            .filter(|o| parents.contains(&o.parent));
        let gone: Vec<u32> = of_parents
            .filter(|o| o.is_gone())
            .map(|o| o.id.pid)
            .collect();
        for pid in gone {
            if let Some(outsider) = self.outsiders.remove(&pid) {
                let fostered_ns = self.take_fostered_ns(pid);
                let charged_ns = outsider.charged_ns + fostered_ns.unwrap_or(0);
                let is_exact = outsider.is_exact || fostered_ns.is_some();
                self.tell(outsider.parent, is_exact.then_some(charged_ns));
            }
        }
        let fosterers = self.clients().flat_map(|client| &client.foster_parents);
        let fosterers = fosterers.filter(|f| parents.contains(&f.parent) && f.is_gone());
        let gone: Vec<(u32, u32)> = fosterers.map(|f| (f.id.pid, f.parent)).collect();
        for (pid, parent) in gone {
            if let Some(charged_ns) = self.take_fostered_ns(pid) {
                self.tell(parent, Some(charged_ns));
            }
        }
    }

    /// What the only client was charged for that a process fosters which is gone. The client has no
    /// such foster parent from then on.
    fn take_fostered_ns(&mut self, pid: u32) -> Option<u64> {
        let clients = self.foster_parents.get(&pid)?.clone();
        let mut fostered_ns = None;
        for &id in &clients {
            let mut foster_parents = self.client(id)?.foster_parents.iter();
            let found = foster_parents.find(|f| f.id.pid == pid && !f.shared);
            fostered_ns = found.map(|f| f.waited.accounted_ns());
        }
        for id in clients {
            self.dismiss_foster_parent(id, pid);
        }
        fostered_ns
    }

    fn tell(&mut self, parent: u32, charged_ns: Option<u64>) {
        let Some(&owner) = self.owners.get(&parent) else {
            return;
        };
        let mut processes = self
            .client_mut(owner)
            .into_iter()
            .flat_map(|c| &mut c.processes);
        if let Some(parent) = processes.find(|process| process.id.pid == parent) {
            match charged_ns {
                Some(charged_ns) => parent.waited.child_gone(charged_ns),
                None => parent.waited.forgive(),
            }
        }
    }

    /// Forgets those that ended some time ago.
    pub(crate) fn review_outsiders(&mut self) {
        self.outsiders.retain(|_, outsider| {
            outsider.surveys += u32::from(outsider.surveys > 0 || outsider.is_gone());
            outsider.surveys < SURVEYS
        });
    }
}
