//! How processes join clients: by name, by birth, and by their markers.
//!
//! [`crate::ownership`] tells to which client a process belongs. This file finds the processes:
//! it notices births, and looks for processes that escaped from their trees.

use std::collections::{BTreeSet, HashMap};

use prorata_core::ids::ClientId;

use crate::births::{MAX_BIRTHS, Newborn};
use crate::error::EngineError;
use crate::marker::marked_client;
use crate::ownership::{Kinship, KnownClient, client_by_birth, client_by_marker, is_left_of};
use crate::process::{Origin, Process};
use crate::process_id::ProcessId;
use crate::procfs::{self, Stat};
use crate::scheduler;
use crate::threads::{Binding, Heritage};
use crate::time::MILLISECOND_NS;
use crate::tree::Tree;

/// Most newborn processes without a known parent that are remembered until their markers are
/// read.
const MAX_STRANGERS: usize = 4096;

/// For so long a number that no process shows is looked up whenever births are noticed; later only
/// with the next survey.
const UNBORN_NS: u64 = 2 * MILLISECOND_NS;

/// A number that the kernel had given out while no process of that number could be looked up.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Unseen {
    pid: u32,
    /// When that was noticed first, on the monotonic clock.
    noticed_ns: u64,
}

impl Tree {
    /// Manages a process and its present descendants as part of a client. Takes them from a client
    /// that gives way.
    pub(crate) fn manage(
        &mut self,
        id: ClientId,
        process: ProcessId,
        now_ns: u64,
    ) -> Result<(), EngineError> {
        let pid = process.pid;
        let stat = procfs::stat(pid).map_err(|_| EngineError::NoSuchProcess(pid))?;
        if ProcessId::from_stat(pid, &stat) != process || stat.has_ended() {
            return Err(EngineError::NoSuchProcess(pid));
        }
        match (self.giving_way(pid), self.owners.get(&pid)) {
            (Some(from), _) if from != id => self.move_tree(from, id, pid, now_ns)?,
            (_, Some(&client)) => return Err(EngineError::AlreadyManaged { pid, client }),
            (_, None) => {
                if stat.is_kernel_thread() || self.is_indispensable(pid) {
                    return Err(EngineError::Indispensable(pid));
                }
                self.join(id, pid, &stat, Origin::Named, now_ns)?;
            }
        }
        self.walk_below(pid, now_ns);
        Ok(())
    }

    /// Manages all that is left of these clients after a restart, see [`is_left_of`]. Returns how
    /// many processes joined each. Cost: 15 us for each process of the system.
    pub(crate) fn manage_marked(&mut self, clients: &[KnownClient], now_ns: u64) -> Vec<u32> {
        let count = |tree: &Tree, client: &KnownClient| tree.processes_of(client.id).len() as u32;
        let before: Vec<u32> = clients.iter().map(|client| count(self, client)).collect();
        let by_id: HashMap<ClientId, &KnownClient> =
            clients.iter().map(|client| (client.id, client)).collect();
        let mut joined = Vec::new();
        for (pid, stat) in procfs::all_processes() {
            let client = self.marked(pid).and_then(|id| by_id.get(&id));
            if let Some(client) = client.filter(|client| is_left_of(self, client, pid, &stat)) {
                self.admit(client.id, pid, &stat, Origin::Named, now_ns);
                joined.push(pid);
            }
        }
        for pid in joined {
            self.walk_below(pid, now_ns);
        }
        let after = clients.iter().map(|client| count(self, client));
        after
            .zip(before)
            .map(|(after, before)| after - before)
            .collect()
    }

    /// Lets newborn processes join their parents' clients. Returns false if there were too many
    /// births to look at each. Cost: 1.5 us without a birth in the whole system, some more for each
    /// birth, and for 2 ms as much for each number that shows no process, at most 256 of them.
    pub(crate) fn notice_births(&mut self, now_ns: u64) -> bool {
        let is_young = |unseen: &&Unseen| now_ns.saturating_sub(unseen.noticed_ns) < UNBORN_NS;
        let newest = self.unseen.iter().rev().take(MAX_BIRTHS as usize);
        let young = newest.take_while(is_young).count();
        let young = self.unseen.split_off(self.unseen.len() - young);
        let late = young.into_iter();
        let late = late.filter_map(|unseen| self.notice(unseen.pid, unseen.noticed_ns, now_ns));
        let mut grown: BTreeSet<u32> = late.collect();
        let born = self.births.since_last_look();
        let are_known = born != Newborn::Unknown;
        if let Newborn::Among(pids) = born {
            grown.extend(pids.filter_map(|pid| self.notice(pid, now_ns, now_ns)));
        }
        grown.into_iter().for_each(|pid| self.find_threads(pid));
        self.walk_due |= !are_known;
        are_known
    }

