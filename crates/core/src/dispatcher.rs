//! The two questions joined: [`Entitlements`], and a [`Chooser`] for each pool
//! of CPUs.
//!
//! The type is here because an event concerns both and must reach both in the
//! same order. It holds no rule of its own.
//!
//! ```text
//!   engine:  set_runnable, charge, apply --> entitlements --> chooser of the client's pool
//!            next(cpu, now_ns) ------------> tickets in force --> chooser of the CPU
//! ```

mod hybrid;
mod limits;
mod nice;
mod slots;

use alloc::boxed::Box;
use alloc::vec;
use alloc::vec::Vec;

use crate::affinity::Affinity;
use crate::choice::{Choice, Chooser};
use crate::entitlement::{Entitlements, Transition};
use crate::hybrid::{Accounts, WakeClass};
use crate::ids::{ClientId, ClientIndex};
use crate::ledger::{Checked, Ledger, Operation, Outcome};
use crate::policy::Policy;
use limits::Allowances;
use slots::Slots;

pub use crate::entitlement::{MAX_POOLS, Usage};

/// A client that runs, on so many CPUs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Winner {
    /// The client.
    pub client: ClientId,
    /// Its CPUs: at least 1, at most its runnable threads.
    pub cpus: u32,
    /// When its turn is over.
    pub until_ns: u64,
}

/// What clients deserve, and the choosers that act on it.
pub struct Dispatcher {
    entitlements: Entitlements,
    /// By pool; none where another scheduler chooses.
    choosers: Vec<Chooser>,
    /// Of the clients with limits.
    allowances: Allowances,
    quantum_ns: u64,
    /// Only where a mechanism of 1999 is in force.
    hybrid: Option<Box<Accounts>>,
    /// Only where a timetable gives CPUs, too (2005).
    slots: Option<Box<Slots>>,
}

impl Dispatcher {
    /// Over a ledger without active clients. All CPUs are one pool.
    pub fn new(ledger: Ledger, policy: Box<dyn Policy + Send>, cpus: u32, quantum_ns: u64) -> Self {
        Self::pooled(ledger, vec![(cpus, policy)], quantum_ns)
    }

    /// Like [`Dispatcher::new`], with CPUs in pools: how many in each, and the
    /// policy there. The first pool has the first CPUs. Clients begin in the
    /// first pool.
    ///
    /// # Panics
    ///
    /// Without pools, or with more than [`MAX_POOLS`].
    pub fn pooled(
        ledger: Ledger,
        pools: Vec<(u32, Box<dyn Policy + Send>)>,
        quantum_ns: u64,
    ) -> Self {
        let clients = ledger.client_indices();
        let cpus: Vec<u32> = pools.iter().map(|(cpus, _)| *cpus).collect();
        let allowances = Allowances::of(&ledger);
        let entitlements = Entitlements::new(ledger, &cpus);
        let mut first = 0;
        let choosers = pools.into_iter().map(|(cpus, policy)| {
            let own = first..first + cpus;
            first = own.end;
            Chooser::new(policy, own, quantum_ns)
        });
        let mut choosers: Vec<_> = choosers.collect();
        // Which of several pools clients will be in is not known.
        if let [chooser] = choosers.as_mut_slice() {
            chooser.reserve(clients);
        }
        Self {
            entitlements,
            choosers,
            allowances,
            quantum_ns,
            hybrid: None,
            slots: None,
        }
    }

    /// What clients deserve, for an engine under which another scheduler, such
    /// as a kernel's, chooses. All choosers go, for good.
    pub fn entitlements_alone(&mut self) -> &mut Entitlements {
        self.choosers.clear();
        &mut self.entitlements
    }

    /// The ledger, to read and to check operations against.
    pub fn ledger(&self) -> &Ledger {
        self.entitlements.ledger()
    }

    /// CPUs that are shared out.
    pub fn cpus(&self) -> u32 {
        self.entitlements.cpus()
    }

    /// Length of a standard quantum.
    pub fn quantum_ns(&self) -> u64 {
        self.quantum_ns
    }

