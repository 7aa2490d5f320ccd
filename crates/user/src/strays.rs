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
use crate::group::GroupIndex;
use crate::ownership::{Kinship, client_by_birth, client_by_marker};
use crate::process::{Origin, Process};
use crate::process_id::ProcessId;
use crate::procfs;
use crate::reaped::Charging;
use crate::slumber::Sampling;
use crate::tree::Tree;

/// All processes of a client that gives way are at most one in so many of those that the engine can
/// manage.
const PART_OF_USER: u32 = 8;

/// The same for all such clients together.
const PART_OF_ALL: u32 = 2;

/// A process without a client.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Stray {
    /// The process.
    pub process: ProcessId,
    /// Its real user when it was found.
    pub user: u32,
}

impl Stray {
    fn is_its_users(&self) -> bool {
        procfs::real_uid(self.process.pid) == Some(self.user)
    }
}

impl DecisionThread {
    /// Adds processes without a client to a client that gives way, each by itself. Returns which of
    /// these processes have a client now: not those that would be stopped or frozen.
    pub(crate) fn take_in(&mut self, client: ClientId, strays: &[Stray], now_ns: u64) -> Vec<bool> {
        // Children of clients are no strays.
        if !self.tree.notice_births(now_ns) {
            self.tree.walk_through_births(now_ns);
        }
        let mut taken = Vec::with_capacity(strays.len());
        for &stray in strays {
            let has_client = self.tree.owners.contains_key(&stray.process.pid)
                || self.would_stand_by(stray.process) && self.tree.take_in(client, stray, now_ns);
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
            self.tree.charge_all(id, now_ns);
            self.tree.let_some_go(id, &pids, now_ns);
        }
        self.publish();
    }

