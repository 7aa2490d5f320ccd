//! What a sweep knows of the machine's processes from the sweeps before.
//!
//! Most processes are old acquaintances. A directory entry in `/proc` tells whether a process is
//! the one that had the number before (its inode), and whether it changed its user (its owner), for
//! some 2 us. The rest of what is known of a process is looked at again in turn.

use std::collections::HashMap;
use std::time::Duration;

use super::ordinary::Ordinary;
use super::spared::MOST_OF_MANAGER;
use crate::host::{CpuUse, Host, Listed};

/// After so many sweeps all is looked at again.
const LOOK_AGAIN: u32 = 16;

/// After so many sweeps, the files that tell who is an ordinary user are read again though they have
/// not changed: the user database may be elsewhere.
const READ_AGAIN: u32 = 1 << 10;

/// A process computes that uses more than one part in so many of a CPU, over at least this time.
const PART_OF_CPU: u32 = 50;
const LEAST_TIME: Duration = Duration::from_secs(16);

/// All processes, as of the last sweep.
#[derive(Default, Debug)]
pub(crate) struct Census {
    seen: HashMap<u32, Seen>,
    /// Number of the sweep.
    sweep: u32,
    ordinary: Ordinary,
}

#[derive(Debug)]
struct Seen {
    listed: Listed,
    /// In which sweep it was last found.
    sweep: u32,
    /// The ordinary user for whom it counts.
    user: Option<u32>,
    standing: Standing,
    /// What it had used when it was seen to compute no more than a spared process may.
    used_before: Option<CpuUse>,
    /// It works with root's rights.
    is_roots: bool,
    /// It was looked at in this sweep, so it may be in a client that it has to leave.
    is_new: bool,
}

/// How a process without a client stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Standing {
    /// It is to join its user's client.
    Stray,
    /// It is left alone, as part of a user's service manager.
    OfManager,
    /// It is left alone for another reason.
    Spared,
    /// The engine did not take it.
    Declined,
}

impl Census {
    /// Counts all processes. Returns those that may belong to the client of what a user runs.
    pub(super) fn count(&mut self, host: &dyn Host) -> Vec<u32> {
        self.sweep = self.sweep.wrapping_add(1);
        match self.sweep {
            sweep if sweep % READ_AGAIN == 1 => self.ordinary = Ordinary::read(host),
            sweep if sweep % LOOK_AGAIN == 1 => self.ordinary.renew(host),
            _ => {}
        }
        let sweep = self.sweep;
        let mut pids = Vec::new();
        for listed in host.processes() {
            let pid = listed.pid;
            let is_due = pid % LOOK_AGAIN == sweep % LOOK_AGAIN;
            let known = self.seen.get_mut(&pid);
            match known.filter(|seen| seen.listed == listed && !is_due) {
                Some(seen) => {
                    seen.sweep = sweep;
                    seen.is_new = false;
                    if seen.is_spared() && !seen.is_roots && seen.computes(host) {
                        seen.standing = Standing::Stray;
                    }
                }
                None => self.look(host, listed),
            }
            let seen = &self.seen[&pid];
            if seen.user.is_some() || seen.is_new {
                pids.push(pid);
            }
        }
        self.seen.retain(|_, seen| seen.sweep == sweep);
        pids
    }

    fn look(&mut self, host: &dyn Host, listed: Listed) {
        let process = host.process(listed.pid);
        let ordinary = process.filter(|process| !process.is_kernel_thread);
        let user = ordinary.and_then(|process| self.ordinary.user_of(process.uid));
        // Others may not look into some users' processes, too.
        let is_roots = listed.owner == 0
            && host
                .origin(listed.pid)
                .is_some_and(|origin| origin.effective_uid == 0);
        let before = self.seen.remove(&listed.pid);
        let before = before.filter(|before| before.listed.inode == listed.inode);
        let seen = Seen {
            listed,
            sweep: self.sweep,
            user,
            standing: Standing::Stray,
            used_before: before.and_then(|before| before.used_before),
            is_roots,
            is_new: true,
        };
        self.seen.insert(listed.pid, seen);
    }

    /// The ordinary user for whom a process counts.
    pub(super) fn user_of(&self, pid: u32) -> Option<u32> {
        self.seen.get(&pid)?.user
    }

    /// The ordinary user for whom a process with this real user counts.
    pub(super) fn counts_for(&self, uid: u32) -> Option<u32> {
        self.ordinary.user_of(uid)
    }

    /// Whether a process works with root's rights, whoever its real user is.
    pub(super) fn is_roots(&self, pid: u32) -> bool {
        self.seen.get(&pid).is_some_and(|seen| seen.is_roots)
    }

    /// A process that left its client may join its user's at the next sweep.
    pub(crate) fn look_again(&mut self, pid: u32) {
        self.note(pid, Standing::Stray);
    }

    pub(super) fn is_stray(&self, pid: u32) -> bool {
        let seen = self.seen.get(&pid);
        seen.is_some_and(|seen| seen.standing == Standing::Stray)
    }

    /// Whether one more process of the user's service manager is left alone.
    pub(super) fn has_room_in_manager(&self, user: u32) -> bool {
        let is_managers =
            |seen: &&Seen| seen.user == Some(user) && seen.standing == Standing::OfManager;
        self.seen.values().filter(is_managers).count() < MOST_OF_MANAGER
    }

    /// Whether a process uses too much CPU time to be left alone. One that used too much is left
    /// alone again once that is little for the time that has passed since.
    pub(crate) fn computes(&mut self, host: &dyn Host, pid: u32) -> bool {
        let seen = self.seen.get_mut(&pid);
        seen.is_some_and(|seen| seen.computes(host))
    }