    /// Applies a checked operation to the ledger. New values take effect with
    /// the next choice; a client that is destroyed leaves at once.
    pub fn apply(&mut self, operation: Checked) -> Outcome {
        if let Operation::DestroyClient { client } = *operation.operation() {
            self.set_runnable(client, 0);
            if let Some(chooser) = self.chooser_of(client) {
                chooser.forget(ClientIndex(client.index()));
            }
            self.allowances.forget(ClientIndex(client.index()));
            self.forget_slots(ClientIndex(client.index()));
        }
        let limit = match *operation.operation() {
            Operation::LimitClient { client, max } => Some((client, max)),
            _ => None,
        };
        let outcome = self.entitlements.apply(operation);
        if let Some((client, max)) = limit {
            self.set_limit(client, max);
        }
        outcome
    }

    /// As [`Entitlements::set_runnable`]. A client that blocks loses its turn
    /// and keeps its place in the policy (1995, 2.2).
    ///
    /// Cost: O(1) and a block or wake of the ledger and the policy.
    #[inline]
    pub fn set_runnable(&mut self, client: ClientId, threads: u32) {
        if self.hybrid.is_some() {
            return self.set_runnable_hybrid(client, threads, WakeClass::User);
        }
        let Some(change) = self.entitlements.set_runnable(client, threads) else {
            return;
        };
        if self.slots.is_some() && change == Transition::Threads {
            return self.set_waiting_threads(client, threads);
        }
        let index = ClientIndex(client.index());
        let Some(chooser) = self.chooser_of(client) else {
            return;
        };
        match change {
            Transition::Joined { tickets } => chooser.join(index, threads, tickets),
            Transition::Left => chooser.leave(index),
            Transition::Threads => chooser.set_threads(index, threads),
        }
    }

    /// Clients of a pool have used so much CPU time in all for which they are not charged yet. It
    /// is due to the clients that compete now; the charges to come do not count it again.
    ///
    /// Call this before a client of the pool wakes or blocks, unless all clients are charged up to
    /// now. Else a client that wakes in the middle of another client's turn gains a part of what
    /// the turn used before.
    pub fn pass_time(&mut self, pool: u32, uncharged_ns: u64) {
        if uncharged_ns > 0
            && self.entitlements.pass_time(pool as usize, uncharged_ns)
            && let Some(chooser) = self.choosers.get_mut(pool as usize)
        {
            chooser.pass_time(uncharged_ns);
        }
    }

    /// Accounts for CPU time of a runnable client, whether it has a turn or
    /// not. Time of a client that is not runnable is not accounted for: say
    /// that it woke first.
    #[inline]
    pub fn charge(&mut self, client: ClientId, used_ns: u64) {
        if used_ns == 0 || !self.entitlements.charge(client, used_ns) {
            return;
        }
        if self.hybrid.is_some() {
            self.charge_hybrid(client, used_ns);
        }
        let index = ClientIndex(client.index());
        if !self.allowances.is_empty() {
            self.allowances.charge(index, used_ns);
        }
        if let Some(chooser) = self.chooser_of(client) {
            chooser.charge(index, used_ns);
        }
    }

    /// Ends a client's turn, if it has one: its CPUs are free to be given
    /// away. What it used is to be charged before.
    ///
    /// Cost: a charge of the policy.
    #[inline]
    pub fn end_turn(&mut self, client: ClientId) {
        if self.entitlements.knows(client)
            && let Some(chooser) = self.chooser_of(client)
        {
            chooser.end_turn(ClientIndex(client.index()));
            let accounts = self.hybrid.as_ref();
            if accounts.is_some_and(|accounts| accounts.multiplies_tickets()) {
                self.renew_boost(client);
            }
        }
    }

    /// Ends all turns and decides anew which clients run. `winners` is cleared
    /// and filled, in no order, until all CPUs are given away or no client can
    /// use one.
    pub fn decide(&mut self, now_ns: u64, winners: &mut Vec<Winner>) {
        self.choosers.iter_mut().for_each(Chooser::end_turns);
        self.fill(now_ns, winners);
    }

