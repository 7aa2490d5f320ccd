//! Undoes all deeds that a table lists. The guardian does so, the next engine at its start, and
//! an engine after a panic of its decision thread. None of them knows more than the table,
//! `/proc` and the control groups.

use std::collections::HashMap;
use std::path::Path;

use rustix::io::Errno;
use rustix::process::Signal;
use rustix::thread::CpuSet;

use crate::control_groups;
use crate::marker::marked_client;
use crate::priority::{self, Raise};
use crate::process_id::{Handle, ProcessId};
use crate::procfs::{self, Stat};
use crate::reach::Target;
use crate::scheduler::{self, Policy, intersection};
use crate::table::{Entry, Table, flag};
use crate::threads::Binding;

/// What happens to the record of an undone deed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Records {
    /// Cleared, because its writer is dead. The records of refused deeds stay for the next
    /// sweep.
    Clear,
    /// Kept, because its writer is only stalled, perhaps between writing the record and the deed.
    /// The writer clears it when it wakes.
    Keep,
}

#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) struct Swept {
    /// Processes, threads and control groups that were put right.
    pub(crate) restored: u32,
    /// Living processes and threads that this user may not change.
    pub(crate) refused: u32,
}

/// Undoes all deeds that the table lists. `socket` tells the clients of the table's engine from
/// other engines' clients.
pub(crate) fn put_right(table: &Table, socket: &Path, records: Records) -> Swept {
    let mut swept = undo(table, socket, records, flag::TOUCHED, |_| true);
    if let Some(base) = table.control_groups() {
        swept.restored += control_groups::put_right(&base, records);
    }
    swept
}

/// Lowers the threads that are raised in slots of these CPUs, and keeps their records: the keepers
/// there have stalled.
pub(crate) fn lower(table: &Table, socket: &Path, cpus: &CpuSet) -> Swept {
    let is_there = |entry: &Entry| {
        let ascent = entry.ascent.as_ref();
        ascent.is_some_and(|ascent| intersection(&ascent.binding.ours, cpus).count() > 0)
    };
    undo(table, socket, Records::Keep, flag::RAISED, is_there)
}

/// Undoes the deeds of these kinds of the records that `concerns` names.
fn undo(
    table: &Table,
    socket: &Path,
    records: Records,
    deeds: u32,
    concerns: impl Fn(&Entry) -> bool,
) -> Swept {
    let mut entries: Vec<Entry> = table.entries().collect();
    // Continues children before their parents, so that no shell sees a stopped child.
    entries.sort_by_key(|entry| std::cmp::Reverse((entry.thread.start_time_ticks, entry.pid)));
    let known = Known::from(&entries);
    let mut swept = Swept::default();
    for entry in entries.iter().filter(|entry| concerns(entry)) {
        let result = restore(entry, &known, deeds);
        swept.count(result);
        let is_settled = matches!(result, Ok(_) | Err(Errno::SRCH | Errno::NOENT));
        if records == Records::Clear && is_settled {
            table.clear(entry.index, deeds);
        }
    }
    let inherited = INHERITED & deeds;
    if entries.iter().any(|entry| entry.flags & inherited != 0) {
        restore_unlisted(&known, socket, inherited, &mut swept);
    }
    swept
}

/// What children inherit.
const INHERITED: u32 = flag::IDLE | flag::BOUND | flag::RAISED;

impl Swept {
    fn count(&mut self, result: rustix::io::Result<bool>) {
        match result {
            Ok(changed) => self.restored += u32::from(changed),
            Err(Errno::SRCH | Errno::NOENT) => {}
            Err(_) => self.refused += 1,
        }
    }
}

/// What the table says about one process.
#[derive(Default)]
struct Listed {
    flags: u32,
    /// Policy of its first thread, if not the ordinary one. Its other threads and its children
    /// inherit that.
    policy: Option<Policy>,
    /// Bindings of all its threads.
    bindings: Vec<Binding>,
    /// The same in slots.
    slot_bindings: Vec<Binding>,
}

impl Listed {
    fn policy(&self) -> Policy {
        self.policy.unwrap_or(Policy::OTHER)
    }
}

/// All that the table says.
#[derive(Default)]
struct Known {
    processes: HashMap<u32, Listed>,
    /// Own policies of threads.
    policies: HashMap<ProcessId, Policy>,
}