    /// Returns the process of a thread that was born to a client. The number was noticed first at
    /// `noticed_ns`.
    fn notice(&mut self, pid: u32, noticed_ns: u64, now_ns: u64) -> Option<u32> {
        let Ok(stat) = procfs::stat(pid) else {
            // Mostly it has ended. But the kernel gives a number out some time before the
            // process can be looked up.
            if self.unseen.len() < MAX_STRANGERS {
                self.unseen.push(Unseen { pid, noticed_ns });
            }
            return None;
        };
        if self.owners.contains_key(&pid) {
            return None;
        }
        if stat.is_secondary_thread() {
            return procfs::process_of_thread(pid).ok();
        }
        if !self.join_parent(pid, &stat, now_ns)
            && !self.restore_posthumous(pid, &stat)
            && self.strangers.len() < MAX_STRANGERS
        {
            self.strangers.push(pid);
        }
        None
    }

    /// Lists the threads of a process anew, if it is a client's. Cost: 2 us for each thread.
    fn find_threads(&mut self, pid: u32) {
        let Some(&id) = self.owners.get(&pid) else {
            return;
        };
        let Some((client, journal)) = self.with_journal(id) else {
            return;
        };
        client.unsettled = true;
        if let Some(process) = client.processes.iter_mut().find(|p| p.id.pid == pid) {
            let mut threads = process.threads.lock();
            threads.expect_more();
            threads.refresh(journal);
        }
    }

    /// Lets a process join the client that it was born to. Returns whether there is one.
    fn join_parent(&mut self, pid: u32, stat: &Stat, now_ns: u64) -> bool {
        let origin = |tree: &Tree, id, pid, stat: &Stat| {
            let client = tree.client(id);
            match client.and_then(|client| client.heritage_of(stat.parent)) {
                Some(heritage) => Origin::Born(heritage),
                None => tree.born_some_time_ago(id, pid, stat),
            }
        };
        self.settle_newborn(pid, stat, origin, now_ns)
    }

    /// Lets a process join the client that it belongs to because of its parent, if possible. Returns
    /// whether there is one.
    fn settle_newborn(
        &mut self,
        pid: u32,
        stat: &Stat,
        origin: impl FnOnce(&Tree, ClientId, u32, &Stat) -> Origin,
        now_ns: u64,
    ) -> bool {
        let Some(id) = client_by_birth(self, pid, stat) else {
            return false;
        };
        if let Some(client) = self.client_mut(id) {
            client.births += 1;
        }
        let may_join = self.may_be_born_to(id, pid);
        if may_join || !self.is_outsider(ProcessId::from_stat(pid, stat)) {
            let origin = origin(self, id, pid, stat);
            match may_join {
                true => self.admit(id, pid, stat, origin, now_ns),
                false => self.set_apart(id, pid, stat, origin),
            }
        }
        may_join
    }

    /// Lets a process join a client, if possible.
    pub(crate) fn admit(
        &mut self,
        id: ClientId,
        pid: u32,
        stat: &Stat,
        origin: Origin,
        now_ns: u64,
    ) {
        if self.is_indispensable(pid) || stat.has_ended() {
            return;
        }
        match self.join(id, pid, stat, origin.clone(), now_ns) {
            Ok(()) | Err(EngineError::NoSuchProcess(_)) => {}
            Err(error) => {
                // The user of a client that gives way may cause this as often as it likes.
                match self.client(id).is_some_and(|client| client.gives_way) {
                    true => tracing::debug!("part of client {id} runs unmanaged: {error}"),
                    false => tracing::warn!("part of client {id} runs unmanaged: {error}"),
                }
                self.set_apart(id, pid, stat, origin);
            }
        }
    }