    /// Gives away the CPUs that are free, and lets turns that last go on, unless
    /// the allowance of a limited client is exhausted.
    /// `winners` is cleared and filled, in no order, with all clients that run
    /// now.
    pub fn fill(&mut self, now_ns: u64, winners: &mut Vec<Winner>) {
        winners.clear();
        if !self.allowances.is_empty() {
            self.end_exhausted_turns(now_ns);
        }
        for pool in 0..self.choosers.len() {
            let cpu = self.choosers[pool].cpus().start;
            while self.next(cpu, now_ns).is_some() {}
            let turns = self.choosers[pool].turns();
            winners.extend(turns.iter().map(|turn| Winner {
                client: self.entitlements.client(turn.client),
                cpus: turn.cpus,
                until_ns: self.allowances.end_of_turn(
                    turn.client,
                    turn.cpus,
                    turn.until_ns,
                    now_ns,
                ),
            }));
        }
    }

    /// As [`Chooser::next`] of the chooser that owns the CPU, by the tickets
    /// that are in force now. All clients are charged up to now.
    #[inline]
    pub fn next(&mut self, cpu: u32, now_ns: u64) -> Option<Choice> {
        self.next_after(cpu, now_ns, || 0)
    }

    /// The same, where clients have used `uncharged_ns()` in all for which they are not charged
    /// ([`Dispatcher::pass_time`]): asked if tickets may change.
    #[inline]
    pub fn next_after(
        &mut self,
        cpu: u32,
        now_ns: u64,
        uncharged_ns: impl FnOnce() -> u64,
    ) -> Option<Choice> {
        let pool = match self.choosers.len() {
            1 => 0,
            _ => self.pool_with(cpu),
        };
        let chooser = self.choosers.get(pool)?;
        if !chooser.can_give(cpu) {
            return None;
        }
        let is_limiting = !self.allowances.is_empty();
        if !chooser.has_further() {
            if is_limiting {
                self.review_limits(now_ns);
            }
            if self.entitlements.has_changes(pool) {
                self.pass_time(pool as u32, uncharged_ns());
                self.refresh(pool);
            }
        }
        let mut choice = self.choosers[pool].give(now_ns)?;
        if is_limiting {
            self.limit_turn(&mut choice, pool, now_ns);
        }
        Some(choice)
    }

    /// Which of several pools a CPU is in.
    #[inline]
    fn pool_with(&self, cpu: u32) -> usize {
        self.choosers
            .partition_point(|chooser| chooser.cpus().end <= cpu)
    }

    #[inline]
    fn refresh(&mut self, pool: usize) {
        let choosers = &mut self.choosers;
        self.entitlements
            .refresh(pool, &mut |pool, client, tickets| {
                choosers[pool].set_tickets(client, tickets);
            });
    }

    /// As [`Chooser::has_further`], of a pool.
    #[inline]
    pub fn has_further(&self, pool: u32) -> bool {
        let chooser = self.choosers.get(pool as usize);
        chooser.is_some_and(Chooser::has_further)
    }

    /// As [`Chooser::likely_after`], of a pool.
    #[inline]
    pub fn likely_winner_after(&self, pool: u32, others: usize) -> Option<u32> {
        let chooser = self.choosers.get(pool as usize)?;
        chooser.likely_after(others).map(|ClientIndex(index)| index)
    }

    /// A client is about to wake, to block or to win: has what is known of it
    /// fetched from memory, without waiting for that. Changes nothing.
    #[inline]
    pub fn prefetch(&self, client: ClientId) {
        self.entitlements.prefetch(client);
        // In which of several pools it is would have to be waited for.
        if let [chooser] = self.choosers.as_slice() {
            chooser.prefetch(ClientIndex(client.index()));
        }
    }

    /// As [`Entitlements::usage`], with what was received in slots.
    pub fn usage(&self, client: ClientId) -> Usage {
        let charged = self.entitlements.usage(client);
        match self.slots {
            None => charged,
            Some(_) => self.with_slots(client, charged),
        }
    }

    /// Whether a client has a turn.
    pub fn runs(&self, client: ClientId) -> bool {
        let chooser = self.choosers.get(self.entitlements.pool_of(client));
        self.entitlements.knows(client)
            && chooser.is_some_and(|chooser| chooser.runs(ClientIndex(client.index())))
    }

