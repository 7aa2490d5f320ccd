//! The threads of each client. The kernel puts every child under its parent's
//! client at birth. The engine gives the kernel the threads that were there
//! before, and takes them back with the policy that they had.

use std::collections::{HashMap, HashSet};

use prorata_core::ids::ClientId;
use prorata_kernel::KernelError;
use prorata_kernel::scheduler::CGROUP_NODES;
use prorata_user::ownership::{Kinship, KnownClient, client_by_birth, is_left_of};
use prorata_user::procfs::{self, Stat};
use prorata_user::{Policy, marked_client};

use super::client::{Client, NOTHING};
use super::kernel_side::KernelSide;
use super::policies::SCHED_EXT;
use super::scheduler::InKernel;
use crate::process::ProcessId;

/// Most searches of a tree for threads that were not found before. Only threads
/// that were not yet given have children that were not, so each search finds
/// fewer. A tree that grows faster is given up.
pub(super) const MOST_LOOKS: u32 = 64;

/// Why a process cannot be managed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum MemberError {
    #[error("process {0} does not exist (any more): name a running process")]
    NoSuchProcess(u32),
    #[error("process {pid} is managed already, as part of client {client}: release that first")]
    AlreadyManaged { pid: u32, client: ClientId },
    #[error(
        "process {0} runs under a real-time policy, which comes before any share: give it an \
         ordinary one (chrt --other 0)"
    )]
    NotOrdinary(u32),
    #[error(
        "the kernel has room for {} clients and currencies together: release or destroy some",
        CGROUP_NODES - 1
    )]
    NoRoom,
    #[error("nothing is scheduled by tickets now: {0}")]
    Unloaded(String),
    #[error(transparent)]
    Kernel(#[from] KernelError),
}

impl KernelSide {
    /// Manages a process with all its present and future descendants, except
    /// those of other clients. Takes them from a client that gives way.
    pub fn manage(&mut self, id: ClientId, root: ProcessId) -> Result<(), MemberError> {
        let pid = root.pid;
        if !self.is_loaded() {
            return Err(MemberError::Unloaded(self.trouble().unwrap_or_default()));
        }
        let gone = || MemberError::NoSuchProcess(pid);
        if !root.is_alive() {
            return Err(gone());
        }
        match self.find(pid) {
            Some(from) if from != id && self.gives_way(from) => self.let_out_below(from, pid),
            Some(client) => return Err(MemberError::AlreadyManaged { pid, client }),
            None => {}
        }
        let node = self.projection.node(id).ok_or(MemberError::NoRoom)?;
        let user = procfs::real_uid(pid).ok_or_else(gone)?;
        let is_new = !self.clients.contains_key(&id);
        let client = self.clients.entry(id).or_insert_with(Client::new);
        client.users.add(user);
        let given = self.give_process(node, pid);
        match given {
            Ok(0) if root.is_alive() => self.refuse(id, is_new, MemberError::NotOrdinary(pid)),
            Ok(0) => self.refuse(id, is_new, gone()),
            Ok(_) => {
                self.give_below(id, node);
                Ok(())
            }
            Err(error) => self.refuse(id, is_new, error.into()),
        }
    }

    fn refuse(
        &mut self,
        id: ClientId,
        is_new: bool,
        error: MemberError,
    ) -> Result<(), MemberError> {
        if is_new {
            self.clients.remove(&id);
        }
        Err(error)
    }

    /// The client's orphans are children of `parent`. Orphans to come belong to
    /// the client by birth; [`KernelSide::manage_marked`] finds the present ones.
    pub fn adopt(&mut self, id: ClientId, parent: ProcessId) -> Result<(), MemberError> {
        let user = procfs::real_uid(parent.pid).filter(|_| parent.is_alive());
        let user = user.ok_or(MemberError::NoSuchProcess(parent.pid))?;
        let client = self.clients.entry(id).or_insert_with(Client::new);
        client.users.add_first(user);
        client.adopters.push(parent);
        Ok(())
    }

