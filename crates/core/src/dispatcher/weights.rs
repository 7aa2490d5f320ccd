//! Who counts how much: from the ledger's values to the policy's tickets.
//!
//! ```text
//!   value --scale--> weight --readjusted if infeasible--> tickets
//! ```
//!
//! Only clients whose value changed are looked at: the ledger says which.
//! Cost of a refresh: those clients, and up to O(m log m) on m CPUs where
//! weights are infeasible. A change of scale visits every active client.
//!
//! What every block and wake goes through is inlined into its only caller.

use alloc::vec::Vec;
use core::mem;

use super::active::Classes;
use super::competitor::{Competitor, Competitors, Reading};
use super::expect;
use super::pool::Pool;
use crate::feasible::Readjustment;
use crate::ledger::Ledger;
use crate::policy::ClientIndex;

impl Pool {
    /// A client of this pool becomes active, with so many runnable threads.
    #[inline(always)]
    pub(super) fn enter(
        &mut self,
        ledger: &mut Ledger,
        competitors: &mut Competitors,
        index: u32,
        threads: u32,
    ) {
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
        expect(self.policy.join(ClientIndex(index), weight));
    }

    /// A client ceases to be active, and its turn ends.
    #[inline(always)]
    pub(super) fn exit(
        &mut self,
        ledger: &mut Ledger,
        competitors: &mut Competitors,
        index: u32,
        quantum_ns: u64,
    ) {
        let used_ns = self.close_turn(competitors, index);
        let reading = self.settle();
        let client = ClientIndex(index);
        expect(match used_ns {
            Some(used_ns) => self.policy.charge_and_leave(client, used_ns, quantum_ns),
            None => self.policy.leave(client),
        });
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
        if competitor.cpus > 0 {
            let cpus = competitor.cpus.min(threads);
            self.cpus_free += mem::replace(&mut competitor.cpus, cpus) - cpus;
            self.running_threads = self.running_threads - u64::from(before) + u64::from(threads);
        }
        self.threads = self.threads - u64::from(before) + u64::from(threads);
        add_to_class(&mut self.classes, competitor, index);
        self.stale = true;
    }

    /// Works out the tickets of all clients of this pool, those whose value
    /// changed having been repriced.
    #[inline]
    pub(super) fn refresh(&mut self, ledger: &Ledger, competitors: &mut Competitors) {
        let largest = self.magnitudes.largest();
        if !self.scale.suits(largest) && self.may_rescale(largest) {
            self.rescale(largest, ledger, competitors);
        }
        if mem::take(&mut self.stale) {
            self.readjust(competitors);
        }
    }

    #[cold]
    fn rescale(&mut self, largest: u8, ledger: &Ledger, competitors: &mut Competitors) {
        self.scale = self.scale.suited_to(largest);
        self.changes_since_rescale = 0;
        self.reprice_all(ledger, competitors);
    }

    /// Too coarse a scale is put up with until there were as many changes as
    /// there are clients to visit, so that a rich client which comes and goes
    /// costs O(1) on average; one too fine would overflow.
    fn may_rescale(&self, largest: u8) -> bool {
        self.scale.overflows(largest) || self.changes_since_rescale >= self.classes.len()
    }

    /// The value of any active client may have changed.
    pub(super) fn reprice_all(&mut self, ledger: &Ledger, competitors: &mut Competitors) {
        // Rare, and there may be a million: this room is not kept.
        let active: Vec<u32> = self.classes.iter().collect();
        for index in active {
            self.reprice(ledger, competitors, index);
        }
    }

    /// An active client's value or the scale may have changed.
    pub(super) fn reprice(&mut self, ledger: &Ledger, competitors: &mut Competitors, index: u32) {
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
            self.set_tickets(competitors, index, weight);
        }
    }

    /// Cuts weights that are infeasible, and restores those that no longer
    /// are.
    fn readjust(&mut self, competitors: &mut Competitors) {
        let before = mem::take(&mut self.infeasible);
        let mut infeasible = mem::take(&mut self.spare);
        let demand = |index: u32| competitors.at(index).demand();
        let readjustment =
            self.classes
                .find_infeasible(self.total_weight, self.cpus, demand, &mut infeasible);
        self.tell_readjusted(competitors, &before, &infeasible, &readjustment);
        self.infeasible = infeasible;
        self.spare = before;
    }

    fn tell_readjusted(
        &mut self,
        competitors: &mut Competitors,
        before: &[u32],
        after: &[u32],
        readjustment: &Readjustment,
    ) {
        // Who was infeasible may have left or moved meanwhile, or been
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
            self.set_tickets(competitors, index, readjustment.weight(demand));
        }
        for &index in before {
            let competitor = competitors.find_mut(index).filter(active);
            if let Some(weight) = competitor.filter(|c| !c.infeasible).map(|c| c.weight) {
                self.set_tickets(competitors, index, weight);
            }
        }
    }

    /// Tells the policy of an active client's tickets.
    fn set_tickets(&mut self, competitors: &mut Competitors, index: u32, tickets: u32) {
        let before = competitors.at(index).tickets;
        if before == tickets {
            return;
        }
        let reading = self.settle();
        let competitor = competitors.at_mut(index);
        competitor.change(reading, competitor.threads, tickets);
        self.total_tickets = self.total_tickets - u64::from(before) + u64::from(tickets);
        expect(self.policy.set_tickets(ClientIndex(index), tickets));
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
