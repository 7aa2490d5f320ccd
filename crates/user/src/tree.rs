//! All clients and their processes.

use std::collections::{BTreeMap, HashMap};
use std::path::PathBuf;

use prorata_core::ids::ClientId;
use rustix::thread::CpuSet;

use crate::births::Births;
use crate::client::Client;
use crate::clients::Clients;
use crate::control_groups::Lodging;
use crate::descriptors::Allowance;
use crate::directory::Change;
use crate::error::EngineError;
use crate::group::{Group, Groups};
use crate::membership::Unseen;
use crate::outsiders::Outsider;
use crate::process::{Failure, Origin, Process, Treatment};
use crate::process_id::ProcessId;
use crate::procfs::{self, Stat};
use crate::reaped::Charging;
use crate::release::Departed;
use crate::review::Review;
use crate::scheduler::Return;
use crate::slumber::Sampling;
use crate::table::Journal;

/// All clients, and what is needed to find out to which client a process belongs.
#[derive(Debug)]
pub(crate) struct Tree {
    pub(crate) clients: Clients,
    /// Clients by pid, of every managed process.
    pub(crate) owners: HashMap<u32, ClientId>,
    /// Clients by pid of each foster parent. One that ended stays until the next survey.
    pub(crate) foster_parents: BTreeMap<u32, Vec<ClientId>>,
    /// The pid where the next review of foster parents begins.
    pub(crate) foster_parents_from: u32,
    /// Released processes whose deeds could not be undone yet. Their records stay until they
    /// could, or until the processes have ended.
    pub(crate) unreleased: Vec<Process>,
    /// Released processes that may be in the middle of a fork. The child inherits deeds that were
    /// undone to its parent.
    pub(crate) departed: Vec<Departed>,
    /// Ended processes of removed clients. Processes of other clients have still to wait for them.
    pub(crate) zombies: Vec<(ClientId, Process)>,
    /// Processes outside of clients whose parents may be clients'.
    pub(crate) outsiders: BTreeMap<u32, Outsider>,
    /// Scheduling groups. A process in its client's control group counts for the group that it came
    /// from: whether `SCHED_IDLE` would work does not depend on what the engine makes.
    pub(crate) groups: Groups,
    /// Where the next review begins.
    pub(crate) review: Review,
    pub(crate) births: Births,
    /// Processes born since the last survey, without a known parent.
    pub(crate) strangers: Vec<u32>,
    /// Those that the last survey did not recognise; the next one looks once more.
    pub(crate) unrecognised: Vec<u32>,
    /// Numbers given out since the last survey without a process that could be seen.
    pub(crate) unseen: Vec<Unseen>,
    /// Births went unnoticed since the last walk.
    pub(crate) walk_due: bool,
    /// How many processes could not leave `SCHED_IDLE` again.
    captives: u32,
    pub(crate) way_back: Return,
    pub(crate) allowance: Allowance,
    /// Clients that have ended but whose last CPU time is not charged yet.
    pub(crate) farewells: Vec<Client>,
    /// Clients have gone, and their control groups may be left.
    pub(crate) any_left: bool,
    /// Whose processes play which parts of the timetable may have changed.
    pub(crate) recast_due: bool,
    /// Changes that are not in the directory yet.
    pub(crate) changes: Vec<Change>,
    pub(crate) journal: Journal,
    /// The guardian's pid.
    pub(crate) guardian: Option<u32>,
    /// Work space of [`Self::sample`], kept to spare the allocation.
    gone: Vec<Process>,
    /// The socket of this engine's daemon.
    pub(crate) socket: PathBuf,
    /// CPUs that are shared out.
    cpus: CpuSet,
}

impl Tree {
    pub(crate) fn new(
        journal: Journal,
        way_back: Return,
        socket: PathBuf,
        cpus: CpuSet,
    ) -> std::io::Result<Self> {
        Ok(Self {
            clients: Clients::default(),
            owners: HashMap::new(),
            foster_parents: BTreeMap::new(),
            foster_parents_from: 0,
            unreleased: Vec::new(),
            departed: Vec::new(),
            zombies: Vec::new(),
            outsiders: BTreeMap::new(),
            groups: Groups::default(),
            review: Review::default(),
            births: Births::watch()?,
            strangers: Vec::new(),
            unrecognised: Vec::new(),
            unseen: Vec::new(),
            walk_due: false,
            captives: 0,
            way_back,
            allowance: Allowance::of_this_process(),
            farewells: Vec::new(),
            any_left: false,
            recast_due: false,
            changes: Vec::new(),
            journal,
            guardian: None,
            gone: Vec::new(),
            socket,
            cpus,
        })
    }

    /// Whether no client may consist of this process.
    pub(crate) fn is_indispensable(&self, pid: u32) -> bool {
        pid == 1 || pid == std::process::id() || self.guardian == Some(pid)
    }

