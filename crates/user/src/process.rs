//! One managed process: its CPU time, its state, and the deeds done to it.

use std::io;
use std::ops::AddAssign;
use std::sync::Arc;

use rustix::io::Errno;
use rustix::process::Signal;
use rustix::thread::CpuSet;

use crate::control_groups::Lodging;
use crate::group::GroupIndex;
use crate::nice::NiceValue;
use crate::process_id::{Handle, ProcessId};
use crate::procfs::{Stat, StatFile};
use crate::scheduler::{self, Return};
use crate::signals::{LastHandled, Pending};
use crate::table::{Journal, Table, flag};
use crate::threads::{Heritage, SharedThreads, Threads};
use crate::time::monotonic_ns;
use crate::waited::Waited;

/// A fork takes less CPU time than this, unless the parent has gigabytes mapped in small pages.
pub(crate) const LONGEST_BIRTH_NS: u64 = 10_000_000;

/// How a process, or all processes of a client, are to be treated.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Treatment {
    /// It runs as if it were not managed.
    Normal,
    /// It runs on CPUs that would be idle otherwise.
    Idle,
    /// It does not run.
    Stopped,
}

/// CPU time since the last sample.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) struct Used {
    pub(crate) all_ns: u64,
    /// What of it was in slots of a timetable.
    pub(crate) in_slots_ns: u64,
}

impl AddAssign for Used {
    fn add_assign(&mut self, other: Self) {
        self.all_ns += other.all_ns;
        self.in_slots_ns += other.in_slots_ns;
    }
}

/// Why a deed was not done.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Failure {
    /// The process has ended; its next sample will show that.
    Gone,
    /// The process belongs to another user by now, as a set-uid program does, or the system
    /// refuses for want of something.
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
    pub(crate) handle: Arc<Handle>,
    stat_file: StatFile,
    /// Shared with the keepers of slots.
    pub(crate) threads: SharedThreads,
    /// CPU time since the process began, at the last sample.
    pub(crate) clock_ns: u64,
    /// CPU time in slots since the process began, at the last sample.
    in_slots_ns: u64,
    /// CPU time since the process began, when it was last promoted or unbound.
    restored_at_ns: u64,
    /// The same when it was last reviewed, if it was.
    reviewed_at_ns: Option<u64>,
    pub(crate) waited: Waited,
    /// It is a foster parent: its ended children may be another client's.
    pub(crate) adopts: bool,
    /// It used CPU time between the last two samples.
    pub(crate) progressed: bool,
    pub(crate) nice: NiceValue,
    /// When a sample last showed use, on the monotonic clock.
    pub(crate) ran_ns: u64,
    /// It has slept for some time, and is one of many.
    pub(crate) slumbers: bool,
    /// It waited for children, and their time is not charged yet.
    pub(crate) reaped: bool,
    /// It has ended and its parent has waited for it.
    pub(crate) gone: bool,
    pub(crate) lodging: Lodging,
    /// A service manager was asked to move it to its client's group.
    pub(crate) move_asked: bool,
    /// How its client's control group treats it.
    pub(crate) held_by_group: Treatment,
    /// The engine may not hold it down. Earlier deeds are undone as soon as that is permitted.
    pub(crate) out_of_reach: bool,
    /// Its threads cannot leave `SCHED_IDLE` again.
    pub(crate) captive: bool,
    /// The signal that waits for it, as far as the engine has looked.
    pub(crate) pending: Pending,
    /// The same, if the process is let run because of the signal.
    pub(crate) runs_for: Pending,
    pub(crate) last_handled: LastHandled,
}

/// How a process came to be managed.
#[derive(Clone, Debug)]
pub(crate) enum Origin {
    /// A caller named it, or its client's marker and journal did. The CPU time that it used
    /// before is not charged.
    Named,
    /// It was found below a named process. The CPU time that it used before is not charged.
    Found,
    /// It was born to a managed process: all its CPU time is charged.
    Born(Heritage),
}