    /// In which pool a client competes, when it does.
    pub fn pool_of(&self, client: ClientId) -> u32 {
        self.entitlements.pool_of(client) as u32
    }

    /// From now on a client competes in another pool, for the CPUs there; its
    /// turn ends. Its account goes on, but its place in the policy does not:
    /// it competes afresh. Clients that the ledger does not know are ignored.
    ///
    /// Cost: a block and a wake.
    ///
    /// # Panics
    ///
    /// If there is no such pool.
    pub fn move_to_pool(&mut self, client: ClientId, pool: u32) {
        if self.pool_of(client) == pool {
            return;
        }
        let index = ClientIndex(client.index());
        let threads = self.entitlements.threads(client);
        self.set_runnable(client, 0);
        let quantum_ns = self.chooser_of(client).and_then(|chooser| {
            let quantum_ns = chooser.client_quantum(index);
            chooser.forget(index);
            quantum_ns
        });
        self.entitlements.move_to_pool(client, pool as usize);
        self.set_client_quantum(client, quantum_ns);
        self.set_nice(client, self.nice(client));
        if self.is_paused(client) {
            self.pass_over(client, true);
        }
        self.set_runnable(client, threads);
    }

    /// Goes on under another policy, in the only pool.
    pub fn set_policy(&mut self, mut policy: Box<dyn Policy + Send>) {
        debug_assert!(self.choosers.len() <= 1);
        policy.reserve(self.entitlements.ledger().client_indices());
        self.set_policy_of(0, policy);
    }

    /// As [`Chooser::set_policy`], of a pool. Nothing happens where another
    /// scheduler chooses.
    pub fn set_policy_of(&mut self, pool: u32, policy: Box<dyn Policy + Send>) {
        let pool = pool as usize;
        if let Some(chooser) = self.choosers.get_mut(pool) {
            chooser.set_policy(policy, self.entitlements.competing(pool));
        }
        self.tell_nice_values(pool);
    }

    /// As [`Chooser::set_quantum`], of all choosers.
    pub fn set_quantum(&mut self, quantum_ns: u64) {
        self.quantum_ns = quantum_ns.max(1);
        for chooser in &mut self.choosers {
            chooser.set_quantum(quantum_ns);
        }
    }

    /// As [`Chooser::set_client_quantum`].
    pub fn set_client_quantum(&mut self, client: ClientId, quantum_ns: Option<u64>) {
        if self.ledger().client(client).is_some()
            && let Some(chooser) = self.chooser_of(client)
        {
            chooser.set_client_quantum(ClientIndex(client.index()), quantum_ns);
        }
    }

    /// From now on a client may use the CPUs of an affinity, or all CPUs of the
    /// only pool. Clients that the ledger does not know are ignored.
    pub fn set_affinity(&mut self, client: ClientId, affinity: Option<&Affinity>) {
        if self.ledger().client(client).is_some() {
            self.entitlements.set_affinity(client, affinity);
            if let Some(chooser) = self.chooser_of(client) {
                chooser.set_affinity(ClientIndex(client.index()), affinity);
            }
        }
    }

    /// Changes the number of CPUs of the only pool; all turns end.
    pub fn set_cpus(&mut self, cpus: u32) {
        debug_assert!(self.choosers.len() <= 1);
        let cpus = cpus.max(1);
        self.entitlements.set_cpus(0, cpus);
        if let Some(chooser) = self.choosers.first_mut() {
            chooser.set_cpus(0..cpus);
        }
    }

    /// As [`Entitlements::set_capacities`], of the only pool: of each CPU in
    /// parts of [`WHOLE_CPU`](crate::capacity::WHOLE_CPU).
    pub fn set_capacities(&mut self, capacities: Option<&[u32]>) {
        debug_assert!(self.choosers.len() <= 1);
        self.entitlements.set_capacities(0, capacities);
    }

    /// The chooser of the pool in which a client competes.
    #[inline]
    fn chooser_of(&mut self, client: ClientId) -> Option<&mut Chooser> {
        match self.choosers.as_mut_slice() {
            [chooser] => Some(chooser),
            choosers => choosers.get_mut(self.entitlements.pool_of(client)),
        }
    }
}
