//! All clients and the processes they consist of.

use std::collections::HashMap;
use std::path::PathBuf;

use prorata_core::ids::ClientId;

use crate::births::Births;
use crate::client::{Client, FosterParent};
use crate::directory::Change;
use crate::error::EngineError;
use crate::group::{Group, Groups};
use crate::process::{Failure, Origin, Process, Treatment};
use crate::process_id::ProcessId;
use crate::procfs::{Stat, StatFile};
use crate::scheduler::Return;
use crate::table::{Journal, MAX_RECORDS};
use crate::waited::Waited;

/// Most processes that an engine manages; half of the records stay for
/// threads of their own policy.
const MAX_PROCESSES: u32 = MAX_RECORDS / 2;

/// Descriptors that each process needs, and those for everything else.
const DESCRIPTORS_EACH: u64 = 2;
const DESCRIPTORS_KEPT: u64 = 256;

/// Processes whose groups are reviewed at a time.
const REVIEWED_AT_ONCE: usize = 16;

/// All clients, and what is needed to find out who belongs to whom.
#[derive(Debug)]
pub(crate) struct Tree {
    /// By the client's index.
    clients: Vec<Option<Client>>,
    /// Clients by pid, of every managed process.
    pub(crate) owners: HashMap<u32, ClientId>,
    pub(crate) foster_parents: HashMap<u32, ClientId>,
    groups: Groups,
    /// Where the next review of groups goes on.
    review_from: usize,
    pub(crate) births: Births,
    /// Born since the last survey, to nobody we know.
    pub(crate) strangers: Vec<u32>,
    /// Births went unnoticed.
    pub(crate) walk_due: bool,
    /// Processes whose threads could not leave `SCHED_IDLE`.
    captives: u32,
    way_back: Return,
    limit: u32,
    /// Processes that could not be managed, so far.
    pub(crate) left_alone: u64,
    /// What the directory has to be told.
    pub(crate) changes: Vec<Change>,
    pub(crate) journal: Journal,
    /// Processes that no client may consist of.
    pub(crate) indispensable: Vec<u32>,
    /// Work space of [`Self::sample`], kept to spare the allocation.
    gone: Vec<Process>,
    /// By this socket clients reach their daemon, ours.
    pub(crate) socket: PathBuf,
}

impl Tree {
    pub(crate) fn new(
        journal: Journal,
        way_back: Return,
        socket: PathBuf,
    ) -> std::io::Result<Self> {
        Ok(Self {
            clients: Vec::new(),
            owners: HashMap::new(),
            foster_parents: HashMap::new(),
            groups: Groups::default(),
            review_from: 0,
            births: Births::watch()?,
            strangers: Vec::new(),
            walk_due: false,
            captives: 0,
            way_back,
            limit: process_limit(),
            left_alone: 0,
            changes: Vec::new(),
            journal,
            indispensable: vec![1, std::process::id()],
            gone: Vec::new(),
            socket,
        })
    }

    /// The guardian has this pid now.
    pub(crate) fn set_guardian(&mut self, pid: u32) {
        self.indispensable.truncate(2);
        self.indispensable.push(pid);
    }

    pub(crate) fn clients(&self) -> impl Iterator<Item = &Client> {
        self.clients.iter().flatten()
    }

    pub(crate) fn clients_mut(&mut self) -> impl Iterator<Item = &mut Client> {
        self.clients.iter_mut().flatten()
    }

    pub(crate) fn client(&self, id: ClientId) -> Option<&Client> {
        let client = self.clients.get(id.index() as usize)?.as_ref();
        client.filter(|client| client.id == id)
    }

    pub(crate) fn client_mut(&mut self, id: ClientId) -> Option<&mut Client> {
        let client = self.clients.get_mut(id.index() as usize)?.as_mut();
        client.filter(|client| client.id == id)
    }

    /// A client and the journal to treat it with.
    pub(crate) fn with_journal(&mut self, id: ClientId) -> Option<(&mut Client, &mut Journal)> {
        let client = self.clients.get_mut(id.index() as usize)?.as_mut()?;
        (client.id == id).then_some((client, &mut self.journal))
    }

    /// The client at this index.
    pub(crate) fn client_at(&mut self, index: usize) -> Option<&mut Client> {
        self.clients.get_mut(index)?.as_mut()
    }

    /// All clients and the journal to treat them with.
    pub(crate) fn all_with_journal(&mut self) -> (impl Iterator<Item = &mut Client>, &mut Journal) {
        (self.clients.iter_mut().flatten(), &mut self.journal)
    }

    /// All clients and the news for the directory.
    pub(crate) fn all_with_changes(
        &mut self,
    ) -> (impl Iterator<Item = &mut Client>, &mut Vec<Change>) {
        (self.clients.iter_mut().flatten(), &mut self.changes)
    }

    pub(crate) fn process_count(&self) -> u32 {
        self.owners.len() as u32
    }

    /// Whether `SCHED_IDLE` can be undone for all, and says something about
    /// each of them against each other.
    pub(crate) fn idle_works(&self) -> bool {
        self.captives == 0 && self.groups.are_one()
    }

    pub(crate) fn client_or_new(&mut self, id: ClientId, now_ns: u64) -> &mut Client {
        let index = id.index() as usize;
        if self.clients.len() <= index {
            self.clients.resize_with(index + 1, || None);
        }
        let place = &mut self.clients[index];
        if place.as_ref().is_none_or(|client| client.id != id) {
            *place = Some(Client::new(id, now_ns));
        }
        place.as_mut().expect("it was just put there")
    }