impl Known {
    fn from(entries: &[Entry]) -> Known {
        let mut known = Known::default();
        for entry in entries {
            let listed = known.processes.entry(entry.pid).or_default();
            listed.flags |= entry.flags;
            listed.bindings.extend(entry.binding);
            let in_slot = entry.ascent.as_ref().map(|ascent| ascent.binding);
            listed.slot_bindings.extend(in_slot);
            if entry.flags & flag::OWN_POLICY != 0 {
                known.policies.insert(entry.thread, entry.policy);
                if entry.thread.pid == entry.pid {
                    listed.policy = Some(entry.policy);
                }
            }
        }
        known
    }

    /// A thread's own policy: its process's, unless the thread is listed with another.
    fn policy(&self, pid: u32, tid: u32, of_process: Policy) -> Policy {
        if self.policies.is_empty() {
            return of_process;
        }
        let stat = procfs::thread_stat(pid, tid);
        let thread = stat.map(|stat| ProcessId::from_stat(tid, &stat));
        let own = thread.ok().and_then(|thread| self.policies.get(&thread));
        own.copied().unwrap_or(of_process)
    }
}

/// Undoes the deeds of these kinds of one record. Returns whether there were any.
fn restore(entry: &Entry, known: &Known, deeds: u32) -> rustix::io::Result<bool> {
    if entry.flags & deeds == 0 {
        return Ok(false);
    }
    let process = if entry.thread.pid == entry.pid {
        entry.thread
    } else {
        // The start time of the thread proves that its process is the recorded one.
        let stat = procfs::thread_stat(entry.pid, entry.thread.pid).map_err(|_| Errno::SRCH)?;
        if stat.start_time_ticks != entry.thread.start_time_ticks {
            return Err(Errno::SRCH);
        }
        ProcessId::of(entry.pid).map_err(|_| Errno::SRCH)?
    };
    let handle = process.open()?;
    let mut result = Ok(());
    if let Some(ascent) = &entry.ascent {
        let target = Target {
            process: &handle,
            pid: entry.pid,
            tid: entry.thread.pid,
        };
        result = ascent.undo(target).map_err(|error| errno(&error));
        // Newborn threads inherited the binding, and the policy where it is not reset.
        let bindings = std::slice::from_ref(&ascent.binding);
        result = result.and(restore_affinities(&handle, entry.pid, bindings).map(drop));
        let listed = &known.processes[&entry.pid];
        result = result.and(lower_heirs(&handle, entry.pid, known, listed.policy()).map(drop));
    }
    if deeds == flag::RAISED {
        return result.map(|()| true);
    }
    if entry.flags & flag::IDLE != 0 {
        let listed = &known.processes[&entry.pid];
        let own = restore_policies(&handle, entry.pid, known, listed.policy());
        result = result.and(own.map(drop));
    }
    if let Some(binding) = &entry.binding {
        let target = Target {
            process: &handle,
            pid: entry.pid,
            tid: entry.thread.pid,
        };
        let now = scheduler::affinity(target.tid);
        let own = now.and_then(|now| target.set_affinity(&now, &binding.own));
        result = result.and(own.map_err(|error| errno(&error)));
        // Newborn threads inherited the binding.
        let bindings = std::slice::from_ref(binding);
        result = result.and(restore_affinities(&handle, entry.pid, bindings).map(drop));
    }
    if entry.flags & flag::STOPPED != 0 {
        result = result.and(handle.signal(Signal::CONT));
    }
    result.map(|()| true)
}

/// A thread that is born during a pass may inherit from a thread that is not restored yet, so
/// one pass may not be enough.
const PASSES: u32 = 4;

/// Calls `restore` with each thread of a process until that changes nothing more. Both return
/// whether anything changed.
fn for_all_threads(
    pid: u32,
    mut restore: impl FnMut(u32) -> std::io::Result<bool>,
) -> rustix::io::Result<bool> {
    let mut result = Ok(());
    let mut ever_changed = false;
    for _ in 0..PASSES {
        let mut any_changed = false;
        let listed = procfs::for_each_thread(pid, |tid| match restore(tid) {
            Ok(changed) => any_changed |= changed,
            Err(error) if errno(&error) == Errno::SRCH => {}
            Err(error) => result = Err(errno(&error)),
        });
        if listed.is_err() {
            return Err(Errno::SRCH);
        }
        ever_changed |= any_changed;
        if !any_changed {
            break;
        }
    }
    result.map(|()| ever_changed)
}

/// Gives all threads of a process their own policies back.
fn restore_policies(
    process: &Handle,
    pid: u32,
    known: &Known,
    of_process: Policy,
) -> rustix::io::Result<bool> {
    let demoted = |tid| Ok(Some(Policy::of(tid)?).filter(|now| now.is_idle()));
    replace_policies(process, pid, demoted, |tid| {
        let own = known.policy(pid, tid, of_process);
        (!own.is_idle()).then_some(own)
    })
}

