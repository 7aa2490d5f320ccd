//! Who counts how much: from the ledger's values to the policy's tickets.
//!
//! ```text
//!   value --scale--> weight --readjusted if infeasible--> tickets
//! ```
//!
//! Only clients whose value changed are looked at: the ledger says which.
//! Cost of a refresh: those clients, and up to O(m log m) on m CPUs where
//! weights are infeasible. A change of scale visits every active client.

use alloc::vec::Vec;
use core::mem;

use super::competitor::{Competitor, Reading};
use super::{ACTIVE, Classes, Dispatcher, expect};
use crate::feasible::Readjustment;
use crate::policy::ClientIndex;

impl Dispatcher {
    /// A client becomes active, with so many runnable threads.
    pub(super) fn enter(&mut self, index: u32, threads: u32) {
        let reading = self.settle();
        let client = self.existing(index).client(index);
        self.ledger.activate(client);
        let value = self.ledger.value(client);
        let weight = self.scale.tickets(value);
        let competitor = self.competitors[index as usize].as_mut().expect(ACTIVE);
        competitor.change(reading, threads, weight);
        competitor.weight = weight;
        competitor.magnitude = value.bits();
        competitor.infeasible = false;
        add_to_class(&mut self.classes, competitor, index);
        self.magnitudes.add(value.bits());
        self.total_weight += u64::from(weight);
        self.total_tickets += u64::from(weight);
        self.changes_since_rescale += 1;
        self.stale = true;
        expect(self.policy.join(ClientIndex(index), weight));
    }

    /// A client ceases to be active, and its turn ends.
    pub(super) fn exit(&mut self, index: u32) {
        let quantum_ns = self.machine.quantum_ns;
        let used_ns = self.close_turn(index);
        let reading = self.settle();
        let client = ClientIndex(index);
        expect(match used_ns {
            Some(used_ns) => self.policy.charge_and_leave(client, used_ns, quantum_ns),
            None => self.policy.leave(client),
        });
        self.remove_from_class(index);
        let competitor = self.existing(index);
        let client = competitor.client(index);
        let Competitor {
            weight,
            tickets,
            magnitude,
            ..
        } = *competitor;
        competitor.change(reading, 0, tickets);
        self.magnitudes.remove(magnitude);
        self.total_weight -= u64::from(weight);
        self.total_tickets -= u64::from(tickets);
        self.changes_since_rescale += 1;
        self.stale = true;
        self.ledger.deactivate(client);
    }

    /// An active client has another number of runnable threads, not zero.
    pub(super) fn change_threads(&mut self, index: u32, threads: u32) {
        self.remove_from_class(index);
        let competitor = self.competitors[index as usize].as_mut().expect(ACTIVE);
        let before = core::mem::replace(&mut competitor.threads, threads);
        if competitor.cpus > 0 {
            let cpus = competitor.cpus.min(threads);
            self.cpus_free += core::mem::replace(&mut competitor.cpus, cpus) - cpus;
            self.running_threads = self.running_threads - u64::from(before) + u64::from(threads);
        }
        add_to_class(&mut self.classes, competitor, index);
        self.stale = true;
    }

    /// Works out the tickets of all clients that something changed for.
    pub(super) fn refresh(&mut self) {
        if self.ledger.has_changes() {
            self.reprice_changed();
        }
        let largest = self.magnitudes.largest();
        if !self.scale.suits(largest) && self.may_rescale(largest) {
            self.scale = self.scale.suited_to(largest);
            self.changes_since_rescale = 0;
            self.reprice_all();
        }
        if mem::take(&mut self.stale) {
            self.readjust();
        }
    }

    /// Too coarse a scale is put up with until there were as many changes as
    /// there are clients to visit, so that a rich client which comes and goes
    /// costs O(1) on average; one too fine would overflow.
    fn may_rescale(&self, largest: u8) -> bool {
        self.scale.overflows(largest) || self.changes_since_rescale >= self.classes.len()
    }

    fn reprice_changed(&mut self) {
        let mut changed = mem::take(&mut self.changed);
        changed.clear();
        // Beyond so many it is cheaper to look at every active client.
        if self.ledger.take_changes(&mut changed, self.classes.len()) {
            for client in changed.iter() {
                let active = self.competitor(*client).is_some_and(|c| c.threads > 0);
                if active {
                    self.reprice(client.index());
                }
            }
        } else {
            self.reprice_all();
        }
        self.changed = changed;
    }