    /// Undoes what a child of a client inherited that is no part of the client.
    fn set_apart(&mut self, id: ClientId, pid: u32, stat: &Stat, origin: Origin) {
        if self.is_indispensable(pid) || stat.has_ended() {
            return;
        }
        if let Some(client) = self.client(id) {
            client.expel(pid);
        }
        self.disinherit(pid, stat, origin);
    }

    /// Finds processes that escaped from their trees, and does other work that is due every
    /// second or so.
    pub(crate) fn survey(&mut self, now_ns: u64) {
        let mut grown = BTreeSet::new();
        for Unseen { pid, .. } in std::mem::take(&mut self.unseen) {
            let Ok(stat) = procfs::stat(pid) else {
                continue;
            };
            if stat.is_secondary_thread() {
                grown.extend(procfs::process_of_thread(pid));
            } else if !self.owners.contains_key(&pid) {
                let origin = Tree::born_some_time_ago;
                if !self.settle_newborn(pid, &stat, origin, now_ns) {
                    self.strangers.push(pid);
                }
            }
        }
        grown.into_iter().for_each(|pid| self.find_threads(pid));
        let seen_before = std::mem::take(&mut self.unrecognised);
        for pid in std::mem::take(&mut self.strangers) {
            if !self.recognise(pid, now_ns) {
                self.unrecognised.push(pid);
            }
        }
        for pid in seen_before {
            self.recognise(pid, now_ns);
        }
        if self.walk_due {
            self.walk_through_births(now_ns);
            self.suspect_youngest();
        }
        // A process may have another user by now.
        self.recast_due = true;
        self.review_foster_parents();
        self.review_departed();
        self.review_outsiders();
        self.release_again();
    }

    /// Lets a process without a client join that of its parent or of its marker. Returns false
    /// if neither tells of one, but the marker may do so later: during exec a process shows no
    /// environment.
    fn recognise(&mut self, pid: u32, now_ns: u64) -> bool {
        let Ok(stat) = procfs::stat(pid) else {
            return true;
        };
        if self.owners.contains_key(&pid) || self.join_parent(pid, &stat, now_ns) {
            return true;
        }
        let Some(id) = client_by_marker(self, pid, &stat) else {
            return false;
        };
        let origin = self.born_some_time_ago(id, pid, &stat);
        self.admit(id, pid, &stat, origin, now_ns);
        true
    }

    /// After unnoticed births: the youngest processes may have escaped from their trees.
    fn suspect_youngest(&mut self) {
        let room = MAX_STRANGERS.saturating_sub(self.strangers.len());
        let youngest = procfs::all_processes()
            .into_iter()
            .rev()
            .map(|(pid, _)| pid);
        let strangers = youngest.filter(|pid| !self.owners.contains_key(pid));
        self.strangers.extend(strangers.take(room));
    }

    /// The origin of a process that was noticed late. Its client may have been demoted and
    /// promoted, or bound, several times since the birth. Whether the process chose its policy
    /// and its CPUs cannot be known. To lose a choice is better than to stay demoted or bound.
    fn born_some_time_ago(&self, id: ClientId, pid: u32, _: &Stat) -> Origin {
        let client = self.client(id);
        let Some(eldest) = client.and_then(|client| client.processes.first()) else {
            return Origin::Born(Heritage::NONE);
        };
        let mut heritage = eldest.threads.lock().heritage();
        heritage.idle = true;
        if client.is_some_and(|client| client.was_bound)
            && let (Ok(own), Ok(ours)) =
                (eldest.threads.lock().own_cpus(), scheduler::affinity(pid))
            && own != ours
        {
            heritage.bindings = vec![Binding { own, ours }];
        }
        Origin::Born(heritage)
    }

    /// Finds processes with unnoticed births. Cost: that of a walk.
    pub(crate) fn walk_through_births(&mut self, now_ns: u64) {
        self.walk_due = false;
        self.walk(Tree::born_some_time_ago, now_ns);
    }

