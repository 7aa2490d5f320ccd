//! The threads of one process: which are runnable, their scheduling policies, and the CPUs that
//! they may use.
//!
//! Threads of the engine change them, each under the lock of the process: the decision thread by
//! what its turns demand, and the keepers of slots. The stronger holds: a thread that is raised in its
//! slot gets what a turn demands when the slot ends.

mod rival;
mod service;
mod shared;
mod slot;

use rustix::thread::CpuSet;

use crate::process::{Failure, Treatment};
use crate::process_id::{Handle, ProcessId};
use crate::procfs::{self, Stat};
use crate::reach::Target;
use crate::scheduler::{self, Policy, intersection};
use crate::table::{Journal, RecordId, flag};

use service::Service;
pub(crate) use shared::SharedThreads;
use slot::InSlot;
pub(crate) use slot::{Ascent, Seat};

/// CPUs that a thread may use by itself, and CPUs that the engine bound it to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Binding {
    pub(crate) own: CpuSet,
    pub(crate) ours: CpuSet,
}

/// A thread, and the policy and the CPUs that it has without the engine.
#[derive(Debug)]
struct Thread {
    tid: u32,
    /// Its own policy.
    own: Policy,
    binding: Option<Box<Binding>>,
    /// How slots treat it, once keepers may raise it.
    slot: Option<Box<InSlot>>,
    /// Its record, while it is bound or has a policy of its own that is not the ordinary one. The
    /// first thread always has one, which stands for the process.
    record: Option<RecordId>,
}

/// What newborn threads and processes may have inherited because of the engine. It must not be
/// taken for their own choice.
///
/// The engine notices births before each enforcement and once more after it. Then it forgets what
/// held before, unless the parent may be in the middle of a fork: a child has its policy long
/// before it can be seen, and its parent may lose the CPU in between. So a newborn in
/// `SCHED_IDLE` chose that policy itself if its parent was not demoted lately. If its parent was,
/// the newborn's own choice cannot be told from a heritage, and it gets its parent's own policy.
/// To lose a choice is better than to stay demoted.
#[derive(Clone, Debug)]
pub(crate) struct Heritage {
    /// `SCHED_IDLE`.
    pub(crate) idle: bool,
    /// The policy and the priority of a slot.
    pub(crate) raised: bool,
    /// The parent's own policy, which they would have inherited without the engine.
    pub(crate) own: Policy,
    /// Any one of these bindings.
    pub(crate) bindings: Vec<Binding>,
}

impl Heritage {
    /// Of a process without a managed parent.
    pub(crate) const NONE: Heritage = Heritage {
        idle: false,
        raised: false,
        own: Policy::OTHER,
        bindings: Vec::new(),
    };

    /// Whether nothing of it is due to the engine.
    pub(crate) fn is_none(&self) -> bool {
        !self.idle && !self.raised && self.bindings.is_empty()
    }
}

/// The threads of a process.
#[derive(Debug)]
pub(crate) struct Threads {
    pid: u32,
    /// Complete unless `stale`. The process's first thread is always there and comes first; the
    /// others follow by `tid`.
    list: Vec<Thread>,
    stale: bool,
    /// Index of the runnable thread that the last search found first.
    runnable_hint: usize,
    /// Its fair threads are in `SCHED_IDLE` because of the engine.
    idle: bool,
    /// The same since the past was last forgotten.
    idle_lately: bool,
    /// All bindings of its threads since then.
    bindings_lately: Vec<Binding>,
    /// The engine stopped the process by a signal, except that it runs in its slots.
    pub(crate) stopped: bool,
    /// Keepers may raise its threads.
    is_cast: bool,
    /// The slots that it has now.
    seats: Vec<Seat>,
    /// Some thread was listed since the first of them began.
    has_standing: bool,
    /// Some thread is raised.
    in_slot: bool,
    service: Service,
    /// It gives way to the schedulee of another client's slot.
    by_slot: Treatment,
    /// Bindings in slots, as long as a child may have inherited them.
    slot_bindings: Vec<Binding>,
}

