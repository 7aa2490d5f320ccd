//! Reviewing processes in turn: no event tells of a new control group, of other CPUs, or of another
//! user.

use prorata_core::ids::ClientId;

use crate::control_groups::Lodging;
use crate::group::Group;
use crate::procfs;
use crate::time::SECOND_NS;
use crate::tree::Tree;

/// Each process is reviewed about once in this time.
const ROUND_NS: u64 = 4 * SECOND_NS;

/// Few processes are reviewed as often as so many would be.
const LEAST: u64 = 64;

/// Most processes that are reviewed at once. Cost: some 15 us for each.
const MOST_AT_ONCE: u64 = 512;

/// Where the next review begins: indices of a client and of its process.
#[derive(Default, Debug)]
pub(crate) struct Review {
    client: usize,
    process: usize,
    reviewed_ns: u64,
}

impl Tree {
    /// Reviews the processes that are due, in turn.
    pub(crate) fn review_some(&mut self, now_ns: u64) {
        let passed_ns = now_ns.saturating_sub(self.review.reviewed_ns);
        let count = u64::from(self.process_count());
        let due = due(count, passed_ns);
        if due == 0 {
            return;
        }
        self.review.reviewed_ns = now_ns;
        let mut left = due.min(count) as usize;
        let mut clients = self.clients.len();
        while left > 0 && clients > 0 {
            let index = self.review.client % self.clients.len();
            let from = self.review.process;
            let Some(client) = self.clients.at(index) else {
                self.review.client = index + 1;
                self.review.process = 0;
                clients -= 1;
                continue;
            };
            let (id, count) = (client.id, client.processes.len());
            let until = count.min(from + left);
            self.review_processes(id, from.min(until)..until, now_ns);
            left -= until - from.min(until);
            if until >= count {
                self.review.client = index + 1;
                self.review.process = 0;
                clients -= 1;
            } else {
                self.review.process = until;
            }
        }
    }

    /// Finds out whether some of a client's processes changed their groups or the CPUs that they may
    /// use, and lets processes go that became another user's.
    fn review_processes(&mut self, id: ClientId, indices: std::ops::Range<usize>, now_ns: u64) {
        if indices.start == 0 {
            let cpus = *self.cpus();
            if let Some(client) = self.clients.get_mut(id) {
                client.find_usable(&cpus);
            }
        }
        let foreign: Vec<u32> = indices
            .filter_map(|index| self.review_process(id, index))
            .collect();
        if !foreign.is_empty() {
            tracing::info!("processes {foreign:?} became another user's");
            self.let_some_go(id, &foreign, now_ns);
        }
    }

    /// The same for the processes that changed their sessions.
    pub(crate) fn review_moved(&mut self, id: ClientId, now_ns: u64) {
        let Some(client) = self.clients.get_mut(id) else {
            return;
        };
        let mut moved = Vec::new();
        for (index, process) in client.processes.iter_mut().enumerate() {
            if !process.slumbers
                && let Ok(stat) = process.look()
                && stat.session != process.session
            {
                moved.push(index);
            }
        }
        // From the end, since some may leave.
        for index in moved.into_iter().rev() {
            self.review_processes(id, index..index + 1, now_ns);
        }
    }

    /// Returns the process if it became another user's.
    fn review_process(&mut self, id: ClientId, index: usize) -> Option<u32> {
        let client = self.clients.get_mut(id)?;
        let process = client.processes.get_mut(index)?;
        let stat = process.look().ok()?;
        process.session = stat.session;
        let pid = process.id.pid;
        // Without running it has not become another user's. Others may have moved it: that matters
        // once it runs.
        if !process.ran_since_review() && process.slumbers {
            return None;
        }
        client.review_lodging(index);
        if client.is_of_another_user(pid) {
            return Some(pid);
        }
        let process = client.processes.get_mut(index)?;
        if matches!(process.lodging, Lodging::InGroup { .. }) {
            return None;
        }
        let group = Group::of(pid, stat.session).ok()?;
        if !self.groups.is(process.group, &group) {
            self.groups.leave(process.group);
            process.group = self.groups.enter(group);
        }
        None
    }
}

impl crate::client::Client {
    /// Whether this process of the client became one of another user. What gives way has no programs
    /// with root's rights, either.
    fn is_of_another_user(&self, pid: u32) -> bool {
        let is_foreign = |user: u32| !self.users.may_include(user);
        let is_roots = || procfs::effective_uid(pid) == Some(0);
        procfs::real_uid(pid).is_some_and(is_foreign)
            || self.gives_way && is_foreign(0) && is_roots()
    }
}

/// How many of so many processes are due after such a time.
fn due(count: u64, passed_ns: u64) -> u64 {
    let part = count.max(LEAST).saturating_mul(passed_ns.min(ROUND_NS));
    (part / ROUND_NS).min(MOST_AT_ONCE)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::MILLISECOND_NS;

    #[test]
    fn a_crowd_is_reviewed_within_seconds_and_little_of_it_at_once() {
        for (count, window_ns) in [
            (3, SECOND_NS),
            (1_000, 20 * MILLISECOND_NS),
            (16_384, 10 * MILLISECOND_NS),
            (16_384, 100 * MILLISECOND_NS),
        ] {
            // What is left of a division is made up for, as time passes until one is due.
            let (mut reviewed, mut at_ns, mut last_ns) = (0, 0, 0);
            while at_ns < ROUND_NS + SECOND_NS {
                at_ns += window_ns;
                let due = due(count, at_ns - last_ns);
                if due > 0 {
                    last_ns = at_ns;
                    reviewed += due;
                }
                assert!(due <= MOST_AT_ONCE);
            }
            assert!(reviewed >= count, "{reviewed} of {count}");
        }
    }
}
