//! Foster parents: each started a client and inherits its orphans, but is itself no part of the
//! client.
//!
//! The engine reads a foster parent's `stat` by the name that the parent has for ever, so a later
//! process with the same number is not taken for the foster parent.

use prorata_core::ids::ClientId;

use crate::client::FosterParent;
use crate::error::EngineError;
use crate::process_id::ProcessId;
use crate::procfs::{self, StatFile};
use crate::tree::Tree;
use crate::waited::Waited;

/// How many foster parents one review looks at.
const REVIEWED_AT_ONCE: usize = 128;

impl Tree {
    /// Children of `parent` are the client's from now on.
    pub(crate) fn add_foster_parent(
        &mut self,
        id: ClientId,
        parent: ProcessId,
        now_ns: u64,
    ) -> Result<(), EngineError> {
        let is_kept = self.foster_parents.len() < self.allowance.kept as usize;
        let opened = StatFile::of(parent, is_kept).and_then(|file| Ok((file.read()?, file)));
        let opened = opened.ok().filter(|(stat, _)| {
            stat.start_time_ticks == parent.start_time_ticks && !stat.has_ended()
        });
        let Some((stat, stat_file)) = opened else {
            return Err(EngineError::NoSuchProcess(parent.pid));
        };
        // An ended foster parent may have had the same number.
        self.dismiss_ended(parent.pid);
        let clients = self.foster_parents.entry(parent.pid).or_default();
        if clients.contains(&id) {
            return Ok(());
        }
        clients.push(id);
        let foster_parent = FosterParent {
            id: parent,
            parent: stat.parent,
            stat_file,
            waited: Waited::since(stat.waited_ns),
            shared: false,
        };
        let user = procfs::real_uid(parent.pid);
        let client = self.client_or_new(id, now_ns);
        client.foster_parents.push(foster_parent);
        if let Some(user) = user {
            client.users.add_first(user);
        }
        self.review_foster_parent(parent.pid);
        Ok(())
    }

    /// Removes a client's foster parent.
    pub(crate) fn dismiss_foster_parent(&mut self, id: ClientId, pid: u32) {
        if let Some(clients) = self.foster_parents.get_mut(&pid) {
            clients.retain(|&client| client != id);
            if clients.is_empty() {
                self.foster_parents.remove(&pid);
            }
        }
        if let Some(client) = self.client_mut(id) {
            client.foster_parents.retain(|f| f.id.pid != pid);
        }
        self.review_foster_parent(pid);
    }

    /// Notes in clients and processes how many clients the process with this pid fosters.
    fn review_foster_parent(&mut self, pid: u32) {
        let clients = self.foster_parents.get(&pid).cloned().unwrap_or_default();
        for &id in &clients {
            let client = self.client_mut(id).into_iter();
            let mut foster_parents = client.flat_map(|client| &mut client.foster_parents);
            if let Some(foster_parent) = foster_parents.find(|f| f.id.pid == pid) {
                foster_parent.shared = clients.len() > 1;
            }
        }
        if let Some(&owner) = self.owners.get(&pid)
            && let Some(owner) = self.client_mut(owner)
            && let Some(process) = owner.processes.iter_mut().find(|p| p.id.pid == pid)
        {
            process.adopts = !clients.is_empty();
        }
    }

    /// Clients for which the process with this pid is a foster parent.
    pub(crate) fn clients_fostered_by(&self, pid: u32) -> Vec<ClientId> {
        let Some(clients) = self.foster_parents.get(&pid) else {
            return Vec::new();
        };
        let is_alive = |id: &ClientId| {
            let client = self.client(*id).into_iter();
            let mut foster_parents = client.flat_map(|client| &client.foster_parents);
            foster_parents.any(|f| f.id.pid == pid && f.is_alive())
        };
        clients.iter().copied().filter(is_alive).collect()
    }

    pub(crate) fn dismiss_ended(&mut self, pid: u32) {
        let alive = self.clients_fostered_by(pid);
        let clients = self.foster_parents.get(&pid).cloned().unwrap_or_default();
        for id in clients.into_iter().filter(|id| !alive.contains(id)) {
            self.dismiss_foster_parent(id, pid);
        }
    }