impl Threads {
    /// The threads of a process with this record, as of this first look at it.
    pub(crate) fn new(
        pid: u32,
        record: RecordId,
        stat: &Stat,
        heritage: &Heritage,
        journal: &mut Journal,
    ) -> Self {
        let mut threads = Threads {
            pid,
            list: Vec::new(),
            stale: stat.threads > 1,
            runnable_hint: 0,
            idle: false,
            idle_lately: false,
            bindings_lately: Vec::new(),
            stopped: false,
            is_cast: false,
            seats: Vec::new(),
            has_standing: false,
            in_slot: false,
            service: Service::default(),
            by_slot: Treatment::Normal,
            slot_bindings: Vec::new(),
        };
        threads.list.push(Thread {
            tid: pid,
            own: Policy::OTHER,
            binding: None,
            slot: None,
            record: Some(record),
        });
        threads.inherit(0, Policy(stat.policy), heritage, journal);
        threads
    }

    /// The record of the process.
    pub(crate) fn record(&self) -> &RecordId {
        self.list[0]
            .record
            .as_ref()
            .expect("the first thread's record is always there")
    }

    pub(crate) fn is_idle(&self) -> bool {
        self.idle
    }

    /// Whether there are deeds to undo.
    pub(crate) fn are_touched(&self) -> bool {
        self.idle
            || self.in_slot
            || self.by_slot != Treatment::Normal
            || self.list.iter().any(|thread| thread.binding.is_some())
    }

    /// CPUs that the first thread may use by itself.
    pub(crate) fn own_cpus(&self) -> std::io::Result<CpuSet> {
        let first = &self.list[0];
        match (&first.binding, first.raised()) {
            (Some(binding), _) => Ok(binding.own),
            (None, Some(ascent)) => Ok(ascent.binding.own),
            (None, None) => scheduler::affinity(self.pid),
        }
    }

    /// What their children inherit.
    pub(crate) fn heritage(&self) -> Heritage {
        Heritage {
            idle: self.idle || self.idle_lately,
            raised: !self.slot_bindings.is_empty(),
            own: self.list[0].own,
            bindings: [&self.bindings_lately[..], &self.slot_bindings].concat(),
        }
    }

    /// To be called when all births so far have been noticed: a later child inherits what its
    /// parent has now.
    pub(crate) fn forget_the_past(&mut self) {
        self.idle_lately = self.idle;
        if !self.is_cast {
            self.slot_bindings.clear();
        }
        if !self.bindings_lately.is_empty() {
            self.bindings_lately.clear();
            for index in 0..self.list.len() {
                self.note_binding(index);
            }
        }
    }

    fn note_binding(&mut self, index: usize) {
        if let Some(binding) = &self.list[index].binding
            && !self.bindings_lately.contains(binding)
        {
            self.bindings_lately.push(**binding);
        }
    }

    /// Notes whether a look at the process shows other threads than are listed.
    pub(crate) fn compare(&mut self, stat: &Stat) {
        self.stale |= stat.threads as usize != self.list.len();
    }

    /// Notes that some were born.
    pub(crate) fn expect_more(&mut self) {
        self.stale = true;
    }

    pub(crate) fn is_stale(&self) -> bool {
        self.stale
    }

    /// How many are runnable, counted up to `limit`.
    pub(crate) fn runnable(&mut self, limit: u32) -> u32 {
        let count = self.list.len();
        let mut runnable = 0;
        for step in 0..count {
            let index = (self.runnable_hint + step) % count;
            let thread = procfs::thread_stat(self.pid, self.list[index].tid);
            if thread.is_ok_and(|stat| stat.is_runnable()) {
                if runnable == 0 {
                    self.runnable_hint = index;
                }
                runnable += 1;
                if runnable == limit {
                    break;
                }
            }
        }
        runnable
    }

