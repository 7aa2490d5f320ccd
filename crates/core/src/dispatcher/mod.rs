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

mod active;
mod competitor;
mod scale;
mod weights;

use alloc::boxed::Box;
use alloc::vec::Vec;

use crate::ids::ClientId;
use crate::ledger::{Checked, Ledger, Operation, Outcome};
use crate::policy::{ClientIndex, Policy, PolicyError};
use crate::prefetch::prefetch;
use active::{Classes, Magnitudes};
use competitor::{Competitor, Service};
use scale::Scale;

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

/// A ledger and a policy that share out a machine.
pub struct Dispatcher {
    ledger: Ledger,
    policy: Box<dyn Policy + Send>,
    machine: Machine,
    /// By client index. A competitor stays until its client is destroyed, so
    /// that its account survives a block.
    competitors: Vec<Option<Competitor>>,
    /// The competitors with runnable threads. The ledger's clients of these,
    /// and no others, are active.
    classes: Classes,
    magnitudes: Magnitudes,
    /// Sum of the active clients' weights.
    total_weight: u64,
    /// Sum of the active clients' tickets: what the policy counts, too.
    total_tickets: u64,
    /// Those whose weight is infeasible, and so their tickets fewer.
    infeasible: Vec<u32>,
    /// Indices of the winners whose turn has not ended, those with `cpus`
    /// above zero.
    running: Vec<u32>,
    /// CPUs that nobody was given.
    cpus_free: u32,
    /// Sum of the runnable threads of those whose turn lasts.
    running_threads: u64,
    /// Sum of the runnable threads of all clients.
    threads: u64,
    service: Service,
    scale: Scale,
    /// Threads, CPUs or weights changed since feasibility was looked at.
    stale: bool,
    changes_since_rescale: usize,
    /// Work space, kept to spare the allocations.
    changed: Vec<ClientId>,
    spare: Vec<u32>,
}

impl Dispatcher {
    /// A dispatcher over a ledger none of whose clients is active.
    pub fn new(ledger: Ledger, mut policy: Box<dyn Policy + Send>, machine: Machine) -> Self {
        debug_assert!(ledger.clients().all(|client| !client.active));
        let clients = ledger.client_indices();
        policy.reserve(clients);
        Self {
            ledger,
            policy,
            machine,
            competitors: Vec::with_capacity(clients),
            classes: Classes::new(),
            magnitudes: Magnitudes::new(),
            total_weight: 0,
            total_tickets: 0,
            infeasible: Vec::new(),
            running: Vec::new(),
            cpus_free: machine.cpus,
            running_threads: 0,
            threads: 0,
            service: Service::default(),
            scale: Scale::INITIAL,
            stale: false,
            changes_since_rescale: 0,
            changed: Vec::new(),
            spare: Vec::new(),
        }
    }

    /// The ledger, to read and to check operations against.
    pub fn ledger(&self) -> &Ledger {
        &self.ledger
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
        let before = competitor.threads;
        if before == threads {
            return;
        }
        let index = client.index();
        match (before, threads) {
            (0, _) => self.enter(index, threads),
            (_, 0) => self.exit(index),
            _ => self.change_threads(index, threads),
        }
        self.threads = self.threads - u64::from(before) + u64::from(threads);
    }

    /// Accounts for CPU time of a runnable client, whether it had won or not.
    /// Time of a client that is not runnable is not accounted for: say that it
    /// woke first.
    pub fn charge(&mut self, client: ClientId, used_ns: u64) {
        let Some(competitor) = self.competitor_mut(client) else {
            return;
        };
        if competitor.threads == 0 || used_ns == 0 {
            return;
        }
        competitor.receive(used_ns);
        let runs = competitor.cpus > 0;
        self.service.dispense(used_ns);
        // A turn is charged whole, when it ends: that is what compensation
        // goes by. Time used outside a turn moves the client back at once, if
        // the policy can tell it from a turn cut short.
        if !runs && self.policy.charges_add_up() {
            self.charge_policy(client.index());
        }
    }

