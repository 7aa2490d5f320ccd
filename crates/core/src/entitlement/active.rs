//! The active clients, ordered as far as weights need it: by the magnitude of
//! their values, for the scale, and by the density of their demands, for
//! feasibility. Every change is O(1).

use alloc::vec::Vec;

use crate::feasible::{Demand, MAX_DENSITY_BITS, Readjustment};

/// How many active clients have a value of so many bits.
#[derive(Debug)]
pub(super) struct Magnitudes {
    counts: [u32; VALUE_BITS + 1],
    /// Bit `b` is set exactly if `counts[b]` is above zero; there is none for
    /// values of zero.
    present: u128,
}

const VALUE_BITS: usize = 128;

impl Magnitudes {
    pub(super) fn new() -> Self {
        Self {
            counts: [0; VALUE_BITS + 1],
            present: 0,
        }
    }

    pub(super) fn add(&mut self, bits: u8) {
        self.counts[usize::from(bits)] += 1;
        if bits > 0 {
            self.present |= 1 << (bits - 1);
        }
    }

    pub(super) fn remove(&mut self, bits: u8) {
        let count = &mut self.counts[usize::from(bits)];
        *count -= 1;
        if bits > 0 && *count == 0 {
            self.present &= !(1 << (bits - 1));
        }
    }

    /// Bits of the largest value, zero if there is none above zero.
    pub(super) fn largest(&self) -> u8 {
        (VALUE_BITS as u32 - self.present.leading_zeros()) as u8
    }
}

/// Indexes of the active clients, by the bits of their density
/// ([`crate::feasible::Demand::density_bits`]).
#[derive(Debug)]
pub(crate) struct Classes {
    classes: [Vec<u32>; CLASSES],
    /// Bit `c` is set exactly if `classes[c]` holds something.
    occupied: u64,
    len: usize,
}

const CLASSES: usize = MAX_DENSITY_BITS as usize + 1;
/// A class without members keeps room for so many.
const KEPT: usize = 1 << 10;

impl Classes {
    pub(crate) const fn new() -> Self {
        Self {
            classes: [const { Vec::new() }; CLASSES],
            occupied: 0,
            len: 0,
        }
    }

    /// Returns its place in the class.
    pub(crate) fn add(&mut self, class: u8, index: u32) -> u32 {
        let members = &mut self.classes[usize::from(class)];
        members.push(index);
        self.occupied |= 1 << class;
        self.len += 1;
        members.len() as u32 - 1
    }

    /// Returns the index that now stands at the place, if any does.
    pub(crate) fn remove(&mut self, class: u8, place: u32) -> Option<u32> {
        let members = &mut self.classes[usize::from(class)];
        members.swap_remove(place as usize);
        if members.is_empty() {
            self.occupied &= !(1 << class);
            if members.capacity() > KEPT {
                // All move on to another class when the scale changes.
                *members = Vec::new();
            }
        }
        self.len -= 1;
        members.get(place as usize).copied()
    }

    pub(crate) fn members(&self, class: u8) -> &[u32] {
        &self.classes[usize::from(class)]
    }

    /// The densest class below `below` that has members.
    pub(crate) fn densest_below(&self, below: u8) -> Option<u8> {
        let lower = self.occupied & ((1 << below) - 1);
        (lower > 0).then(|| lower.ilog2() as u8)
    }

    /// Finds the infeasible members of all these, whose weights add up to
    /// `total_weight`, and adds them to `infeasible`, from the densest down.
    ///
    /// Cost: O(m log m) on m CPUs, and a sort of the class of the last one.
    pub(crate) fn find_infeasible<'a>(
        all: impl Iterator<Item = &'a Self> + Clone,
        total_weight: u64,
        cpus: u32,
        demand: impl Fn(u32) -> Demand,
        infeasible: &mut Vec<u32>,
    ) -> Readjustment {
        let mut readjustment = Readjustment::new(total_weight, cpus);
        let mut class = Self::END;
        while let Some(next) = all.clone().filter_map(|one| one.densest_below(class)).max()
            && !readjustment.all_feasible_below(next.into())
        {
            class = next;
            let start = infeasible.len();
            for one in all.clone() {
                infeasible.extend_from_slice(one.members(class));
            }
            let members = &mut infeasible[start..];
            members.sort_unstable_by(|&a, &b| demand(b).cmp_density(&demand(a)).then(a.cmp(&b)));
            let cut = members
                .iter()
                .take_while(|&&index| readjustment.cut(demand(index)))
                .count();
            if start + cut < infeasible.len() {
                infeasible.truncate(start + cut);
                break;
            }
        }
        readjustment
    }

    /// The densest class of all, see [`Self::densest_below`].
    pub(crate) const END: u8 = CLASSES as u8;

    pub(crate) fn iter(&self) -> impl Iterator<Item = u32> {
        self.classes.iter().flatten().copied()
    }

    pub(crate) fn len(&self) -> usize {
        self.len
    }
}