impl Process {
    /// Begins to manage a process, without any deed.
    pub(crate) fn new(
        id: ProcessId,
        group: GroupIndex,
        origin: Origin,
        (way_back, keeps_files): (Return, bool),
        journal: &mut Journal,
    ) -> Result<Process, Failure> {
        let opened = id.open()?;
        let handle = match keeps_files {
            true => opened,
            false => Handle::OnDemand(id),
        };
        let stat_file = StatFile::of(id, keeps_files)?;
        let stat = stat_file.read()?;
        let (clock_ns, waited, heritage) = match origin {
            Origin::Named | Origin::Found => (
                scheduler::cpu_time_ns(id.pid).ok_or(Failure::Gone)?,
                Waited::since(stat.waited_ns),
                Heritage::NONE,
            ),
            Origin::Born(heritage) => (0, Waited::since(0), heritage),
        };
        let record = journal.take(id, id.pid).ok_or(Failure::Refused)?;
        let mut threads = Threads::new(id.pid, record, &stat, &heritage, journal);
        if threads.are_in_slot() {
            // Born in its parent's slot, where that is inherited.
            threads.lower_unseated(&handle, journal.table());
        }
        Ok(Process {
            id,
            parent: stat.parent,
            group,
            session: stat.session,
            handle: Arc::new(handle),
            stat_file,
            threads: SharedThreads::new(threads),
            clock_ns,
            in_slots_ns: 0,
            restored_at_ns: clock_ns,
            reviewed_at_ns: None,
            waited,
            adopts: false,
            progressed: false,
            nice: NiceValue::of(&stat),
            ran_ns: monotonic_ns(),
            reaped: false,
            slumbers: false,
            gone: false,
            lodging: Lodging::Elsewhere,
            move_asked: false,
            held_by_group: Treatment::Normal,
            out_of_reach: false,
            captive: !way_back.holds_for(id.pid),
            pending: Pending::Nothing,
            runs_for: Pending::Nothing,
            last_handled: LastHandled::default(),
        })
    }

    /// CPU time used since the last sample; zero once it is gone.
    pub(crate) fn sample(&mut self) -> Used {
        // No slot begins or ends between the two readings.
        let threads = self.threads.lock();
        let clock_ns = scheduler::cpu_time_ns(self.id.pid);
        let in_slots_ns = threads.service_in_slots_ns();
        drop(threads);
        let Some(clock_ns) = clock_ns else {
            let _ = self.read_stat();
            self.progressed = false;
            return Used::default();
        };
        // The sum over threads may fall for a moment when one of them ends. Charged time stays
        // charged.
        let used_ns = clock_ns.saturating_sub(self.clock_ns);
        self.clock_ns += used_ns;
        self.progressed = used_ns > 0;
        let used_in_slots_ns = in_slots_ns.saturating_sub(self.in_slots_ns).min(used_ns);
        self.in_slots_ns += used_in_slots_ns;
        Used {
            all_ns: used_ns,
            in_slots_ns: used_in_slots_ns,
        }
    }

    /// Whether a sample showed use since this was asked last.
    pub(crate) fn ran_since_review(&mut self) -> bool {
        self.reviewed_at_ns.replace(self.clock_ns) != Some(self.clock_ns)
    }

    /// Accounted CPU time of the process and of the children that it waited for.
    pub(crate) fn life_ns(&self) -> u64 {
        self.clock_ns + self.waited.accounted_ns()
    }

    pub(crate) fn is_alive(&self) -> bool {
        self.stat().is_ok_and(|stat| !stat.has_ended())
    }

    pub(crate) fn stat(&self) -> io::Result<Stat> {
        self.stat_file.read()
    }

    /// Notes whether the process is gone: its file stays with it.
    fn read_stat(&mut self) -> io::Result<Stat> {
        let stat = self.stat();
        let error = stat.as_ref().err().and_then(io::Error::raw_os_error);
        self.gone |= error == Some(libc::ESRCH);
        stat
    }

    pub(crate) fn look(&mut self) -> io::Result<Stat> {
        let stat = self.read_stat()?;
        self.parent = stat.parent;
        self.nice.look(&stat);
        self.threads.lock().compare(&stat);
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
        let mut threads = self.threads.lock();
        threads.refresh(journal);
        threads.runnable(limit)
    }

    /// Whether continuing it discards a stop signal of its user.
    pub(crate) fn is_stopped_by_signal(&self) -> bool {
        let threads = self.threads.lock();
        threads.stopped || threads.is_stopped_by_slot()
    }

    pub(crate) fn is_stopped_by_us(&self) -> bool {
        self.is_stopped_by_signal() || self.held_by_group == Treatment::Stopped
    }

    pub(crate) fn is_held_down(&self) -> bool {
        self.held_by_group != Treatment::Normal || {
            let threads = self.threads.lock();
            threads.stopped || threads.is_idle() || threads.is_stopped_by_slot()
        }
    }

    /// Whether there are deeds to undo.
    pub(crate) fn is_touched(&self) -> bool {
        let threads = self.threads.lock();
        threads.stopped || threads.are_touched()
    }