    /// Ends a client's turn, if it has one: its CPUs are free to be given
    /// away. What it used is to be charged before.
    ///
    /// Cost: a charge of the policy.
    pub fn end_turn(&mut self, client: ClientId) {
        if self.runs(client) {
            self.charge_policy(client.index());
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
        winners.extend(self.running.iter().map(|&index| {
            let competitor = self.competitors[index as usize].as_ref().expect(ACTIVE);
            Winner {
                client: competitor.client(index),
                cpus: competitor.cpus,
            }
        }));
    }

    /// Gives free CPUs to one client: who is to run next, or one whose turn
    /// lasts and who has threads that wait. `None` when no CPU is free or
    /// nobody can use one.
    ///
    /// Cost: a pick and a take of the policy; more only if something changed
    /// that weights depend on, see `weights.rs`. O(CPUs) for each client that
    /// gets CPUs during its turn.
    pub fn next_winner(&mut self) -> Option<Winner> {
        if self.cpus_free == 0 {
            return None;
        }
        self.refresh();
        let Some(ClientIndex(index)) = self.policy.pick() else {
            return self.widen();
        };
        expect(self.policy.take(ClientIndex(index)));
        let turn_place = self.running.len() as u32;
        let cpus_free = self.cpus_free;
        let competitor = self.existing(index);
        let cpus = competitor.threads.min(cpus_free);
        competitor.cpus = cpus;
        competitor.turn_place = turn_place;
        let (client, threads) = (competitor.client(index), competitor.threads);
        self.running.push(index);
        self.running_threads += u64::from(threads);
        self.cpus_free -= cpus;
        Some(Winner { client, cpus })
    }

    /// Index of who is likely to win after so many others. Often wrong: for fetching
    /// memory ahead of its use. O(1).
    #[inline]
    pub fn likely_winner_after(&self, others: usize) -> Option<u32> {
        let ClientIndex(index) = self.policy.likely_after(others)?;
        Some(index)
    }

    /// A client is about to wake, to block or to win: has what is known of it
    /// fetched from memory, without waiting for that. Changes nothing.
    #[inline]
    pub fn prefetch(&self, client: ClientId) {
        prefetch(&self.competitors, client.index() as usize);
        self.ledger.prefetch(client);
        self.policy.prefetch(ClientIndex(client.index()));
    }

    /// CPUs that nobody else can use go to a client whose turn lasts.
    fn widen(&mut self) -> Option<Winner> {
        let given = u64::from(self.machine.cpus - self.cpus_free);
        if self.running_threads == given {
            return None;
        }
        let cpus_free = self.cpus_free;
        let competitors = &mut self.competitors;
        let waits = |index: &&u32| {
            let competitor = competitors[**index as usize].as_ref().expect(ACTIVE);
            competitor.threads > competitor.cpus
        };
        let index = *self.running.iter().find(waits)?;
        let competitor = self.existing(index);
        let cpus = (competitor.threads - competitor.cpus).min(cpus_free);
        competitor.cpus += cpus;
        let client = competitor.client(index);
        self.cpus_free -= cpus;
        Some(Winner { client, cpus })
    }

    /// What a client got and should have got; nothing for one that never was
    /// runnable.
    pub fn usage(&self, client: ClientId) -> Usage {
        let Some(competitor) = self.competitor(client) else {
            return Usage::default();
        };
        let mut usage = competitor.usage(self.service.read(self.total_tickets));
        if competitor.threads > 0 && self.total_tickets > 0 {
            let usable =
                self.threads.min(self.machine.cpus.into()) as f64 / f64::from(self.machine.cpus);
            usage.share = f64::from(competitor.tickets) / self.total_tickets as f64 * usable;
        }
        usage
    }

    /// Whether the client won the last decision and has not blocked since.
    pub fn runs(&self, client: ClientId) -> bool {
        self.competitor(client).is_some_and(|c| c.cpus > 0)
    }

    /// Goes on under another policy; everyone competes afresh in it, and all
    /// turns end.
    pub fn set_policy(&mut self, mut policy: Box<dyn Policy + Send>) {
        self.end_turns();
        policy.reserve(self.competitors.len());
        for index in self.classes.iter() {
            let competitor = self.competitors[index as usize].as_mut().expect(ACTIVE);
            competitor.uncharged_ns = 0;
            expect(policy.join(ClientIndex(index), competitor.tickets));
        }
        self.policy = policy;
    }

    /// Changes the quantum, for what is charged from now on.
    pub fn set_quantum(&mut self, quantum_ns: u64) {
        self.machine.quantum_ns = quantum_ns.max(1);
    }

    /// Changes the number of CPUs; all turns end.
    pub fn set_cpus(&mut self, cpus: u32) {
        self.end_turns();
        self.machine.cpus = cpus.max(1);
        self.cpus_free = self.machine.cpus;
        self.stale = true;
    }

    fn end_turns(&mut self) {
        while let Some(&index) = self.running.last() {
            self.charge_policy(index);
        }
    }

    /// Ends a turn, or accounts for time outside one: the policy learns of all
    /// time used since it was last told.
    fn charge_policy(&mut self, index: u32) {
        let quantum_ns = self.machine.quantum_ns;
        if let Some(used_ns) = self.close_turn(index) {
            expect(self.policy.charge(ClientIndex(index), used_ns, quantum_ns));
        }
    }

    /// Ends a turn if there is one. Returns what the policy is to be told that
    /// was used, if it is to be told of a turn or of time outside one.
    fn close_turn(&mut self, index: u32) -> Option<u64> {
        let competitor = self.existing(index);
        let cpus = core::mem::take(&mut competitor.cpus);
        let used_ns = core::mem::take(&mut competitor.uncharged_ns);
        let (turn_place, threads) = (competitor.turn_place, competitor.threads);
        if cpus > 0 {
            self.cpus_free += cpus;
            self.running_threads -= u64::from(threads);
            self.running.swap_remove(turn_place as usize);
            if let Some(&moved) = self.running.get(turn_place as usize) {
                self.existing(moved).turn_place = turn_place;
            }
        }
        (cpus > 0 || used_ns > 0).then_some(used_ns)
    }

    fn forget(&mut self, client: ClientId) {
        let Some(competitor) = self.competitor_mut(client) else {
            return;
        };
        if competitor.threads > 0 {
            self.set_runnable(client, 0);
        }
        self.policy.forget(ClientIndex(client.index()));
        self.competitors[client.index() as usize] = None;
    }

    /// `None` for a client that the ledger does not know.
    fn competitor_or_new(&mut self, client: ClientId) -> Option<&mut Competitor> {
        let index = client.index() as usize;
        if self.competitor(client).is_none() {
            self.ledger.client(client)?;
            if index >= self.competitors.len() {
                self.competitors.resize_with(index + 1, || None);
            }
            self.competitors[index] = Some(Competitor::new(client));
        }
        self.competitors[index].as_mut()
    }

    fn competitor(&self, client: ClientId) -> Option<&Competitor> {
        let competitor = self.competitors.get(client.index() as usize)?.as_ref();
        competitor.filter(|c| c.is(client))
    }

    fn competitor_mut(&mut self, client: ClientId) -> Option<&mut Competitor> {
        let competitor = self.competitors.get_mut(client.index() as usize)?.as_mut();
        competitor.filter(|c| c.is(client))
    }

    fn existing(&mut self, index: u32) -> &mut Competitor {
        self.competitors[index as usize].as_mut().expect(ACTIVE)
    }
}

/// Everyone who is active has a competitor.
const ACTIVE: &str = "an active client has a competitor";

/// The dispatcher keeps to the policy's rules; a refusal is a bug here.
fn expect(result: Result<(), PolicyError>) {
    if let Err(error) = result {
        unreachable!("the dispatcher broke a policy's rule: {error}");
    }
}