    pub(super) fn note(&mut self, pid: u32, standing: Standing) {
        if let Some(seen) = self.seen.get_mut(&pid) {
            seen.standing = standing;
        }
    }

    /// How many processes the engine did not take.
    pub(crate) fn declined(&self) -> u32 {
        let seen = self.seen.values();
        let declined = seen.filter(|seen| seen.standing == Standing::Declined);
        declined.count() as u32
    }
}

impl Seen {
    fn is_spared(&self) -> bool {
        matches!(self.standing, Standing::OfManager | Standing::Spared)
    }

    fn computes(&mut self, host: &dyn Host) -> bool {
        let Some(now) = host.cpu_use(self.listed.pid) else {
            return false;
        };
        let before = *self.used_before.get_or_insert(now);
        let time = now.at.saturating_sub(before.at);
        let used = now.used.saturating_sub(before.used);
        let computes = used * PART_OF_CPU > time.max(LEAST_TIME);
        if !computes && time >= LEAST_TIME {
            self.used_before = Some(now);
        }
        computes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{ALICE, BOB, FakeHost};

    #[test]
    fn processes_of_ordinary_users_are_counted() {
        let mut census = Census::default();
        let host = FakeHost::new(0);
        census.count(&host);
        let mut pids = census.count(&host);
        // Others are looked at in turn.
        pids.retain(|pid| census.user_of(*pid).is_some());
        pids.sort_unstable();
        let expected: Vec<u32> = [90, 91].into_iter().chain(100..300).collect();
        assert_eq!(pids, expected);
        assert_eq!(census.user_of(100), Some(ALICE));
        assert_eq!(census.user_of(200), Some(BOB));
        assert_eq!([1, 2, 300, 4_000].map(|pid| census.user_of(pid)), [None; 4]);
    }

    #[test]
    fn a_process_is_looked_at_again_when_it_changes_and_in_turn() {
        let mut census = Census::default();
        let mut host = FakeHost::new(0);
        census.count(&host);
        census.note(100, Standing::Spared);
        census.count(&host);
        assert!(!census.is_stray(100));
        // Another user, and another process with the number.
        host.add(100, 1, BOB, "any");
        assert!(census.count(&host).contains(&100));
        assert!(census.is_stray(100) && census.user_of(100) == Some(BOB));
        census.note(100, Standing::Declined);
        assert_eq!(census.declined(), 1);
        let mut sweeps = 0;
        while !census.is_stray(100) {
            census.count(&host);
            sweeps += 1;
        }
        assert!(sweeps <= LOOK_AGAIN);
        assert_eq!(census.declined(), 0);
    }

    #[test]
    fn a_process_that_becomes_roots_may_have_to_leave_once() {
        let mut census = Census::default();
        let mut host = FakeHost::new(0);
        census.count(&host);
        host.add(101, 1, 0, "any");
        assert!(census.count(&host).contains(&101));
        assert!(!census.count(&host).contains(&101));
        // One that is root's from the start may have been born in a client.
        host.add(5_000, 101, 0, "sudo");
        assert!(census.count(&host).contains(&5_000));
        assert!(!census.count(&host).contains(&5_000));
        host.processes.remove(&101);
        census.count(&host);
        assert_eq!(census.seen.len(), host.processes.len());
    }

    #[test]
    fn a_process_that_is_left_alone_may_use_little_cpu_time() {
        let mut census = Census::default();
        let mut host = FakeHost::new(0);
        census.count(&host);
        let mut use_at = |census: &mut Census, at, used_ms| {
            let (at, used) = (Duration::from_secs(at), Duration::from_millis(used_ms));
            host.cpu_uses.insert(100, CpuUse { used, at });
            census.count(&host);
            census.computes(&host, 100)
        };
        assert!(
            !use_at(&mut census, 0, 5_000),
            "what it used before counts not"
        );
        assert!(!use_at(&mut census, 1, 5_320));
        assert!(use_at(&mut census, 2, 5_321));
        assert!(!use_at(&mut census, 17, 5_321), "it was little in the end");
        // 2 % for ever.
        for second in 18..200 {
            assert!(!use_at(&mut census, second, 5_321 + 20 * (second - 17)));
        }
        let mut sweeps = 0..;
        assert!(sweeps.any(|second| use_at(&mut census, 200 + second, 9_000 + 1_000 * second)));
        // Changing what the directory shows of it does not help.
        host.owners.insert(100, 0);
        census.count(&host);
        assert!(census.computes(&host, 100));
    }

    #[test]
    fn a_process_that_is_left_alone_is_not_once_it_computes() {
        let mut census = Census::default();
        let mut host = FakeHost::new(0);
        census.count(&host);
        for pid in [100, 101, 102] {
            assert!(!census.computes(&host, pid));
        }
        census.note(100, Standing::Spared);
        census.note(101, Standing::OfManager);
        census.note(102, Standing::Declined);
        census.count(&host);
        assert_eq!([100, 101].map(|pid| census.is_stray(pid)), [false; 2]);
        let (used, at) = (Duration::from_secs(1), Duration::from_secs(2));
        for pid in [100, 101, 102] {
            host.cpu_uses.insert(pid, CpuUse { used, at });
        }
        // None of these is looked at in turn before.
        census.count(&host);
        let strays = [100, 101, 102].map(|pid| census.is_stray(pid));
        assert_eq!(strays, [true, true, false]);
    }

    #[test]
    fn two_processes_of_a_service_manager_are_left_alone() {
        let mut census = Census::default();
        census.count(&FakeHost::new(0));
        assert!(census.has_room_in_manager(ALICE));
        census.note(100, Standing::OfManager);
        assert!(census.has_room_in_manager(ALICE));
        census.note(101, Standing::OfManager);
        assert!(!census.has_room_in_manager(ALICE) && census.has_room_in_manager(BOB));
    }
}
