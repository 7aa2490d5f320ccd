//! Who belongs to whom.
//!
//! A child belongs to its parent's client. A process whose parent has ended
//! is known by its foster parent (who inherited it as a child subreaper) or
//! by the marker in its environment.

use std::path::Path;

use prorata_core::ids::ClientId;

use crate::births::Newborn;
use crate::error::EngineError;
use crate::process::Origin;
use crate::process_id::ProcessId;
use crate::procfs::{self, Stat};
use crate::tree::Tree;
use crate::{CLIENT_MARKER, SOCKET_MARKER};

/// Newborn strangers that are remembered until their markers are read.
const MAX_STRANGERS: usize = 4096;

impl Tree {
    /// Manages a process and its present descendants as part of a client.
    pub(crate) fn manage(
        &mut self,
        id: ClientId,
        process: ProcessId,
        now_ns: u64,
    ) -> Result<(), EngineError> {
        let pid = process.pid;
        let stat = procfs::stat(pid).map_err(|_| EngineError::NoSuchProcess(pid))?;
        if stat.start_time_ticks != process.start_time_ticks || stat.has_ended() {
            return Err(EngineError::NoSuchProcess(pid));
        }
        if let Some(&client) = self.owners.get(&pid) {
            return Err(EngineError::AlreadyManaged { pid, client });
        }
        if stat.is_kernel_thread() || self.indispensable.contains(&pid) {
            return Err(EngineError::Indispensable(pid));
        }
        self.join(id, process, &stat, Origin::Found, now_ns)?;
        self.walk(Origin::Found, now_ns);
        Ok(())
    }

    /// Manages all processes that carry a client's marker and began at or
    /// after a time. Returns how many joined.
    pub(crate) fn manage_marked(&mut self, id: ClientId, since_ticks: u64, now_ns: u64) -> u32 {
        let before = self.process_count();
        for (pid, stat) in everyone() {
            let free = !self.owners.contains_key(&pid);
            if free
                && stat.start_time_ticks >= since_ticks
                && self.marked(pid) == Some(id)
                && (self.has_no_process(id) || self.is_of_its_user(id, pid))
            {
                self.admit(id, pid, &stat, Origin::Found, now_ns);
            }
        }
        self.walk(Origin::Found, now_ns);
        self.process_count() - before
    }

    /// Lets processes that were born join their parents' clients. Cost:
    /// 1.5 us if there were none in the whole system, else some more for each.
    pub(crate) fn notice_births(&mut self, now_ns: u64) {
        match self.births.since_last_look() {
            Newborn::Nobody => {}
            Newborn::Among(pids) => pids.for_each(|pid| self.notice(pid, now_ns)),
            Newborn::Unknown => self.walk_due = true,
        }
    }

    fn notice(&mut self, pid: u32, now_ns: u64) {
        let Ok(stat) = procfs::stat(pid) else { return };
        if self.owners.contains_key(&pid) {
            return;
        }
        if stat.is_secondary_thread() {
            self.notice_thread(pid);
        } else if !self.join_parent(pid, &stat, now_ns) && self.strangers.len() < MAX_STRANGERS {
            self.strangers.push(pid);
        }
    }

    fn notice_thread(&mut self, tid: u32) {
        let Ok(pid) = procfs::process_of_thread(tid) else {
            return;
        };
        let Some(&id) = self.owners.get(&pid) else {
            return;
        };
        let Some((client, journal)) = self.with_journal(id) else {
            return;
        };
        client.unsettled = true;
        let to_idle = client.idle_lately;
        if let Some(process) = client.processes.iter_mut().find(|p| p.id.pid == pid) {
            process.expect_threads(to_idle, journal);
        }
    }

    /// Puts a process under its parent's or foster parent's client. Returns
    /// whether there is one.
    fn join_parent(&mut self, pid: u32, stat: &Stat, now_ns: u64) -> bool {
        let Some(id) = self.client_of_parent(stat) else {
            return false;
        };
        let to_idle = self.client(id).is_some_and(|client| client.idle_lately);
        self.admit(id, pid, stat, Origin::Born { to_idle }, now_ns);
        true
    }

