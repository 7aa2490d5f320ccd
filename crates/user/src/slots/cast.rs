//! Which threads play the parts of the timetable: found by the decision thread, raised by the keeper.
//!
//! Only what this engine manages is ever raised, told from later processes of the same number by the
//! start time, and only for a claim of its own user or of root: the gift of another user is not.

use std::sync::{Arc, Mutex, PoisonError};

use prorata_bulletin::Part;
use prorata_core::ids::ClientId;
use prorata_core::slots::claim::Schedulee;

use super::{Play, SlotMechanism};
use crate::client::Client;
use crate::decision::DecisionThread;
use crate::process::Process;
use crate::process_id::{Handle, ProcessId};
use crate::procfs::{self, SchedStat, SchedStatFile};
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
        // A thread has no other clock.
        let is_thread = members.iter().any(|member| member.only.is_some());
        let only_thread = only_thread
            .filter(|_| is_thread || *measured < MOST_MEASURED)
            .map(|tid| SchedStatFile::of(members[0].id.pid, tid));
        *measured += usize::from(only_thread.is_some());
        Self {
            part,
            members,
            only_thread,
        }
    }

    /// The CPU time that the role has used. Cost: 0.2 us for each process, or 1 us for a thread.
    pub(crate) fn clock_ns(&self) -> u64 {
        match &self.members[..] {
            [Member { only: Some(_), .. }] => self.times().map_or(0, |times| times.ran_ns),
            processes => {
                let clocks = processes.iter().map(|member| member.id.pid);
                clocks.filter_map(scheduler::cpu_time_ns).sum()
            }
        }
    }

    /// How long its thread has waited for CPUs in its life, if it has one thread. Cost: 1 us.
    pub(crate) fn waited_ns(&self) -> Option<u64> {
        self.times().map(|times| times.waited_ns)
    }

    fn times(&self) -> Option<SchedStat> {
        self.only_thread.as_ref()?.read()
    }
}

/// All roles, in the order of their parts.
#[derive(Clone, Default, Debug)]
pub(crate) struct Cast {
    roles: Vec<Arc<Role>>,
    /// Processes that give way where nothing is raised.
    pub(crate) rivals: Vec<Member>,
}

impl Cast {
    pub(crate) fn role(&self, part: Part) -> Option<&Arc<Role>> {
        let place = self.roles.binary_search_by_key(&part, |role| role.part);
        Some(&self.roles[place.ok()?])
    }
}

/// What decision thread and keeper tell each other. The lock is held for a move only.
#[derive(Default, Debug)]
pub(crate) struct Casting {
    cast: Mutex<Option<Cast>>,
}

impl Casting {
    fn put(&self, cast: Cast) {
        let before = self.lock().replace(cast);
        drop(before);
    }

    /// The cast since this was asked last, if there is a new one.
    pub(crate) fn take(&self) -> Option<Cast> {
        self.lock().take()
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Option<Cast>> {
        self.cast.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The decision thread's side.
#[derive(Default, Debug)]
pub(crate) struct Director {
    parts: Vec<Part>,
    /// None while no timetable is enforced.
    play: Option<Arc<Play>>,
    /// As of the last time.
    cast: Cast,
}

impl DecisionThread {
    /// Casts for the keeper of this play from now on, or for none.
    pub(crate) fn direct(&mut self, play: Option<Arc<Play>>) {
        if let Some(play) = &play {
            self.competition.open_slots(play.period_ns);
        }
        self.director.play = play;
        self.director.parts.clear();
        self.tree.recast_due = true;
        self.recast();
    }

    /// Casts these parts from now on, if they are those of the present play.
    pub(crate) fn cast_parts(&mut self, parts: Vec<Part>, play: &Arc<Play>) {
        let present = self.director.play.as_ref();
        if present.is_some_and(|present| Arc::ptr_eq(present, play)) {
            self.director.parts = parts;
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
        let parts = self.director.parts.iter().map(|&part| {
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
        let before = &self.director.cast;
        if before.has_parts(&parts) && are_same(&before.rivals, &rivals) && before.is_whole() {
            return;
        }
        self.enforcement.keeps_slots = left < MOST_MEMBERS;
        let mut measured = 0;
        let roles = parts.into_iter();
        let roles = roles.map(|(part, members)| Arc::new(Role::new(part, members, &mut measured)));
        let roles = roles.collect();
        let before = std::mem::replace(&mut self.director.cast, Cast { roles, rivals });
        for member in before.members() {
            if !self.director.cast.names(member) {
                self.tree.uncast(member.id);
            }
        }
        for member in self.director.cast.members() {
            let mut threads = member.threads.lock();
            threads.refresh(&mut self.tree.journal);
            threads.cast(member.only, &mut self.tree.journal);
        }
        if let Some(play) = &self.director.play {
            play.casting.put(self.director.cast.clone());
        }
    }
}

impl Cast {
    fn has_parts(&self, parts: &[(Part, Vec<Member>)]) -> bool {
        let same = |(role, (part, members)): (&Arc<Role>, &(Part, Vec<Member>))| {
            role.part == *part && are_same(&role.members, members)
        };
        self.roles.len() == parts.len() && self.roles.iter().zip(parts).all(same)
    }

    /// Whether the keeper may treat all its members. After a stall of the engine it may not.
    fn is_whole(&self) -> bool {
        self.members().all(|member| member.threads.lock().is_cast())
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
    some.len() == others.len() && both.all(|(one, other)| one.threads.is(&other.threads))
}

impl Director {
    /// Has the keeper end, because the decision thread does.
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
