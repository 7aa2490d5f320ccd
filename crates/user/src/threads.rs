//! The threads of one process: which of them want to run, their scheduling
//! policies and the CPUs that they may use.

use rustix::thread::CpuSet;

use crate::process::Failure;
use crate::process_id::{Handle, ProcessId};
use crate::procfs::{self, Stat};
use crate::reach::Target;
use crate::scheduler::{self, Policy};
use crate::table::{Journal, Slot, flag};

/// CPUs that a thread may use by itself, and those that we bound it to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Binding {
    pub(crate) own: CpuSet,
    pub(crate) ours: CpuSet,
}

/// A thread and what it is to have when we leave it alone.
#[derive(Debug)]
struct Thread {
    tid: u32,
    /// Its own policy.
    own: Policy,
    binding: Option<Box<Binding>>,
    /// Its record, while it has a policy of its own that is not the ordinary
    /// one or is bound. The first thread's stands for the process and is
    /// always there.
    slot: Option<Slot>,
}

/// What newborn threads and processes may have inherited because of us. It is
/// not to be taken for their own choice.
///
/// Births are noticed before each enforcement and once more after it. What held
/// before is forgotten then, unless the parent may still be giving birth as it
/// was: a child has its policy long before it can be seen, and its parent may
/// lose the CPU in between. So a newborn that is found in `SCHED_IDLE` though its
/// parent was not demoted lately has chosen it. What cannot be told apart: one
/// born to a parent that was, which chooses `SCHED_IDLE` before it is noticed; it
/// gets its parent's own policy back. That somebody's choice is lost is the lesser
/// evil: else somebody would stay demoted.
#[derive(Clone, Debug)]
pub(crate) struct Heritage {
    /// `SCHED_IDLE`.
    pub(crate) idle: bool,
    /// The parent's own policy, which they would have inherited without us.
    pub(crate) own: Policy,
    /// Bindings, any one of which.
    pub(crate) bindings: Vec<Binding>,
}

impl Heritage {
    /// Of those who were born to nobody whom we touched.
    pub(crate) const NONE: Heritage = Heritage {
        idle: false,
        own: Policy::OTHER,
        bindings: Vec::new(),
    };

    /// Whether there is nothing that was done by us.
    pub(crate) fn is_none(&self) -> bool {
        !self.idle && self.bindings.is_empty()
    }
}

/// The threads of a process.
#[derive(Debug)]
pub(crate) struct Threads {
    pid: u32,
    /// As known; complete unless `stale`. The process's first thread comes
    /// first and is always there, the others follow by `tid`.
    list: Vec<Thread>,
    stale: bool,
    /// Where the search for runnable threads found one last.
    runnable_hint: usize,
    /// Its fair threads were put in `SCHED_IDLE`, or inherited it.
    idle: bool,
    /// The same at some time that is not forgotten yet.
    idle_lately: bool,
    /// All bindings that its threads had since then.
    bindings_lately: Vec<Binding>,
}

