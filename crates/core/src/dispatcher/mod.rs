//! From rights to decisions: the part of an engine that is the same in every
//! world.
//!
//! A [`Dispatcher`] joins a ledger and a policy. The engine tells it what
//! happened (a client woke, blocked, used CPU time) and asks who is to run;
//! how that is found out and enforced is the engine's business. Nothing here
//! knows a clock: time passes as the time that clients are charged for.
//!
//! ```text
//!   engine:  set_runnable ---> ledger: activate / deactivate
//!            charge       ---> account of service, policy: charge
//!            decide       ---> values -> scale -> feasible weights -> policy
//!                              policy: pick, take, pick, take, ...
//! ```
//!
//! What happened is recorded at once; its effect on weights is worked out once
//! a decision, however many clients woke, blocked or were inflated meanwhile.

pub(crate) mod active;
mod competitor;
mod pool;
mod scale;
mod weights;

use alloc::boxed::Box;
use alloc::vec;
use alloc::vec::Vec;

use crate::ids::ClientId;
use crate::ledger::{Checked, Ledger, Operation, Outcome, Target};
use crate::policy::{ClientIndex, Policy, PolicyError};
use competitor::{Competitor, Competitors};
use pool::{Pool, Pools};

/// What a dispatcher decides about.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Machine {
    /// CPUs that are shared out, at least 1.
    pub cpus: u32,
    /// Length of a standard quantum, at least 1 ns.
    pub quantum_ns: u64,
}

/// A client that is to run, on so many CPUs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Winner {
    /// Who.
    pub client: ClientId,
    /// CPUs that it is given: at least 1, at most its runnable threads.
    pub cpus: u32,
}

/// What a client got and should have got, since it was created.
#[derive(Clone, Copy, PartialEq, Default, Debug)]
pub struct Usage {
    /// CPU time that it was charged for.
    pub received_ns: u64,
    /// Its share of all CPU time that was charged to anybody while it was
    /// runnable.
    pub specified_ns: u64,
    /// Part of the machine that it should get now, 0 to 1.
    pub share: f64,
}

/// Most pools of a machine.
pub const MAX_POOLS: usize = 64;

/// A ledger, and policies that share out a machine: one, or one for each pool
/// of CPUs.
pub struct Dispatcher {
    ledger: Ledger,
    machine: Machine,
    competitors: Competitors,
    /// Each active client competes in one of them.
    pools: Pools,
    /// Work space, kept to spare the allocations.
    changed: Vec<ClientId>,
}

impl Dispatcher {
    /// A dispatcher over a ledger none of whose clients is active. All CPUs
    /// are one pool.
    pub fn new(ledger: Ledger, policy: Box<dyn Policy + Send>, machine: Machine) -> Self {
        Self::pooled(ledger, vec![(machine.cpus, policy)], machine.quantum_ns)
    }