    /// Forgets foster parents that have ended, among the next [`REVIEWED_AT_ONCE`]. One that has
    /// ended does no harm meanwhile. Cost: 1.5 us for each, or 4 us on demand.
    pub(crate) fn review_foster_parents(&mut self) {
        let from = self.foster_parents_from;
        let next = self.foster_parents.range(from..).map(|(pid, _)| *pid);
        let pids: Vec<u32> = next.take(REVIEWED_AT_ONCE).collect();
        self.foster_parents_from = match pids.last() {
            Some(last) if pids.len() == REVIEWED_AT_ONCE => last + 1,
            _ => 0,
        };
        for pid in pids {
            self.dismiss_ended(pid);
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use std::process::{Child, Command};
    use std::sync::Arc;

    use super::*;
    use crate::scheduler::{self, Return};
    use crate::table::{Journal, Table};
    use crate::{CLIENT_MARKER, SOCKET_MARKER};

    pub(crate) const SOCKET: &str = "/nonexistent/foster/socket";

    pub(crate) fn tree(directory: &std::path::Path) -> Tree {
        let table = Table::open(directory).expect("opens");
        let cpus = scheduler::affinity(0).expect("we have some");
        let journal = Journal::new(Arc::new(table));
        Tree::new(journal, Return::Never, SOCKET.into(), cpus).expect("/proc is readable")
    }

    fn id_of(child: &Child) -> ProcessId {
        ProcessId::of(child.id()).expect("it runs")
    }

    fn start(marker: Option<ClientId>) -> Child {
        let mut command = Command::new("sleep");
        command.arg("100").env(SOCKET_MARKER, SOCKET);
        if let Some(marker) = marker {
            command.env(CLIENT_MARKER, marker.to_string());
        }
        command.spawn().expect("starts")
    }

    fn end(mut child: Child) {
        child.kill().expect("it runs");
        child.wait().expect("it ends");
    }

    /// The test's process is the foster parent, and its children are the orphans.
    #[test]
    fn orphans_of_two_clients_with_one_foster_parent_are_told_apart() {
        let directory = tempfile::tempdir().expect("a directory");
        let mut tree = tree(directory.path());
        let me = ProcessId::of(std::process::id()).expect("we exist");
        let [one, other, stranger] = [0, 1, 2].map(|index| ClientId::from_parts(index, 0));
        let orphans = [Some(one), Some(other), None, Some(stranger)].map(start);
        let owner = |tree: &Tree, orphan: &Child| tree.owners.get(&orphan.id()).copied();
        tree.add_foster_parent(one, me, 0).expect("we exist");
        tree.add_foster_parent(other, me, 0).expect("we exist");
        tree.add_foster_parent(other, me, 0).expect("twice is once");
        assert_eq!(tree.clients_fostered_by(me.pid), [one, other]);
        tree.walk_below(me.pid, 0);
        let owners = orphans.each_ref().map(|orphan| owner(&tree, orphan));
        assert_eq!(owners, [Some(one), Some(other), None, None]);
        tree.remove(other, 0);
        tree.walk_below(me.pid, 0);
        let owners = orphans.each_ref().map(|orphan| owner(&tree, orphan));
        assert_eq!(owners, [Some(one); 4]);
        orphans.into_iter().for_each(end);
    }

    #[test]
    fn a_foster_parent_that_ended_is_no_foster_parent_any_more() {
        let directory = tempfile::tempdir().expect("a directory");
        let mut tree = tree(directory.path());
        let client = ClientId::from_parts(0, 0);
        let foster_parent = start(None);
        let id = id_of(&foster_parent);
        let earlier = ProcessId {
            start_time_ticks: id.start_time_ticks - 1,
            ..id
        };
        let refused = tree.add_foster_parent(client, earlier, 0);
        assert!(matches!(refused, Err(EngineError::NoSuchProcess(_))));
        tree.add_foster_parent(client, id, 0).expect("it runs");
        assert_eq!(tree.clients_fostered_by(id.pid), [client]);
        end(foster_parent);
        // A new process with its number would be no foster parent.
        assert_eq!(tree.clients_fostered_by(id.pid), []);
        tree.review_foster_parents();
        assert!(tree.foster_parents.is_empty());
        assert!(
            tree.client(client)
                .is_some_and(|c| c.foster_parents.is_empty())
        );
    }
}
