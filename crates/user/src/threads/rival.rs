//! Giving way to the schedulee of a slot, where schedulees are not raised.

use rustix::process::Signal;

use super::Threads;
use crate::process::Treatment;
use crate::process_id::Handle;
use crate::procfs;
use crate::scheduler::{self, Policy};
use crate::table::{Table, flag};

impl Threads {
    /// Puts the threads in `SCHED_IDLE` or stops the process for a slot of another client, if it may
    /// use any of these CPUs. Does nothing unless the process is cast, nor in a slot of its own.
    pub(crate) fn give_way(
        &mut self,
        process: &Handle,
        how: Treatment,
        cpus: &[u32],
        table: &Table,
    ) {
        if !self.is_cast || self.in_slot || self.by_slot == how || !self.may_use_any(cpus) {
            return;
        }
        match how {
            Treatment::Idle => {
                table.mark(self.record(), flag::IDLE);
                self.by_slot = how;
                // Children inherit it.
                self.idle_lately = true;
                for thread in &self.list {
                    if let Ok(now) = Policy::of(thread.tid)
                        && now.is_fair()
                        && !now.is_idle()
                    {
                        let target = self.target(process, thread.tid);
                        let _ = target.set_policy(now, now.demoted());
                    }
                }
            }
            Treatment::Stopped => {
                // A process that its user stopped must not be continued later.
                let is_stopped = procfs::stat(self.pid).is_ok_and(|stat| stat.is_stopped());
                if self.stopped || !is_stopped {
                    table.mark(self.record(), flag::STOPPED);
                    self.by_slot = how;
                    let _ = process.signal(Signal::STOP);
                }
            }
            Treatment::Normal => {}
        }
    }

    fn may_use_any(&self, cpus: &[u32]) -> bool {
        let may_use = |tid| {
            let usable = scheduler::affinity(tid);
            usable.is_ok_and(|usable| cpus.iter().any(|&cpu| usable.is_set(cpu as usize)))
        };
        self.list.iter().any(|thread| may_use(thread.tid))
    }

    /// Gives the process what the decision thread lets it have. What is refused is tried again when
    /// that treats the process.
    pub(crate) fn go_on(&mut self, process: &Handle, table: &Table) {
        if self.list.is_empty() {
            // It has ended, and has no record any more.
            return;
        }
        match std::mem::replace(&mut self.by_slot, Treatment::Normal) {
            Treatment::Idle if !self.idle => match self.leave_idle(process) {
                Ok(()) => table.unmark(self.record(), flag::IDLE),
                Err(_) => self.idle = true,
            },
            Treatment::Stopped if !self.stopped => match process.signal(Signal::CONT) {
                Ok(()) => table.unmark(self.record(), flag::STOPPED),
                Err(_) => self.stopped = true,
            },
            _ => {}
        }
    }

    /// Whether a stop signal of the engine holds it.
    pub(crate) fn is_stopped(&self) -> bool {
        (self.stopped && !self.in_slot) || self.by_slot == Treatment::Stopped
    }

    /// Whether it is stopped only until a slot of another client ends.
    pub(crate) fn is_stopped_by_slot(&self) -> bool {
        self.by_slot == Treatment::Stopped
    }
}
