//! Foster parents: processes whose children are a client's though they are
//! not. Each started a client and inherits its orphans.
//!
//! They are known by an open `stat` file, which stays with its process, so
//! whoever gets the number of one that has ended is none.

use prorata_core::ids::ClientId;

use crate::client::FosterParent;
use crate::error::EngineError;
use crate::process_id::ProcessId;
use crate::procfs::StatFile;
use crate::tree::Tree;
use crate::waited::Waited;

impl Tree {
    /// Children of `parent` are the client's from now on.
    pub(crate) fn add_foster_parent(
        &mut self,
        id: ClientId,
        parent: ProcessId,
        now_ns: u64,
    ) -> Result<(), EngineError> {
        let opened = StatFile::of_process(parent.pid).and_then(|file| Ok((file.read()?, file)));
        let opened = opened.ok().filter(|(stat, _)| {
            stat.start_time_ticks == parent.start_time_ticks && !stat.has_ended()
        });
        let Some((stat, stat_file)) = opened else {
            return Err(EngineError::NoSuchProcess(parent.pid));
        };
        // If another had its number before, it is not counted any more.
        self.dismiss_ended(parent.pid);
        let clients = self.foster_parents.entry(parent.pid).or_default();
        if clients.contains(&id) {
            return Ok(());
        }
        clients.push(id);
        let foster_parent = FosterParent {
            id: parent,
            stat_file,
            waited: Waited::since(stat.waited_ns),
            shared: false,
        };
        self.client_or_new(id, now_ns)
            .foster_parents
            .push(foster_parent);
        self.review_foster_parent(parent.pid);
        Ok(())
    }

    /// A client's foster parent is its no more.
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

    /// Takes note of how many clients the foster parent of this pid has.
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

    fn dismiss_ended(&mut self, pid: u32) {
        let alive = self.clients_fostered_by(pid);
        let clients = self.foster_parents.get(&pid).cloned().unwrap_or_default();
        for id in clients.into_iter().filter(|id| !alive.contains(id)) {
            self.dismiss_foster_parent(id, pid);
        }
    }

    /// Forgets foster parents that have ended. Cost: 1.5 us for each.
    pub(crate) fn review_foster_parents(&mut self) {
        let pids: Vec<u32> = self.foster_parents.keys().copied().collect();
        for pid in pids {
            self.dismiss_ended(pid);
        }
    }
}