    fn reprice_all(&mut self) {
        // Rare, and there may be a million: this room is not kept.
        let active: Vec<u32> = self.classes.iter().collect();
        for index in active {
            self.reprice(index);
        }
    }

    /// An active client's value or the scale may have changed.
    fn reprice(&mut self, index: u32) {
        let competitor = self.existing(index);
        let (before, magnitude) = (competitor.weight, competitor.magnitude);
        let (client, infeasible) = (competitor.client(index), competitor.infeasible);
        let value = self.ledger.value(client);
        if value.bits() != magnitude {
            self.magnitudes.remove(magnitude);
            self.magnitudes.add(value.bits());
            self.existing(index).magnitude = value.bits();
        }
        let weight = self.scale.tickets(value);
        if weight == before {
            return;
        }
        self.total_weight = self.total_weight - u64::from(before) + u64::from(weight);
        self.changes_since_rescale += 1;
        self.stale = true;
        self.remove_from_class(index);
        let competitor = self.competitors[index as usize].as_mut().expect(ACTIVE);
        competitor.weight = weight;
        add_to_class(&mut self.classes, competitor, index);
        // The tickets of an infeasible one are set once, by `readjust`.
        if !infeasible {
            self.set_tickets(index, weight);
        }
    }

    /// Cuts weights that are infeasible, and restores those that no longer
    /// are.
    fn readjust(&mut self) {
        let mut readjustment = Readjustment::new(self.total_weight, self.machine.cpus);
        let before = mem::take(&mut self.infeasible);
        let mut infeasible = mem::take(&mut self.spare);
        infeasible.clear();
        let mut class = Classes::END;
        while let Some(next) = self.classes.densest_below(class)
            && !readjustment.all_feasible_below(next.into())
        {
            class = next;
            let start = infeasible.len();
            infeasible.extend_from_slice(self.classes.members(class));
            let members = &mut infeasible[start..];
            let demand = |index: u32| {
                self.competitors[index as usize]
                    .as_ref()
                    .expect(ACTIVE)
                    .demand()
            };
            members.sort_unstable_by(|&a, &b| demand(b).cmp_density(&demand(a)).then(a.cmp(&b)));
            let cut = members
                .iter()
                .take_while(|&&i| readjustment.cut(demand(i)))
                .count();
            if start + cut < infeasible.len() {
                infeasible.truncate(start + cut);
                break;
            }
        }
        self.tell_readjusted(&before, &infeasible, &readjustment);
        self.infeasible = infeasible;
        self.spare = before;
    }

    fn tell_readjusted(&mut self, before: &[u32], after: &[u32], readjustment: &Readjustment) {
        // Who was infeasible may have left meanwhile, or been destroyed.
        let active = |c: &&mut Competitor| c.threads > 0;
        for &index in before {
            if let Some(competitor) = self.competitors[index as usize].as_mut().filter(active) {
                competitor.infeasible = false;
            }
        }
        for &index in after {
            let competitor = self.existing(index);
            competitor.infeasible = true;
            let demand = competitor.demand();
            self.set_tickets(index, readjustment.weight(demand));
        }
        for &index in before {
            let competitor = self.competitors[index as usize].as_mut().filter(active);
            if let Some(weight) = competitor.filter(|c| !c.infeasible).map(|c| c.weight) {
                self.set_tickets(index, weight);
            }
        }
    }

    /// Tells the policy of an active client's tickets.
    fn set_tickets(&mut self, index: u32, tickets: u32) {
        let before = self.existing(index).tickets;
        if before == tickets {
            return;
        }
        let reading = self.settle();
        let competitor = self.existing(index);
        competitor.change(reading, competitor.threads, tickets);
        self.total_tickets = self.total_tickets - u64::from(before) + u64::from(tickets);
        expect(self.policy.set_tickets(ClientIndex(index), tickets));
    }

    /// To be called before the sum of the tickets changes.
    fn settle(&mut self) -> Reading {
        self.service.settle(self.total_tickets)
    }

    fn remove_from_class(&mut self, index: u32) {
        let competitor = self.existing(index);
        let (class, place) = (competitor.class, competitor.class_place);
        if let Some(moved) = self.classes.remove(class, place) {
            self.existing(moved).class_place = place;
        }
    }
}

fn add_to_class(classes: &mut Classes, competitor: &mut Competitor, index: u32) {
    competitor.class = competitor.demand().density_bits() as u8;
    competitor.class_place = classes.add(competitor.class, index);
}
