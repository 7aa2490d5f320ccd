//! One managed process: what it uses, whether it wants to run, and what is
//! done to it.

use std::io;

use rustix::io::Errno;
use rustix::process::Signal;
use rustix::thread::CpuSet;

use crate::group::GroupIndex;
use crate::process_id::{Handle, ProcessId};
use crate::procfs::{Stat, StatFile};
use crate::scheduler::{self, Return};
use crate::table::{Journal, flag};
use crate::threads::{Heritage, Threads};
use crate::waited::Waited;

/// Giving birth takes less CPU time, unless the parent has gigabytes mapped in
/// small pages.
pub(crate) const LONGEST_BIRTH_NS: u64 = 10_000_000;

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
    /// It belongs to somebody else by now, a set-uid program for instance, or
    /// the system lacks something.
    Refused,
}

impl From<Errno> for Failure {
    fn from(error: Errno) -> Self {
        if matches!(error, Errno::SRCH | Errno::NOENT) {
            Failure::Gone
        } else {
            Failure::Refused
        }
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        Errno::from_io_error(&error).map_or(Failure::Refused, Failure::from)
    }
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
    pub(crate) threads: Threads,
    /// CPU time at the last sample, since the process began.
    clock_ns: u64,
    /// The same when it was last given back what we had taken.
    restored_at_ns: u64,
    pub(crate) waited: Waited,
    /// Its ended children are those of a client that it is a foster parent of.
    pub(crate) adopts: bool,
    /// It used CPU time between the last two samples.
    pub(crate) progressed: bool,
    /// It was found gone: nobody has its number, or somebody else has.
    pub(crate) gone: bool,
    /// We stopped it.
    stopped: bool,
    /// We may not hold it down. What was done to it is undone as soon as that
    /// may be.
    pub(crate) out_of_reach: bool,
    /// Its threads cannot leave `SCHED_IDLE` again.
    pub(crate) captive: bool,
}