    /// Lists them anew if the list is stale.
    pub(crate) fn refresh(&mut self, journal: &mut Journal) {
        if !std::mem::take(&mut self.stale) {
            return;
        }
        let mut tids = Vec::new();
        if procfs::for_each_thread(self.pid, |tid| tids.push(tid)).is_err() {
            return;
        }
        tids.sort_unstable();
        let ended = |thread: &mut Thread| tids.binary_search(&thread.tid).is_err();
        for thread in self.list.extract_if(1.., ended) {
            if let Some(record) = thread.record {
                journal.give_back(record);
            }
        }
        let known = self.list.len();
        let heritage = self.heritage();
        for tid in tids {
            let listed = self.list[1..known].binary_search_by_key(&tid, |thread| thread.tid);
            let Ok(policy) = Policy::of(tid) else {
                continue;
            };
            if tid == self.pid || listed.is_ok() {
                continue;
            }
            self.list.push(Thread {
                tid,
                own: Policy::OTHER,
                binding: None,
                slot: None,
                record: None,
            });
            self.inherit(self.list.len() - 1, policy, &heritage, journal);
        }
        self.list[1..].sort_unstable_by_key(|thread| thread.tid);
        if self.is_cast {
            self.prepare(journal);
        }
    }

    /// Tells what a newly listed thread inherited from its own policy and CPUs.
    fn inherit(&mut self, index: usize, now: Policy, heritage: &Heritage, journal: &mut Journal) {
        let inherited = now.is_idle() && heritage.idle;
        let raised = heritage.raised && self.inherits_raise(index, now, heritage, journal);
        let own = if inherited || raised {
            heritage.own
        } else {
            now
        };
        self.set_own(index, own, journal);
        if inherited && !self.idle {
            journal.mark(self.record(), flag::IDLE);
            self.idle = true;
        }
        if heritage.bindings.is_empty() {
            return;
        }
        if let Ok(now) = scheduler::affinity(self.list[index].tid)
            && let Some(binding) = heritage.bindings.iter().find(|b| b.ours == now)
        {
            self.keep_binding(index, Box::new(*binding), journal);
        }
    }

    /// Puts the fair threads in `SCHED_IDLE`.
    pub(crate) fn demote(
        &mut self,
        process: &Handle,
        journal: &mut Journal,
    ) -> Result<(), Failure> {
        journal.mark(self.record(), flag::IDLE);
        let already = std::mem::replace(&mut self.idle, true);
        for index in 0..self.list.len() {
            let Thread { tid, own, .. } = self.list[index];
            if self.list[index].raised().is_some() {
                continue;
            }
            let Ok(now) = Policy::of(tid) else { continue };
            if now.is_idle() && !already && self.by_slot != Treatment::Idle {
                self.set_own(index, now, journal);
            }
            if now.is_idle() || !now.is_fair() {
                continue;
            }
            if now != own {
                self.set_own(index, now, journal);
            }
            change(self.target(process, tid).set_policy(now, now.demoted()))?;
        }
        Ok(())
    }

    /// Gives all threads their own policies back. After a refusal the deed is still to be undone.
    pub(crate) fn promote(
        &mut self,
        process: &Handle,
        journal: &mut Journal,
    ) -> Result<(), Failure> {
        if self.by_slot != Treatment::Idle {
            self.leave_idle(process)?;
            journal.clear(self.record(), flag::IDLE);
        }
        self.idle = false;
        self.idle_lately = true;
        Ok(())
    }

    fn leave_idle(&self, process: &Handle) -> Result<(), Failure> {
        let mut result = Ok(());
        for Thread { tid, own, .. } in &self.list {
            if let Ok(now) = Policy::of(*tid)
                && now.is_idle()
                && !own.is_idle()
            {
                result = result.and(change(self.target(process, *tid).set_policy(now, *own)));
            }
        }
        result
    }

