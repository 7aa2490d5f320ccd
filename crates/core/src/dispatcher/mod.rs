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

mod competitor;
mod scale;

use alloc::boxed::Box;
use alloc::vec::Vec;

use crate::feasible::{Demand, readjust};
use crate::ids::ClientId;
use crate::ledger::{Checked, Ledger, Operation, Outcome};
use crate::policy::{ClientIndex, Policy, PolicyError};
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
    /// Indices of the competitors with runnable threads, in no order. The
    /// ledger's clients of these, and no others, are active.
    active: Vec<u32>,
    /// Indices of the winners whose turn has not ended, those with `cpus`
    /// above zero, in the order in which they won.
    running: Vec<u32>,
    /// Sum of the runnable threads of all clients.
    threads: u64,
    service: Service,
    scale: Scale,
    /// Epoch of the ledger that the tickets were worked out from.
    epoch_seen: u64,
    /// Threads or CPUs changed since then.
    stale: bool,
    /// Work space of [`Self::refresh`], kept to spare the allocation.
    demands: Vec<Demand>,
}

impl Dispatcher {
    /// A dispatcher over a ledger none of whose clients is active.
    pub fn new(ledger: Ledger, policy: Box<dyn Policy + Send>, machine: Machine) -> Self {
        debug_assert!(ledger.clients().all(|client| !client.active));
        Self {
            epoch_seen: ledger.epoch(),
            ledger,
            policy,
            machine,
            competitors: Vec::new(),
            active: Vec::new(),
            running: Vec::new(),
            threads: 0,
            service: Service::default(),
            scale: Scale::INITIAL,
            stale: false,
            demands: Vec::new(),
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
        let Some(before) = self.competitor_or_new(client).map(|c| c.threads) else {
            return;
        };
        if before == threads {
            return;
        }
        let index = client.index();
        let service = self.service;
        self.stale = true;
        self.threads = self.threads - u64::from(before) + u64::from(threads);
        match (before, threads) {
            (0, _) => {
                self.ledger.activate(client);
                let tickets = self.scale.tickets(self.ledger.value(client));
                let place = self.active.len() as u32;
                self.active.push(index);
                let competitor = self.existing(index);
                competitor.settle(service);
                competitor.threads = threads;
                competitor.tickets = tickets;
                competitor.place = place;
                expect(self.policy.join(ClientIndex(index), tickets));
            }
            (_, 0) => {
                self.charge_policy(index);
                expect(self.policy.leave(ClientIndex(index)));
                self.deactivate(index);
                self.ledger.deactivate(client);
            }
            _ => {
                let competitor = self.existing(index);
                competitor.threads = threads;
                competitor.cpus = competitor.cpus.min(threads);
            }
        }
    }

    /// Accounts for CPU time of a runnable client, whether it had won or not.
    /// Time of a client that is not runnable is not accounted for: say that it
    /// woke first.
    pub fn charge(&mut self, client: ClientId, used_ns: u64) {
        let total_tickets = self.policy.total_tickets();
        let Some(competitor) = self.competitor_mut(client) else {
            return;
        };
        if competitor.threads == 0 || used_ns == 0 {
            return;
        }
        competitor.receive(used_ns);
        let index = client.index();
        let runs = competitor.cpus > 0;
        self.service.dispense(used_ns, total_tickets);
        // A turn is charged whole, when it ends: that is what compensation
        // goes by. Time used outside a turn moves the client back at once, if
        // the policy can tell it from a turn cut short.
        if !runs && self.policy.charges_add_up() {
            self.charge_policy(index);
        }
    }

    /// Ends all turns and decides anew who runs on every CPU. `winners` is
    /// cleared and filled until all CPUs are given away or nobody is left.
    ///
    /// Cost: a pick, take and charge for each winner; and, if the ledger or
    /// anybody's threads changed since the last decision, O(active clients).
    pub fn decide(&mut self, winners: &mut Vec<Winner>) {
        self.end_turns();
        self.fill(winners);
    }

    /// Gives away the CPUs that are free, because a winner blocked, and lets
    /// the others finish their turns. `winners` is cleared and filled with all
    /// who run now.
    pub fn fill(&mut self, winners: &mut Vec<Winner>) {
        self.refresh();
        winners.clear();
        let mut cpus_left = self.machine.cpus;
        for &index in &self.running {
            let competitor = self.competitors[index as usize].as_ref().expect(ACTIVE);
            winners.push(Winner {
                client: competitor.client,
                cpus: competitor.cpus,
            });
            cpus_left -= competitor.cpus;
        }
        while cpus_left > 0 {
            let Some(ClientIndex(index)) = self.policy.pick() else {
                break;
            };
            expect(self.policy.take(ClientIndex(index)));
            let competitor = self.existing(index);
            let cpus = competitor.threads.min(cpus_left);
            competitor.cpus = cpus;
            winners.push(Winner {
                client: competitor.client,
                cpus,
            });
            self.running.push(index);
            cpus_left -= cpus;
        }
    }

    /// What a client got and should have got; nothing for one that never was
    /// runnable.
    pub fn usage(&self, client: ClientId) -> Usage {
        let Some(competitor) = self.competitor(client) else {
            return Usage::default();
        };
        let mut usage = competitor.usage(self.service);
        let total_tickets = self.policy.total_tickets();
        if competitor.threads > 0 && total_tickets > 0 {
            let usable =
                self.threads.min(self.machine.cpus.into()) as f64 / f64::from(self.machine.cpus);
            usage.share = f64::from(competitor.tickets) / total_tickets as f64 * usable;
        }
        usage
    }

    /// Whether the client won the last decision and has not blocked since.
    pub fn runs(&self, client: ClientId) -> bool {
        self.competitor(client).is_some_and(|c| c.cpus > 0)
    }

    /// Goes on under another policy; everyone competes afresh in it.
    pub fn set_policy(&mut self, mut policy: Box<dyn Policy + Send>) {
        for &index in &self.active {
            let competitor = self.competitors[index as usize].as_mut().expect(ACTIVE);
            competitor.cpus = 0;
            competitor.uncharged_ns = 0;
            expect(policy.join(ClientIndex(index), competitor.tickets));
        }
        self.running.clear();
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
        self.stale = true;
    }

    fn end_turns(&mut self) {
        while let Some(&index) = self.running.last() {
            self.charge_policy(index);
        }
    }

    /// Works out feasible ticket counts for all active clients, if anything
    /// changed that they depend on.
    fn refresh(&mut self) {
        if !self.stale && self.epoch_seen == self.ledger.epoch() {
            return;
        }
        self.stale = false;
        self.epoch_seen = self.ledger.epoch();
        let value = |index: u32| {
            let competitor = self.competitors[index as usize].as_ref().expect(ACTIVE);
            (self.ledger.value(competitor.client), competitor.threads)
        };
        let largest = self
            .active
            .iter()
            .map(|&i| value(i).0)
            .max()
            .unwrap_or_default();
        self.scale = self.scale.suited_to(largest);
        self.demands.clear();
        self.demands.extend(self.active.iter().map(|&index| {
            let (value, threads) = value(index);
            Demand {
                weight: self.scale.tickets(value),
                cpus: threads,
            }
        }));
        readjust(&mut self.demands, self.machine.cpus);
        for (&index, demand) in self.active.iter().zip(&self.demands) {
            let competitor = self.competitors[index as usize].as_mut().expect(ACTIVE);
            if competitor.tickets != demand.weight {
                competitor.settle(self.service);
                competitor.tickets = demand.weight;
                expect(self.policy.set_tickets(ClientIndex(index), demand.weight));
            }
        }
    }

    /// Ends a turn, or accounts for time outside one: the policy learns of all
    /// time used since it was last told.
    fn charge_policy(&mut self, index: u32) {
        let quantum_ns = self.machine.quantum_ns;
        let competitor = self.existing(index);
        let ran = core::mem::take(&mut competitor.cpus) > 0;
        let used_ns = core::mem::take(&mut competitor.uncharged_ns);
        if ran {
            // Turns mostly end last first, so the search is short.
            let place = self
                .running
                .iter()
                .rposition(|&i| i == index)
                .expect("who has CPUs is running");
            self.running.remove(place);
        }
        if ran || used_ns > 0 {
            expect(self.policy.charge(ClientIndex(index), used_ns, quantum_ns));
        }
    }

    /// Takes a competitor, charged and out of the policy's competition, off
    /// the active list.
    fn deactivate(&mut self, index: u32) {
        let service = self.service;
        let competitor = self.existing(index);
        competitor.settle(service);
        competitor.threads = 0;
        let place = competitor.place;
        self.active.swap_remove(place as usize);
        if let Some(&moved) = self.active.get(place as usize) {
            self.existing(moved).place = place;
        }
        self.stale = true;
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
            self.competitors[index] = Some(Competitor::new(client, self.service));
        }
        self.competitors[index].as_mut()
    }

    fn competitor(&self, client: ClientId) -> Option<&Competitor> {
        let competitor = self.competitors.get(client.index() as usize)?.as_ref();
        competitor.filter(|c| c.client == client)
    }

    fn competitor_mut(&mut self, client: ClientId) -> Option<&mut Competitor> {
        let competitor = self.competitors.get_mut(client.index() as usize)?.as_mut();
        competitor.filter(|c| c.client == client)
    }

    fn existing(&mut self, index: u32) -> &mut Competitor {
        self.competitors[index as usize].as_mut().expect(ACTIVE)
    }
}

/// Everyone in the active list has a competitor.
const ACTIVE: &str = "an active client has a competitor";

/// The dispatcher keeps to the policy's rules; a refusal is a bug here.
fn expect(result: Result<(), PolicyError>) {
    if let Err(error) = result {
        unreachable!("the dispatcher broke a policy's rule: {error}");
    }
}