/// How a process came to be managed.
#[derive(Clone, Debug)]
pub(crate) enum Origin {
    /// A caller named it, or its client's marker and journal. It ran before: what it has used
    /// so far is not accounted for.
    Named,
    /// It was found beside or below one that was named, and ran before too.
    Found,
    /// It was born to a managed process: all that it uses is accounted for.
    Born(Heritage),
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
        let (clock_ns, waited, heritage) = match origin {
            Origin::Named | Origin::Found => (
                scheduler::cpu_time_ns(id.pid).ok_or(Failure::Gone)?,
                Waited::since(stat.waited_ns),
                Heritage::NONE,
            ),
            Origin::Born(heritage) => (0, Waited::since(0), heritage),
        };
        let slot = journal.take(id, id.pid).ok_or(Failure::Refused)?;
        Ok(Process {
            id,
            parent: stat.parent,
            group,
            session: stat.session,
            handle,
            stat_file,
            threads: Threads::new(id.pid, slot, &stat, &heritage, journal),
            clock_ns,
            restored_at_ns: clock_ns,
            waited,
            adopts: false,
            progressed: false,
            gone: false,
            stopped: false,
            out_of_reach: false,
            captive: !way_back.holds_for(id.pid),
        })
    }

    /// CPU time used since the last sample; zero once it is gone.
    pub(crate) fn sample(&mut self) -> u64 {
        let Some(clock_ns) = scheduler::cpu_time_ns(self.id.pid) else {
            let _ = self.read_stat();
            self.progressed = false;
            return 0;
        };
        // A sum over threads of which one just ends may fall for a moment;
        // what was charged stays charged.
        let used_ns = clock_ns.saturating_sub(self.clock_ns);
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

    /// Whether it has ended and was not waited for yet.
    pub(crate) fn has_ended(&self) -> bool {
        self.stat_file.read().is_ok_and(|stat| stat.has_ended())
    }

    /// The file stays with the process, so it alone says whether that is gone.
    fn read_stat(&mut self) -> io::Result<Stat> {
        let stat = self.stat_file.read();
        let error = stat.as_ref().err().and_then(io::Error::raw_os_error);
        self.gone |= error == Some(libc::ESRCH);
        stat
    }

    /// Reads its state.
    pub(crate) fn look(&mut self) -> io::Result<Stat> {
        let stat = self.read_stat()?;
        self.parent = stat.parent;
        self.threads.compare(&stat);
        Ok(stat)
    }

    /// How many of its threads want to run, counted up to `limit`.
    pub(crate) fn runnable_threads(
        &mut self,
        stat: &Stat,
        limit: u32,
        journal: &mut Journal,
    ) -> u32 {
        if stat.threads <= 1 {
            return u32::from(stat.is_runnable());
        }
        self.threads.refresh(journal);
        self.threads.runnable(limit)
    }

    pub(crate) fn is_stopped_by_us(&self) -> bool {
        self.stopped
    }

    pub(crate) fn is_held_down(&self) -> bool {
        self.stopped || self.threads.is_idle()
    }

    /// Whether anything was done to it that is to be undone.
    pub(crate) fn is_touched(&self) -> bool {
        self.stopped || self.threads.are_touched()
    }

    /// Does again what was done to it, if a fresh look shows that it does not
    /// hold: somebody else may have continued it. The record stays all the
    /// while, because a stop signal may just not have been taken yet.
    pub(crate) fn reassert(&mut self, stat: &Stat, journal: &mut Journal) {
        if self.out_of_reach {
            return;
        }
        if self.stopped && !stat.is_stopped() {
            let _ = self.handle.signal(Signal::STOP);
        }
        if self.threads.was_promoted_by_others(stat) {
            let _ = self.threads.demote(&self.handle, journal);
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
                if !self.threads.is_idle() || self.threads.is_stale() {
                    self.threads.refresh(journal);
                    self.threads.demote(&self.handle, journal)?;
                }
                self.go_on(journal)
            }
            Treatment::Normal => {
                let mut promoted = Ok(());
                if self.threads.is_idle() {
                    self.threads.refresh(journal);
                    // First its policy, so that it wakes as what it is.
                    promoted = self.threads.promote(&self.handle, journal);
                    self.restored_at_ns = self.clock_ns;
                }
                self.go_on(journal).and(promoted)
            }
        }
    }

    /// Leaves one that its user stopped alone: it must not be continued by us
    /// later. It runs on, unstopped by us, if its user continues it.
    fn stop(&mut self, journal: &Journal) -> Result<(), Failure> {
        if self.look()?.is_stopped() {
            return Ok(());
        }
        journal.mark(self.threads.slot(), flag::STOPPED);
        if let Err(error) = self.handle.signal(Signal::STOP) {
            journal.clear(self.threads.slot(), flag::STOPPED);
            return Err(error.into());
        }
        self.stopped = true;
        Ok(())
    }

    fn go_on(&mut self, journal: &Journal) -> Result<(), Failure> {
        if self.stopped {
            self.handle.signal(Signal::CONT)?;
            self.stopped = false;
            journal.clear(self.threads.slot(), flag::STOPPED);
        }
        Ok(())
    }

    /// Binds its threads to these CPUs, or to none but their own.
    pub(crate) fn bind(
        &mut self,
        cpus: Option<&CpuSet>,
        journal: &mut Journal,
    ) -> Result<(), Failure> {
        match cpus {
            Some(cpus) => self.threads.bind(&self.handle, cpus, journal),
            None => {
                self.restored_at_ns = self.clock_ns;
                self.threads.unbind(&self.handle, journal)
            }
        }
    }

    /// All births to it have been noticed, but for one that it may have begun
    /// while it was held down.
    pub(crate) fn forget_the_past(&mut self) {
        if self.clock_ns - self.restored_at_ns >= LONGEST_BIRTH_NS {
            self.threads.forget_the_past();
        }
    }

    /// Undoes all that was done to it. Returns whether nothing is left to be
    /// undone.
    pub(crate) fn let_go(&mut self, journal: &mut Journal) -> bool {
        let _ = self.treat(Treatment::Normal, journal);
        let _ = self.bind(None, journal);
        !self.is_touched() || !self.is_alive()
    }

    /// Gives its records back. It must have ended or be as it was.
    pub(crate) fn retire(self, journal: &mut Journal) {
        self.threads.retire(journal);
    }
}