    fn client_of_parent(&self, stat: &Stat) -> Option<ClientId> {
        let owner = self.owners.get(&stat.parent);
        owner
            .or_else(|| self.foster_parents.get(&stat.parent))
            .copied()
    }

    /// Puts a process under a client if that can be.
    fn admit(&mut self, id: ClientId, pid: u32, stat: &Stat, origin: Origin, now_ns: u64) {
        if self.indispensable.contains(&pid) || stat.has_ended() {
            return;
        }
        let process = ProcessId {
            pid,
            start_time_ticks: stat.start_time_ticks,
        };
        match self.join(id, process, stat, origin, now_ns) {
            Ok(()) | Err(EngineError::NoSuchProcess(_)) => {}
            Err(error) => {
                self.left_alone += 1;
                tracing::warn!("part of client {id} runs unmanaged: {error}");
            }
        }
    }

    /// Finds those that escaped from their trees. To be called every second
    /// or so.
    pub(crate) fn survey(&mut self, now_ns: u64) {
        for pid in std::mem::take(&mut self.strangers) {
            let Ok(stat) = procfs::stat(pid) else {
                continue;
            };
            if self.owners.contains_key(&pid) || self.join_parent(pid, &stat, now_ns) {
                continue;
            }
            if let Some(id) = self
                .marked(pid)
                .filter(|&id| self.is_younger_than(id, &stat) && self.is_of_its_user(id, pid))
            {
                self.admit(id, pid, &stat, Origin::Born { to_idle: true }, now_ns);
            }
        }
        if std::mem::take(&mut self.walk_due) {
            self.walk(Origin::Born { to_idle: true }, now_ns);
        }
        self.review_groups();
    }

    /// The client whose markers a process carries.
    fn marked(&self, pid: u32) -> Option<ClientId> {
        let client = procfs::environment_variable(pid, CLIENT_MARKER)?
            .parse()
            .ok()?;
        let socket = procfs::environment_variable(pid, SOCKET_MARKER)?;
        (Path::new(&socket) == self.socket).then_some(client)
    }

    /// True of a client all of whose known processes ended while no daemon
    /// watched: who is left of it, only the markers say.
    fn has_no_process(&self, id: ClientId) -> bool {
        self.client(id)
            .is_none_or(|client| client.processes.is_empty())
    }

    /// Whether a process belongs to the same user as a client's processes. An
    /// environment is whatever its owner says, so a marker alone would let
    /// anybody run on anybody's tickets.
    fn is_of_its_user(&self, id: ClientId, pid: u32) -> bool {
        let processes = self.client(id).map_or(&[][..], |client| &client.processes);
        let Some(uid) = procfs::real_uid(pid) else {
            return false;
        };
        processes
            .iter()
            .any(|process| procfs::real_uid(process.id.pid) == Some(uid))
    }

    /// Whether a process began after some process of a client, so that its
    /// marker cannot be that of an earlier client of the same name.
    fn is_younger_than(&self, id: ClientId, stat: &Stat) -> bool {
        let processes = self.client(id).map_or(&[][..], |client| &client.processes);
        processes
            .iter()
            .any(|p| p.id.start_time_ticks <= stat.start_time_ticks)
    }

    /// Walks through all processes and lets those join whose parents have a
    /// client. Cost: 5 us for each process of the system.
    pub(crate) fn walk(&mut self, origin: Origin, now_ns: u64) {
        // Parents first, as far as clock ticks tell; hence more than once.
        let all = everyone();
        loop {
            let before = self.process_count();
            for (pid, stat) in &all {
                if self.owners.contains_key(pid) {
                    continue;
                }
                if let Some(id) = self.client_of_parent(stat) {
                    self.admit(id, *pid, stat, origin, now_ns);
                }
            }
            if self.process_count() == before {
                break;
            }
        }
    }
}

/// All processes of the system, oldest first.
fn everyone() -> Vec<(u32, Stat)> {
    let mut all = Vec::new();
    let _ = procfs::for_each_process(|pid| {
        if let Ok(stat) = procfs::stat(pid) {
            all.push((pid, stat));
        }
    });
    all.sort_by_key(|(pid, stat)| (stat.start_time_ticks, *pid));
    all
}