    /// Repeats deeds that a fresh look does not show: another process may have continued this
    /// one, or its stop signal is not delivered yet. The record stays in both cases.
    pub(crate) fn reassert(&mut self, stat: &Stat, journal: &mut Journal) {
        if self.out_of_reach {
            return;
        }
        let mut threads = self.threads.lock();
        if threads.is_stopped() && !stat.is_stopped() {
            let _ = self.handle.signal(Signal::STOP);
        }
        if threads.was_promoted_by_others(stat) {
            let _ = threads.demote(&self.handle, journal);
        }
    }

    /// The stronger of this treatment and of what a slot demands holds until the slot ends.
    pub(crate) fn treat(
        &mut self,
        treatment: Treatment,
        journal: &mut Journal,
    ) -> Result<(), Failure> {
        match treatment {
            Treatment::Stopped => self.stop(journal),
            Treatment::Idle => {
                let mut threads = self.threads.lock();
                if !threads.is_idle() || threads.is_stale() {
                    threads.refresh(journal);
                    threads.demote(&self.handle, journal)?;
                }
                go_on(&mut threads, &self.handle, journal)
            }
            Treatment::Normal => {
                let mut threads = self.threads.lock();
                let mut promoted = Ok(());
                if threads.is_idle() {
                    threads.refresh(journal);
                    // Before it continues, so that it does not wake in `SCHED_IDLE`.
                    promoted = threads.promote(&self.handle, journal);
                    self.restored_at_ns = self.clock_ns;
                }
                go_on(&mut threads, &self.handle, journal).and(promoted)
            }
        }
    }

    /// Leaves a process alone that its user stopped: the engine must not continue it later. If
    /// its user continues it, the client counts as defied and is treated again.
    fn stop(&mut self, journal: &mut Journal) -> Result<(), Failure> {
        if self.threads.lock().stopped {
            return Ok(());
        }
        let is_stopped = self.look()?.is_stopped();
        let mut threads = self.threads.lock();
        if is_stopped && !threads.is_stopped_by_slot() {
            return Ok(());
        }
        journal.mark(threads.record(), flag::STOPPED);
        // In its slot it runs, and stops at the slot's end.
        if !threads.are_in_slot()
            && let Err(error) = self.handle.signal(Signal::STOP)
        {
            journal.clear(threads.record(), flag::STOPPED);
            return Err(error.into());
        }
        threads.stopped = true;
        if threads.is_idle() {
            // Threads born until now have inherited `SCHED_IDLE`, and the record of that is cleared.
            threads.expect_more();
            threads.refresh(journal);
            // In `SCHED_IDLE` it would be late to stop. What is refused is tried again when its
            // client wins.
            let _ = threads.promote(&self.handle, journal);
            self.restored_at_ns = self.clock_ns;
        }
        Ok(())
    }

    /// Binds its threads to these CPUs, or unbinds them.
    pub(crate) fn bind(
        &mut self,
        cpus: Option<&CpuSet>,
        journal: &mut Journal,
    ) -> Result<(), Failure> {
        let mut threads = self.threads.lock();
        match cpus {
            Some(cpus) => threads.bind(&self.handle, cpus, journal),
            None => {
                self.restored_at_ns = self.clock_ns;
                threads.unbind(&self.handle, journal)
            }
        }
    }

    /// Lowers it in its slot, if need be, and has keepers raise it no more.
    pub(crate) fn uncast(&mut self, table: &Table) {
        let mut threads = self.threads.lock();
        if threads.is_cast() || threads.are_in_slot() {
            threads.uncast(&self.handle, table);
            self.restored_at_ns = self.clock_ns;
        }
    }

    /// To be called when all births so far have been noticed. A birth that began while the
    /// process was held down may not have been.
    pub(crate) fn forget_the_past(&mut self) {
        if self.clock_ns - self.restored_at_ns >= LONGEST_BIRTH_NS {
            self.threads.lock().forget_the_past();
        }
    }

    /// Undoes all deeds. Returns whether none is left.
    pub(crate) fn let_go(&mut self, journal: &mut Journal) -> bool {
        let _ = self.treat(Treatment::Normal, journal);
        let _ = self.bind(None, journal);
        self.uncast(journal.table());
        !self.is_touched() || !self.is_alive()
    }

    /// Gives its records back, after its end or when all deeds are undone.
    pub(crate) fn retire(self, journal: &mut Journal) {
        self.threads.lock().retire(journal);
    }
}

fn go_on(threads: &mut Threads, process: &Handle, journal: &Journal) -> Result<(), Failure> {
    if threads.stopped {
        threads.stopped = false;
        if threads.is_stopped_by_slot() {
            return Ok(());
        }
        if let Err(error) = process.signal(Signal::CONT) {
            threads.stopped = true;
            return Err(error.into());
        }
        journal.clear(threads.record(), flag::STOPPED);
    }
    Ok(())
}
