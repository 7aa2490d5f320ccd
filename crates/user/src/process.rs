//! One managed process: what it uses, whether it wants to run, and what is
//! done to it.

use std::io;

use rustix::io::Errno;
use rustix::process::Signal;

use crate::group::GroupIndex;
use crate::process_id::{Handle, ProcessId};
use crate::procfs::{self, Stat, StatFile};
use crate::scheduler::{self, Policy, Return};
use crate::table::{Journal, Slot, flag};
use crate::waited::Waited;

/// What is to be done to a process, or to all those of a client.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Treatment {
    /// It runs as if it were not managed.
    Normal,
    /// It runs where nobody else wants to.
    Idle,
    /// It does not run.
    Stopped,
}

/// A deed could not be done.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Failure {
    /// The process has ended; whoever samples it next will notice.
    Gone,
    /// It belongs to somebody else by now, a set-uid program for instance.
    Refused,
}

impl From<Errno> for Failure {
    fn from(error: Errno) -> Self {
        if error == Errno::PERM {
            Failure::Refused
        } else {
            Failure::Gone
        }
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        Errno::from_io_error(&error).map_or(Failure::Gone, Failure::from)
    }
}

/// A thread and the policy that it is to have when it is not demoted.
#[derive(Debug)]
struct Thread {
    tid: u32,
    own: Policy,
    /// Record of `own`, while that is not the ordinary policy. The first
    /// thread's is kept in the process's record.
    slot: Option<Slot>,
}

/// A managed process.
#[derive(Debug)]
pub(crate) struct Process {
    pub(crate) id: ProcessId,
    pub(crate) parent: u32,
    pub(crate) group: GroupIndex,
    pub(crate) session: u32,
    pub(crate) handle: Handle,
    stat_file: StatFile,
    slot: Slot,
    /// CPU time at the last sample, since the process began.
    clock_ns: u64,
    pub(crate) waited: Waited,
    /// It used CPU time between the last two samples.
    pub(crate) progressed: bool,
    /// The last sample found it gone.
    pub(crate) gone: bool,
    /// As known; complete unless `threads_stale`. The process's first thread
    /// comes first, the others follow by `tid`.
    threads: Vec<Thread>,
    threads_stale: bool,
    /// Where the search for runnable threads found one last.
    runnable_hint: usize,
    /// Its fair threads were put in `SCHED_IDLE`, or inherited it.
    idle: bool,
    /// We stopped it.
    stopped: bool,
    /// We may not touch it.
    pub(crate) out_of_reach: bool,
    /// Its threads cannot leave `SCHED_IDLE` again.
    pub(crate) captive: bool,
}

/// How a process came to be managed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Origin {
    /// It ran before: what it has used so far is not accounted for.
    Found,
    /// It was born to a managed process: all that it uses is accounted for.
    Born {
        /// Its parent may have been in `SCHED_IDLE` at that time because of
        /// us.
        to_idle: bool,
    },
}

impl Process {
    /// Takes a process under management; nothing is done to it yet.
    pub(crate) fn new(
        id: ProcessId,
        group: GroupIndex,
        origin: Origin,
        way_back: Return,
        journal: &mut Journal,
    ) -> Result<Process, Failure> {
        let handle = id.open()?;
        let stat_file = StatFile::of_process(id.pid)?;
        let stat = stat_file.read()?;
        let slot = journal.take(id, id.pid).ok_or(Failure::Refused)?;
        let policy = Policy(stat.policy);
        let inherited = origin == Origin::Born { to_idle: true } && policy.is_idle();
        let own = if inherited { Policy::OTHER } else { policy };
        let (clock_ns, waited) = match origin {
            Origin::Found => (
                scheduler::cpu_time_ns(id.pid).ok_or(Failure::Gone)?,
                Waited::since(stat.waited_ns),
            ),
            Origin::Born { .. } => (0, Waited::since(0)),
        };
        if inherited {
            journal.mark(&slot, flag::IDLE);
        }
        let mut process = Process {
            id,
            parent: stat.parent,
            group,
            session: stat.session,
            handle,
            stat_file,
            slot,
            clock_ns,
            waited,
            progressed: false,
            gone: false,
            threads: Vec::new(),
            threads_stale: stat.threads > 1,
            runnable_hint: 0,
            idle: inherited,
            stopped: false,
            out_of_reach: false,
            captive: !way_back.holds_for(id.pid),
        };
        process.threads.push(Thread {
            tid: id.pid,
            own: Policy::OTHER,
            slot: None,
        });
        process.set_own(0, own, journal);
        Ok(process)
    }

