//! What each client deserves: tickets in force, and accounts of what was
//! received and what was due.
//!
//! ```text
//!   ledger value --scale--> weight --readjusted if infeasible--> tickets in force
//! ```
//!
//! A client can use no more CPUs than it has threads, and none beyond its limit. What it cannot
//! use goes to the others in proportion.
//!
//! [`Entitlements`] holds the ledger and knows which clients compete, in which
//! pool of CPUs. It knows no policy and no turn: a [`Chooser`] that shares out
//! a pool's CPUs is told of tickets as they change, and an engine that leaves
//! the choice to a kernel asks for shares alone.
//!
//! An event is recorded at once. Its effect on weights is worked out with the
//! next refresh, once for all clients that woke, blocked or were inflated
//! meanwhile. Time passes as the time that clients are charged for.
//!
//! [`Chooser`]: crate::choice::Chooser

pub(crate) mod active;
mod competitor;
mod confined;
mod nice;
mod pool;
mod scale;
mod service;
mod standing;

use alloc::vec::Vec;

use crate::affinity::Affinity;
use crate::capacity::Capacities;
use crate::ids::{ClientId, ClientIndex};
use crate::ledger::{Checked, Ledger, Operation, Outcome, Target};
use competitor::{Competitor, Competitors};
use pool::Pool;
pub(crate) use standing::Standing;

/// What a client got and should have got, since it was created.
#[derive(Clone, Copy, PartialEq, Default, Debug)]
pub struct Usage {
    /// CPU time that it was charged for, and [`Usage::uncharged_ns`].
    pub received_ns: u64,
    /// What it received of that in slots of a timetable (2005).
    pub in_slots_ns: u64,
    /// What it received in slots beyond what is charged: outside the economy, so nobody's due.
    pub uncharged_ns: u64,
    /// Its share of all CPU time that was charged to any client of its pool
    /// while it was runnable.
    pub specified_ns: u64,
    /// Part of the machine that it should get now, 0 to 1.
    pub share: f64,
}

/// Most pools of a machine.
pub const MAX_POOLS: usize = 64;

/// What changed in a pool when a client's runnable threads did.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Transition {
    /// The client competes from now on, with these tickets.
    Joined {
        /// Tickets in force.
        tickets: u32,
    },
    /// The client competes no longer.
    Left,
    /// The client competes with another number of threads.
    Threads,
}

/// What the clients of a ledger deserve.
///
/// Methods that work out tickets take `tell`. It is called with the pool, the
/// client and its tickets in force, for each competing client whose tickets
/// change, in the order of the changes.
pub struct Entitlements {
    ledger: Ledger,
    competitors: Competitors,
    /// Each active client competes in one of them.
    pools: Vec<Pool>,
    /// CPUs of all pools.
    cpus: u32,
    /// Work space, kept to spare the allocations.
    changed: Vec<ClientId>,
}

impl Entitlements {
    /// Over a ledger without active clients, and pools of so many CPUs.
    /// Clients begin in the first pool.
    ///
    /// # Panics
    ///
    /// Without pools, or with more than [`MAX_POOLS`].
    pub fn new(ledger: Ledger, pools: &[u32]) -> Self {
        debug_assert!(ledger.clients().all(|client| !client.active));
        assert!((1..=MAX_POOLS).contains(&pools.len()));
        let clients = ledger.client_indices();
        Self {
            ledger,
            competitors: Competitors::with_capacity(clients),
            cpus: pools.iter().sum(),
            pools: (0..)
                .zip(pools)
                .map(|(n, &cpus)| Pool::new(n, cpus))
                .collect(),
            changed: Vec::new(),
        }
    }

    /// The ledger, to read and to check operations against.
    pub fn ledger(&self) -> &Ledger {
        &self.ledger
    }

    /// As [`Ledger::watch_funding`].
    pub fn watch_funding(&mut self) {
        self.ledger.watch_funding();
    }

    /// As [`Ledger::take_funding_changes`].
    pub fn take_funding_changes(&mut self) -> Vec<Target> {
        self.ledger.take_funding_changes()
    }

    /// CPUs of all pools.
    pub fn cpus(&self) -> u32 {
        self.cpus
    }

    /// Applies a checked operation to the ledger. New values take effect when
    /// tickets are next worked out. A client that is destroyed ceases to
    /// compete, and its account is forgotten.
    pub fn apply(&mut self, operation: Checked) -> Outcome {
        if let Operation::DestroyClient { client } = *operation.operation()
            && self.knows(client)
        {
            self.set_runnable(client, 0);
            self.set_affinity(client, None);
            self.competitors.remove(client);
        }
        if let Operation::LimitClient { client, max } = *operation.operation()
            && let Some(competitor) = self.competitors.get_mut(client)
        {
            let pool = usize::from(competitor.pool);
            self.pools[pool].set_limit(&mut self.competitors, client.index(), max);
        }
        self.ledger.apply(operation)
    }

