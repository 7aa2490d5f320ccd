//! Putting everything right that a table speaks of. Done by the guardian, by
//! the next engine at its start, and by an engine whose decision thread
//! failed; none of them knows more than the table and `/proc`.

use std::collections::{HashMap, HashSet};

use rustix::io::Errno;
use rustix::process::Signal;

use crate::CLIENT_MARKER;
use crate::process_id::ProcessId;
use crate::procfs;
use crate::scheduler::{self, Policy};
use crate::table::{Entry, Table, flag};

/// What happens to records of what has been put right.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Records {
    /// They are cleared: their writer is dead.
    Clear,
    /// They stay: their writer is only stalled, perhaps between writing one
    /// and acting on it, and clears them itself if it ever wakes.
    Keep,
}

/// How a sweep went.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) struct Swept {
    /// Processes and threads that were put right.
    pub(crate) restored: u32,
    /// Those that exist but that we may not touch (any more).
    pub(crate) refused: u32,
}

/// Undoes all that the table speaks of. Processes that are gone need nothing.
pub(crate) fn put_right(table: &Table, records: Records) -> Swept {
    let mut entries: Vec<Entry> = table.entries().collect();
    // Children before their parents, so that no shell sees a stopped child.
    entries.sort_by_key(|entry| std::cmp::Reverse(entry.thread.start_time_ticks));
    let own_policies: HashMap<ProcessId, Policy> = entries
        .iter()
        .filter(|entry| entry.flags & flag::OWN_POLICY != 0)
        .map(|entry| (entry.thread, entry.policy))
        .collect();
    let mut swept = Swept::default();
    let mut any_idle = false;
    for entry in &entries {
        if entry.flags & flag::IDLE != 0 {
            any_idle = true;
            if entry.thread.is_alive() {
                let restored = restore_policies(entry.thread.pid, &own_policies);
                swept.count(restored);
            }
        }
        if entry.flags & flag::BOUND != 0 {
            swept.count(restore_affinity(entry));
        }
        if entry.flags & flag::STOPPED != 0 {
            let handle = entry.thread.open();
            swept.count(handle.and_then(|handle| handle.signal(Signal::CONT)));
        }
        if records == Records::Clear {
            table.clear(entry.index, flag::TOUCHED);
        }
    }
    if any_idle {
        restore_unlisted(&entries, &own_policies, &mut swept);
    }
    swept
}

impl Swept {
    fn count(&mut self, result: rustix::io::Result<()>) {
        match result {
            Ok(()) => self.restored += 1,
            Err(Errno::SRCH | Errno::NOENT) => {}
            Err(_) => self.refused += 1,
        }
    }
}

/// Threads born while others are restored inherit `SCHED_IDLE` from those
/// that are not yet, so one pass may not be enough.
const PASSES: u32 = 4;

/// Gives all threads of a process their own policies back.
fn restore_policies(pid: u32, own_policies: &HashMap<ProcessId, Policy>) -> rustix::io::Result<()> {
    let mut result = Ok(());
    for _ in 0..PASSES {
        let mut changed = false;
        let listed = procfs::for_each_thread(pid, |tid| {
            let Ok(now) = Policy::of(tid) else { return };
            if !now.is_idle() {
                return;
            }
            let own = own_policy(pid, tid, own_policies).unwrap_or(Policy::OTHER);
            if own.is_idle() {
                return;
            }
            match own.set(tid) {
                Ok(()) => changed = true,
                Err(error) => result = Err(errno(&error)),
            }
        });
        if listed.is_err() {
            return Err(Errno::SRCH);
        }
        if !changed {
            break;
        }
    }
    result
}

fn own_policy(pid: u32, tid: u32, own_policies: &HashMap<ProcessId, Policy>) -> Option<Policy> {
    if own_policies.is_empty() {
        return None;
    }
    let start_time_ticks = procfs::thread_stat(pid, tid).ok()?.start_time_ticks;
    let thread = ProcessId {
        pid: tid,
        start_time_ticks,
    };
    own_policies.get(&thread).copied()
}

fn restore_affinity(entry: &Entry) -> rustix::io::Result<()> {
    let stat = procfs::thread_stat(entry.pid, entry.thread.pid).map_err(|_| Errno::SRCH)?;
    if stat.start_time_ticks != entry.thread.start_time_ticks {
        return Err(Errno::SRCH);
    }
    scheduler::set_affinity(entry.thread.pid, &entry.affinity).map_err(|error| errno(&error))
}

/// Children born to a demoted process after its engine looked last have
/// inherited `SCHED_IDLE` and stand in no record. They are known by their
/// ancestors, or, where those are gone, by the marker of a client.
fn restore_unlisted(
    entries: &[Entry],
    own_policies: &HashMap<ProcessId, Policy>,
    swept: &mut Swept,
) {
    let listed: HashSet<u32> = entries.iter().map(|entry| entry.pid).collect();
    let idle: HashSet<u32> = entries
        .iter()
        .filter(|entry| entry.flags & flag::IDLE != 0)
        .map(|entry| entry.pid)
        .collect();
    let mut unlisted = Vec::new();
    let _ = procfs::for_each_process(|pid| {
        let is_idle = || procfs::stat(pid).is_ok_and(|s| Policy(s.policy).is_idle());
        if !listed.contains(&pid) && is_idle() {
            unlisted.push(pid);
        }
    });
    // One with another engine's marker is promoted for a moment only: that
    // engine will see to it.
    let is_marked = |pid| procfs::environment_variable(pid, CLIENT_MARKER).is_some();
    for pid in unlisted {
        if descends_from(pid, &idle) || is_marked(pid) {
            swept.count(restore_policies(pid, own_policies));
        }
    }
}

/// Generations that are followed upwards.
const MAX_GENERATIONS: u32 = 1024;

fn descends_from(pid: u32, ancestors: &HashSet<u32>) -> bool {
    let mut pid = pid;
    for _ in 0..MAX_GENERATIONS {
        match procfs::stat(pid) {
            Ok(stat) if ancestors.contains(&stat.parent) => return true,
            Ok(stat) if stat.parent > 1 => pid = stat.parent,
            _ => return false,
        }
    }
    false
}

fn errno(error: &std::io::Error) -> Errno {
    Errno::from_io_error(error).unwrap_or(Errno::IO)
}
