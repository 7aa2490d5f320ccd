//! Clients that give way: each holds processes that no caller named.
//!
//! A process leaves such a client as soon as a caller names it for another one, and its descendants
//! there go along. On the way all deeds are undone, so a process is never held down for a client
//! that it is no part of. Its clock and its account of ended children go along too: the old client
//! is charged for all until the move, and the new one for all after it.

use std::collections::{BTreeMap, HashSet};

use prorata_core::ids::ClientId;

use crate::client::Client;
use crate::decision::DecisionThread;
use crate::directory::Change;
use crate::error::EngineError;
use crate::ownership::{Kinship, client_by_birth, client_by_marker};
use crate::process::{Origin, Process};
use crate::process_id::ProcessId;
use crate::procfs::{self, Stat};
use crate::tree::Tree;

impl DecisionThread {
    /// Adds processes without a client to a client that gives way, each by itself. Returns which of
    /// these processes have a client now: not those that signals would stop.
    pub(crate) fn take_in(
        &mut self,
        client: ClientId,
        strays: &[ProcessId],
        now_ns: u64,
    ) -> Vec<bool> {
        // Children of clients are no strays.
        if !self.tree.notice_births(now_ns) {
            self.tree.walk_through_births(now_ns);
        }
        let mut taken = Vec::with_capacity(strays.len());
        for &stray in strays {
            let has_client = self.tree.owners.contains_key(&stray.pid)
                || !self.would_stop(stray, false) && self.tree.take_in(client, stray, now_ns);
            taken.push(has_client);
            // A process of another group takes another mechanism.
            self.enforcement.choose_mechanism(&mut self.tree);
        }
        self.publish();
        taken
    }

    /// Releases those of these processes that are of clients that give way.
    pub(crate) fn let_out(&mut self, processes: &[ProcessId], now_ns: u64) {
        let mut leaving: BTreeMap<ClientId, Vec<u32>> = BTreeMap::new();
        for process in processes {
            if let Some(id) = self.tree.giving_way(process.pid) {
                leaving.entry(id).or_default().push(process.pid);
            }
        }
        for (id, pids) in leaving {
            self.stop_watching(id);
            self.tree.sample(id, now_ns);
            self.tree.let_some_go(id, &pids, now_ns);
        }
        self.publish();
    }

    /// The watched process of a client may be about to leave.
    pub(crate) fn stop_watching(&mut self, id: ClientId) {
        if let Some(client) = self.tree.client_mut(id) {
            self.events.unwatch(client);
        }
    }
}

impl Tree {
    /// The client of a process, if it gives way.
    pub(crate) fn giving_way(&self, pid: u32) -> Option<ClientId> {
        let &id = self.owners.get(&pid)?;
        self.client(id)?.gives_way.then_some(id)
    }

    fn take_in(&mut self, id: ClientId, stray: ProcessId, now_ns: u64) -> bool {
        let pid = stray.pid;
        let Ok(stat) = procfs::stat(pid) else {
            return false;
        };
        let is_it = ProcessId::from_stat(pid, &stat) == stray && !stat.has_ended();
        if !is_it || self.is_indispensable(pid) {
            return false;
        }
        // It may have escaped from a client's tree a moment ago.
        let origin = self.client_of_newborn(pid, &stat);
        let origin = origin.or_else(|| client_by_marker(self, pid, &stat));
        let origin = origin.filter(|id| self.client(*id).is_some_and(|client| !client.gives_way));
        if let Some(origin) = origin {
            self.admit(origin, pid, &stat, self.found(origin, pid, &stat), now_ns);
        } else if self.join(id, pid, &stat, Origin::Named, now_ns).is_ok()
            && let Some(client) = self.client_mut(id)
        {
            client.gives_way = true;
        }
        self.owners.contains_key(&pid)
    }

    /// The client that a process belongs to because of its parent. One that gives way has neither
    /// foster parents, since they watch over the engine, nor other users' processes.
    pub(crate) fn client_of_newborn(&self, pid: u32, stat: &Stat) -> Option<ClientId> {
        let id = client_by_birth(self, pid, stat)?;
        let client = self.client(id).filter(|client| client.gives_way);
        let may_join = client.is_none_or(|client| {
            let user = self.user_of(pid);
            let is_of_user = user.is_some_and(|user| client.users.may_include(user));
            is_of_user && !self.foster_parents.contains_key(&pid)
        });
        may_join.then_some(id)
    }

    /// Moves a process and its descendants from their client to another one.
    pub(crate) fn move_tree(
        &mut self,
        from: ClientId,
        to: ClientId,
        top: u32,
        now_ns: u64,
    ) -> Result<(), EngineError> {
        let gone = || EngineError::NoSuchProcess(top);
        let user = procfs::real_uid(top).ok_or_else(gone)?;
        // Charges the old client for all until now, also for ended children.
        self.sample(from, now_ns);
        self.look(from, now_ns);
        self.let_go_with_newborn(now_ns, |tree| tree.undo(from, |client| client.below(top)));
        let cpus = *self.cpus();
        let Some(client) = self.client_mut(from) else {
            return Err(gone());
        };
        let below = client.below(top);
        let is_moved = |process: &mut Process| {
            let pid = process.id.pid;
            // A set-uid program's process stays, as it would not have joined at birth.
            below.contains(&pid) && procfs::real_uid(pid) == Some(user)
        };
        let moved: Vec<Process> = client.processes.extract_if(.., is_moved).collect();
        client.find_usable(&cpus);
        if moved.is_empty() {
            return Err(gone());
        }
        self.client_or_new(to, now_ns).users.add(user);
        for process in moved {
            self.changes.push(Change::Left(from, process.id));
            self.receive(to, process, now_ns);
        }
        Ok(())
    }
}

impl Client {
    /// This process and its descendants, as far as they are the client's.
    fn below(&self, top: u32) -> Vec<u32> {
        let mut below = HashSet::from([top]);
        loop {
            let before = below.len();
            for process in &self.processes {
                if below.contains(&process.parent) {
                    below.insert(process.id.pid);
                }
            }
            if below.len() == before {
                break;
            }
        }
        let pids = self.processes.iter().map(|process| process.id.pid);
        pids.filter(|pid| below.contains(pid)).collect()
    }
}