    /// Says how many threads of a client could run now. Without any the client
    /// is blocked: it ceases to compete and its tickets are deactivated.
    /// Clients that the ledger does not know are ignored: they may just have
    /// been destroyed.
    ///
    /// Cost: O(1) and a block or wake of the ledger.
    #[inline]
    pub fn set_runnable(&mut self, client: ClientId, threads: u32) -> Option<Transition> {
        let competitor = self.competitor_or_new(client)?;
        let (before, pool) = (competitor.threads, competitor.pool);
        let pool = &mut self.pools[usize::from(pool)];
        let (ledger, competitors) = (&mut self.ledger, &mut self.competitors);
        let index = client.index();
        match (before, threads) {
            _ if before == threads => None,
            (0, _) => Some(Transition::Joined {
                tickets: pool.enter(ledger, competitors, index, threads),
            }),
            (_, 0) => {
                pool.exit(ledger, competitors, index);
                Some(Transition::Left)
            }
            _ => {
                pool.change_threads(competitors, index, threads);
                Some(Transition::Threads)
            }
        }
    }

    /// Accounts for CPU time of a competing client. Returns whether it
    /// competes: time of any other client is not accounted for, so say that it
    /// woke first.
    #[inline]
    pub fn charge(&mut self, client: ClientId, used_ns: u64) -> bool {
        let Some(competitor) = self.competitors.get_mut(client) else {
            return false;
        };
        if competitor.threads == 0 {
            return false;
        }
        competitor.receive(used_ns);
        self.pools[usize::from(competitor.pool)].dispense(used_ns);
        true
    }

    /// Clients of a pool have used so much in all for which they are not charged yet. It is due to
    /// the clients that compete now; the charges to come do not count it again. Returns whether
    /// that is more than they were due before.
    pub fn pass_time(&mut self, pool: usize, uncharged_ns: u64) -> bool {
        self.pools[pool].pass_time(uncharged_ns)
    }

    /// Whether anything changed on which the tickets of a pool's clients depend, since they were
    /// worked out.
    #[inline]
    pub fn has_changes(&self, pool: usize) -> bool {
        self.pools[pool].has_changes() || self.ledger.has_changes()
    }

    /// Works out the tickets in force of a pool's clients.
    ///
    /// Cost: more than O(1) only if something changed that weights depend on,
    /// see `pool.rs`.
    #[inline]
    pub fn refresh(&mut self, pool: usize, tell: &mut impl FnMut(usize, ClientIndex, u32)) {
        if self.ledger.has_changes() {
            self.reprice_changed(tell);
        }
        self.pools[pool].refresh(&self.ledger, &mut self.competitors, tell);
    }

    /// Works out the tickets in force of all clients.
    pub fn refresh_all(&mut self, tell: &mut impl FnMut(usize, ClientIndex, u32)) {
        (0..self.pools.len()).for_each(|pool| self.refresh(pool, tell));
    }

    /// Looks at the clients whose value changed.
    #[cold]
    fn reprice_changed(&mut self, tell: &mut impl FnMut(usize, ClientIndex, u32)) {
        let mut changed = core::mem::take(&mut self.changed);
        changed.clear();
        // Beyond so many it is cheaper to look at every active client.
        let active = self.pools.iter().map(Pool::len).sum();
        let (ledger, competitors) = (&mut self.ledger, &mut self.competitors);
        if ledger.take_changes(&mut changed, active) {
            for client in &changed {
                let competitor = competitors.get(*client).filter(|c| c.threads > 0);
                if let Some(pool) = competitor.map(|c| c.pool) {
                    let pool = &mut self.pools[usize::from(pool)];
                    pool.reprice(ledger, competitors, client.index(), tell);
                }
            }
        } else {
            for pool in &mut self.pools {
                pool.reprice_all(ledger, competitors, tell);
            }
        }
        self.changed = changed;
    }

    /// The competing clients of a pool and the tickets that were last told, in
    /// no order.
    pub fn competing(&self, pool: usize) -> impl Iterator<Item = (ClientIndex, u32)> {
        let tickets = |index| self.competitors.at(index).tickets;
        let members = self.pools[pool].members();
        members.map(move |index| (ClientIndex(index), tickets(index)))
    }

