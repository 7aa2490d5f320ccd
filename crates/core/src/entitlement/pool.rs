//! A pool: CPUs with clients of their own (2001, "CPU pooling").
//!
//! Weights of a pool's clients are readjusted to its CPUs, and a client is due
//! its share of what the pool dispenses. Values are the ledger's, and the same
//! in all pools.
//!
//! Only clients whose value changed are looked at: the ledger says which.
//! What every block and wake goes through is inlined into its only caller.

use alloc::vec::Vec;
use core::mem;

use super::active::{Classes, Magnitudes};
use super::competitor::{Competitor, Competitors};
use super::scale::Scale;
use super::service::{Reading, Service};
use crate::feasible::Readjustment;
use crate::ids::ClientIndex;
use crate::ledger::Ledger;

/// CPUs, and what the clients that compete for them deserve.
pub(super) struct Pool {
    /// That of its clients.
    number: u8,
    cpus: u32,
    /// The competitors of this pool with runnable threads. The ledger's
    /// clients of these, and no others, are active.
    classes: Classes,
    magnitudes: Magnitudes,
    /// Sum of the active clients' weights.
    total_weight: u64,
    /// Sum of the active clients' tickets.
    total_tickets: u64,
    /// Active clients whose weight is infeasible, and so their tickets fewer.
    /// Some may have left since.
    infeasible: Vec<u32>,
    /// Sum of the runnable threads of all its clients.
    threads: u64,
    service: Service,
    scale: Scale,
    /// Threads, CPUs or weights changed since feasibility was looked at.
    stale: bool,
    changes_since_rescale: usize,
    /// Work space, kept to spare the allocations.
    spare: Vec<u32>,
}

impl Pool {
    pub(super) fn new(number: u8, cpus: u32) -> Self {
        Self {
            number,
            cpus,
            classes: Classes::new(),
            magnitudes: Magnitudes::new(),
            total_weight: 0,
            total_tickets: 0,
            infeasible: Vec::new(),
            threads: 0,
            service: Service::default(),
            scale: Scale::INITIAL,
            stale: false,
            changes_since_rescale: 0,
            spare: Vec::new(),
        }
    }

    /// How many clients compete.
    pub(super) fn len(&self) -> usize {
        self.classes.len()
    }

    /// The indices of the clients that compete.
    pub(super) fn members(&self) -> impl Iterator<Item = u32> {
        self.classes.iter()
    }

    /// Accounts for CPU time used by a competing client.
    pub(super) fn dispense(&mut self, used_ns: u64) {
        self.service.dispense(used_ns);
    }

    /// CPU time that each ticket is due now.
    pub(super) fn reading(&self) -> Reading {
        self.service.read(self.total_tickets)
    }

    /// Part of a machine of so many CPUs that a competing client should get
    /// now.
    pub(super) fn share(&self, tickets: u32, machine_cpus: u32) -> f64 {
        if self.total_tickets == 0 {
            return 0.0;
        }
        let usable = self.threads.min(self.cpus.into()) as f64 / f64::from(machine_cpus);
        f64::from(tickets) / self.total_tickets as f64 * usable
    }

    /// Returns how many CPUs there were.
    pub(super) fn set_cpus(&mut self, cpus: u32) -> u32 {
        self.stale = true;
        mem::replace(&mut self.cpus, cpus)
    }

    /// A client of this pool becomes active, with so many runnable threads.
    /// Returns its tickets.
    #[inline(always)]
    pub(super) fn enter(
        &mut self,
        ledger: &mut Ledger,
        competitors: &mut Competitors,
        index: u32,
        threads: u32,
    ) -> u32 {
        let reading = self.settle();
        let competitor = competitors.at_mut(index);
        let client = competitor.client(index);
        ledger.activate(client);
        let value = ledger.value(client);
        let weight = self.scale.tickets(value);
        competitor.change(reading, threads, weight);
        competitor.weight = weight;
        competitor.magnitude = value.bits();
        competitor.infeasible = false;
        add_to_class(&mut self.classes, competitor, index);
        self.magnitudes.add(value.bits());
        self.total_weight += u64::from(weight);
        self.total_tickets += u64::from(weight);
        self.threads += u64::from(threads);
        self.changes_since_rescale += 1;
        self.stale = true;
        weight
    }

    /// A client ceases to be active.
    #[inline(always)]
    pub(super) fn exit(&mut self, ledger: &mut Ledger, competitors: &mut Competitors, index: u32) {
        let reading = self.settle();
        self.remove_from_class(competitors, index);
        let competitor = competitors.at_mut(index);
        self.threads -= u64::from(competitor.threads);
        self.magnitudes.remove(competitor.magnitude);
        self.total_weight -= u64::from(competitor.weight);
        self.total_tickets -= u64::from(competitor.tickets);
        competitor.change(reading, 0, competitor.tickets);
        self.changes_since_rescale += 1;
        self.stale = true;
        ledger.deactivate(competitor.client(index));
    }

    /// An active client has another number of runnable threads, not zero.
    pub(super) fn change_threads(
        &mut self,
        competitors: &mut Competitors,
        index: u32,
        threads: u32,
    ) {
        self.remove_from_class(competitors, index);
        let competitor = competitors.at_mut(index);
        let before = mem::replace(&mut competitor.threads, threads);
        self.threads = self.threads - u64::from(before) + u64::from(threads);
        add_to_class(&mut self.classes, competitor, index);
        self.stale = true;
    }

