//! Putting everything right that a table speaks of. Done by the guardian, by
//! the next engine at its start, and by an engine whose decision thread
//! failed; none of them knows more than the table and `/proc`.

use std::collections::HashMap;
use std::path::Path;

use rustix::io::Errno;
use rustix::process::Signal;

use crate::process_id::{Handle, ProcessId};
use crate::procfs::{self, Stat};
use crate::reach::Target;
use crate::scheduler::{self, Policy};
use crate::table::{Entry, Table, flag};
use crate::threads::Binding;
use crate::{CLIENT_MARKER, SOCKET_MARKER};

/// What happens to records of what has been put right.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Records {
    /// They are cleared: their writer is dead. Records of what is refused stay
    /// for the next sweep.
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
/// `socket` tells the clients of the table's engine from those of others.
pub(crate) fn put_right(table: &Table, socket: &Path, records: Records) -> Swept {
    let mut entries: Vec<Entry> = table.entries().collect();
    // Children before their parents, so that no shell sees a stopped child.
    entries.sort_by_key(|entry| std::cmp::Reverse(entry.thread.start_time_ticks));
    let known = Known::from(&entries);
    let mut swept = Swept::default();
    for entry in &entries {
        let result = restore(entry, &known);
        swept.count(result);
        let is_settled = matches!(result, Ok(_) | Err(Errno::SRCH | Errno::NOENT));
        if records == Records::Clear && is_settled {
            table.clear(entry.index, flag::TOUCHED);
        }
    }
    if entries.iter().any(|entry| entry.flags & INHERITED != 0) {
        restore_unlisted(&known, socket, &mut swept);
    }
    swept
}

/// What children inherit.
const INHERITED: u32 = flag::IDLE | flag::BOUND;

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
    /// Of its first thread, where that is not the ordinary one. Its other
    /// threads and its children inherit that.
    policy: Option<Policy>,
    /// Of all its threads.
    bindings: Vec<Binding>,
}

impl Listed {
    fn policy(&self) -> Policy {
        self.policy.unwrap_or(Policy::OTHER)
    }
}

/// What the table says, taken together.
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
            if entry.flags & flag::OWN_POLICY != 0 {
                known.policies.insert(entry.thread, entry.policy);
                if entry.thread.pid == entry.pid {
                    listed.policy = Some(entry.policy);
                }
            }
        }
        known
    }

    /// A thread's own policy; the process's is that of its threads too, unless
    /// they are listed with another.
    fn policy(&self, pid: u32, tid: u32, of_process: Policy) -> Policy {
        if self.policies.is_empty() {
            return of_process;
        }
        let start = procfs::thread_stat(pid, tid).map(|stat| stat.start_time_ticks);
        let thread = start.map(|start_time_ticks| ProcessId {
            pid: tid,
            start_time_ticks,
        });
        let own = thread.ok().and_then(|thread| self.policies.get(&thread));
        own.copied().unwrap_or(of_process)
    }
}

/// Undoes what one record speaks of. Returns whether there was anything.
fn restore(entry: &Entry, known: &Known) -> rustix::io::Result<bool> {
    if entry.flags & flag::TOUCHED == 0 {
        return Ok(false);
    }
    let process = if entry.thread.pid == entry.pid {
        entry.thread
    } else {
        // A thread's record: its process is told by the thread's start time.
        let stat = procfs::thread_stat(entry.pid, entry.thread.pid).map_err(|_| Errno::SRCH)?;
        if stat.start_time_ticks != entry.thread.start_time_ticks {
            return Err(Errno::SRCH);
        }
        ProcessId::of(entry.pid).map_err(|_| Errno::SRCH)?
    };
    let handle = process.open()?;
    let mut result = Ok(());
    if entry.flags & flag::IDLE != 0 {
        let listed = &known.processes[&entry.pid];
        result = restore_policies(&handle, entry.pid, known, listed.policy()).map(drop);
    }
    if let Some(binding) = &entry.binding {
        let target = Target {
            process: &handle,
            pid: entry.pid,
            tid: entry.thread.pid,
        };
        let own = target.set_affinity(&binding.own);
        result = result.and(own.map_err(|error| errno(&error)));
        // Its newborn threads have inherited the binding.
        let bindings = std::slice::from_ref(binding);
        result = result.and(restore_affinities(&handle, entry.pid, bindings).map(drop));
    }
    if entry.flags & flag::STOPPED != 0 {
        result = result.and(handle.signal(Signal::CONT));
    }
    result.map(|()| true)
}

/// Threads born while others are restored inherit from those that are not yet,
/// so one pass may not be enough.
const PASSES: u32 = 4;

/// Calls `restore` with each thread of a process until nothing changes; it
/// returns whether it changed anything, and so does this.
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
    for_all_threads(pid, |tid| {
        if !Policy::of(tid)?.is_idle() {
            return Ok(false);
        }
        let own = known.policy(pid, tid, of_process);
        if own.is_idle() {
            return Ok(false);
        }
        Target { process, pid, tid }.set_policy(own).map(|()| true)
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
        target.set_affinity(&binding.own).map(|()| true)
    })
}

/// Children born to a demoted or bound process after its engine looked last
/// have inherited that and stand in no record. They are known by their nearest
/// ancestor that does. One whose ancestor was not demoted is in `SCHED_IDLE`
/// because it chose that, and stays there; of one whose ancestors are all
/// gone, known by its marker, that cannot be known, and it is restored:
/// nobody is to stay demoted because of us.
fn restore_unlisted(known: &Known, socket: &Path, swept: &mut Swept) {
    let mut unlisted = Vec::new();
    let _ = procfs::for_each_process(|pid| {
        if !known.processes.contains_key(&pid)
            && let Ok(stat) = procfs::stat(pid)
        {
            unlisted.push((pid, stat));
        }
    });
    let any_idle = known.processes.values().any(|p| p.flags & flag::IDLE != 0);
    let orphan = Listed {
        flags: flag::IDLE,
        ..Listed::default()
    };
    for (pid, stat) in unlisted {
        let is_idle = Policy(stat.policy).is_idle();
        let ancestor = listed_ancestor(&stat, known);
        let inherited = match ancestor {
            Some(ancestor) => ancestor,
            None if is_idle && any_idle && is_marked(pid, socket) => &orphan,
            None => continue,
        };
        let process = ProcessId {
            pid,
            start_time_ticks: stat.start_time_ticks,
        };
        let Ok(handle) = process.open() else {
            continue;
        };
        if is_idle && inherited.flags & flag::IDLE != 0 {
            swept.count(restore_policies(&handle, pid, known, inherited.policy()));
        }
        if !inherited.bindings.is_empty() {
            swept.count(restore_affinities(&handle, pid, &inherited.bindings));
        }
    }
}

fn is_marked(pid: u32, socket: &Path) -> bool {
    procfs::environment_variable(pid, CLIENT_MARKER).is_some()
        && procfs::environment_variable(pid, SOCKET_MARKER).is_some_and(|s| Path::new(&s) == socket)
}

/// Generations that are followed upwards.
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