    /// Puts a process under a client, which is made if need be.
    pub(crate) fn join(
        &mut self,
        id: ClientId,
        process: ProcessId,
        stat: &Stat,
        origin: Origin,
        now_ns: u64,
    ) -> Result<(), EngineError> {
        let pid = process.pid;
        if self.process_count() >= self.limit {
            return Err(EngineError::TooManyProcesses {
                pid,
                limit: self.limit,
            });
        }
        let group = Group::of(pid, stat.session).map_err(|_| EngineError::NoSuchProcess(pid))?;
        let group = self.groups.enter(group);
        let joined = Process::new(process, group, origin, self.way_back, &mut self.journal);
        let joined = joined.map_err(|failure| {
            self.groups.leave(group);
            match failure {
                Failure::Gone => EngineError::NoSuchProcess(pid),
                Failure::Refused => EngineError::NotPermitted(pid),
            }
        })?;
        self.captives += u32::from(joined.captive);
        self.owners.insert(pid, id);
        self.changes.push(Change::Joined(id, process));
        let client = self.client_or_new(id, now_ns);
        client.processes.push(joined);
        client.had_processes = true;
        client.unsettled = true;
        Ok(())
    }

    /// Children of `parent` are the client's from now on.
    pub(crate) fn add_foster_parent(
        &mut self,
        id: ClientId,
        parent: ProcessId,
        now_ns: u64,
    ) -> Result<(), EngineError> {
        let opened = StatFile::of_process(parent.pid).and_then(|file| Ok((file.read()?, file)));
        let Ok((stat, stat_file)) = opened else {
            return Err(EngineError::NoSuchProcess(parent.pid));
        };
        if stat.start_time_ticks != parent.start_time_ticks {
            return Err(EngineError::NoSuchProcess(parent.pid));
        }
        self.client_or_new(id, now_ns)
            .foster_parents
            .push(FosterParent {
                id: parent,
                stat_file,
                waited: Waited::since(stat.waited_ns),
            });
        self.foster_parents.insert(parent.pid, id);
        Ok(())
    }

    /// Samples a client and drops those of its processes that are gone.
    /// Returns what it used, and the time since the last sample.
    pub(crate) fn sample(&mut self, id: ClientId, now_ns: u64) -> (u64, u64) {
        let mut gone = std::mem::take(&mut self.gone);
        let Some(client) = self.client_mut(id) else {
            return (0, 0);
        };
        let window_ns = now_ns - client.sampled_ns;
        let used_ns = client.sample(now_ns, &mut gone);
        for process in gone.drain(..) {
            self.strike(id, process);
        }
        self.gone = gone;
        (used_ns, window_ns)
    }

    /// Forgets a process that is gone or as it was.
    fn strike(&mut self, id: ClientId, process: Process) {
        self.owners.remove(&process.id.pid);
        self.groups.leave(process.group);
        self.captives -= u32::from(process.captive);
        self.changes.push(Change::Left(id, process.id));
        process.retire(&mut self.journal);
    }

    /// Undoes everything done to a client, and forgets it.
    pub(crate) fn remove(&mut self, id: ClientId) -> Option<Client> {
        let (client, journal) = self.with_journal(id)?;
        client.treat(Treatment::Normal, journal);
        let mut client = self.clients[id.index() as usize].take()?;
        for process in client.processes.drain(..) {
            self.strike(id, process);
        }
        for foster_parent in &client.foster_parents {
            self.foster_parents.remove(&foster_parent.id.pid);
        }
        self.changes.push(Change::Forgotten(id));
        Some(client)
    }

    /// Undoes everything done to anybody.
    pub(crate) fn treat_all_normally(&mut self) {
        for client in self.clients.iter_mut().flatten() {
            client.treat(Treatment::Normal, &mut self.journal);
        }
    }

    /// Finds out whether a client's processes have changed their groups.
    pub(crate) fn review_groups_of(&mut self, id: ClientId) {
        let Some(Some(client)) = self.clients.get_mut(id.index() as usize) else {
            return;
        };
        for process in &mut client.processes {
            let Ok(stat) = process.look() else { continue };
            process.session = stat.session;
            let Ok(group) = Group::of(process.id.pid, stat.session) else {
                continue;
            };
            if !self.groups.is(process.group, &group) {
                self.groups.leave(process.group);
                process.group = self.groups.enter(group);
            }
        }
    }

    /// Reviews the groups of some clients; control groups change without a
    /// sign.
    pub(crate) fn review_groups(&mut self) {
        let mut reviewed = 0;
        for _ in 0..self.clients.len() {
            let index = self.review_from % self.clients.len();
            self.review_from = index + 1;
            if let Some(client) = &self.clients[index] {
                reviewed += client.processes.len();
                self.review_groups_of(client.id);
            }
            if reviewed >= REVIEWED_AT_ONCE {
                break;
            }
        }
    }
}

/// How many processes the limit on open files allows for.
fn process_limit() -> u32 {
    use rustix::process::{Resource, getrlimit};
    let descriptors = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
    let processes = descriptors.saturating_sub(DESCRIPTORS_KEPT) / DESCRIPTORS_EACH;
    processes.clamp(1, MAX_PROCESSES.into()) as u32
}
