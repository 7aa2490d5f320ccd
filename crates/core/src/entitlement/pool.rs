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
use super::confined::Confined;
use super::scale::Scale;
use super::service::{Reading, Service};
use super::standing::Standing;
use crate::affinity::Affinity;
use crate::capacity::{Capacities, WHOLE_CPU};
use crate::cpu_limit::{CPU_THOUSANDTHS, CpuLimit};
use crate::feasible::Demand;
use crate::hybrid::NiceLaw;
use crate::ids::ClientIndex;
use crate::ledger::Ledger;

/// CPUs in the unit of demands. More than four million count as that many.
pub(super) fn thousandths(cpus: u32) -> u32 {
    cpus.saturating_mul(CPU_THOUSANDTHS)
}

/// CPUs, and what the clients that compete for them deserve.
pub(super) struct Pool {
    /// That of its clients.
    number: u8,
    cpus: u32,
    /// The competitors of this pool with runnable threads that may use all its
    /// CPUs. The ledger's clients of these and of `confined`, and no others, are
    /// active.
    classes: Classes,
    /// Those that may use only some of its CPUs.
    confined: Confined,
    magnitudes: Magnitudes,
    /// Sum of the active clients' weights.
    total_weight: u64,
    /// Sum of the active clients' tickets.
    total_tickets: u64,
    /// Active clients whose weight is infeasible, and so their tickets fewer.
    /// Some may have left since.
    infeasible: Vec<u32>,
    /// Sum of the CPUs that its clients ask for, in thousandths.
    demanded: u64,
    /// CPUs that the clients could use with more threads, in thousandths: all,
    /// unless some clients are confined.
    usable: u64,
    /// Active clients with limits.
    limited: u32,
    /// What its CPUs have to give, while that is not all of each.
    capacities: Option<Capacities>,
    service: Service,
    /// How values follow nice values, if they do.
    pub(super) nice_law: Option<NiceLaw>,
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
            confined: Confined::new(),
            magnitudes: Magnitudes::new(),
            total_weight: 0,
            total_tickets: 0,
            infeasible: Vec::new(),
            demanded: 0,
            usable: thousandths(cpus).into(),
            limited: 0,
            capacities: None,
            service: Service::default(),
            nice_law: None,
            scale: Scale::INITIAL,
            stale: false,
            changes_since_rescale: 0,
            spare: Vec::new(),
        }
    }

    /// How many clients compete.
    pub(super) fn len(&self) -> usize {
        self.classes.len() + self.confined.len()
    }

    /// The indices of the clients that compete.
    pub(super) fn members(&self) -> impl Iterator<Item = u32> {
        self.classes.iter().chain(self.confined.iter())
    }

    /// Accounts for CPU time used by a competing client.
    pub(super) fn dispense(&mut self, used_ns: u64) {
        self.service.dispense(used_ns);
    }

    /// As [`Service::pass_time`].
    pub(super) fn pass_time(&mut self, uncharged_ns: u64) -> bool {
        self.service.pass_time(uncharged_ns, self.total_tickets)
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
        let usable = self.demanded.min(self.usable);
        let usable_cpus = match self.capacities() {
            Some(capacities) => {
                let threads = usable / u64::from(CPU_THOUSANDTHS);
                capacities.usable(threads) as f64 / f64::from(WHOLE_CPU)
            }
            None => usable as f64 / f64::from(CPU_THOUSANDTHS),
        };
        f64::from(tickets) / self.total_tickets as f64 * usable_cpus / f64::from(machine_cpus)
    }

    /// The standing of a client that competes here or did.
    pub(super) fn standing(&self, competitor: &Competitor) -> Standing {
        Standing {
            pool: self.number.into(),
            cpus: self.cpus,
            threads: competitor.threads,
            weight: competitor.weight,
            value: self.scale.value(competitor.weight),
            most: self.most(competitor),
            total_weight: self.total_weight,
            scale: self.scale,
        }
    }

    /// Returns how many CPUs there were.
    pub(super) fn set_cpus(&mut self, cpus: u32) -> u32 {
        self.stale = true;
        self.usable = thousandths(cpus).into();
        self.capacities = None;
        mem::replace(&mut self.cpus, cpus)
    }

    /// Its CPUs have so much to give, or all of their time.
    pub(super) fn set_capacities(&mut self, capacities: Option<Capacities>) {
        debug_assert!(capacities.as_ref().is_none_or(|c| c.cpus() == self.cpus));
        self.stale |= self.capacities != capacities;
        self.capacities = capacities;
    }

    /// What its CPUs have to give, where it counts: beside limited clients, CPUs count as equal.
    fn capacities(&self) -> Option<&Capacities> {
        self.capacities.as_ref().filter(|_| self.limited == 0)
    }

    /// A client of this pool may use the CPUs of an affinity, or all.
    pub(super) fn set_affinity(
        &mut self,
        competitors: &mut Competitors,
        index: u32,
        affinity: Option<&Affinity>,
    ) {
        let active = competitors.at(index).threads > 0;
        if active {
            self.remove_from_class(competitors, index);
        }
        let competitor = competitors.at_mut(index);
        self.confined.dismiss(competitor.affinity);
        competitor.affinity = self.confined.enrol(affinity);
        if active {
            self.add_to_class(competitor, index);
        }
        self.stale = true;
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
        ledger.activate(competitor.client(index));
        let value = self.value(ledger, competitor, index);
        let weight = self.scale.tickets(value);
        competitor.change(reading, threads, weight);
        competitor.weight = weight;
        competitor.magnitude = value.bits();
        competitor.infeasible = false;
        self.add_to_class(competitor, index);
        self.magnitudes.add(value.bits());
        self.total_weight += u64::from(weight);
        self.total_tickets += u64::from(weight);
        self.demanded += u64::from(competitor.demand().cpus);
        self.limited += u32::from(competitor.max.is_some());
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
        self.demanded -= u64::from(competitor.demand().cpus);
        self.limited -= u32::from(competitor.max.is_some());
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
        self.change_demand(competitors, index, |competitor| {
            competitor.threads = threads;
        });
    }

    /// A client of this pool has another limit, or none any more.
    pub(super) fn set_limit(
        &mut self,
        competitors: &mut Competitors,
        index: u32,
        max: Option<CpuLimit>,
    ) {
        match competitors.at(index).threads {
            0 => competitors.at_mut(index).max = max,
            _ => self.change_demand(competitors, index, |competitor| competitor.max = max),
        }
    }

    /// An active client asks for other CPUs.
    #[inline]
    fn change_demand(
        &mut self,
        competitors: &mut Competitors,
        index: u32,
        change: impl FnOnce(&mut Competitor),
    ) {
        self.remove_from_class(competitors, index);
        let competitor = competitors.at_mut(index);
        self.demanded -= u64::from(competitor.demand().cpus);
        self.limited -= u32::from(competitor.max.is_some());
        change(competitor);
        self.demanded += u64::from(competitor.demand().cpus);
        self.limited += u32::from(competitor.max.is_some());
        self.add_to_class(competitor, index);
        self.stale = true;
    }

    /// Whether clients, threads, CPUs or weights changed since the last [`Self::refresh`].
    pub(super) fn has_changes(&self) -> bool {
        self.stale
    }

    /// Works out the tickets of all clients of this pool; those whose value
    /// changed were repriced before.
    ///
    /// Cost: up to O(m log m) on m CPUs, or with m limited clients, where weights are infeasible. A change
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
        let active: Vec<u32> = self.members().collect();
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
        let value = self.value(ledger, competitor, index);
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
        self.add_to_class(competitor, index);
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
        infeasible.clear();
        if self.confined.len() > 0 {
            self.readjust_confined(competitors, &before, &mut infeasible, tell);
        } else if let Some(capacities) = self.capacities().cloned() {
            self.readjust_to(&capacities, competitors, (&before, &mut infeasible), tell);
        } else {
            let all = core::iter::once(&self.classes);
            let demand = |index: u32| competitors.at(index).demand();
            let (weight, cpus) = (self.total_weight, thousandths(self.cpus));
            let readjustment = Classes::find_infeasible(all, weight, cpus, demand, &mut infeasible);
            let tickets = |_, demand| readjustment.weight(demand);
            self.tell_readjusted(competitors, &before, &infeasible, tickets, tell);
            self.usable = thousandths(self.cpus).into();
        }
        self.infeasible = infeasible;
        self.spare = before;
    }

    /// The same where some clients are confined. Allocates, and looks at each of
    /// these clients.
    #[cold]
    fn readjust_confined(
        &mut self,
        competitors: &mut Competitors,
        before: &[u32],
        infeasible: &mut Vec<u32>,
        tell: &mut impl FnMut(usize, ClientIndex, u32),
    ) {
        let weight = self.total_weight - self.confined.weight();
        let fair = self
            .confined
            .share((&self.classes, weight), self.cpus, competitors);
        infeasible.extend(fair.tickets.iter().map(|(index, _)| index));
        let tickets = |place: usize, _| fair.tickets[place].1;
        self.tell_readjusted(competitors, before, infeasible, tickets, tell);
        self.usable = fair.thousandths;
    }

    /// The same on CPUs with unequal parts to give, and without confined or limited clients:
    /// beside these, CPUs count as equal. Allocates, and looks at each client.
    #[cold]
    fn readjust_to(
        &mut self,
        capacities: &Capacities,
        competitors: &mut Competitors,
        (before, infeasible): (&[u32], &mut Vec<u32>),
        tell: &mut impl FnMut(usize, ClientIndex, u32),
    ) {
        let members = self.classes.iter();
        let demands = members.map(|index| (index, competitors.at(index).threads_demand()));
        let mut cut = Vec::new();
        capacities.readjust(demands, &mut cut);
        infeasible.extend(cut.iter().map(|(index, _)| index));
        let tickets = |place: usize, _| cut[place].1;
        self.tell_readjusted(competitors, before, infeasible, tickets, tell);
        self.usable = thousandths(self.cpus).into();
    }

    fn tell_readjusted(
        &mut self,
        competitors: &mut Competitors,
        before: &[u32],
        after: &[u32],
        tickets: impl Fn(usize, Demand) -> u32,
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
        for (place, &index) in after.iter().enumerate() {
            let competitor = competitors.at_mut(index);
            competitor.infeasible = true;
            let demand = competitor.demand();
            self.set_tickets(competitors, index, tickets(place, demand), tell);
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
        let moved = match competitor.affinity {
            0 => self.classes.remove(class, place),
            _ => self.confined.remove(competitor),
        };
        if let Some(moved) = moved {
            competitors.at_mut(moved).class_place = place;
        }
    }

    #[inline]
    fn add_to_class(&mut self, competitor: &mut Competitor, index: u32) {
        competitor.class = competitor.demand().density_bits() as u8;
        match competitor.affinity {
            0 => competitor.class_place = self.classes.add(competitor.class, index),
            _ => self.confined.add(competitor, index),
        }
    }
}