/// Gives all threads of a process their own policies back that inherited that of a slot. Threads
/// with records of their own have been lowered.
fn lower_heirs(
    process: &Handle,
    pid: u32,
    known: &Known,
    of_process: Policy,
) -> rustix::io::Result<bool> {
    let raised = |tid| {
        let (now, priority) = priority::of(tid)?;
        Ok(Raise::is_of_slot(now, priority).then_some(now))
    };
    replace_policies(process, pid, raised, |tid| {
        let own = known.policy(pid, tid, of_process);
        (!own.is_real_time()).then_some(own)
    })
}

/// Replaces the policies of threads that `imposed` names by what `own` gives, if it gives one.
fn replace_policies(
    process: &Handle,
    pid: u32,
    imposed: impl Fn(u32) -> std::io::Result<Option<Policy>>,
    own: impl Fn(u32) -> Option<Policy>,
) -> rustix::io::Result<bool> {
    for_all_threads(pid, |tid| {
        let Some(now) = imposed(tid)? else {
            return Ok(false);
        };
        let Some(own) = own(tid) else {
            return Ok(false);
        };
        Target { process, pid, tid }
            .set_policy(now, own)
            .map(|()| true)
    })
}

/// Frees all threads of a process that have one of these bindings.
fn restore_affinities(
    process: &Handle,
    pid: u32,
    bindings: &[Binding],
) -> rustix::io::Result<bool> {
    for_all_threads(pid, |tid| {
        let now = scheduler::affinity(tid)?;
        let Some(binding) = bindings.iter().find(|b| b.ours == now && b.own != now) else {
            return Ok(false);
        };
        let target = Target { process, pid, tid };
        target.set_affinity(&now, &binding.own).map(|()| true)
    })
}

/// Restores children that inherited a demotion or a binding after their engine's last look, and
/// so have no record. Their nearest ancestor with a record tells what they inherited. A child in
/// `SCHED_IDLE` under an ancestor that was not demoted chose that policy, and keeps it. A child
/// without such an ancestor is known by its marker. Whether it chose `SCHED_IDLE` cannot be
/// known, and it is restored: no process is to stay demoted because of the engine.
fn restore_unlisted(known: &Known, socket: &Path, inherited: u32, swept: &mut Swept) {
    let mut unlisted = Vec::new();
    let _ = procfs::for_each_process(|pid| {
        if !known.processes.contains_key(&pid)
            && let Ok(stat) = procfs::stat(pid)
        {
            unlisted.push((pid, stat));
        }
    });
    let any_idle =
        inherited & flag::IDLE != 0 && known.processes.values().any(|p| p.flags & flag::IDLE != 0);
    let orphan = Listed {
        flags: flag::IDLE,
        ..Listed::default()
    };
    for (pid, stat) in unlisted {
        let is_idle = Policy(stat.policy).is_idle();
        let ancestor = listed_ancestor(&stat, known);
        let listed = match ancestor {
            Some(ancestor) => ancestor,
            None if is_idle && any_idle && marked_client(pid, socket).is_some() => &orphan,
            None => continue,
        };
        let deeds = listed.flags & inherited;
        let Ok(handle) = ProcessId::from_stat(pid, &stat).open() else {
            continue;
        };
        if is_idle && deeds & flag::IDLE != 0 {
            swept.count(restore_policies(&handle, pid, known, listed.policy()));
        }
        if deeds & flag::RAISED != 0 {
            swept.count(lower_heirs(&handle, pid, known, listed.policy()));
            swept.count(restore_affinities(&handle, pid, &listed.slot_bindings));
        }
        if deeds & flag::BOUND != 0 {
            swept.count(restore_affinities(&handle, pid, &listed.bindings));
        }
    }
}

/// Longest line of ancestors that is followed.
const MAX_GENERATIONS: u32 = 1024;

fn listed_ancestor<'a>(stat: &Stat, known: &'a Known) -> Option<&'a Listed> {
    let mut parent = stat.parent;
    for _ in 0..MAX_GENERATIONS {
        if let Some(listed) = known.processes.get(&parent) {
            return Some(listed);
        }
        if parent <= 1 {
            return None;
        }
        parent = procfs::stat(parent).ok()?.parent;
    }
    None
}

fn errno(error: &std::io::Error) -> Errno {
    Errno::from_io_error(error).unwrap_or(Errno::IO)
}
