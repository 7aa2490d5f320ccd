//! Which threads play the parts of the timetable: found by the decision thread, raised by keepers.
//!
//! Only what this engine manages is ever raised, told from later processes of the same number by the
//! start time, and only for a claim of its own user or of root: the gift of another user is not.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use prorata_bulletin::{Part, Playbill};
use prorata_core::ids::ClientId;
use prorata_core::slots::claim::Schedulee;

use super::{Play, SlotMechanism};
use crate::client::Client;
use crate::decision::DecisionThread;
use crate::process::Process;
use crate::process_id::{Handle, ProcessId};
use crate::procfs::{self, SchedStatFile};
use crate::scheduler;
use crate::threads::SharedThreads;
use crate::tree::Tree;

/// Most processes of all parts together. Those beyond are not raised.
const MOST_MEMBERS: usize = 4096;
/// Processes of one schedulee: raising takes microseconds each, and others' slots wait.
const MOST_OF_PART: usize = 64;

/// Most parts whose time without a CPU is measured, which takes a descriptor each.
const MOST_MEASURED: usize = 64;

/// Most processes that give way to the schedulees of others.
const MOST_RIVALS: usize = 256;

/// A process that plays a part, or only one thread of it.
#[derive(Clone, Debug)]
pub(crate) struct Member {
    pub(crate) client: ClientId,
    pub(crate) id: ProcessId,
    pub(crate) threads: SharedThreads,
    pub(crate) handle: Arc<Handle>,
    pub(crate) only: Option<u32>,
}

impl Member {
    /// Whether both are the same threads.
    pub(crate) fn is_seated_as(&self, other: &Member) -> bool {
        self.threads.is(&other.threads) && self.only == other.only
    }

    /// Whether keepers may treat it. After a stall of the engine they may not.
    fn is_cast(&self) -> bool {
        self.threads.lock().is_cast()
    }

    /// Whether its first thread, or its only one, waits for a CPU. Cost: 5 us.
    pub(crate) fn is_runnable(&self) -> bool {
        let tid = self.only.unwrap_or(self.id.pid);
        procfs::thread_stat(self.id.pid, tid).is_ok_and(|stat| stat.is_runnable())
    }
}

/// The processes of a part. None: it stays with the fallback.
#[derive(Debug)]
pub(crate) struct Role {
    pub(crate) part: Part,
    pub(crate) members: Vec<Member>,
    /// Of its only thread.
    only_thread: Option<SchedStatFile>,
}

impl Role {
    fn new(part: Part, members: Vec<Member>, measured: &mut usize) -> Self {
        let only_thread = match members[..] {
            [ref member] => {
                let is_alone = procfs::stat(member.id.pid).is_ok_and(|stat| stat.threads == 1);
                member.only.or(is_alone.then_some(member.id.pid))
            }
            _ => None,
        };
        let only_thread = only_thread
            .filter(|_| *measured < MOST_MEASURED)
            .map(|tid| SchedStatFile::of(members[0].id.pid, tid));
        *measured += usize::from(only_thread.is_some());
        Self {
            part,
            members,
            only_thread,
        }
    }

    /// The CPU time that its processes have used in slots. Cost: 0.2 us for each that is raised.
    pub(crate) fn service_ns(&self) -> u64 {
        let services = self.members.iter();
        services
            .map(|member| member.threads.lock().service_in_slots_ns())
            .sum()
    }

    /// How long its thread has waited for CPUs in its life, if it has one thread. Cost: 1 us.
    pub(crate) fn waited_ns(&self) -> Option<u64> {
        let times = self.only_thread.as_ref()?.read()?;
        Some(times.waited_ns)
    }
}

/// All roles.
#[derive(Default, Debug)]
pub(crate) struct Cast {
    playbill: Arc<Playbill>,
    /// In the order of its parts.
    roles: Vec<Arc<Role>>,
    /// Processes that give way where nothing is raised.
    pub(crate) rivals: Vec<Member>,
}

impl Cast {
    /// The role of a schedulee in a cell.
    pub(crate) fn role(&self, index: usize, schedulee: Schedulee) -> Option<&Arc<Role>> {
        self.roles.get(self.playbill.place(index, schedulee)?)
    }
}

/// The present cast, as the decision thread tells keepers. The lock is held for a move only.
#[derive(Default, Debug)]
pub(crate) struct Casting {
    version: AtomicU64,
    cast: Mutex<Arc<Cast>>,
}