    /// Lets go of processes that no caller named if they keep `SCHED_IDLE` from working for others,
    /// as they are in another scheduling group: else the others would be stopped.
    pub(crate) fn make_way(&mut self, now_ns: u64) {
        if self.tree.groups.are_one() || !self.enforcement.needs_one_group(&self.tree) {
            return;
        }
        for (id, pids) in self.tree.in_the_way() {
            tracing::debug!("processes {pids:?} of client {id} make way for SCHED_IDLE");
            self.stop_watching(id);
            self.tree.charge_all(id, now_ns);
            self.tree.let_some_go(id, &pids, now_ns);
        }
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

    /// The scheduling groups of all processes that a caller named, or that descend from such.
    pub(crate) fn named_groups(&self) -> impl Iterator<Item = GroupIndex> {
        let named = self.clients().filter(|client| !client.gives_way);
        named.flat_map(|client| client.processes.iter().map(|process| process.group))
    }

    /// Processes of clients that give way and that are not in the one group of all named processes,
    /// or without these, in the group of most processes.
    fn in_the_way(&self) -> Vec<(ClientId, Vec<u32>)> {
        let mut named = self.named_groups();
        let group = named.next().or_else(|| self.groups.largest());
        if !named.all(|other| Some(other) == group) {
            return Vec::new();
        }
        let in_the_way = |client: &Client| {
            let others = client.processes.iter().filter(|p| Some(p.group) != group);
            (client.id, others.map(|process| process.id.pid).collect())
        };
        let all = self.strays().map(in_the_way);
        all.filter(|(_, pids): &(_, Vec<u32>)| !pids.is_empty())
            .collect()
    }

    fn take_in(&mut self, id: ClientId, stray: Stray, now_ns: u64) -> bool {
        let Stray { process, user } = stray;
        let pid = process.pid;
        let Ok(stat) = procfs::stat(pid) else {
            return false;
        };
        let is_it = ProcessId::from_stat(pid, &stat) == process && !stat.has_ended();
        if !is_it || self.is_indispensable(pid) || !stray.is_its_users() {
            return false;
        }
        // It may have escaped from a client's tree a moment ago.
        let origin = client_by_birth(self, pid, &stat);
        let origin = origin.or_else(|| client_by_marker(self, pid, &stat));
        let origin = origin.filter(|id| self.client(*id).is_some_and(|client| !client.gives_way));
        if let Some(origin) = origin {
            self.admit(origin, pid, &stat, self.found(origin, pid, &stat), now_ns);
            return self.owners.contains_key(&pid);
        }
        let client = self.client_or_new(id, now_ns);
        client.gives_way = true;
        client.users.add(user);
        // Not by name: only as its user's process may it join.
        if self.join(id, pid, &stat, Origin::Found, now_ns).is_err() {
            if self.client(id).is_some_and(|client| !client.had_processes) {
                self.clients.remove(id);
            }
        } else if !stray.is_its_users() {
            self.let_some_go(id, &[pid], now_ns);
        }
        self.owners.contains_key(&pid)
    }

    /// Whether a process may belong to a client because of its parent. One that gives way has neither
    /// foster parents, since they watch over the engine, nor other users' processes.
    pub(crate) fn may_be_born_to(&self, id: ClientId, pid: u32) -> bool {
        let client = self.client(id).filter(|client| client.gives_way);
        client.is_none_or(|client| {
            let user = self.user_of(pid);
            let is_of_user = user.is_some_and(|user| client.users.may_include(user));
            is_of_user && !self.foster_parents.contains_key(&pid)
        })
    }

    /// Whether there is room for a first process of one more client that gives way.
    pub(crate) fn has_room_for_stray(&self) -> bool {
        let all: usize = self.strays().map(|client| client.processes.len()).sum();
        let processes = self.allowance.processes;
        (all as u32) < processes / PART_OF_ALL && self.process_count() < processes
    }

    fn strays(&self) -> impl Iterator<Item = &Client> {
        self.clients().filter(|client| client.gives_way)
    }

    /// Refuses one more process of a client that gives way if its user, or all such clients together,
    /// would take the room of others.
    pub(crate) fn check_room_for_stray(&self, id: ClientId, pid: u32) -> Result<(), EngineError> {
        let (mut own, mut all) = (0, 0);
        for client in self.strays() {
            all += client.processes.len() as u32;
            if client.id == id {
                own = client.processes.len() as u32;
            }
        }
        let processes = self.allowance.processes;
        let limits = [
            (own, processes / PART_OF_USER),
            (all, processes / PART_OF_ALL),
        ];
        match limits.into_iter().find(|(count, limit)| count >= limit) {
            Some((_, limit)) => Err(EngineError::TooManyProcesses { pid, limit }),
            None => Ok(()),
        }
    }

    /// Charges a client for all until now, also for ended children and for processes that slumber.
    fn charge_all(&mut self, id: ClientId, now_ns: u64) {
        self.sample(id, Sampling::All, now_ns);
        self.look_at_known(id, now_ns, Charging::Now);
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
        self.charge_all(from, now_ns);
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
        // All below were let go, and not all need have moved.
        client.unsettled = true;
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

#[cfg(test)]
mod tests {
    use std::io::Write as _;
    use std::os::unix::process::CommandExt as _;
    use std::process::{Child, Command, Stdio};

    use super::*;
    use crate::foster::tests::tree;
    use crate::ownership::Users;
    use crate::process::Treatment;
    use crate::scheduler::Policy;

    fn start() -> (Child, Stray) {
        let child = Command::new("sleep").arg("100").spawn().expect("starts");
        let process = ProcessId::of(child.id()).expect("it runs");
        let user = rustix::process::getuid().as_raw();
        (child, Stray { process, user })
    }

    #[test]
    fn neither_one_user_nor_all_take_the_room_of_others() {
        let directory = tempfile::tempdir().expect("a directory");
        let mut tree = tree(directory.path());
        tree.allowance.processes = 4 * PART_OF_USER;
        let mut children = Vec::new();
        let mut taken = |tree: &mut Tree, index| {
            let (child, stray) = start();
            children.push(child);
            tree.take_in(ClientId::from_parts(index, 0), stray, 0)
        };
        let each = tree.allowance.processes / PART_OF_USER;
        let users = PART_OF_USER / PART_OF_ALL;
        for user in 0..users {
            let joined = (0..2 * each).filter(|_| taken(&mut tree, user)).count();
            assert_eq!(joined, each as usize);
            assert_eq!(tree.has_room_for_stray(), user + 1 < users);
        }
        assert!(
            !taken(&mut tree, users),
            "all together have half of the room"
        );
        assert!(tree.client(ClientId::from_parts(users, 0)).is_none());
        // The rest is for processes that a caller names.
        let (child, named) = start();
        children.push(child);
        let own = ClientId::from_parts(users + 1, 0);
        tree.manage(own, named.process, 0).expect("there is room");
        for mut child in children {
            child.kill().expect("it runs");
            child.wait().expect("it ends");
        }
    }

    #[test]
    fn a_process_that_became_another_users_is_no_stray() {
        let directory = tempfile::tempdir().expect("a directory");
        let mut tree = tree(directory.path());
        let (mut child, stray) = start();
        let id = ClientId::from_parts(0, 0);
        let of_another_user = Stray {
            user: stray.user + 1,
            ..stray
        };
        assert!(!tree.take_in(id, of_another_user, 0));
        assert!(tree.client(id).is_none(), "nothing is left of the attempt");
        assert!(tree.take_in(id, stray, 0));
        child.kill().expect("it runs");
        child.wait().expect("it ends");
    }

    #[test]
    fn what_a_move_leaves_behind_is_treated_again() {
        let directory = tempfile::tempdir().expect("a directory");
        let mut tree = tree(directory.path());
        if !rustix::process::geteuid().is_root() {
            return;
        }
        let (mut top, stray) = start();
        let user = 70_000;
        let mut other = Command::new("sleep");
        let mut other = other.arg("100").uid(user).spawn().expect("starts");
        let process = ProcessId::of(other.id()).expect("it runs");
        let [from, to] = [0, 1].map(|index| ClientId::from_parts(index, 0));
        assert!(tree.take_in(from, stray, 0) && tree.take_in(from, Stray { process, user }, 0));
        let client = tree.client_mut(from).expect("it is there");
        client.unsettled = false;
        // As that of a set-uid program is.
        let stays = client.processes.iter_mut().find(|p| p.id == process);
        stays.expect("it is there").parent = top.id();
        tree.manage(to, stray.process, 0).expect("it moves");
        let owners = [top.id(), other.id()].map(|pid| tree.owners.get(&pid).copied());
        assert_eq!(owners, [Some(to), Some(from)]);
        assert!(tree.client(from).expect("it is there").unsettled);
        for child in [&mut top, &mut other] {
            child.kill().expect("it runs");
            child.wait().expect("it ends");
        }
    }

    /// The child of another user is found while its parent is held down. (Here it is the client that
    /// gets another user.)
    #[test]
    fn a_child_of_another_user_does_not_keep_what_held_its_parent_down() {
        let directory = tempfile::tempdir().expect("a directory");
        let mut tree = tree(directory.path());
        if !rustix::process::geteuid().is_root() {
            return;
        }
        let mut shell = Command::new("sh");
        let shell = shell.args(["-c", "read line; sleep 100 & wait"]);
        let mut shell = shell.stdin(Stdio::piped()).spawn().expect("starts");
        let process = ProcessId::of(shell.id()).expect("it runs");
        let (id, user) = (ClientId::from_parts(0, 0), 70_000);
        assert!(tree.take_in(id, Stray { process, user: 0 }, 0));
        let (client, journal) = tree.with_journal(id).expect("it is there");
        client.users = Users::default();
        client.users.add(user);
        client.treat(Treatment::Idle, journal);
        tree.notice_births(0);
        let input = shell.stdin.as_mut().expect("it is ours");
        input.write_all(b"fork\n").expect("it reads");
        let child = loop {
            if let Some(&child) = procfs::children_of(shell.id()).first() {
                break child;
            }
        };
        let is_idle = |pid| Policy::of(pid).expect("it runs").is_idle();
        assert!(is_idle(child), "it inherits the policy");
        tree.notice_births(0);
        assert!(is_idle(shell.id()) && !is_idle(child));
        assert!(!tree.owners.contains_key(&child));
        assert!(tree.is_outsider(ProcessId::of(child).expect("it runs")));
        for pid in [child, shell.id()] {
            let pid = rustix::process::Pid::from_raw(pid as i32).expect("not zero");
            rustix::process::kill_process(pid, rustix::process::Signal::KILL).expect("ours");
        }
        shell.wait().expect("it ends");
    }
}