impl Threads {
    /// Those of a process with this record and this first look at it.
    pub(crate) fn new(
        pid: u32,
        slot: Slot,
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
        };
        threads.list.push(Thread {
            tid: pid,
            own: Policy::OTHER,
            binding: None,
            slot: Some(slot),
        });
        threads.inherit(0, Policy(stat.policy), heritage, journal);
        threads
    }

    /// The record of the process.
    pub(crate) fn slot(&self) -> &Slot {
        self.list[0]
            .slot
            .as_ref()
            .expect("the first thread's record is always there")
    }

    pub(crate) fn is_idle(&self) -> bool {
        self.idle
    }

    /// Whether anything was done to them that is to be undone.
    pub(crate) fn are_touched(&self) -> bool {
        self.idle || self.list.iter().any(|thread| thread.binding.is_some())
    }

    /// CPUs that the first one may use by itself.
    pub(crate) fn own_cpus(&self) -> std::io::Result<CpuSet> {
        match &self.list[0].binding {
            Some(binding) => Ok(binding.own),
            None => scheduler::affinity(self.pid),
        }
    }

    /// What is inherited from them.
    pub(crate) fn heritage(&self) -> Heritage {
        Heritage {
            idle: self.idle || self.idle_lately,
            own: self.list[0].own,
            bindings: self.bindings_lately.clone(),
        }
    }

    /// All births so far have been noticed: whoever is born from now on
    /// inherits what they have now.
    pub(crate) fn forget_the_past(&mut self) {
        self.idle_lately = self.idle;
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

    /// Whether threads are not listed yet that a look at the process shows.
    pub(crate) fn compare(&mut self, stat: &Stat) {
        self.stale |= stat.threads as usize != self.list.len();
    }

    /// Some were born.
    pub(crate) fn expect_more(&mut self) {
        self.stale = true;
    }

    pub(crate) fn is_stale(&self) -> bool {
        self.stale
    }

    /// How many want to run, counted up to `limit`.
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

    /// Lists them anew if any were born since the last time.
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
            if let Some(slot) = thread.slot {
                journal.give_back(slot);
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
            });
            self.inherit(self.list.len() - 1, policy, &heritage, journal);
        }
        self.list[1..].sort_unstable_by_key(|thread| thread.tid);
    }

    /// Takes note of what a thread that was just listed has by itself and
    /// what by inheritance.
    fn inherit(&mut self, index: usize, now: Policy, heritage: &Heritage, journal: &mut Journal) {
        let inherited = now.is_idle() && heritage.idle;
        let own = if inherited { heritage.own } else { now };
        self.set_own(index, own, journal);
        if inherited && !self.idle {
            journal.mark(self.slot(), flag::IDLE);
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

    /// Puts the fair ones in `SCHED_IDLE`.
    pub(crate) fn demote(
        &mut self,
        process: &Handle,
        journal: &mut Journal,
    ) -> Result<(), Failure> {
        journal.mark(self.slot(), flag::IDLE);
        let already = std::mem::replace(&mut self.idle, true);
        for index in 0..self.list.len() {
            let Thread { tid, own, .. } = self.list[index];
            // Gone threads are dropped when the list is refreshed.
            let Ok(now) = Policy::of(tid) else { continue };
            if now.is_idle() && !already {
                self.set_own(index, now, journal);
            }
            if now.is_idle() || !now.is_fair() {
                continue;
            }
            if now != own {
                self.set_own(index, now, journal);
            }
            change(self.target(process, tid).set_policy(now.demoted()))?;
        }
        Ok(())
    }

    /// Gives all their own policies back. What is refused stays to be undone.
    pub(crate) fn promote(
        &mut self,
        process: &Handle,
        journal: &mut Journal,
    ) -> Result<(), Failure> {
        let mut result = Ok(());
        for Thread { tid, own, .. } in &self.list {
            if Policy::of(*tid).is_ok_and(Policy::is_idle) && !own.is_idle() {
                result = result.and(change(self.target(process, *tid).set_policy(*own)));
            }
        }
        result?;
        self.idle = false;
        self.idle_lately = true;
        journal.clear(self.slot(), flag::IDLE);
        Ok(())
    }

    fn target<'a>(&self, process: &'a Handle, tid: u32) -> Target<'a> {
        Target {
            process,
            pid: self.pid,
            tid,
        }
    }

    /// Whether a look at the first one shows that it is not demoted any more,
    /// though it should be.
    pub(crate) fn was_promoted_by_others(&self, stat: &Stat) -> bool {
        let own = self.list[0].own;
        self.idle && own.is_fair() && !own.is_idle() && !Policy(stat.policy).is_idle()
    }

    /// Binds all to these CPUs, as far as they may use them.
    pub(crate) fn bind(
        &mut self,
        process: &Handle,
        cpus: &CpuSet,
        journal: &mut Journal,
    ) -> Result<(), Failure> {
        for index in 0..self.list.len() {
            let thread = &self.list[index];
            let Ok(now) = scheduler::affinity(thread.tid) else {
                continue;
            };
            let own = match &thread.binding {
                Some(binding) if binding.ours == now => binding.own,
                // It is not bound, or has chosen anew.
                _ => now,
            };
            let common = intersection(&own, cpus);
            // Whoever may use none of them must not stay where it was bound
            // before: that is somebody else's place now.
            let ours = if common.count() == 0 { own } else { common };
            if ours == now {
                continue;
            }
            let tid = thread.tid;
            if self.keep_binding(index, Box::new(Binding { own, ours }), journal) {
                change(self.target(process, tid).set_affinity(&ours))?;
            }
        }
        Ok(())
    }

    /// Lets all use their own CPUs again. What is refused stays to be undone.
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
            // Whoever has chosen anew meanwhile keeps that.
            if scheduler::affinity(thread.tid).is_ok_and(|now| now == binding.ours) {
                let target = self.target(process, thread.tid);
                if let Err(failure) = change(target.set_affinity(&binding.own)) {
                    result = Err(failure);
                    continue;
                }
            }
            self.list[index].binding = None;
            if let Some(slot) = &self.list[index].slot {
                journal.clear(slot, flag::BOUND);
            }
        }
        result
    }

    /// Keeps what a thread is bound to, in the table too. Returns false if
    /// that is full: it must not be bound then.
    fn keep_binding(&mut self, index: usize, binding: Box<Binding>, journal: &mut Journal) -> bool {
        let Some(slot) = self.record(index, journal) else {
            return false;
        };
        journal.keep_binding(slot, &binding);
        self.list[index].binding = Some(binding);
        self.note_binding(index);
        true
    }

    /// Keeps a thread's own policy, in the table too if it is not the
    /// ordinary one.
    fn set_own(&mut self, index: usize, own: Policy, journal: &mut Journal) {
        if self.list[index].own != own {
            self.list[index].own = own;
            if let Some(slot) = self.record(index, journal) {
                journal.keep_policy(slot, own);
            }
        }
    }

    /// A thread's record; `None` if the table is full.
    fn record(&mut self, index: usize, journal: &mut Journal) -> Option<&Slot> {
        let pid = self.pid;
        let thread = &mut self.list[index];
        if thread.slot.is_none() {
            let stat = procfs::thread_stat(pid, thread.tid).ok()?;
            let start_time_ticks = stat.start_time_ticks;
            thread.slot = journal.take(
                ProcessId {
                    pid: thread.tid,
                    start_time_ticks,
                },
                pid,
            );
        }
        thread.slot.as_ref()
    }

    /// Gives their records back. The process must be gone or as it was.
    pub(crate) fn retire(self, journal: &mut Journal) {
        for slot in self.list.into_iter().filter_map(|thread| thread.slot) {
            journal.give_back(slot);
        }
    }
}

/// A thread that is gone needs no change.
fn change(result: std::io::Result<()>) -> Result<(), Failure> {
    match result.map_err(Failure::from) {
        Err(Failure::Gone) => Ok(()),
        result => result,
    }
}

pub(crate) fn intersection(one: &CpuSet, other: &CpuSet) -> CpuSet {
    let mut both = CpuSet::new();
    for cpu in 0..CpuSet::MAX_CPU {
        if one.is_set(cpu) && other.is_set(cpu) {
            both.set(cpu);
        }
    }
    both
}