impl Casting {
    fn put(&self, cast: Arc<Cast>) {
        let before = std::mem::replace(&mut *self.lock(), cast);
        self.version.fetch_add(1, Ordering::Release);
        drop(before);
    }

    /// The cast, if it is newer than this version, which becomes that of the cast.
    pub(crate) fn newer_than(&self, version: &mut u64) -> Option<Arc<Cast>> {
        let now = self.version.load(Ordering::Acquire);
        (std::mem::replace(version, now) != now).then(|| self.lock().clone())
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Arc<Cast>> {
        self.cast.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The decision thread's side.
#[derive(Default, Debug)]
pub(crate) struct Director {
    playbill: Arc<Playbill>,
    /// None while no timetable is enforced.
    play: Option<Arc<Play>>,
    /// As of the last time.
    cast: Arc<Cast>,
}

impl DecisionThread {
    /// Casts for the keepers of this play from now on, or for none.
    pub(crate) fn direct(&mut self, play: Option<Arc<Play>>) {
        if let Some(play) = &play {
            self.competition.open_slots(play.period_ns);
        }
        self.director.play = play;
        self.director.playbill = Arc::default();
        self.tree.recast_due = true;
        self.recast();
    }

    /// Casts the parts of this playbill from now on, if it is of the present play.
    pub(crate) fn cast_parts(&mut self, playbill: Arc<Playbill>, play: &Arc<Play>) {
        let present = self.director.play.as_ref();
        if present.is_some_and(|present| Arc::ptr_eq(present, play)) {
            self.director.playbill = playbill;
            self.tree.recast_due = true;
        }
    }

    /// Finds the processes of all parts, if any may have changed.
    pub(crate) fn recast(&mut self) {
        if !std::mem::take(&mut self.tree.recast_due) {
            return;
        }
        let mut left = MOST_MEMBERS;
        let play = self.director.play.as_ref();
        let raises = play.is_some_and(|play| play.mechanism == SlotMechanism::Raise);
        let playbill = self.director.playbill.clone();
        let parts = playbill.parts.iter().map(|&part| {
            let members = members(&self.tree, part, raises, left.min(MOST_OF_PART));
            left -= members.len();
            (part, members)
        });
        let parts: Vec<(Part, Vec<Member>)> = parts.collect();
        let rivals = match &self.director.play {
            Some(play) if play.mechanism != SlotMechanism::Raise && left < MOST_MEMBERS => {
                rivals(&self.tree, play.mechanism)
            }
            _ => Vec::new(),
        };
        let before = self.director.cast.clone();
        let cast = Cast::after(&before, playbill, parts, rivals);
        if cast.is_as(&before) {
            return;
        }
        let cast = Arc::new(cast);
        self.enforcement.keeps_slots = left < MOST_MEMBERS;
        self.director.cast = cast.clone();
        let raised = match raises {
            true => cast.clients(),
            false => Vec::new(),
        };
        for client in self.tree.clients.iter_quietly() {
            client.has_slots = raised.binary_search(&client.id).is_ok();
        }
        for member in before.members() {
            if !cast.names(member) {
                self.tree.uncast(member.id);
            }
        }
        for member in cast.members() {
            let mut threads = member.threads.lock();
            threads.refresh(&mut self.tree.journal);
            threads.cast(member.only, &mut self.tree.journal);
        }
        if let Some(play) = &self.director.play {
            play.casting.put(cast);
        }
    }
}

impl Cast {
    /// Roles that are as before stay, so that their slots go on.
    fn after(
        before: &Cast,
        playbill: Arc<Playbill>,
        parts: Vec<(Part, Vec<Member>)>,
        rivals: Vec<Member>,
    ) -> Cast {
        let mut measured = 0;
        let role = |(part, members): (Part, Vec<Member>)| {
            let place = before.playbill.parts.binary_search(&part).ok();
            let role = place.and_then(|place| before.roles.get(place));
            let is_as_before = |role: &&Arc<Role>| {
                are_same(&role.members, &members) && role.members.iter().all(Member::is_cast)
            };
            match role.filter(is_as_before) {
                Some(role) => {
                    measured += usize::from(role.only_thread.is_some());
                    role.clone()
                }
                None => Arc::new(Role::new(part, members, &mut measured)),
            }
        };
        Cast {
            playbill,
            roles: parts.into_iter().map(role).collect(),
            rivals,
        }
    }

    fn is_as(&self, before: &Cast) -> bool {
        let mut roles = self.roles.iter().zip(&before.roles);
        Arc::ptr_eq(&self.playbill, &before.playbill)
            && self.roles.len() == before.roles.len()
            && roles.all(|(now, before)| Arc::ptr_eq(now, before))
            && are_same(&self.rivals, &before.rivals)
            && self.rivals.iter().all(Member::is_cast)
    }

    /// The clients of all roles, in order.
    fn clients(&self) -> Vec<ClientId> {
        let members = self.roles.iter().flat_map(|role| &role.members);
        let mut clients: Vec<ClientId> = members.map(|member| member.client).collect();
        clients.sort_unstable();
        clients.dedup();
        clients
    }

    /// All processes that slots concern.
    fn members(&self) -> impl Iterator<Item = &Member> {
        let roles = self.roles.iter().flat_map(|role| &role.members);
        roles.chain(&self.rivals)
    }

    fn names(&self, member: &Member) -> bool {
        self.members()
            .any(|other| other.threads.is(&member.threads))
    }
}

fn are_same(some: &[Member], others: &[Member]) -> bool {
    let mut both = some.iter().zip(others);
    some.len() == others.len() && both.all(|(one, other)| one.is_seated_as(other))
}

impl Director {
    /// Has the keepers end, because the decision thread does.
    pub(crate) fn end(&self) {
        if let Some(play) = &self.play {
            play.end();
        }
    }
}

impl Tree {
    fn uncast(&mut self, id: ProcessId) {
        let Some((client, journal)) = self
            .owners
            .get(&id.pid)
            .copied()
            .and_then(|owner| self.with_journal(owner))
        else {
            return;
        };
        let mut processes = client.processes.iter_mut();
        if let Some(process) = processes.find(|process| process.id == id) {
            process.uncast(journal.table());
        }
    }
}

/// The processes of a part that may be raised for it, `most` at most.
fn members(tree: &Tree, part: Part, raises: bool, most: usize) -> Vec<Member> {
    let (pid, only) = match part.schedulee {
        Schedulee::Client(_) => (None, None),
        Schedulee::Process { pid, .. } => (Some(pid), None),
        Schedulee::Thread { tid, .. } => (procfs::process_of_thread(tid).ok(), Some(tid)),
    };
    let client = match part.schedulee {
        Schedulee::Client(id) => Some(id),
        _ => pid.and_then(|pid| tree.owners.get(&pid).copied()),
    };
    let client = client.and_then(|id| tree.client(id));
    let has_slots = |client: &&Client| !client.suspended && !client.is_paused();
    let Some(client) = client.filter(has_slots) else {
        return Vec::new();
    };
    let is_meant = |process: &&Process| match part.schedulee {
        Schedulee::Client(_) => true,
        Schedulee::Process { started, .. } => {
            Some(process.id.pid) == pid && process.id.start_time_ticks == started
        }
        // A client may have thousands of other processes: only the thread's own is looked at.
        Schedulee::Thread { tid, started } => {
            Some(process.id.pid) == pid
                && procfs::thread_stat(process.id.pid, tid)
                    .is_ok_and(|stat| stat.start_time_ticks == started)
        }
    };
    let may_be_raised = |process: &&Process| {
        let pid = process.id.pid;
        // The kernel would end it.
        let is_limited = raises && scheduler::is_real_time_limited(pid);
        let is_gift = part.user != 0 && procfs::real_uid(pid) != Some(part.user);
        !(process.out_of_reach || is_limited || is_gift)
    };
    let processes = client.processes.iter();
    let processes = processes.filter(is_meant).filter(may_be_raised);
    let processes = processes.take(most);
    processes
        .map(|process| member(client, process, only))
        .collect()
}

/// The processes that give way to schedulees of other clients.
fn rivals(tree: &Tree, mechanism: SlotMechanism) -> Vec<Member> {
    let gives_way = |client: &&Client| {
        // A client that gives way is never stopped.
        !(client.suspended || client.gives_way && mechanism == SlotMechanism::Stop)
    };
    let returns = |process: &&Process| {
        !(process.out_of_reach || process.captive && mechanism == SlotMechanism::Lower)
    };
    let clients = tree.clients().filter(gives_way);
    let rivals = clients.flat_map(|client| {
        let processes = client.processes.iter().filter(returns);
        processes.map(move |process| member(client, process, None))
    });
    rivals.take(MOST_RIVALS).collect()
}

fn member(client: &Client, process: &Process, only: Option<u32>) -> Member {
    Member {
        client: client.id,
        id: process.id,
        threads: process.threads.clone(),
        handle: process.handle.clone(),
        only,
    }
}
