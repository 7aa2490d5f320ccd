//! What users run without asking for a share (1999, 4.1).
//!
//! With this setting, each user's processes that belong to no client are one client of that user, in
//! the user's own currency: `rest-of-alice`. So users share the machine as their currencies are
//! funded, however many processes each of them has. A sweep once a second finds the processes. The
//! client comes with the first one and goes with the last; so does a currency that was made for it
//! and is as it was made.

use std::collections::BTreeMap;
use std::time::Duration;

use prorata_core::ids::ClientId;
use prorata_core::ledger::Operation;

use crate::control::Control;
use crate::decode::{self, View};
use crate::process::{ProcessId, ProcessInfo};
use crate::state::Change;

/// Pause between two sweeps.
pub(crate) const SWEEP_PAUSE: Duration = Duration::from_secs(1);

/// Users below this one are the system's services, and the last one is nobody: UID_MIN and
/// UID_MAX of login.defs(5), as Linux distributions set them, and users that a directory service
/// numbers above.
const USERS: std::ops::Range<u32> = 1_000..u32::MAX;

/// The kernel's overflow user.
const NOBODY: u32 = 65_534;

/// Most processes of one user that a sweep hands to the engine. The next sweep goes on.
const MOST_AT_ONCE: usize = 1_024;

/// Whether what this user runs is a client without a request.
fn is_swept(uid: u32) -> bool {
    USERS.contains(&uid) && uid != NOBODY
}

impl Control {
    /// Makes processes of users that belong to no client their users' own clients. A process that
    /// the engine would stop by signals is left alone: its shell would see that.
    ///
    /// Cost: some 2 us for each process of the machine.
    pub fn sweep_users(&mut self) {
        for (user, processes) in self.strays() {
            // A process takes its descendants along.
            let pids: Vec<u32> = processes.iter().map(|process| process.id.pid).collect();
            let is_top = |process: &&ProcessInfo| !pids.contains(&process.parent);
            let tops = processes.iter().filter(is_top).map(|process| process.id);
            let roots: Vec<ProcessId> = tops.take(MOST_AT_ONCE).collect();
            self.manage_rest(user, &roots);
        }
    }

    /// Processes that belong to no client, by user.
    fn strays(&self) -> BTreeMap<u32, Vec<ProcessInfo>> {
        let mut strays: BTreeMap<u32, Vec<ProcessInfo>> = BTreeMap::new();
        for (pid, uid) in self.host.processes() {
            if !is_swept(uid) || self.engine.find(pid).is_some() {
                continue;
            }
            if let Some(process) = self.host.process(pid)
                && is_swept(process.uid)
                && !self.engine.would_stop(process.id, false)
            {
                strays.entry(process.uid).or_default().push(process);
            }
        }
        strays
    }

    /// Adds processes to the client that has what a user runs unasked.
    fn manage_rest(&mut self, user: u32, found: &[ProcessId]) {
        let view = View {
            state: &self.state,
            engine: self.engine.as_ref(),
            host: self.host.as_ref(),
        };
        let (client, changes) = match decode::rest_of_user(view, user, found) {
            Ok(decoded) => decoded,
            Err(refusal) => {
                tracing::warn!("what user {user} runs is not managed: {refusal}");
                return;
            }
        };
        let is_new = !self.state.rests.contains_key(&user);
        self.happened(&changes);
        let mut managed = 0;
        for root in found {
            match self.engine.manage(client, *root) {
                Ok(()) => managed += 1,
                Err(error) => tracing::debug!("process {} is not managed: {error}", root.pid),
            }
        }
        if managed == 0 && is_new {
            self.happened(&[Change::Ledger(Operation::DestroyClient { client })]);
            self.collect_currency(user);
            return;
        }
        if let Some(roots) = self.state.roots.get(&client) {
            self.roots.watch(client, roots);
        }
    }

    /// Destroys the currency of a user that has no client any more, if it was made without a request
    /// and is as it was made. What was set by `set-funding` is remembered for the next one.
    pub(crate) fn collect_currency(&mut self, user: u32) {
        let view = View {
            state: &self.state,
            engine: self.engine.as_ref(),
            host: self.host.as_ref(),
        };
        let changes = decode::unused_currency(view, user);
        if !changes.is_empty() {
            self.happened(&changes);
        }
    }

    /// The users that own these clients, where their currencies are collected.
    pub(crate) fn owners_to_collect(&self, clients: &[ClientId]) -> Vec<u32> {
        if !self.state.settings.users {
            return Vec::new();
        }
        let owners = clients
            .iter()
            .filter_map(|client| self.state.ledger.client(*client));
        let mut owners: Vec<u32> = owners.map(|client| client.owner).collect();
        owners.sort_unstable();
        owners.dedup();
        owners.retain(|owner| is_swept(*owner));
        owners
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn services_and_nobody_are_not_swept() {
        let swept = [
            0,
            999,
            1_000,
            65_533,
            65_534,
            65_535,
            u32::MAX - 1,
            u32::MAX,
        ];
        let expected = [false, false, true, true, false, true, true, false];
        assert_eq!(swept.map(is_swept), expected);
    }
}