    /// CPUs that are shared out.
    pub(crate) fn cpus(&self) -> &CpuSet {
        &self.cpus
    }

    pub(crate) fn cpu_count(&self) -> u32 {
        self.cpus.count()
    }

    /// CPU time that the dispatcher has not been told of.
    pub(crate) fn uncharged_ns(&self) -> u64 {
        let all = self.lively().chain(&self.farewells);
        all.map(|client| client.uncharged_ns).sum()
    }

    /// Whether clients could use all CPUs since the dispatcher was told of them.
    pub(crate) fn uses_all_cpus(&self) -> bool {
        let may_run = self.lively().filter(|client| !client.is_paused());
        let threads: u32 = may_run.map(|client| client.runnable_told).sum();
        threads >= self.cpu_count()
    }

    pub(crate) fn clients(&self) -> impl Iterator<Item = &Client> {
        self.clients.iter()
    }

    /// The clients that the next decision may concern.
    pub(crate) fn lively(&self) -> impl Iterator<Item = &Client> {
        self.clients.lively()
    }

    pub(crate) fn lively_mut(&mut self) -> impl Iterator<Item = &mut Client> {
        self.clients.lively_mut()
    }

    pub(crate) fn client(&self, id: ClientId) -> Option<&Client> {
        self.clients.get(id)
    }

    pub(crate) fn client_mut(&mut self, id: ClientId) -> Option<&mut Client> {
        self.clients.get_mut(id)
    }

    /// A client and the journal to treat it with.
    pub(crate) fn with_journal(&mut self, id: ClientId) -> Option<(&mut Client, &mut Journal)> {
        let client = self.clients.get_mut(id)?;
        Some((client, &mut self.journal))
    }

    /// The lively clients and the journal to treat them with.
    pub(crate) fn lively_with_journal(
        &mut self,
    ) -> (impl Iterator<Item = &mut Client>, &mut Journal) {
        (self.clients.lively_mut(), &mut self.journal)
    }

    /// Notes for the directory what clients do now.
    pub(crate) fn note_activities(&mut self) {
        for client in self.clients.lively_mut() {
            let activity = client.activity();
            if client.activity_told != Some(activity) {
                client.activity_told = Some(activity);
                self.changes.push(Change::Activity(client.id, activity));
            }
        }
    }

    /// Forgets what clients used since the last decision, after a long stall: charging it would
    /// keep the clients that ran meanwhile from running for many times longer.
    pub(crate) fn forgive(&mut self) {
        for client in self.clients.iter_quietly() {
            client.uncharged_ns = 0;
            client.uncharged_in_slots_ns = 0;
            client.advance_ns = 0;
        }
    }

    /// Undoes all deeds to a client and takes it out of the competition. Returns whether any of its
    /// processes was stopped by a signal.
    pub(crate) fn suspend(&mut self, id: ClientId, now_ns: u64) -> bool {
        self.sample(id, Sampling::All, now_ns);
        let Some((client, journal)) = self.with_journal(id) else {
            return false;
        };
        let was_stopped = client.is_stopped_by_signal();
        client.treat(Treatment::Normal, journal);
        client.suspended = true;
        client.runnable = 0;
        for process in &mut client.processes {
            process.uncast(journal.table());
        }
        self.recast_due = true;
        was_stopped
    }

    /// Lets a client compete again. All that it used until now belongs to the suspension.
    pub(crate) fn resume(&mut self, id: ClientId, now_ns: u64) {
        self.sample(id, Sampling::All, now_ns);
        self.look_at_known(id, now_ns, Charging::Now);
        if let Some(client) = self.client_mut(id) {
            client.suspended = false;
            client.looked_ns = 0;
            self.recast_due = true;
        }
    }

    pub(crate) fn process_count(&self) -> u32 {
        self.owners.len() as u32
    }

    /// Whether files of one more process are kept open.
    pub(crate) fn keeps_files(&self) -> bool {
        self.process_count() < self.allowance.kept
    }

    /// Whether all processes can leave `SCHED_IDLE` again, and are in one scheduling group.
    pub(crate) fn idle_works(&self) -> bool {
        self.captives == 0 && self.groups.are_one()
    }

    /// Whether that still holds with a process of this group.
    pub(crate) fn idle_would_work(&self, group: &Group) -> bool {
        self.captives == 0 && self.groups.are(group)
    }

    /// The same once processes that no caller named have made way.
    pub(crate) fn idle_would_work_for_named(&self, group: &Group) -> bool {
        let mut named = self.named_groups();
        self.captives == 0 && named.all(|index| self.groups.is(index, group))
    }

    pub(crate) fn client_or_new(&mut self, id: ClientId, now_ns: u64) -> &mut Client {
        self.clients.get_or_insert(id, || Client::new(id, now_ns))
    }

