//! The clients of a pool that may not use all its CPUs, by affinity.
//!
//! Clients with the same affinity are a class. The tickets of a client are its
//! weighted max-min fair rate ([`crate::max_min`]), so that a policy gives each
//! client its rate. Without active clients of this kind, none of this is asked.
//!
//! # Limits
//!
//! A pool tells [`MAX_CLASSES`] - 1 affinities apart. A client with one more
//! counts as if it could use all CPUs: it may be entitled to more than its CPUs
//! can give, and then does not get its due.

use alloc::vec::Vec;
use core::ops::Range;

use super::active::Classes;
use super::competitor::{Competitor, Competitors};
use super::pool::thousandths;
use crate::affinity::Affinity;
use crate::feasible::{Demand, Level};
use crate::max_min::{ClassDemand, DemandingClasses, MAX_CLASSES, bits, fill, group_cpus};

/// Clients with the same affinity.
#[derive(Debug)]
struct AffinityClass {
    affinity: Affinity,
    /// Clients, whether they compete or not. Without any, another affinity may
    /// have the place.
    clients: u32,
    /// Those that compete.
    members: Classes,
    /// Sum of their weights.
    weight: u64,
}

/// The affinity classes of a pool. They are numbered from 1; class 0 has the
/// clients that may use all CPUs.
#[derive(Debug)]
pub(super) struct Confined {
    classes: Vec<AffinityClass>,
    /// Members of all classes.
    len: usize,
}

/// What clients are due where some may not use all CPUs.
pub(super) struct Fair {
    /// The clients whose tickets are not their weights, and their tickets.
    pub(super) tickets: Vec<(u32, u32)>,
    /// CPUs that all clients with tickets can use together, in thousandths.
    pub(super) thousandths: u64,
}

impl Confined {
    pub(super) const fn new() -> Self {
        Self {
            classes: Vec::new(),
            len: 0,
        }
    }

    /// How many clients compete.
    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// Sum of the weights of the clients that compete.
    pub(super) fn weight(&self) -> u64 {
        self.classes.iter().map(|class| class.weight).sum()
    }

    /// The indices of the clients that compete.
    pub(super) fn iter(&self) -> impl Iterator<Item = u32> {
        self.classes.iter().flat_map(|class| class.members.iter())
    }

    /// Adds a competitor of these classes, and notes its place.
    #[cold]
    pub(super) fn add(&mut self, competitor: &mut Competitor, index: u32) {
        let class = &mut self.classes[usize::from(competitor.affinity) - 1];
        class.weight += u64::from(competitor.weight);
        competitor.class_place = class.members.add(competitor.class, index);
        self.len += 1;
    }

    /// Removes a competitor of these classes. Returns the index that now stands
    /// at its place, if any does.
    #[cold]
    pub(super) fn remove(&mut self, competitor: &Competitor) -> Option<u32> {
        let class = &mut self.classes[usize::from(competitor.affinity) - 1];
        class.weight -= u64::from(competitor.weight);
        self.len -= 1;
        class
            .members
            .remove(competitor.class, competitor.class_place)
    }

    /// A client has this affinity from now on. Returns its class.
    pub(super) fn enrol(&mut self, affinity: Option<&Affinity>) -> u8 {
        let Some(affinity) = affinity else { return 0 };
        let known = |class: &AffinityClass| class.clients > 0 && class.affinity == *affinity;
        let place = self.classes.iter().position(known);
        let place = place.or_else(|| self.classes.iter().position(|class| class.clients == 0));
        let place = place.unwrap_or(self.classes.len());
        if place == self.classes.len() {
            if place + 1 == MAX_CLASSES {
                return 0;
            }
            self.classes.push(AffinityClass {
                affinity: Affinity::default(),
                clients: 0,
                members: Classes::new(),
                weight: 0,
            });
        }
        let class = &mut self.classes[place];
        if class.clients == 0 {
            class.affinity = affinity.clone();
        }
        class.clients += 1;
        place as u8 + 1
    }

    /// A client, which does not compete, leaves its class for good.
    pub(super) fn dismiss(&mut self, class: u8) {
        if class > 0 {
            self.classes[usize::from(class) - 1].clients -= 1;
        }
    }

