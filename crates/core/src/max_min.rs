//! Weighted max-min fair rates of clients that may not use all CPUs.
//!
//! A client's rate is the CPU time that it is due in each unit of time. All
//! rates rise together, in proportion to weights. A client that runs on as many
//! CPUs as it has threads rises no further. Neither do clients that fill all
//! CPUs which they may use. The others rise on, beside them. No client could
//! have more without another having less that has no more for its weight.
//!
//! ```text
//!   weights 900 and 100 on CPU 0, 100 on any of two CPUs: 0.9, 0.1 and 1
//! ```
//!
//! Clients with the same affinity are a class. The classes are divided until
//! each part has a level of its own (Fujishige's decomposition of a
//! polymatroid, 1980): at the level at which the classes of a part ask for all
//! CPUs that they may use together, either these CPUs can serve them, or some
//! classes are overloaded. Overloaded classes keep their CPUs to themselves, at
//! a lower level; the rest of the classes share the rest of the CPUs, at a
//! higher one. So n classes need less than 2 n maximum flows. All numbers are
//! whole, and nothing is rounded but tickets, to the nearest.
//!
//! Without affinities there is one class, and the level is that of
//! [`crate::feasible`], as are the tickets.

use alloc::vec;
use alloc::vec::Vec;
use core::ops::Range;

use crate::affinity::Affinity;
use crate::feasible::{Demand, Level, Readjustment};
use crate::saturation::overloaded;

/// Most classes, with the class of the clients that may use all CPUs.
pub const MAX_CLASSES: usize = 64;

/// CPUs that the same classes may use, in the unit of [`crate::feasible`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CpuGroup {
    /// The classes, as bits.
    pub classes: u64,
    /// How many CPUs.
    pub cpus: u32,
}

/// What the clients of a class ask for at a level.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct ClassDemand {
    /// The CPUs of those that have as many CPUs as threads.
    pub cpus: u64,
    /// The weight of the others.
    pub weight: u64,
}

/// The clients of the classes. Each class has some weight.
pub trait DemandingClasses {
    /// The level at which the clients of these classes, as bits, ask for so many CPUs
    /// together, or for all that they can use if that is less.
    fn level(&mut self, classes: u64, cpus: u32) -> Level;

    /// What a class asks for at the level found last.
    fn class_demand(&self, class: usize) -> ClassDemand;

    /// These classes have found their level: the one found last.
    fn settle(&mut self, classes: u64);
}

/// The positions of the bits that are set.
pub(crate) fn bits(mut set: u64) -> impl Iterator<Item = usize> + Clone {
    core::iter::from_fn(move || {
        let bit = (set != 0).then(|| set.trailing_zeros() as usize);
        set &= set.wrapping_sub(1);
        bit
    })
}

/// Whole CPUs below `cpus` by the classes that may use them; the others are left out. Class 0 may
/// use all, if `classes` has it; the affinities are those of the classes from 1 on. Allocates.
pub fn group_cpus<'a>(
    cpus: u32,
    classes: u64,
    affinities: impl Iterator<Item = &'a Affinity>,
) -> Vec<CpuGroup> {
    let mut users = vec![classes & 1; cpus as usize];
    for (class, affinity) in (1..MAX_CLASSES).zip(affinities) {
        if classes >> class & 1 == 1 {
            let is_whole = affinity.is_whole(cpus);
            let may_use = |cpu: &u32| is_whole || affinity.contains(*cpu);
            let usable = (0..cpus).filter(may_use);
            usable.for_each(|cpu| users[cpu as usize] |= 1 << class);
        }
    }
    users.sort_unstable();
    let equals = users.chunk_by(|one, other| one == other);
    let groups = equals.map(|equals| CpuGroup {
        classes: equals[0],
        cpus: equals.len() as u32,
    });
    groups.filter(|group| group.classes != 0).collect()
}