    /// Manages the processes that are left of a client, see [`is_left_of`], and
    /// the orphans that its adopters have. Returns their number.
    pub fn manage_marked(&mut self, known: &KnownClient) -> u32 {
        let id = known.id;
        let Some(node) = self.projection.node(id).filter(|_| self.is_loaded()) else {
            return 0;
        };
        let is_new = !self.clients.contains_key(&id);
        self.clients.entry(id).or_insert_with(Client::new);
        let mut joined = 0;
        for (pid, stat) in procfs::all_processes() {
            if is_left_of(self, known, pid, &stat)
                && self
                    .give_process(node, pid)
                    .is_ok_and(|threads| threads > 0)
            {
                if let (Some(client), Some(user)) =
                    (self.clients.get_mut(&id), procfs::real_uid(pid))
                {
                    client.users.add(user);
                }
                joined += 1;
            }
        }
        joined += self.give_below(id, node);
        if joined == 0 && is_new {
            self.clients.remove(&id);
        }
        joined
    }

    /// Releases all threads of a client. Ignores an unknown client.
    pub fn release(&mut self, id: ClientId) {
        if self.clients.remove(&id).is_none() {
            return;
        }
        let Some(node) = self.projection.node(id).filter(|_| self.is_loaded()) else {
            return;
        };
        let mut released = HashMap::new();
        for _ in 0..MOST_LOOKS {
            let members: Vec<(u32, Stat)> = self.threads_where(|tid, stat| {
                let node_now = self.scheduler.as_ref().and_then(|s| s.node_of(tid));
                // A thread born while its parent was released is in no node, but it
                // is in the class.
                let is_late = || stat.policy == SCHED_EXT && released.contains_key(&stat.parent);
                node_now == Some(node) || (node_now.is_none() && is_late())
            });
            if members.is_empty() {
                break;
            }
            for (tid, stat) in members {
                let own = self.own_policy(tid, &stat, &released);
                released.insert(tid, own);
                self.let_go(tid, own);
            }
        }
        self.policies.forget_ended();
    }

    /// The client of a process.
    pub fn find(&self, pid: u32) -> Option<ClientId> {
        if !self.is_loaded() {
            let mut clients = self.clients.iter();
            let holds = |client: &Client| client.processes.iter().any(|process| process.pid == pid);
            return clients.find(|(_, client)| holds(client)).map(|(id, _)| *id);
        };
        self.client_of_thread(pid).or_else(|| {
            let stat = procfs::stat(pid).ok()?;
            let tids = if stat.leader_has_ended() {
                threads_of(pid)
            } else {
                Vec::new()
            };
            tids.into_iter().find_map(|tid| self.client_of_thread(tid))
        })
    }

    /// Where the scheduler has all of the machine, other tasks have nodes too.
    fn client_of_thread(&self, tid: u32) -> Option<ClientId> {
        let node = self.scheduler.as_ref()?.node_of(tid)?;
        self.projection.client(node)
    }

    /// Lists each client's processes. Cost: a walk through all processes.
    pub(super) fn find_processes(&mut self) {
        if !self.is_loaded() {
            return;
        }
        let mut found: HashMap<ClientId, Vec<ProcessId>> = HashMap::new();
        for (pid, stat) in procfs::all_processes() {
            if !stat.has_ended()
                && let Some(client) = self.find(pid)
            {
                found
                    .entry(client)
                    .or_default()
                    .push(ProcessId::from_stat(pid, &stat));
            }
        }
        for (id, client) in &mut self.clients {
            client.processes = found.remove(id).unwrap_or_default();
        }
    }

    /// All threads of all clients.
    pub(super) fn members(&self) -> Vec<(u32, ClientId)> {
        let threads = self.threads_where(|tid, _| self.client_of_thread(tid).is_some());
        threads
            .into_iter()
            .filter_map(|(tid, _)| Some((tid, self.client_of_thread(tid)?)))
            .collect()
    }

    /// Whether any thread of a client lives. Cost: a walk through all threads.
    pub(super) fn lives(&self, id: ClientId) -> bool {
        let lives =
            |tid, stat: &Stat| !stat.thread_has_ended() && self.client_of_thread(tid) == Some(id);
        !self.threads_where(lives).is_empty()
    }

    /// Gives a new scheduler the members of the last one, and the children that
    /// they have had since.
    pub(super) fn give_again(&mut self, members: &[(u32, ClientId)]) {
        for (tid, id) in members {
            if let (Some(node), Some(scheduler)) = (self.projection.node(*id), &self.scheduler) {
                // A thread that has ended needs nothing.
                let _ = enter(scheduler.as_ref(), node, *tid);
            }
        }
        let clients: Vec<ClientId> = self.clients.keys().copied().collect();
        for id in clients {
            if let Some(node) = self.projection.node(id) {
                self.give_below(id, node);
            }
        }
    }