    /// Like [`Dispatcher::new`], with CPUs in pools: how many in each, and the
    /// policy there. Clients begin in the first pool.
    ///
    /// A policy has room for clients up to the highest index in its pool.
    ///
    /// # Panics
    ///
    /// Without pools, or with more than [`MAX_POOLS`].
    pub fn pooled(
        ledger: Ledger,
        mut pools: Vec<(u32, Box<dyn Policy + Send>)>,
        quantum_ns: u64,
    ) -> Self {
        debug_assert!(ledger.clients().all(|client| !client.active));
        assert!((1..=MAX_POOLS).contains(&pools.len()));
        let clients = ledger.client_indices();
        if let [(_, policy)] = pools.as_mut_slice() {
            policy.reserve(clients);
        }
        let cpus = pools.iter().map(|(cpus, _)| cpus).sum();
        let pools = pools.into_iter().zip(0..);
        let pools = pools.map(|((cpus, policy), number)| Pool::new(number, cpus, policy));
        Self {
            ledger,
            machine: Machine { cpus, quantum_ns },
            competitors: Competitors::with_capacity(clients),
            pools: Pools::new(pools.collect()),
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

    /// What is shared out.
    pub fn machine(&self) -> Machine {
        self.machine
    }

    /// Applies a checked operation to the ledger. New values take effect with
    /// the next decision; a client that is destroyed stops competing at once.
    pub fn apply(&mut self, operation: Checked) -> Outcome {
        if let Operation::DestroyClient { client } = *operation.operation() {
            self.forget(client);
        }
        self.ledger.apply(operation)
    }

    /// Says how many threads of a client could run now. Zero is blocked: the
    /// client leaves the competition, its tickets are deactivated and its
    /// place is kept (1995, 2.2). Clients that the ledger does not know are
    /// ignored: they may just have been destroyed.
    ///
    /// Cost: O(1) and a block or wake of the ledger and the policy.
    pub fn set_runnable(&mut self, client: ClientId, threads: u32) {
        let Some(competitor) = self.competitor_or_new(client) else {
            return;
        };
        let (before, pool) = (competitor.threads, competitor.pool);
        if before == threads {
            return;
        }
        let pool = &mut self.pools[pool];
        let competitors = &mut self.competitors;
        let index = client.index();
        match (before, threads) {
            (0, _) => pool.enter(&mut self.ledger, competitors, index, threads),
            (_, 0) => pool.exit(
                &mut self.ledger,
                competitors,
                index,
                self.machine.quantum_ns,
            ),
            _ => pool.change_threads(competitors, index, threads),
        }
    }

    /// Accounts for CPU time of a runnable client, whether it had won or not.
    /// Time of a client that is not runnable is not accounted for: say that it
    /// woke first.
    #[inline]
    pub fn charge(&mut self, client: ClientId, used_ns: u64) {
        let Some(competitor) = self.competitors.get_mut(client) else {
            return;
        };
        if competitor.threads == 0 || used_ns == 0 {
            return;
        }
        competitor.receive(used_ns);
        let runs = competitor.cpus > 0;
        let pool = &mut self.pools[competitor.pool];
        pool.service.dispense(used_ns);
        // A turn is charged whole, when it ends: that is what compensation
        // goes by. Time used outside a turn moves the client back at once, if
        // the policy can tell it from a turn cut short.
        if !runs && pool.policy.charges_add_up() {
            let quantum_ns = self.machine.quantum_ns;
            pool.charge_policy(&mut self.competitors, client.index(), quantum_ns);
        }
    }

    /// Ends a client's turn, if it has one: its CPUs are free to be given
    /// away. What it used is to be charged before.
    ///
    /// Cost: a charge of the policy.
    pub fn end_turn(&mut self, client: ClientId) {
        let competitor = self.competitors.get(client).filter(|c| c.cpus > 0);
        if let Some(pool) = competitor.map(|c| c.pool) {
            let quantum_ns = self.machine.quantum_ns;
            self.pools[pool].charge_policy(&mut self.competitors, client.index(), quantum_ns);
        }
    }

    /// Ends all turns and decides anew who runs on every CPU. `winners` is
    /// cleared and filled, in no order, until all CPUs are given away or
    /// nobody is left.
    pub fn decide(&mut self, winners: &mut Vec<Winner>) {
        self.end_turns();
        self.fill(winners);
    }

    /// Gives away the CPUs that are free, because a winner blocked, and lets
    /// the others finish their turns. `winners` is cleared and filled, in no
    /// order, with all who run now.
    pub fn fill(&mut self, winners: &mut Vec<Winner>) {
        while self.next_winner().is_some() {}
        winners.clear();
        let running = self.pools.iter().flat_map(|pool| &pool.running);
        winners.extend(running.map(|&index| {
            let competitor = self.competitors.at(index);
            Winner {
                client: competitor.client(index),
                cpus: competitor.cpus,
            }
        }));
    }

    /// Gives free CPUs to one client: who is to run next, or one whose turn
    /// lasts and who has threads that wait. `None` when no CPU is free or
    /// nobody can use one. The first pools come first.
    ///
    /// Cost: a pick and a take of the policy; more only if something changed
    /// that weights depend on, see `weights.rs`. O(CPUs) for each client that
    /// gets CPUs during its turn. A pick for each pool with free CPUs that
    /// nobody can use.
    #[inline]
    pub fn next_winner(&mut self) -> Option<Winner> {
        if let winner @ Some(_) = self.next_winner_in(0) {
            return winner;
        }
        (1..self.pools.len() as u8).find_map(|pool| self.next_winner_in(pool))
    }

    /// Mostly asked in vain, once more than there are winners: so the first
    /// question is inlined.
    #[inline]
    fn next_winner_in(&mut self, pool: u8) -> Option<Winner> {
        match self.pools[pool].cpus_free {
            0 => None,
            _ => self.give_away(pool),
        }
    }

    fn give_away(&mut self, pool: u8) -> Option<Winner> {
        if self.ledger.has_changes() {
            self.reprice_changed();
        }
        self.pools[pool].next_winner(&self.ledger, &mut self.competitors)
    }

    /// Looks at the clients whose value changed.
    #[cold]
    fn reprice_changed(&mut self) {
        let mut changed = core::mem::take(&mut self.changed);
        changed.clear();
        // Beyond so many it is cheaper to look at every active client.
        let active = self.pools.iter().map(|pool| pool.classes.len()).sum();
        let (ledger, competitors) = (&mut self.ledger, &mut self.competitors);
        if ledger.take_changes(&mut changed, active) {
            for client in &changed {
                let competitor = competitors.get(*client).filter(|c| c.threads > 0);
                if let Some(pool) = competitor.map(|c| c.pool) {
                    self.pools[pool].reprice(ledger, competitors, client.index());
                }
            }
        } else {
            for pool in self.pools.iter_mut() {
                pool.reprice_all(ledger, competitors);
            }
        }
        self.changed = changed;
    }

    /// Index of who is likely to win in a pool after so many others. Often
    /// wrong: for fetching memory ahead of its use. O(1).
    #[inline]
    pub fn likely_winner_after(&self, pool: u32, others: usize) -> Option<u32> {
        let ClientIndex(index) = self.pools[pool as u8].policy.likely_after(others)?;
        Some(index)
    }

    /// A client is about to wake, to block or to win: has what is known of it
    /// fetched from memory, without waiting for that. Changes nothing.
    #[inline]
    pub fn prefetch(&self, client: ClientId) {
        self.competitors.prefetch(client.index());
        self.ledger.prefetch(client);
        // In which of several pools it is would have to be waited for.
        if let Some(pool) = self.pools.only() {
            pool.policy.prefetch(ClientIndex(client.index()));
        }
    }

    /// What a client got and should have got; nothing for one that never was
    /// runnable.
    pub fn usage(&self, client: ClientId) -> Usage {
        let Some(competitor) = self.competitors.get(client) else {
            return Usage::default();
        };
        let pool = &self.pools[competitor.pool];
        let mut usage = competitor.usage(pool.service.read(pool.total_tickets));
        if competitor.threads > 0 && pool.total_tickets > 0 {
            let usable = pool.threads.min(pool.cpus.into()) as f64 / f64::from(self.machine.cpus);
            usage.share = f64::from(competitor.tickets) / pool.total_tickets as f64 * usable;
        }
        usage
    }

    /// Whether the client won the last decision and has not blocked since.
    pub fn runs(&self, client: ClientId) -> bool {
        self.competitors.get(client).is_some_and(|c| c.cpus > 0)
    }

    /// In which pool a client competes, when it does.
    pub fn pool_of(&self, client: ClientId) -> u32 {
        let competitor = self.competitors.get(client);
        competitor.map_or(0, |competitor| competitor.pool.into())
    }

    /// From now on a client competes in another pool, for the CPUs there; its
    /// turn ends. Its account goes on, but its place in the queue does not: it
    /// competes afresh. Clients that the ledger does not know are ignored.
    ///
    /// Cost: a block and a wake.
    ///
    /// # Panics
    ///
    /// If there is no such pool.
    pub fn move_to_pool(&mut self, client: ClientId, pool: u32) {
        assert!((pool as usize) < self.pools.len());
        let Some(competitor) = self.competitor_or_new(client) else {
            return;
        };
        let (before, threads) = (competitor.pool, competitor.threads);
        if u32::from(before) == pool {
            return;
        }
        self.set_runnable(client, 0);
        let left = &mut self.pools[before];
        left.policy.forget(ClientIndex(client.index()));
        self.competitors.at_mut(client.index()).pool = pool as u8;
        self.set_runnable(client, threads);
    }

    /// Goes on under another policy, in the only pool.
    pub fn set_policy(&mut self, mut policy: Box<dyn Policy + Send>) {
        debug_assert!(self.pools.only().is_some());
        policy.reserve(self.competitors.len());
        self.set_policy_of(0, policy);
    }

    /// Goes on under another policy in a pool; everyone there competes afresh
    /// in it, and all turns there end.
    ///
    /// # Panics
    ///
    /// If there is no such pool.
    pub fn set_policy_of(&mut self, pool: u32, policy: Box<dyn Policy + Send>) {
        let pool = &mut self.pools[pool as u8];
        pool.end_turns(&mut self.competitors, self.machine.quantum_ns);
        pool.set_policy(&mut self.competitors, policy);
    }

    /// Changes the quantum, for what is charged from now on.
    pub fn set_quantum(&mut self, quantum_ns: u64) {
        self.machine.quantum_ns = quantum_ns.max(1);
    }

    /// Changes the number of CPUs of the only pool; all turns end.
    pub fn set_cpus(&mut self, cpus: u32) {
        self.end_turns();
        let Some(pool) = self.pools.only_mut() else {
            unreachable!("the CPUs of a machine with pools are given once");
        };
        self.machine.cpus = cpus.max(1);
        pool.cpus = self.machine.cpus;
        pool.cpus_free = pool.cpus;
        pool.stale = true;
    }

    fn end_turns(&mut self) {
        for pool in self.pools.iter_mut() {
            pool.end_turns(&mut self.competitors, self.machine.quantum_ns);
        }
    }

    fn forget(&mut self, client: ClientId) {
        if self.competitors.get(client).is_none() {
            return;
        }
        self.set_runnable(client, 0);
        let pool = self.pool_of(client) as u8;
        let index = ClientIndex(client.index());
        self.pools[pool].policy.forget(index);
        self.competitors.remove(client);
    }

    /// `None` for a client that the ledger does not know.
    #[inline(always)]
    fn competitor_or_new(&mut self, client: ClientId) -> Option<&mut Competitor> {
        if self.competitors.get(client).is_none() {
            self.ledger.client(client)?;
            self.competitors.add(client);
        }
        self.competitors.get_mut(client)
    }
}

/// The dispatcher keeps to the policy's rules; a refusal is a bug here.
fn expect(result: Result<(), PolicyError>) {
    if let Err(error) = result {
        unreachable!("the dispatcher broke a policy's rule: {error}");
    }
}