    /// What the competing clients are due on `cpus` CPUs. `all` are those of
    /// class 0, with this weight. Allocates.
    pub(super) fn share(&self, all: (&Classes, u64), cpus: u32, competitors: &Competitors) -> Fair {
        let mut filling = Filling {
            all,
            confined: &self.classes,
            competitors,
            class_demands: [ClassDemand::default(); MAX_CLASSES],
            cpus: thousandths(cpus),
            found: Level { cpus: 1, weight: 1 },
            infeasible: Vec::new(),
            settled: 0,
            regions: Vec::new(),
        };
        let weighty = (0..=self.classes.len()).filter(|&class| filling.weight(class) > 0);
        let classes = weighty.fold(0, |classes, class| classes | 1 << class);
        let affinities = self.classes.iter().map(|class| &class.affinity);
        let mut groups = group_cpus(cpus, classes, affinities);
        for group in &mut groups {
            group.cpus = thousandths(group.cpus);
        }
        fill(&mut groups, classes, &mut filling);
        Fair {
            thousandths: filling.regions.iter().map(|region| region.cpus).sum(),
            tickets: filling.tickets(),
        }
    }
}

/// Classes with a level of their own, and CPUs of their own.
struct Region {
    classes: u64,
    level: Level,
    /// What their clients can use of the CPUs, in thousandths.
    cpus: u64,
    /// Those that have as many CPUs as threads, in [`Filling::infeasible`].
    infeasible: Range<usize>,
}

/// The clients of a pool while their levels are looked for.
struct Filling<'a> {
    all: (&'a Classes, u64),
    confined: &'a [AffinityClass],
    competitors: &'a Competitors,
    class_demands: [ClassDemand; MAX_CLASSES],
    /// CPUs of the level found last, in thousandths.
    cpus: u32,
    found: Level,
    /// Clients that have as many CPUs as threads: those of the regions, and
    /// then those of the level found last.
    infeasible: Vec<u32>,
    /// How many are those of the regions.
    settled: usize,
    regions: Vec<Region>,
}

impl Filling<'_> {
    fn weight(&self, class: usize) -> u64 {
        match class {
            0 => self.all.1,
            _ => self.confined[class - 1].weight,
        }
    }

    fn members(&self, class: usize) -> &Classes {
        match class {
            0 => self.all.0,
            _ => &self.confined[class - 1].members,
        }
    }

    fn demand(&self, index: u32) -> Demand {
        self.competitors.at(index).demand()
    }

    /// The tickets that are not the weights. Clients without an affinity are
    /// always at the highest level, so only confined ones are looked at one by
    /// one.
    fn tickets(&self) -> Vec<(u32, u32)> {
        let levels = self.regions.iter().map(|region| region.level);
        let Some(highest) = levels.max_by(Level::cmp_rate) else {
            return Vec::new();
        };
        let mut tickets = Vec::new();
        for region in &self.regions {
            let mut add = |index: u32| {
                let demand = self.demand(index);
                if demand.weight > 0 {
                    tickets.push((index, region.level.tickets(highest, demand)));
                }
            };
            if region.level.cmp_rate(&highest).is_eq() {
                let infeasible = &self.infeasible[region.infeasible.clone()];
                infeasible.iter().copied().for_each(&mut add);
            } else {
                let members = bits(region.classes).flat_map(|class| self.members(class).iter());
                members.for_each(&mut add);
            }
        }
        tickets
    }
}

impl DemandingClasses for Filling<'_> {
    fn level(&mut self, classes: u64, cpus: u32) -> Level {
        for class in bits(classes) {
            let weight = self.weight(class);
            self.class_demands[class] = ClassDemand { cpus: 0, weight };
        }
        let total = bits(classes)
            .map(|class| self.class_demands[class].weight)
            .sum();
        let mut infeasible = core::mem::take(&mut self.infeasible);
        infeasible.truncate(self.settled);
        let members = bits(classes).map(|class| self.members(class));
        let readjustment = Classes::find_infeasible(
            members,
            total,
            cpus,
            |index| self.demand(index),
            &mut infeasible,
        );
        for &index in &infeasible[self.settled..] {
            let competitor = self.competitors.at(index);
            let class_demand = &mut self.class_demands[usize::from(competitor.affinity)];
            class_demand.weight -= u64::from(competitor.weight);
            class_demand.cpus += u64::from(competitor.demand().cpus);
        }
        self.infeasible = infeasible;
        self.cpus = cpus;
        self.found = readjustment.level();
        self.found
    }

    fn class_demand(&self, class: usize) -> ClassDemand {
        self.class_demands[class]
    }

    fn settle(&mut self, classes: u64) {
        let class_demands = bits(classes).map(|class| self.class_demands[class]);
        let all_cut = class_demands
            .clone()
            .all(|class_demand| class_demand.weight == 0);
        let cpus = match all_cut {
            true => class_demands.map(|class_demand| class_demand.cpus).sum(),
            false => self.cpus.into(),
        };
        let end = self.infeasible.len();
        self.regions.push(Region {
            classes,
            level: self.found,
            cpus,
            infeasible: self.settled..end,
        });
        self.settled = end;
    }
}