    /// Once the scheduler is unloaded for good: restores the policies and notes
    /// the processes of each client.
    pub(super) fn let_all_go(&mut self, members: &[(u32, ClientId)]) {
        let mut released = HashMap::new();
        for (tid, id) in members {
            let Ok(stat) = procfs::stat(*tid) else {
                continue;
            };
            let own = self.own_policy(*tid, &stat, &released);
            released.insert(*tid, own);
            if is_in_class(*tid) {
                set_policy(*tid, own);
            }
            if let Some(client) = self.clients.get_mut(id)
                && !stat.is_secondary_thread()
            {
                client.processes.push(ProcessId::from_stat(*tid, &stat));
            }
        }
        for client in self.clients.values_mut() {
            client.now = NOTHING;
        }
    }

    /// From then on, follows the clients' processes by their parents.
    pub(super) fn watch_unloaded(&mut self) {
        if self.clients.is_empty() {
            return;
        }
        let all = procfs::all_processes();
        let mut gone = Vec::new();
        for (id, client) in &mut self.clients {
            let before: HashSet<ProcessId> = client.processes.drain(..).collect();
            let mut pids = HashSet::new();
            // Parents come first.
            for (pid, stat) in all.iter().filter(|(_, stat)| !stat.has_ended()) {
                if before.contains(&ProcessId::from_stat(*pid, stat)) || pids.contains(&stat.parent)
                {
                    pids.insert(*pid);
                    client.processes.push(ProcessId::from_stat(*pid, stat));
                }
            }
            if client.processes.is_empty() {
                gone.push(*id);
            }
        }
        self.notice_exits_of(gone);
    }

    /// Gives the processes that descend from a client's or that its adopters
    /// inherited, if they belong to its user and to no other client. Returns
    /// how many processes joined.
    fn give_below(&mut self, id: ClientId, node: u32) -> u32 {
        let mut joined = 0;
        for _ in 0..MOST_LOOKS {
            let mut given = 0;
            for (pid, stat) in procfs::all_processes() {
                let owner = self.find(pid);
                let is_its = owner == Some(id);
                if !is_its && (owner.is_some() || !self.is_born_to(id, pid, &stat)) {
                    continue;
                }
                match self.give_process(node, pid) {
                    Ok(threads) => {
                        given += threads;
                        joined += u32::from(!is_its && threads > 0);
                    }
                    Err(error) => tracing::warn!("part of client {id} runs unmanaged: {error}"),
                }
            }
            if given == 0 {
                break;
            }
        }
        joined
    }

    /// Whether a process without a client belongs to this one by its parent.
    fn is_born_to(&self, id: ClientId, pid: u32, stat: &Stat) -> bool {
        let client = self.clients.get(&id).filter(|_| !stat.has_ended());
        // What gives way has no foster parents: they watch over the engine.
        let is_kept_out = |client: &Client| client.gives_way && !self.fostered_by(pid).is_empty();
        client.is_some_and(|client| {
            !is_kept_out(client)
                && client_by_birth(self, pid, stat) == Some(id)
                && procfs::real_uid(pid).is_some_and(|user| client.users.may_include(user))
        })
    }

    /// Gives the threads of a process that have no client yet. Returns their
    /// number. Leaves threads under real-time policies alone: they precede any
    /// share.
    pub(super) fn give_process(&mut self, node: u32, pid: u32) -> Result<u32, KernelError> {
        let Ok(leader) = procfs::stat(pid) else {
            return Ok(0);
        };
        let leader = ProcessId::from_stat(pid, &leader);
        let mut given = 0;
        for tid in threads_of(pid) {
            if self.client_of_thread(tid).is_some() {
                continue;
            }
            let Ok(stat) = procfs::thread_stat(pid, tid) else {
                continue;
            };
            let is_ordinary = Policy::of(tid).is_ok_and(Policy::is_fair);
            if !is_ordinary
                || self
                    .policies
                    .keep(ProcessId::from_stat(tid, &stat), leader)
                    .is_err()
            {
                continue;
            }
            match self.scheduler.as_deref().map(|s| enter(s, node, tid)) {
                None => {}
                Some(Ok(())) => given += 1,
                Some(Err(_)) if procfs::thread_stat(pid, tid).is_err() => {}
                Some(Err(error)) => return Err(error),
            }
        }
        Ok(given)
    }