    /// Adds a process to a client, which is made if need be.
    pub(crate) fn join(
        &mut self,
        id: ClientId,
        pid: u32,
        stat: &Stat,
        origin: Origin,
        now_ns: u64,
    ) -> Result<(), EngineError> {
        let process = ProcessId::from_stat(pid, stat);
        let limit = self.allowance.processes;
        if self.process_count() >= limit {
            return Err(match self.allowance.is_short() {
                true => EngineError::TooFewFiles { pid, limit },
                false => EngineError::TooManyProcesses { pid, limit },
            });
        }
        if self.client(id).is_some_and(|client| client.gives_way) {
            self.check_room_for_stray(id, pid)?;
        }
        let gone = || EngineError::NoSuchProcess(pid);
        let user = procfs::real_uid(pid).ok_or_else(gone)?;
        let is_named = matches!(origin, Origin::Named);
        let is_foreign = !is_named && !self.client(id).is_none_or(|c| c.users.may_include(user));
        if is_foreign || self.unreleased.iter().any(|p| p.id == process) {
            return Err(EngineError::NotPermitted(pid));
        }
        let client = self.client(id);
        let birthplace = client.and_then(|client| client.birthplace_of(pid, stat.parent));
        let (group, lodging) = match birthplace {
            Some((group, lodging)) => (self.groups.enter_known(group), lodging),
            None => {
                let group = Group::of(pid, stat.session).map_err(|_| gone())?;
                (self.groups.enter(group), Lodging::Elsewhere)
            }
        };
        let ways = (self.way_back, self.keeps_files());
        let joined = Process::new(process, group, origin, ways, &mut self.journal);
        let mut joined = joined.map_err(|failure| {
            self.groups.leave(group);
            match failure {
                Failure::Gone => gone(),
                Failure::Refused => EngineError::NotPermitted(pid),
            }
        })?;
        joined.lodging = lodging;
        joined.adopts = self.foster_parents.contains_key(&pid);
        self.captives += u32::from(joined.captive);
        let client = self.client_or_new(id, now_ns);
        if is_named {
            client.users.add(user);
        } else {
            client.users.add_first(user);
        }
        self.receive(id, joined, now_ns);
        Ok(())
    }

    /// Makes a process part of a client.
    pub(crate) fn receive(&mut self, id: ClientId, process: Process, now_ns: u64) {
        self.outsiders.remove(&process.id.pid);
        self.owners.insert(process.id.pid, id);
        self.changes.push(Change::Joined(id, process.id));
        let cpus = self.cpus;
        let client = self.client_or_new(id, now_ns);
        client.find_usable_with(&process, &cpus);
        client.add_process(process);
        client.had_processes = true;
        client.unsettled = true;
        self.recast_due = true;
    }

    /// Samples a client and drops its processes that are gone. The client becomes lively if it ran.
    pub(crate) fn sample(&mut self, id: ClientId, sampling: Sampling, now_ns: u64) {
        if self.client(id).is_none() {
            return;
        }
        let index = id.index() as usize;
        let mut gone = std::mem::take(&mut self.gone);
        if let Some(client) = self.clients.at_quietly(index) {
            client.sample(sampling, now_ns, &mut gone);
            if client.has_progressed() || !gone.is_empty() {
                self.clients.wake(index);
            }
        }
        for process in gone.drain(..) {
            self.tell_parent_elsewhere(id, &process);
            self.strike(id, &process);
            if process.adopts {
                self.dismiss_ended(process.id.pid);
            }
            process.retire(&mut self.journal);
        }
        self.gone = gone;
    }

    /// Finds out which ended processes were waited for.
    pub(crate) fn review_zombies(&mut self) {
        for (id, mut process) in std::mem::take(&mut self.zombies) {
            process.sample();
            if process.gone {
                self.tell_parent_elsewhere(id, &process);
            }
            if process.gone || !self.owners.contains_key(&process.parent) {
                process.retire(&mut self.journal);
            } else {
                self.zombies.push((id, process));
            }
        }
    }

    /// Tells the parent of a process that is gone, if that is another client's: it must not be
    /// charged for time that this client was charged for.
    fn tell_parent_elsewhere(&mut self, id: ClientId, child: &Process) {
        let Some(&owner) = self.owners.get(&child.parent) else {
            return;
        };
        let parent = self.client_mut(owner).filter(|_| owner != id);
        let mut processes = parent.into_iter().flat_map(|c| &mut c.processes);
        if let Some(parent) = processes.find(|p| p.id.pid == child.parent) {
            parent.waited.child_gone(child.life_ns());
        }
    }

    /// Notes that a process is no longer the client's.
    pub(crate) fn strike(&mut self, id: ClientId, process: &Process) {
        self.owners.remove(&process.id.pid);
        self.groups.leave(process.group);
        self.captives -= u32::from(process.captive);
        self.changes.push(Change::Left(id, process.id));
        self.recast_due = true;
    }
}