    /// Finds the descendants of a process that was just named, or of a foster parent. Cost: 20 us,
    /// and as much for each of them; that of a walk if the kernel lists no children.
    pub(crate) fn walk_below(&mut self, ancestor: u32, now_ns: u64) {
        if !procfs::are_children_listed() {
            return self.walk(Self::found, now_ns);
        }
        let mut parents = vec![ancestor];
        while let Some(parent) = parents.pop() {
            for child in procfs::children_of(parent) {
                if self.owners.contains_key(&child) {
                    continue;
                }
                let Ok(stat) = procfs::stat(child) else {
                    continue;
                };
                if self.settle_newborn(child, &stat, Self::found, now_ns) {
                    parents.push(child);
                }
            }
        }
    }

    /// The origin of a process that ran before it was managed, or that was just born to a
    /// demoted or bound process.
    pub(crate) fn found(&self, id: ClientId, _: u32, stat: &Stat) -> Origin {
        let client = self.client(id);
        let heritage = client.and_then(|client| client.heritage_of(stat.parent));
        match heritage.filter(|heritage| !heritage.is_none()) {
            Some(heritage) => Origin::Born(heritage),
            None => Origin::Found,
        }
    }

    /// Lets each process of the system join that was born to a client. Cost: 5 us for each
    /// process of the system.
    fn walk(&mut self, origin: fn(&Tree, ClientId, u32, &Stat) -> Origin, now_ns: u64) {
        // Clock ticks do not always tell parents from children, so one pass may not be enough.
        let all = procfs::all_processes();
        loop {
            let before = self.process_count();
            for (pid, stat) in &all {
                if self.owners.contains_key(pid) {
                    continue;
                }
                self.settle_newborn(*pid, stat, origin, now_ns);
            }
            if self.process_count() == before {
                break;
            }
        }
    }
}

impl Tree {
    fn processes_of(&self, id: ClientId) -> &[Process] {
        self.client(id).map_or(&[], |client| &client.processes)
    }
}

impl Kinship for Tree {
    fn client_of(&self, pid: u32) -> Option<ClientId> {
        self.owners.get(&pid).copied()
    }

    fn fostered_by(&self, pid: u32) -> Vec<ClientId> {
        self.clients_fostered_by(pid)
    }

    fn marked(&self, pid: u32) -> Option<ClientId> {
        marked_client(pid, &self.socket)
    }

    fn user_of(&self, pid: u32) -> Option<u32> {
        procfs::real_uid(pid)
    }

    fn has_process_of(&self, id: ClientId, user: u32) -> bool {
        let mut processes = self.processes_of(id).iter();
        processes.any(|process| procfs::real_uid(process.id.pid) == Some(user))
    }

    fn began_by(&self, id: ClientId, ticks: u64) -> bool {
        let mut processes = self.processes_of(id).iter();
        processes.any(|process| process.id.start_time_ticks <= ticks)
    }
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead, BufReader, Write as _};
    use std::process::{Command, Stdio};

    use super::*;
    use crate::foster::tests::{SOCKET, tree};
    use crate::{CLIENT_MARKER, SOCKET_MARKER};

    /// At the first look the environment of a process may be empty, or its parent's.
    #[test]
    fn a_process_that_shows_its_marker_late_is_recognised() {
        let directory = tempfile::tempdir().expect("a directory");
        let mut tree = tree(directory.path());
        let id = ClientId::from_parts(0, 0);
        let mut member = Command::new("sleep").arg("100").spawn().expect("starts");
        let known = ProcessId::of(member.id()).expect("it runs");
        tree.manage(id, known, 0).expect("it can be managed");
        let markers = format!("{CLIENT_MARKER}={id} {SOCKET_MARKER}={SOCKET}");
        // `sh` runs no other program: during exec it would show no environment.
        let script = format!("read line; exec env {markers} sh -c 'echo marked; read line'");
        let mut stranger = Command::new("sh")
            .args(["-c", &script])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("starts");
        tree.notice(stranger.id(), 0, 0);
        tree.survey(0);
        assert!(!tree.owners.contains_key(&stranger.id()));
        let to = stranger.stdin.as_mut().expect("it is ours");
        to.write_all(b"go on\n").expect("it reads");
        let mut said = BufReader::new(stranger.stdout.take().expect("it is ours")).lines();
        assert_eq!(said.next().expect("a line").expect("readable"), "marked");
        tree.survey(0);
        assert_eq!(tree.owners.get(&stranger.id()), Some(&id));
        for child in [&mut member, &mut stranger] {
            child.kill().expect("it runs");
            child.wait().expect("it ends");
        }
    }
}