    /// The policy that a thread had, or would have if its parents had kept
    /// theirs. `released` holds the threads released before, with their
    /// policies.
    pub(super) fn own_policy(
        &self,
        tid: u32,
        stat: &Stat,
        released: &HashMap<u32, Policy>,
    ) -> Policy {
        if let Some(own) = self.policies.of(ProcessId::from_stat(tid, stat)) {
            return own;
        }
        // The first thread of its process precedes it; so does its parent.
        let of_process = |pid: u32| {
            let known = procfs::stat(pid)
                .ok()
                .and_then(|stat| self.policies.of(ProcessId::from_stat(pid, &stat)));
            known.or_else(|| released.get(&pid).copied())
        };
        let process = procfs::process_of_thread(tid).unwrap_or(tid);
        of_process(process)
            .or_else(|| of_process(stat.parent))
            .unwrap_or(Policy::OTHER)
    }

    /// A thread that has chosen another policy since keeps that.
    pub(super) fn let_go(&self, tid: u32, own: Policy) {
        let is_in_class = is_in_class(tid);
        if let Some(scheduler) = &self.scheduler
            && let Err(error) = scheduler.take_back(tid)
        {
            tracing::warn!("{error}");
        }
        if is_in_class {
            set_policy(tid, own);
        }
    }

    /// All threads of the system that satisfy the condition, with what the
    /// kernel says of them; parents precede their children. Cost: a walk
    /// through all threads.
    fn threads_where(&self, is_wanted: impl Fn(u32, &Stat) -> bool) -> Vec<(u32, Stat)> {
        let mut found = Vec::new();
        for (pid, process) in procfs::all_processes() {
            for tid in threads_of(pid) {
                let stat = if tid == pid {
                    Ok(process)
                } else {
                    procfs::thread_stat(pid, tid)
                };
                if let Ok(stat) = stat
                    && is_wanted(tid, &stat)
                {
                    found.push((tid, stat));
                }
            }
        }
        found
    }
}

impl KernelSide {
    /// Processes of a client. Cost: a walk through all.
    fn processes_of(&self, id: ClientId) -> impl Iterator<Item = (u32, Stat)> {
        let all = procfs::all_processes().into_iter();
        all.filter(move |(pid, stat)| !stat.has_ended() && self.find(*pid) == Some(id))
    }
}

impl Kinship for KernelSide {
    fn client_of(&self, pid: u32) -> Option<ClientId> {
        self.find(pid)
    }

    fn fostered_by(&self, pid: u32) -> Vec<ClientId> {
        let fosters =
            |client: &Client| client.adopters.iter().any(|a| a.pid == pid && a.is_alive());
        let fostered = self.clients.iter().filter(|(_, client)| fosters(client));
        fostered.map(|(id, _)| *id).collect()
    }

    fn marked(&self, pid: u32) -> Option<ClientId> {
        marked_client(pid, &self.socket)
    }

    fn user_of(&self, pid: u32) -> Option<u32> {
        procfs::real_uid(pid)
    }

    fn has_process_of(&self, client: ClientId, user: u32) -> bool {
        let mut processes = self.processes_of(client);
        processes.any(|(pid, _)| procfs::real_uid(pid) == Some(user))
    }

    fn began_by(&self, client: ClientId, ticks: u64) -> bool {
        let mut processes = self.processes_of(client);
        processes.any(|(_, stat)| stat.start_time_ticks <= ticks)
    }
}

/// Gives a thread. A member of an unloaded scheduler is still in the class: it
/// leaves the class and returns like a new thread, so that it is charged from
/// now on and not for earlier use.
fn enter(scheduler: &dyn InKernel, node: u32, tid: u32) -> Result<(), KernelError> {
    if is_in_class(tid) {
        set_policy(tid, Policy::OTHER);
    }
    scheduler.give(node, tid)
}

fn is_in_class(tid: u32) -> bool {
    Policy::of(tid).is_ok_and(|policy| policy.class() == SCHED_EXT)
}

/// Does nothing if the thread has ended or already has the policy.
fn set_policy(tid: u32, own: Policy) {
    if Policy::of(tid).is_ok_and(|now| now != own)
        && let Err(error) = own.set(tid)
    {
        tracing::warn!("thread {tid} keeps a scheduling policy that is not its own: {error}");
    }
}

pub(super) fn threads_of(pid: u32) -> Vec<u32> {
    let mut tids = Vec::new();
    let _ = procfs::for_each_thread(pid, |tid| tids.push(tid));
    tids
}