/// Finds the level of each class. The groups are those of [`group_cpus`]; afterwards they
/// stand in another order. Allocates.
///
/// Cost: less than 2 n levels and maximum flows for n classes.
pub fn fill(groups: &mut [CpuGroup], classes: u64, demanding: &mut impl DemandingClasses) {
    let mut parts: Vec<(u64, Range<usize>)> = Vec::new();
    if classes != 0 {
        parts.push((classes, 0..groups.len()));
    }
    while let Some((classes, range)) = parts.pop() {
        let own = &mut groups[range.clone()];
        let cpus = own.iter().map(|group| group.cpus).sum();
        let level = demanding.level(classes, cpus);
        let mut demands = [0; MAX_CLASSES];
        for class in bits(classes) {
            let class_demand = demanding.class_demand(class);
            demands[class] = u128::from(class_demand.cpus) * u128::from(level.weight)
                + u128::from(class_demand.weight) * u128::from(level.cpus);
        }
        match overloaded(demands, own, level.weight.into()) {
            None => demanding.settle(classes),
            Some(tight) => {
                // Never all classes: together they ask for no more than all these CPUs.
                debug_assert!(tight != classes);
                own.sort_unstable_by_key(|group| group.classes & tight == 0);
                let tights = own.partition_point(|group| group.classes & tight != 0);
                let middle = range.start + tights;
                parts.push((tight, range.start..middle));
                parts.push((classes & !tight, middle..range.end));
            }
        }
    }
}

/// What a client asks of some of the machine's CPUs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ConfinedDemand {
    /// Weight and CPUs at once.
    pub demand: Demand,
    /// 0 for all CPUs, else one more than the place of its affinity.
    pub class: usize,
}

/// The level of each class with these demands on `cpus` CPUs, at least 1. None for a class
/// without weight. The demands are looked at all at once. With at most `MAX_CLASSES - 1`
/// affinities.
pub fn levels(
    demands: &[ConfinedDemand],
    affinities: &[Affinity],
    cpus: u32,
) -> [Option<Level>; MAX_CLASSES] {
    let mut densest: Vec<_> = (0..demands.len()).collect();
    densest.sort_by(|&a, &b| demands[b].demand.cmp_density(&demands[a].demand));
    let weighty = demands.iter().filter(|confined| confined.demand.weight > 0);
    let classes = weighty.fold(0, |classes, confined| classes | 1 << confined.class);
    let mut all = All {
        demands,
        densest,
        class_demands: [ClassDemand::default(); MAX_CLASSES],
        found: Level { cpus: 1, weight: 1 },
        levels: [None; MAX_CLASSES],
    };
    let mut groups = group_cpus(cpus, classes, affinities.iter());
    fill(&mut groups, classes, &mut all);
    all.levels
}

/// The weights by which these demands get their rates, as
/// [`crate::feasible::feasible_weights`]: a client at the highest level keeps its weight.
pub fn max_min_weights(demands: &[ConfinedDemand], affinities: &[Affinity], cpus: u32) -> Vec<u32> {
    let levels = levels(demands, affinities, cpus);
    let highest = levels.into_iter().flatten().max_by(Level::cmp_rate);
    let weights = demands.iter().map(|confined| {
        let level = levels[confined.class].zip(highest);
        match level.filter(|_| confined.demand.weight > 0) {
            Some((level, highest)) => level.tickets(highest, confined.demand),
            None => 0,
        }
    });
    weights.collect()
}

/// DemandingClasses that are all looked at for each level.
struct All<'a> {
    demands: &'a [ConfinedDemand],
    /// Places of the demands, the densest first.
    densest: Vec<usize>,
    class_demands: [ClassDemand; MAX_CLASSES],
    found: Level,
    levels: [Option<Level>; MAX_CLASSES],
}

impl DemandingClasses for All<'_> {
    fn level(&mut self, classes: u64, cpus: u32) -> Level {
        bits(classes).for_each(|class| self.class_demands[class] = ClassDemand::default());
        let places = self.densest.iter().map(|&place| self.demands[place]);
        let own = places.filter(|confined| classes >> confined.class & 1 == 1);
        for confined in own.clone() {
            self.class_demands[confined.class].weight += u64::from(confined.demand.weight);
        }
        let total = bits(classes)
            .map(|class| self.class_demands[class].weight)
            .sum();
        let mut readjustment = Readjustment::new(total, cpus);
        for confined in own {
            if !readjustment.cut(confined.demand) {
                break;
            }
            self.class_demands[confined.class].weight -= u64::from(confined.demand.weight);
            self.class_demands[confined.class].cpus += u64::from(confined.demand.cpus);
        }
        self.found = readjustment.level();
        self.found
    }

    fn class_demand(&self, class: usize) -> ClassDemand {
        self.class_demands[class]
    }

    fn settle(&mut self, classes: u64) {
        bits(classes).for_each(|class| self.levels[class] = Some(self.found));
    }
}
