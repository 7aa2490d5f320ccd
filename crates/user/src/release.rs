//! Undoing deeds, also to children that inherited them.

use prorata_core::ids::ClientId;

use crate::births::MAX_NOTICES;
use crate::client::Client;
use crate::directory::Change;
use crate::group::Group;
use crate::process::{LONGEST_BIRTH_NS, Origin, Process};
use crate::process_id::ProcessId;
use crate::procfs::Stat;
use crate::scheduler;
use crate::threads::Heritage;
use crate::tree::Tree;

/// Most released processes that are remembered; the oldest are forgotten first.
const MAX_DEPARTED: usize = 4096;

/// A released process that may have begun a fork while it was held down.
#[derive(Debug)]
pub(crate) struct Departed {
    id: ProcessId,
    /// CPU time when it was released.
    clock_ns: u64,
    heritage: Heritage,
}

impl Departed {
    fn may_give_birth(&self) -> bool {
        scheduler::cpu_time_ns(self.id.pid)
            .is_some_and(|clock_ns| clock_ns.saturating_sub(self.clock_ns) < LONGEST_BIRTH_NS)
            && ProcessId::of(self.id.pid).is_ok_and(|id| id == self.id)
    }
}

impl Tree {
    /// Undoes all deeds to a client, and forgets it once its last CPU time is charged. Each survey
    /// tries again to undo what could not be undone.
    pub(crate) fn remove(&mut self, id: ClientId, now_ns: u64) {
        if self.client(id).is_none() {
            return;
        }
        self.let_go_with_newborn(now_ns, |tree| {
            if let Some((client, journal)) = tree.with_journal(id) {
                client.let_go(journal);
            }
        });
        let Some(mut client) = self.clients.remove(id) else {
            return;
        };
        self.note_fosterers(&mut client);
        for process in client.processes.drain(..) {
            self.strike(id, &process);
            let waited_for = self.owners.contains_key(&process.parent);
            // The parent may have waited for it by now.
            if waited_for && !process.is_alive() {
                self.zombies.push((id, process));
            } else {
                if waited_for {
                    self.note_outsider(process.id, process.parent, process.life_ns());
                }
                self.release(process);
            }
        }
        for foster_parent in client.foster_parents.drain(..) {
            self.dismiss_foster_parent(id, foster_parent.id.pid);
        }
        self.changes.push(Change::Forgotten(id));
        self.any_left = true;
        client.runnable = 0;
        client.affinity = None;
        self.farewells.push(client);
    }

    /// Undoes all deeds to these processes of a client, and releases them.
    pub(crate) fn let_some_go(&mut self, id: ClientId, pids: &[u32], now_ns: u64) {
        self.let_go_with_newborn(now_ns, |tree| tree.undo(id, |_| pids.to_vec()));
        let Some(client) = self.client_mut(id) else {
            return;
        };
        let released: Vec<Process> = client
            .processes
            .extract_if(.., |process| pids.contains(&process.id.pid))
            .collect();
        for process in released {
            self.note_outsider(process.id, process.parent, process.life_ns());
            self.strike(id, &process);
            self.release(process);
        }
    }

    /// Undoes all deeds to some processes of a client, children before their parents.
    pub(crate) fn undo(&mut self, id: ClientId, some: impl Fn(&Client) -> Vec<u32>) {
        let Some((client, journal)) = self.with_journal(id) else {
            return;
        };
        let pids = some(client);
        let processes = client.processes.iter_mut().rev();
        for process in processes.filter(|process| pids.contains(&process.id.pid)) {
            process.let_go(journal);
        }
        pids.iter().for_each(|&pid| client.dismiss(pid));
    }

    /// Undoes what a process that cannot be managed inherited from its parent.
    pub(crate) fn disinherit(&mut self, pid: u32, stat: &Stat, origin: Origin) {
        let process = ProcessId::from_stat(pid, stat);
        self.note_outsider(process, stat.parent, 0);
        let Ok(group) = Group::of(pid, stat.session) else {
            return;
        };
        let group = self.groups.enter(group);
        let ways = (self.way_back, false);
        let heir = Process::new(process, group, origin, ways, &mut self.journal);
        self.groups.leave(group);
        if let Ok(heir) = heir {
            self.release(heir);
        }
    }

    fn release(&mut self, mut process: Process) {
        if process.let_go(&mut self.journal) {
            self.remember(&process);
            process.retire(&mut self.journal);
        } else {
            self.unreleased.push(process);
        }
    }

    fn remember(&mut self, process: &Process) {
        let heritage = process.threads.lock().heritage();
        if !heritage.is_none()
            && let Some(clock_ns) = scheduler::cpu_time_ns(process.id.pid)
        {
            if self.departed.len() >= MAX_DEPARTED {
                self.departed.remove(0);
            }
            self.departed.push(Departed {
                id: process.id,
                clock_ns,
                heritage,
            });
        }
    }

    /// Undoes what a newborn inherited from a released parent. Returns whether it has one.
    pub(crate) fn restore_posthumous(&mut self, pid: u32, stat: &Stat) -> bool {
        let is_parent = |departed: &&Departed| departed.id.pid == stat.parent;
        let Some(parent) = self.departed.iter().find(is_parent) else {
            return false;
        };
        let origin = Origin::Born(parent.heritage.clone());
        self.disinherit(pid, stat, origin);
        true
    }

    /// Forgets released processes that cannot have begun a fork before their release.
    pub(crate) fn review_departed(&mut self) {
        self.departed.retain(Departed::may_give_birth);
    }

    /// Tries again to undo what was refused.
    pub(crate) fn release_again(&mut self) {
        for process in std::mem::take(&mut self.unreleased) {
            self.release(process);
        }
    }

    /// Whether there may be deeds to undo to processes without a client.
    pub(crate) fn owes_release(&self) -> bool {
        !self.unreleased.is_empty() || !self.departed.is_empty()
    }

    /// Undoes all deeds.
    pub(crate) fn let_all_go(&mut self, now_ns: u64) {
        self.let_go_with_newborn(now_ns, |tree| {
            tree.clients.wake_all();
            let (clients, journal) = tree.lively_with_journal();
            clients.for_each(|client| client.let_go(journal));
        });
        self.release_again();
        self.recast_due = true;
    }

    /// Lets processes go, and their children that were born before that and inherited the deeds.
    /// Must be called while the parents still belong to their clients.
    pub(crate) fn let_go_with_newborn(&mut self, now_ns: u64, mut let_go: impl FnMut(&mut Tree)) {
        for _ in 0..MAX_NOTICES {
            let_go(self);
            let before = self.process_count();
            if !self.notice_births(now_ns) {
                self.walk_through_births(now_ns);
            }
            if self.process_count() == before {
                return;
            }
        }
        let_go(self);
    }
}