    /// Works out the tickets of all clients of this pool; those whose value
    /// changed were repriced before.
    ///
    /// Cost: up to O(m log m) on m CPUs where weights are infeasible. A change
    /// of scale visits every active client.
    #[inline]
    pub(super) fn refresh(
        &mut self,
        ledger: &Ledger,
        competitors: &mut Competitors,
        tell: &mut impl FnMut(usize, ClientIndex, u32),
    ) {
        let largest = self.magnitudes.largest();
        if !self.scale.suits(largest) && self.may_rescale(largest) {
            self.rescale(largest, ledger, competitors, tell);
        }
        if mem::take(&mut self.stale) {
            self.readjust(competitors, tell);
        }
    }

    #[cold]
    fn rescale(
        &mut self,
        largest: u8,
        ledger: &Ledger,
        competitors: &mut Competitors,
        tell: &mut impl FnMut(usize, ClientIndex, u32),
    ) {
        self.scale = self.scale.suited_to(largest);
        self.changes_since_rescale = 0;
        self.reprice_all(ledger, competitors, tell);
    }

    /// Too coarse a scale is put up with until there were as many changes as
    /// there are clients to visit, so that a rich client which comes and goes
    /// costs O(1) on average; one too fine would overflow.
    fn may_rescale(&self, largest: u8) -> bool {
        self.scale.overflows(largest) || self.changes_since_rescale >= self.len()
    }

    /// The value of any active client may have changed.
    pub(super) fn reprice_all(
        &mut self,
        ledger: &Ledger,
        competitors: &mut Competitors,
        tell: &mut impl FnMut(usize, ClientIndex, u32),
    ) {
        // Rare, and there may be a million: this room is not kept.
        let active: Vec<u32> = self.classes.iter().collect();
        for index in active {
            self.reprice(ledger, competitors, index, tell);
        }
    }

    /// An active client's value or the scale may have changed.
    pub(super) fn reprice(
        &mut self,
        ledger: &Ledger,
        competitors: &mut Competitors,
        index: u32,
        tell: &mut impl FnMut(usize, ClientIndex, u32),
    ) {
        let competitor = competitors.at_mut(index);
        let before = competitor.weight;
        let value = ledger.value(competitor.client(index));
        let magnitude = mem::replace(&mut competitor.magnitude, value.bits());
        if value.bits() != magnitude {
            self.magnitudes.remove(magnitude);
            self.magnitudes.add(value.bits());
        }
        let weight = self.scale.tickets(value);
        if weight == before {
            return;
        }
        self.total_weight = self.total_weight - u64::from(before) + u64::from(weight);
        self.changes_since_rescale += 1;
        self.stale = true;
        self.remove_from_class(competitors, index);
        let competitor = competitors.at_mut(index);
        competitor.weight = weight;
        add_to_class(&mut self.classes, competitor, index);
        // The tickets of an infeasible one are set once, by `readjust`.
        if !competitor.infeasible {
            self.set_tickets(competitors, index, weight, tell);
        }
    }

    /// Cuts weights that are infeasible, and restores those that no longer
    /// are.
    fn readjust(
        &mut self,
        competitors: &mut Competitors,
        tell: &mut impl FnMut(usize, ClientIndex, u32),
    ) {
        let before = mem::take(&mut self.infeasible);
        let mut infeasible = mem::take(&mut self.spare);
        let demand = |index: u32| competitors.at(index).demand();
        let readjustment =
            self.classes
                .find_infeasible(self.total_weight, self.cpus, demand, &mut infeasible);
        self.tell_readjusted(competitors, &before, &infeasible, &readjustment, tell);
        self.infeasible = infeasible;
        self.spare = before;
    }

    fn tell_readjusted(
        &mut self,
        competitors: &mut Competitors,
        before: &[u32],
        after: &[u32],
        readjustment: &Readjustment,
        tell: &mut impl FnMut(usize, ClientIndex, u32),
    ) {
        // An infeasible client may have left or moved meanwhile, or been
        // destroyed.
        let number = self.number;
        let active = |c: &&mut Competitor| c.threads > 0 && c.pool == number;
        for &index in before {
            if let Some(competitor) = competitors.find_mut(index).filter(active) {
                competitor.infeasible = false;
            }
        }
        for &index in after {
            let competitor = competitors.at_mut(index);
            competitor.infeasible = true;
            let demand = competitor.demand();
            self.set_tickets(competitors, index, readjustment.weight(demand), tell);
        }
        for &index in before {
            let competitor = competitors.find_mut(index).filter(active);
            if let Some(weight) = competitor.filter(|c| !c.infeasible).map(|c| c.weight) {
                self.set_tickets(competitors, index, weight, tell);
            }
        }
    }

    /// An active client has these tickets from now on.
    fn set_tickets(
        &mut self,
        competitors: &mut Competitors,
        index: u32,
        tickets: u32,
        tell: &mut impl FnMut(usize, ClientIndex, u32),
    ) {
        let before = competitors.at(index).tickets;
        if before == tickets {
            return;
        }
        let reading = self.settle();
        let competitor = competitors.at_mut(index);
        competitor.change(reading, competitor.threads, tickets);
        self.total_tickets = self.total_tickets - u64::from(before) + u64::from(tickets);
        tell(self.number.into(), ClientIndex(index), tickets);
    }

    /// To be called before the sum of the tickets changes.
    fn settle(&mut self) -> Reading {
        self.service.settle(self.total_tickets)
    }

    fn remove_from_class(&mut self, competitors: &mut Competitors, index: u32) {
        let competitor = competitors.at(index);
        let (class, place) = (competitor.class, competitor.class_place);
        if let Some(moved) = self.classes.remove(class, place) {
            competitors.at_mut(moved).class_place = place;
        }
    }
}

fn add_to_class(classes: &mut Classes, competitor: &mut Competitor, index: u32) {
    competitor.class = competitor.demand().density_bits() as u8;
    competitor.class_place = classes.add(competitor.class, index);
}
