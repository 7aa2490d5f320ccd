//! What users run without asking for a share (1999, 4.1).
//!
//! With this setting, each user's processes that belong to no client are one client of that user, in
//! the user's own currency: `rest-of-alice`. So users share the machine as their currencies are
//! funded, however many processes each of them has. A sweep finds the processes. The client comes
//! with the first one and goes with the last; so does a currency that was made for it and is as it
//! was made.
//!
//! Such a client gives way: a process leaves it for any client that it is named for, as if it were
//! in none. The journal knows the client and not its processes, and the next daemon begins anew.

mod census;
mod ordinary;
mod spared;

use std::collections::BTreeMap;
use std::time::Duration;

use prorata_core::ids::ClientId;
use prorata_core::ledger::Operation;
use rustix::time::{ClockId, clock_gettime};

pub(crate) use census::Census;
use census::Standing;
pub(crate) use spared::runs_prorata;
use spared::{Reason, reason};

use crate::control::Control;
use crate::decode::{self, View};
use crate::engine::Stray;
use crate::process::ProcessInfo;
use crate::state::Change;

/// Shortest and longest pause between two sweeps.
const PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

/// Sweeps take one part in so many of a CPU, unless the pause would be too long.
const PART: u32 = 200;

/// Most processes that a sweep hands to the engine. The next sweep goes on.
const MOST_AT_ONCE: usize = 1_024;

/// Most clients that a sweep makes.
const MOST_NEW_CLIENTS: usize = 64;

/// So many processes the engine takes in between two decisions.
const PORTION: usize = 32;

/// CPU time of this thread.
fn cpu_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::try_from(time).unwrap_or_default()
}

impl Control {
    /// Makes processes of users that belong to no client their users' own clients. Returns the pause
    /// before the next sweep.
    ///
    /// Cost: some 3 us for each process of the machine, and more for new ones.
    pub fn sweep_users(&mut self) -> Duration {
        let before = cpu_time();
        self.resume_running();
        self.sweep();
        let cost = cpu_time().saturating_sub(before);
        (cost * PART).clamp(PAUSE, LONGEST_PAUSE)
    }

    /// Lets suspended clients compete again that have programs which are not stopped. `prorata run`
    /// suspends a client when its user stops it. Whoever continues its programs by other means would
    /// otherwise have them run without a share, and so without bounds.
    fn resume_running(&mut self) {
        let mut left = MOST_AT_ONCE;
        let mut running = Vec::new();
        let suspended = &self.state.suspended;
        let last = self.resumed_until;
        let later = suspended.iter().filter(|client| Some(**client) > last);
        let earlier = suspended.iter().filter(|client| Some(**client) <= last);
        for client in later.chain(earlier) {
            self.resumed_until = Some(*client);
            let processes = self.engine.processes(*client);
            left = left.saturating_sub(processes.len());
            if processes
                .into_iter()
                .any(|process| self.host.may_run(process))
            {
                running.push(Change::Resume(*client));
            }
            if left == 0 {
                break;
            }
        }
        if !running.is_empty() {
            self.happened(&running);
        }
    }

    fn sweep(&mut self) {
        let mut new_clients = 0;
        for (user, strays) in self.strays() {
            let has_client = self.state.rests.contains_key(&user);
            if !has_client && new_clients == MOST_NEW_CLIENTS {
                continue;
            }
            new_clients += usize::from(!has_client);
            self.take_in(user, &strays);
        }
    }

