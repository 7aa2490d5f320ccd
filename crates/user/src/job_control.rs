//! Treats the processes of a client, and hides stops from their parents. (A control group holds
//! processes down without stops: [`crate::control_groups`].)
//!
//! A shell would take a child that the engine stops for a stopped job. So a parent is stopped
//! before its children. A parent that was told to stop may still return from waitpid(2), and
//! therefore its children run on until it has stopped. They are continued before it, and
//! `SIGCONT` takes effect before kill(2) returns. So waitpid(2) with `WUNTRACED` finds no child
//! stopped. With `WCONTINUED` it finds children continued: the kernel remembers that.
//!
//! Two kinds of parents may find their children stopped: a parent out of the engine's reach, such
//! as a set-uid program, which is never stopped, and a parent that stands behind its child (see
//! [`Client::add_process`]).

use std::collections::HashSet;

use crate::client::Client;
use crate::process::{Failure, Process, Treatment};
use crate::procfs;
use crate::signals::Pending;
use crate::table::Journal;
use crate::time::{MILLISECOND_NS, monotonic_ns};

/// After this time a child is stopped even if its parent has not stopped: the parent may wait in
/// vfork(2) for this very child, or for a disk.
const PATIENCE_NS: u64 = 20 * MILLISECOND_NS;

/// How often the engine looks whether parents have stopped.
pub(crate) const STOP_INTERVAL_NS: u64 = MILLISECOND_NS;

impl Client {
    /// Treats all its processes.
    pub(crate) fn treat(&mut self, treatment: Treatment, journal: &mut Journal) {
        self.treatment = treatment;
        self.unsettled = false;
        if treatment == Treatment::Stopped && !self.grouped {
            self.stop(journal);
            return;
        }
        self.stopping_since_ns = None;
        if self.grouped {
            self.treat_group(treatment, journal);
            return;
        }
        let mut defied = false;
        for process in self.processes.iter_mut().rev() {
            if treatment == Treatment::Idle && process.is_left_in_peace() {
                continue;
            }
            defied |= !process.accept(treatment, journal);
        }
        self.defied = defied;
    }

    /// Stops the processes whose parents have stopped.
    fn stop(&mut self, journal: &mut Journal) {
        let now_ns = monotonic_ns();
        let is_patient = now_ns - self.stopping_since_ns.unwrap_or(now_ns) < PATIENCE_NS;
        let parents: HashSet<u32> = self.processes.iter().map(|p| p.parent).collect();
        let mut on_their_way = HashSet::new();
        let mut any_waits = false;
        let mut defied = false;
        for process in &mut self.processes {
            let pid = process.id.pid;
            let waits = is_patient && on_their_way.contains(&process.parent);
            if waits {
                any_waits = true;
            } else {
                defied |= !process.accept(Treatment::Stopped, journal);
            }
            if parents.contains(&pid) && (waits || process.is_about_to_stop()) {
                on_their_way.insert(pid);
            }
        }
        self.defied = defied;
        self.stopping_since_ns = any_waits.then(|| self.stopping_since_ns.unwrap_or(now_ns));
    }

    /// Stops children whose parents have stopped meanwhile.
    pub(crate) fn go_on_stopping(&mut self, journal: &mut Journal) {
        if self.stopping_since_ns.is_some() {
            let unsettled = self.unsettled;
            self.treat(Treatment::Stopped, journal);
            self.unsettled |= unsettled;
        }
    }
}

impl Process {
    /// Is treated like its client, unless it may run to its end. Returns false if the treatment has
    /// to be tried again.
    fn accept(&mut self, treatment: Treatment, journal: &mut Journal) -> bool {
        let treatment = match self.runs_for {
            Pending::Fatal | Pending::End => Treatment::Normal,
            Pending::Handled | Pending::Nothing => treatment,
        };
        let returns = treatment == Treatment::Normal;
        // A process that may not be held down may still have deeds to undo.
        if self.out_of_reach && !returns {
            return true;
        }
        let result = self.treat(treatment, journal);
        self.out_of_reach |= result == Err(Failure::Refused);
        if returns {
            !self.is_held_down()
        } else {
            treatment != Treatment::Stopped || self.is_stopped_by_us()
        }
    }

    /// Whether it was told to stop, and may run until it does.
    fn is_about_to_stop(&self) -> bool {
        let mut any_runs = false;
        let has_threads = self.is_stopped_by_us()
            && procfs::for_each_thread(self.id.pid, |tid| {
                let stat = procfs::thread_stat(self.id.pid, tid);
                any_runs |= stat.is_ok_and(|stat| !stat.is_stopped() && !stat.thread_has_ended());
            })
            .is_ok();
        has_threads && any_runs
    }
}