    /// What a client got and should have got; nothing for one that never
    /// competed. The share is of the tickets that were last worked out.
    pub fn usage(&self, client: ClientId) -> Usage {
        let Some(competitor) = self.competitors.get(client) else {
            return Usage::default();
        };
        let pool = &self.pools[usize::from(competitor.pool)];
        let (received_ns, specified_ns) = competitor.account(pool.reading());
        let share = match competitor.threads {
            0 => 0.0,
            _ => pool.share(competitor.tickets, self.cpus),
        };
        Usage {
            received_ns,
            specified_ns,
            share,
            ..Usage::default()
        }
    }

    /// What a competing client may receive until it is ahead of its due by what that grows in
    /// `wait_ns`. By the tickets that were last worked out.
    pub(crate) fn room_ahead_ns(&self, client: ClientId, wait_ns: u64) -> u64 {
        let Some(competitor) = self.competitors.get(client) else {
            return 0;
        };
        let pool = &self.pools[usize::from(competitor.pool)];
        let (received_ns, due_ns) = competitor.account(pool.reading());
        let due_in_wait_ns = wait_ns as f64 * pool.share(competitor.tickets, 1);
        let furthest_ns = due_ns.saturating_add(due_in_wait_ns as u64);
        furthest_ns.saturating_sub(received_ns)
    }

    /// A client's identifier, by the index of one that has competed.
    pub fn client(&self, index: ClientIndex) -> ClientId {
        self.competitors.at(index.0).client(index.0)
    }

    /// Runnable threads of a client, zero while it does not compete.
    pub fn threads(&self, client: ClientId) -> u32 {
        self.competitors.get(client).map_or(0, |c| c.threads)
    }

    /// Whether a client competes or has competed.
    pub fn knows(&self, client: ClientId) -> bool {
        self.competitors.get(client).is_some()
    }

    /// In which pool a client competes, when it does.
    #[inline]
    pub fn pool_of(&self, client: ClientId) -> usize {
        let competitor = self.competitors.get(client);
        competitor.map_or(0, |competitor| competitor.pool.into())
    }

    /// From now on a client competes in another pool, when it does; now it
    /// must not. Its account goes on. Clients that the ledger does not know
    /// are ignored.
    ///
    /// # Panics
    ///
    /// If there is no such pool.
    pub fn move_to_pool(&mut self, client: ClientId, pool: usize) {
        assert!(pool < self.pools.len());
        if let Some(competitor) = self.competitor_or_new(client) {
            debug_assert_eq!(competitor.threads, 0);
            competitor.pool = pool as u8;
        }
    }

    /// From now on a client may use the CPUs of an affinity, or all CPUs of the
    /// only pool. Clients that the ledger does not know are ignored.
    ///
    /// Cost: O(affinities). While confined clients compete, a change of weights
    /// costs what `confined.rs` says.
    pub fn set_affinity(&mut self, client: ClientId, affinity: Option<&Affinity>) {
        debug_assert!(self.pools.len() == 1 || affinity.is_none());
        let known = self.competitors.get(client);
        if affinity.is_none() && known.is_none_or(|known| known.affinity == 0) {
            return;
        }
        if let Some(competitor) = self.competitor_or_new(client) {
            let pool = usize::from(competitor.pool);
            self.pools[pool].set_affinity(&mut self.competitors, client.index(), affinity);
        }
    }

    /// Changes the number of CPUs of a pool.
    pub fn set_cpus(&mut self, pool: usize, cpus: u32) {
        let before = self.pools[pool].set_cpus(cpus);
        self.cpus = self.cpus - before + cpus;
    }

    /// CPUs of a pool have so much to give, or all their time. Counts only while
    /// no client of the pool is confined or limited. A later [`Self::set_cpus`] ends this.
    pub fn set_capacities(&mut self, pool: usize, capacities: Option<&[u32]>) {
        self.pools[pool].set_capacities(capacities.map(Capacities::new));
    }

    /// A client is about to wake or to block: has what is known of it fetched
    /// from memory, without waiting for that. Changes nothing.
    #[inline]
    pub fn prefetch(&self, client: ClientId) {
        self.competitors.prefetch(client.index());
        self.ledger.prefetch(client);
    }

    /// `None` for a client that the ledger does not know.
    #[inline(always)]
    fn competitor_or_new(&mut self, client: ClientId) -> Option<&mut Competitor> {
        if self.competitors.get(client).is_none() {
            self.ledger.client(client)?;
            self.competitors.add(client, self.ledger.cpu_limit(client));
        }
        self.competitors.get_mut(client)
    }
}