    /// CPU time used since the last sample; zero once it is gone.
    pub(crate) fn sample(&mut self) -> u64 {
        // A clock that ran backwards is that of another process.
        let used_ns = scheduler::cpu_time_ns(self.id.pid)
            .and_then(|clock_ns| clock_ns.checked_sub(self.clock_ns));
        self.gone |= used_ns.is_none();
        let used_ns = used_ns.unwrap_or(0);
        self.clock_ns += used_ns;
        self.progressed = used_ns > 0;
        used_ns
    }

    /// All that it and the children that it waited for have used, as far as
    /// it is accounted for.
    pub(crate) fn life_ns(&self) -> u64 {
        self.clock_ns + self.waited.accounted_ns()
    }

    /// Whether it exists and has not ended.
    pub(crate) fn is_alive(&self) -> bool {
        self.stat_file.read().is_ok_and(|stat| !stat.has_ended())
    }

    /// Reads its state.
    pub(crate) fn look(&mut self) -> io::Result<Stat> {
        let stat = self.stat_file.read()?;
        self.parent = stat.parent;
        if stat.threads as usize != self.threads.len() {
            self.threads_stale = true;
        }
        Ok(stat)
    }

    /// How many of its threads want to run, counted up to `limit`. `to_idle`
    /// as in [`Origin::Born`], for threads.
    pub(crate) fn runnable_threads(
        &mut self,
        stat: &Stat,
        limit: u32,
        to_idle: bool,
        journal: &mut Journal,
    ) -> u32 {
        if stat.threads <= 1 {
            return u32::from(stat.is_runnable());
        }
        self.refresh_threads(to_idle, journal);
        let count = self.threads.len();
        let mut runnable = 0;
        for step in 0..count {
            let index = (self.runnable_hint + step) % count;
            let thread = procfs::thread_stat(self.id.pid, self.threads[index].tid);
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

    /// Threads were born that are not listed yet; some may have inherited
    /// `SCHED_IDLE` from others that we had demoted, if `to_idle`.
    pub(crate) fn expect_threads(&mut self, to_idle: bool, journal: &mut Journal) {
        self.threads_stale = true;
        self.refresh_threads(to_idle, journal);
    }

    pub(crate) fn is_stopped_by_us(&self) -> bool {
        self.stopped
    }

    pub(crate) fn is_touched(&self) -> bool {
        self.stopped || self.idle
    }

    /// Does again what was done to it, if a fresh look shows that it does not
    /// hold: somebody else may have continued it. The record stays all the
    /// while, because a stop signal may just not have been taken yet.
    pub(crate) fn reassert(&mut self, stat: &Stat, journal: &mut Journal) {
        if self.stopped && !stat.is_stopped() {
            let _ = self.handle.signal(Signal::STOP);
        }
        let first = self.threads[0].own;
        let is_promoted = first.is_fair() && !first.is_idle() && !Policy(stat.policy).is_idle();
        if self.idle && is_promoted {
            let _ = self.demote(journal);
        }
    }

    /// Does to it what is to be done, unless it is done already.
    pub(crate) fn treat(
        &mut self,
        treatment: Treatment,
        journal: &mut Journal,
    ) -> Result<(), Failure> {
        match treatment {
            Treatment::Stopped if !self.stopped => self.stop(journal),
            Treatment::Stopped => Ok(()),
            Treatment::Idle => {
                if !self.idle || self.threads_stale {
                    self.demote(journal)?;
                }
                self.go_on(journal)
            }
            Treatment::Normal => {
                // First its policy, so that it wakes as what it is.
                let promoted = if self.idle {
                    self.promote(journal)
                } else {
                    Ok(())
                };
                self.go_on(journal).and(promoted)
            }
        }
    }

    fn stop(&mut self, journal: &Journal) -> Result<(), Failure> {
        // A process that its user stopped must not be continued by us later.
        if self.look()?.is_stopped() {
            return Ok(());
        }
        journal.mark(&self.slot, flag::STOPPED);
        if let Err(error) = self.handle.signal(Signal::STOP) {
            journal.clear(&self.slot, flag::STOPPED);
            return Err(error.into());
        }
        self.stopped = true;
        Ok(())
    }

    fn go_on(&mut self, journal: &Journal) -> Result<(), Failure> {
        if self.stopped {
            self.handle.signal(Signal::CONT)?;
            self.stopped = false;
            journal.clear(&self.slot, flag::STOPPED);
        }
        Ok(())
    }

    fn demote(&mut self, journal: &mut Journal) -> Result<(), Failure> {
        self.refresh_threads(true, journal);
        journal.mark(&self.slot, flag::IDLE);
        let already = std::mem::replace(&mut self.idle, true);
        for index in 0..self.threads.len() {
            let tid = self.threads[index].tid;
            // Gone threads are dropped when the list is refreshed.
            let Ok(now) = Policy::of(tid) else { continue };
            if now.is_idle() || !now.is_fair() {
                continue;
            }
            if !already || now != self.threads[index].own {
                self.set_own(index, now, journal);
            }
            self.change_policy(tid, now.demoted())?;
        }
        Ok(())
    }

    fn promote(&mut self, journal: &mut Journal) -> Result<(), Failure> {
        self.refresh_threads(true, journal);
        for index in 0..self.threads.len() {
            let Thread { tid, own, .. } = self.threads[index];
            let is_demoted = Policy::of(tid).is_ok_and(Policy::is_idle) && !own.is_idle();
            if is_demoted {
                self.change_policy(tid, own)?;
            }
        }
        self.idle = false;
        journal.clear(&self.slot, flag::IDLE);
        Ok(())
    }

    fn change_policy(&self, tid: u32, policy: Policy) -> Result<(), Failure> {
        match policy.set(tid).map_err(Failure::from) {
            // One thread fewer; the process goes on.
            Err(Failure::Gone) => Ok(()),
            result => result,
        }
    }

    /// Lists its threads anew, if any were born since. `to_idle`: some may
    /// have inherited `SCHED_IDLE` from threads that we had demoted, which is
    /// not to be taken for their own choice.
    fn refresh_threads(&mut self, to_idle: bool, journal: &mut Journal) {
        if !std::mem::take(&mut self.threads_stale) {
            return;
        }
        let mut tids = Vec::new();
        if procfs::for_each_thread(self.id.pid, |tid| tids.push(tid)).is_err() {
            return;
        }
        tids.sort_unstable();
        let ended = |thread: &mut Thread| tids.binary_search(&thread.tid).is_err();
        for thread in self.threads.extract_if(1.., ended) {
            if let Some(slot) = thread.slot {
                journal.give_back(slot);
            }
        }
        let default = self.threads[0].own;
        let known = self.threads.len();
        for tid in tids {
            let listed = self.threads[1..known].binary_search_by_key(&tid, |thread| thread.tid);
            let Ok(policy) = Policy::of(tid) else {
                continue;
            };
            if tid == self.id.pid || listed.is_ok() {
                continue;
            }
            let inherited = policy.is_idle() && (self.idle || to_idle);
            if inherited && !self.idle {
                journal.mark(&self.slot, flag::IDLE);
                self.idle = true;
            }
            self.threads.push(Thread {
                tid,
                own: Policy::OTHER,
                slot: None,
            });
            let index = self.threads.len() - 1;
            self.set_own(index, if inherited { default } else { policy }, journal);
        }
        self.threads[1..].sort_unstable_by_key(|thread| thread.tid);
    }

    /// Keeps a thread's own policy, in the table too if it is not the
    /// ordinary one.
    fn set_own(&mut self, index: usize, own: Policy, journal: &mut Journal) {
        let thread = &mut self.threads[index];
        if thread.own == own {
            return;
        }
        thread.own = own;
        if index == 0 {
            journal.keep_policy(&self.slot, own);
            return;
        }
        if thread.slot.is_none() {
            let stat = procfs::thread_stat(self.id.pid, thread.tid);
            let start_time_ticks = stat.map_or(0, |stat| stat.start_time_ticks);
            let id = ProcessId {
                pid: thread.tid,
                start_time_ticks,
            };
            thread.slot = journal.take(id, self.id.pid);
        }
        if let Some(slot) = &thread.slot {
            journal.keep_policy(slot, own);
        }
    }

    /// Gives its records back. It must be gone or as it was.
    pub(crate) fn retire(self, journal: &mut Journal) {
        journal.give_back(self.slot);
        for thread in self.threads {
            if let Some(slot) = thread.slot {
                journal.give_back(slot);
            }
        }
    }
}