    fn target<'a>(&self, process: &'a Handle, tid: u32) -> Target<'a> {
        Target {
            process,
            pid: self.pid,
            tid,
        }
    }

    /// Whether a look at the first thread shows that another process has promoted it.
    pub(crate) fn was_promoted_by_others(&self, stat: &Stat) -> bool {
        let own = self.list[0].own;
        self.idle
            && !self.in_slot
            && own.is_fair()
            && !own.is_idle()
            && !Policy(stat.policy).is_idle()
    }

    /// Binds all threads to these CPUs, as far as they may use them.
    pub(crate) fn bind(
        &mut self,
        process: &Handle,
        cpus: &CpuSet,
        journal: &mut Journal,
    ) -> Result<(), Failure> {
        for index in 0..self.list.len() {
            let thread = &self.list[index];
            let raised = thread.raised().is_some();
            let Ok(now) = thread.cpus_outside_slots() else {
                continue;
            };
            let own = match &thread.binding {
                Some(binding) if binding.ours == now => binding.own,
                // It is not bound, or has chosen other CPUs since.
                _ => now,
            };
            let common = intersection(&own, cpus);
            // A thread that may use none of them must leave the CPUs that it was bound to before:
            // another client has won them.
            let ours = if common.count() == 0 { own } else { common };
            if ours == now {
                continue;
            }
            let tid = thread.tid;
            if self.keep_binding(index, Box::new(Binding { own, ours }), journal) && !raised {
                change(self.target(process, tid).set_affinity(&now, &ours))?;
            }
        }
        Ok(())
    }

    /// Lets all threads use their own CPUs again. After a refusal the deed is still to be undone.
    pub(crate) fn unbind(
        &mut self,
        process: &Handle,
        journal: &mut Journal,
    ) -> Result<(), Failure> {
        let mut result = Ok(());
        for index in 0..self.list.len() {
            let thread = &self.list[index];
            let Some(binding) = &thread.binding else {
                continue;
            };
            // A thread that has chosen other CPUs since keeps them.
            if thread.raised().is_none()
                && scheduler::affinity(thread.tid).is_ok_and(|now| now == binding.ours)
            {
                let target = self.target(process, thread.tid);
                if let Err(failure) = change(target.set_affinity(&binding.ours, &binding.own)) {
                    result = Err(failure);
                    continue;
                }
            }
            self.list[index].binding = None;
            if let Some(record) = &self.list[index].record {
                journal.clear(record, flag::BOUND);
            }
        }
        result
    }

    /// Notes a thread's binding, in the table too. Returns false if the table is full; the thread
    /// must not be bound then.
    fn keep_binding(&mut self, index: usize, binding: Box<Binding>, journal: &mut Journal) -> bool {
        let Some(record) = self.record_of(index, journal) else {
            return false;
        };
        journal.keep_binding(record, &binding);
        self.list[index].binding = Some(binding);
        self.note_binding(index);
        true
    }

    /// Notes a thread's own policy, in the table too if it is not the ordinary one.
    fn set_own(&mut self, index: usize, own: Policy, journal: &mut Journal) {
        if self.list[index].own != own {
            self.list[index].own = own;
            if let Some(record) = self.record_of(index, journal) {
                journal.keep_policy(record, own);
            }
        }
    }

    /// A thread's record; `None` if the table is full.
    fn record_of(&mut self, index: usize, journal: &mut Journal) -> Option<&RecordId> {
        let pid = self.pid;
        let thread = &mut self.list[index];
        if thread.record.is_none() {
            let stat = procfs::thread_stat(pid, thread.tid).ok()?;
            thread.record = journal.take(ProcessId::from_stat(thread.tid, &stat), pid);
        }
        thread.record.as_ref()
    }

    /// Gives their records back. The process must be gone, or all deeds undone.
    pub(crate) fn retire(&mut self, journal: &mut Journal) {
        for record in self.list.drain(..).filter_map(|thread| thread.record) {
            journal.give_back(record);
        }
    }
}

/// The result of a change; a thread that is gone needs none.
fn change(result: std::io::Result<()>) -> Result<(), Failure> {
    match result.map_err(Failure::from) {
        Err(Failure::Gone) => Ok(()),
        result => result,
    }
}
