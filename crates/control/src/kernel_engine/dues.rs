//! What clients are due while some of them may not use all CPUs.
//!
//! The kernel accounts as if each task could use all CPUs (`bpf/feasible.h`): weighted max-min fair
//! rates depend on all affinities at once, and a decision cannot wait for that. While a client is
//! confined to some CPUs, this account goes on instead. Four times a second, and at each look, it
//! redistributes what the kernel has specified since for all clients together, by their shares
//! ([`prorata_core::max_min`]) at that moment.

use std::collections::BTreeMap;
use std::sync::Mutex;

use prorata_core::affinity::Affinity;
use prorata_core::dispatcher::Dispatcher;
use prorata_core::entitlement::Entitlements;
use prorata_core::hybrid::NiceLaw;
use prorata_core::ids::ClientId;
use prorata_kernel::scheduler::Account;
use rustix::process::Pid;
use rustix::thread::{CpuSet, sched_getaffinity};

use super::kernel_side::KernelSide;
use super::members::threads_of;
use crate::engine::lock;
use crate::process::ProcessId;

/// So many threads of a client are asked for their CPUs.
const MOST_ASKED: usize = 16;

/// A client's part of the account.
#[derive(Clone, Copy, Default, Debug)]
struct Due {
    /// What the kernel had specified at the last reading.
    kernel_ns: u64,
    /// What is due beyond that; below zero, less.
    correction_ns: i64,
}

/// The account.
#[derive(Default)]
pub(super) struct Dues {
    /// Clients that may not use all CPUs, when they last ran.
    confined: BTreeMap<ClientId, Affinity>,
    clients: BTreeMap<ClientId, Due>,
    /// Whether a client was confined at the last reading.
    goes_on: bool,
}

impl Dues {
    /// Counts what is due since the last reading.
    fn read(&mut self, accounts: &[(ClientId, u64)], share_of: impl Fn(ClientId) -> f64) {
        let went_on = std::mem::replace(&mut self.goes_on, !self.confined.is_empty());
        let shares: Vec<_> = accounts.iter().map(|(id, _)| share_of(*id)).collect();
        let all_shares: f64 = shares.iter().sum();
        // Where all sleep, the kernel's account goes on.
        let counts = went_on && self.goes_on && all_shares > 0.0;
        let mut all_ns = 0;
        for (id, kernel_ns) in accounts {
            let due = self.clients.entry(*id).or_default();
            let passed_ns = kernel_ns.saturating_sub(due.kernel_ns).cast_signed();
            due.kernel_ns = *kernel_ns;
            if counts {
                due.correction_ns -= passed_ns;
                all_ns += passed_ns;
            }
        }
        if !counts {
            return;
        }
        for ((id, _), share) in accounts.iter().zip(shares) {
            if let Some(due) = self.clients.get_mut(id) {
                due.correction_ns += (all_ns as f64 * share / all_shares) as i64;
            }
        }
    }

    /// A client's account with what is due to it.
    pub fn correct(&self, id: ClientId, account: Account) -> Account {
        let due = self.clients.get(&id).copied().unwrap_or_default();
        Account {
            specified_ns: account
                .specified_ns
                .saturating_add_signed(due.correction_ns),
            ..account
        }
    }

    /// The scheduler is loaded again: its accounts begin at zero.
    pub fn begin_again(&mut self) {
        *self = Self::default();
    }

    /// Forgets all but these clients.
    pub fn retain(&mut self, lives: impl Fn(ClientId) -> bool) {
        self.clients.retain(|id, _| lives(*id));
        self.confined.retain(|id, _| lives(*id));
    }
}

impl KernelSide {
    /// Whether a client is confined. Cost: a look at each client in the kernel's tables.
    pub fn has_confined(&self) -> bool {
        let is_bound = |id: &ClientId| self.in_kernel(*id).is_some_and(|now| now.bound > 0);
        !self.dues.confined.is_empty() || self.clients.keys().any(is_bound)
    }

    /// Looks at the clients, says which of them compete, and accounts for what is due.
    pub fn look_and_account(&mut self, dispatcher: &Mutex<Dispatcher>, cpus: &[u32]) {
        self.look();
        self.find_confined(cpus);
        let mut dispatcher = lock(dispatcher);
        let entitlements = dispatcher.entitlements_alone();
        self.report_to(entitlements);
        if self.dues.goes_on || !self.dues.confined.is_empty() {
            let accounts = self.clients.iter();
            let accounts = accounts.map(|(id, client)| (*id, client.now.specified_ns));
            let accounts: Vec<_> = accounts.collect();
            self.dues.read(&accounts, |id| entitlements.usage(id).share);
        }
    }

    /// A client without runnable tasks stays what it was.
    fn find_confined(&mut self, cpus: &[u32]) {
        let projection = &self.projection;
        self.dues.retain(|id| projection.node(id).is_some());
        let counts = self.clients.iter();
        let counts = counts.map(|(id, client)| (*id, client.now.runnable, client.now.bound));
        let ran: Vec<_> = counts.filter(|(_, runnable, _)| *runnable > 0).collect();
        for (id, _, bound) in ran {
            let affinity = match bound {
                0 => None,
                _ => self.affinity_of(id, cpus),
            };
            match affinity {
                Some(affinity) => self.dues.confined.insert(id, affinity),
                None => self.dues.confined.remove(&id),
            };
        }
    }

    /// As of the last search for processes: after each birth another one would cost too much.
    fn affinity_of(&mut self, id: ClientId, cpus: &[u32]) -> Option<Affinity> {
        let known = self.clients.get(&id).map(|client| &client.processes[..]);
        let sets = match cpu_sets(known.unwrap_or_default()) {
            sets if sets.is_empty() => cpu_sets(&self.processes(id)),
            sets => sets,
        };
        let places = cpus.iter().zip(0..);
        let usable = places.filter(|(cpu, _)| sets.iter().any(|set| set.is_set(**cpu as usize)));
        let affinity: Affinity = usable.map(|(_, place)| place).collect();
        (!affinity.is_whole(cpus.len() as u32)).then_some(affinity)
    }

    /// Says which clients competed at the last look, and where, so that values and shares are
    /// current.
    fn report_to(&self, entitlements: &mut Entitlements) {
        let law = self.options.hybrid.nice.then_some(NiceLaw::Linux);
        entitlements.set_nice_law(law, &mut |_, _, _| ());
        for (id, client) in &self.clients {
            entitlements.set_nice_factor(*id, client.now.nice_factor, &mut |_, _, _| ());
            entitlements.set_affinity(*id, self.dues.confined.get(id));
            entitlements.set_runnable(*id, client.now.runnable);
        }
        entitlements.refresh_all(&mut |_, _, _| ());
    }
}

/// The CPUs that each thread of these processes may use.
fn cpu_sets(processes: &[ProcessId]) -> Vec<CpuSet> {
    let alive = processes.iter().filter(|process| process.is_alive());
    let threads = alive
        .flat_map(|process| threads_of(process.pid))
        .take(MOST_ASKED);
    let set = |tid: u32| sched_getaffinity(Pid::from_raw(tid.cast_signed())).ok();
    threads.filter_map(set).collect()
}