    /// Processes that are to join their users' clients, by user, the oldest first. Releases those
    /// that are in a client of another user.
    fn strays(&mut self) -> BTreeMap<u32, Vec<Stray>> {
        let pids = self.census.count(self.host.as_ref());
        let clients = self.engine.find_all(&pids);
        let rests = self.state.rests.iter();
        let users: BTreeMap<ClientId, u32> = rests.map(|(user, client)| (*client, *user)).collect();
        let (mut found, mut misplaced) = (Vec::new(), Vec::new());
        for (pid, client) in pids.into_iter().zip(clients) {
            let own = self.census.user_of(pid);
            let of_client = client.map(|client| users.get(&client).copied());
            let is_misplaced = of_client
                .is_some_and(|user| user.is_some() && (user != own || self.census.is_roots(pid)));
            let is_stray = client.is_none() && self.census.is_stray(pid);
            if !(is_misplaced || is_stray) {
                continue;
            }
            let Some(process) = self.host.process(pid) else {
                continue;
            };
            if is_misplaced {
                misplaced.push(process.id);
            }
            // It may have changed its user since it was counted.
            let own = own.filter(|own| self.census.counts_for(process.uid) == Some(*own));
            if let Some(user) = own {
                found.push((user, process));
            }
        }
        for portion in misplaced.chunks(PORTION) {
            self.engine.let_out(portion);
        }
        found.sort_by_key(|(_, process)| (process.id.start_time_ticks, process.id.pid));
        let mut strays: BTreeMap<u32, Vec<Stray>> = BTreeMap::new();
        for (user, process) in found.into_iter().take(MOST_AT_ONCE) {
            if !self.spares(user, &process) {
                let stray = Stray {
                    process: process.id,
                    user: process.uid,
                };
                strays.entry(user).or_default().push(stray);
            }
        }
        strays
    }

    /// A client is about to be released: its processes, and the `prorata run` that watched over it,
    /// join their users' clients at the next sweep.
    pub(crate) fn look_again_at(&mut self, client: ClientId) {
        if !self.state.settings.users {
            return;
        }
        let adopter = self.state.adopters.get(&client).copied();
        let processes = self.engine.processes(client).into_iter().chain(adopter);
        processes.for_each(|process| self.census.look_again(process.pid));
    }

    /// Whether a process without a client is left alone.
    fn spares(&mut self, user: u32, process: &ProcessInfo) -> bool {
        let keeps_client = self.state.adopters.values().any(|id| *id == process.id);
        let standing = match reason(self.host.as_ref(), process, keeps_client) {
            None => return false,
            Some(Reason::RootsRights) => Standing::Spared,
            Some(_) if self.census.computes(self.host.as_ref(), process.id.pid) => return false,
            Some(Reason::PartOfManager) if !self.census.has_room_in_manager(user) => return false,
            Some(Reason::PartOfManager) => Standing::OfManager,
            Some(_) => Standing::Spared,
        };
        self.census.note(process.id.pid, standing);
        true
    }

    /// Adds processes to the client that has what a user runs unasked.
    fn take_in(&mut self, user: u32, strays: &[Stray]) {
        let declined = |census: &mut Census, strays: &[Stray]| {
            let pids = strays.iter().map(|stray| stray.process.pid);
            pids.for_each(|pid| census.note(pid, Standing::Declined));
        };
        let known = self.state.rests.get(&user).copied();
        let is_new = known.is_none();
        let Some(client) = known.or_else(|| self.new_rest(user, strays)) else {
            declined(&mut self.census, strays);
            return;
        };
        for portion in strays.chunks(PORTION) {
            let taken = self.engine.take_in(client, portion);
            for (stray, _) in portion.iter().zip(taken).filter(|(_, taken)| !taken) {
                declined(&mut self.census, &[*stray]);
            }
        }
        if is_new && self.engine.state(client).is_none() {
            self.happened(&[Change::Ledger(Operation::DestroyClient { client })]);
            self.collect_currency(user);
        }
        self.engine.nudge();
    }

    /// Makes the client, if the engine would take any of these processes.
    fn new_rest(&mut self, user: u32, strays: &[Stray]) -> Option<ClientId> {
        if !self.engine.would_take_in(strays) {
            return None;
        }
        let view = View {
            state: &self.state,
            engine: self.engine.as_ref(),
            host: self.host.as_ref(),
        };
        match decode::rest_of_user(view, user) {
            Ok(changes) => self.happened(&changes),
            Err(refusal) => {
                tracing::warn!("what user {user} runs is not managed: {refusal}");
                return None;
            }
        };
        self.state.rests.get(&user).copied()
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
        owners.retain(|owner| *owner != 0);
        owners
    }
}
