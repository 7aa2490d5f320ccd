//! Clients that give way: what users run without a request.
//!
//! A thread that moves to another client leaves the class for a moment and runs under the kernel's
//! own scheduler meanwhile. The kernel charges each client for what its threads used there.

use std::collections::{HashMap, HashSet};

use prorata_core::ids::ClientId;
use prorata_user::{Policy, procfs};

use super::client::Client;
use super::kernel_side::KernelSide;
use super::members::{MOST_LOOKS, threads_of};
use super::policies::SCHED_EXT;
use crate::engine::Stray;
use crate::process::ProcessId;

impl KernelSide {
    /// Adds a process without a client to a client that gives way. Returns whether it has a client
    /// now.
    pub(super) fn take_in(&mut self, id: ClientId, stray: Stray) -> bool {
        let Stray { process, user } = stray;
        let is_its_users = || procfs::real_uid(process.pid) == Some(user) && process.is_alive();
        if !self.is_loaded() || !is_its_users() {
            return false;
        }
        if self.find(process.pid).is_some() {
            return true;
        }
        let Some(node) = self.projection.node(id) else {
            return false;
        };
        if !self
            .give_process(node, process.pid)
            .is_ok_and(|threads| threads > 0)
        {
            return false;
        }
        let client = self.clients.entry(id).or_insert_with(Client::new);
        client.users.add(user);
        client.gives_way = true;
        if !is_its_users() {
            self.let_process_out(process.pid);
            self.notice_exit(id);
            return false;
        }
        true
    }

    /// Whether any of these processes has an ordinary policy.
    pub(super) fn would_take_in(&self, strays: &[Stray]) -> bool {
        let is_ordinary = |stray: &Stray| Policy::of(stray.process.pid).is_ok_and(Policy::is_fair);
        self.is_loaded() && strays.iter().any(is_ordinary)
    }

    /// Releases those of these processes that are of clients that give way.
    pub(super) fn let_out(&mut self, processes: &[ProcessId]) {
        for process in processes {
            if let Some(from) = self.find(process.pid).filter(|id| self.gives_way(*id)) {
                self.let_process_out(process.pid);
                self.notice_exit(from);
            }
        }
    }

    /// Whether a client gives way.
    pub(super) fn gives_way(&self, id: ClientId) -> bool {
        self.clients.get(&id).is_some_and(|client| client.gives_way)
    }

    /// Releases a process and its descendants from their client, and children that are born
    /// meanwhile.
    pub(super) fn let_out_below(&mut self, from: ClientId, top: u32) {
        let mut below = HashSet::from([top]);
        for _ in 0..MOST_LOOKS {
            let mut any_left = false;
            // Parents come first.
            for (pid, stat) in procfs::all_processes() {
                let is_below = below.contains(&pid) || below.contains(&stat.parent);
                if is_below && self.find(pid) == Some(from) {
                    below.insert(pid);
                    self.let_process_out(pid);
                    any_left = true;
                }
            }
            if !any_left {
                break;
            }
        }
        self.notice_exit(from);
    }

    /// Releases all threads of a process, also those that are born meanwhile.
    fn let_process_out(&self, pid: u32) {
        for _ in 0..MOST_LOOKS {
            let mut any_left = false;
            for tid in threads_of(pid) {
                let Ok(stat) = procfs::thread_stat(pid, tid) else {
                    continue;
                };
                // A thread born to one that was being released is in no node, but it is in the class.
                if self.find(tid).is_some() || stat.policy == SCHED_EXT {
                    let own = self.own_policy(tid, &stat, &HashMap::new());
                    self.let_go(tid, own);
                    any_left = true;
                }
            }
            if !any_left {
                break;
            }
        }
    }
}
