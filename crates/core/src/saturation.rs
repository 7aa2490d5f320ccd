//! Which classes of clients ask for more than all CPUs that they may use: a
//! maximum flow from classes to CPUs, and the minimum cut.
//!
//! A class sends what it asks for to the CPUs of its affinity, and no group of
//! CPUs takes more than it has. If the flow cannot serve all demands, the
//! classes from which no free CPU can be reached are overloaded: they fill all
//! their CPUs, which no other class has a part of.

use alloc::collections::VecDeque;
use alloc::vec;
use alloc::vec::Vec;

use crate::max_min::{CpuGroup, MAX_CLASSES, bits};

/// No group of CPUs.
const NONE: usize = usize::MAX;

/// A flow from classes to groups of CPUs.
struct Flow<'a> {
    groups: &'a [CpuGroup],
    /// By class: what no CPU serves yet.
    unserved: [u128; MAX_CLASSES],
    /// By group: what it can still take.
    room: Vec<u128>,
    /// By group: what each class sends there.
    sent: Vec<[u128; MAX_CLASSES]>,
}

/// The way by which a search reached each class and each group.
struct Search {
    /// By class: the group from which the class may withdraw. None for classes
    /// with an unserved demand, where the search begins.
    withdraws_from: [usize; MAX_CLASSES],
    /// By group: the class that may send there.
    reached_by: Vec<usize>,
    /// The classes reached, as bits.
    classes: u64,
}

/// The classes that ask for more than all their CPUs, as bits; none if all
/// demands can be served together. A CPU serves `unit`. Allocates.
///
/// Cost: a breadth-first search, O(classes x groups), for each path along which
/// more can be sent. There are O(classes x groups) shortest paths, and seldom
/// more than one for each class.
pub(crate) fn overloaded(
    demands: [u128; MAX_CLASSES],
    groups: &[CpuGroup],
    unit: u128,
) -> Option<u64> {
    let mut flow = Flow {
        groups,
        unserved: demands,
        room: groups
            .iter()
            .map(|group| u128::from(group.cpus) * unit)
            .collect(),
        sent: vec![[0; MAX_CLASSES]; groups.len()],
    };
    loop {
        let begin = (0..MAX_CLASSES).filter(|&class| flow.unserved[class] > 0);
        let begin = begin.fold(0, |begin, class| begin | 1 << class);
        if begin == 0 {
            return None;
        }
        let mut search = Search {
            withdraws_from: [NONE; MAX_CLASSES],
            reached_by: vec![NONE; groups.len()],
            classes: begin,
        };
        match flow.find_room(&mut search) {
            Some(group) => flow.send(&search, group),
            None => return Some(search.classes),
        }
    }
}

impl Flow<'_> {
    /// The nearest group with room.
    fn find_room(&self, search: &mut Search) -> Option<usize> {
        let mut queue: VecDeque<usize> = bits(search.classes).collect();
        while let Some(class) = queue.pop_front() {
            for (number, group) in self.groups.iter().enumerate() {
                if search.reached_by[number] != NONE || group.classes >> class & 1 == 0 {
                    continue;
                }
                search.reached_by[number] = class;
                if self.room[number] > 0 {
                    return Some(number);
                }
                for other in bits(group.classes & !search.classes) {
                    if self.sent[number][other] > 0 {
                        search.withdraws_from[other] = number;
                        search.classes |= 1 << other;
                        queue.push_back(other);
                    }
                }
            }
        }
        None
    }

    /// Sends as much as possible along the way to a group with room.
    fn send(&mut self, search: &Search, to: usize) {
        let mut amount = self.room[to];
        let mut class = search.reached_by[to];
        while search.withdraws_from[class] != NONE {
            let from = search.withdraws_from[class];
            amount = amount.min(self.sent[from][class]);
            class = search.reached_by[from];
        }
        amount = amount.min(self.unserved[class]);
        self.unserved[class] -= amount;
        self.room[to] -= amount;
        let mut group = to;
        loop {
            let class = search.reached_by[group];
            self.sent[group][class] += amount;
            group = search.withdraws_from[class];
            if group == NONE {
                return;
            }
            self.sent[group][class] -= amount;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn demands(of: &[u128]) -> [u128; MAX_CLASSES] {
        let mut demands = [0; MAX_CLASSES];
        demands[..of.len()].copy_from_slice(of);
        demands
    }

    fn group(classes: u64, cpus: u32) -> CpuGroup {
        CpuGroup { classes, cpus }
    }

    #[test]
    fn a_class_gives_way_where_it_has_another_cpu() {
        // The second class may use only the group that the first one fills first.
        let groups = [group(0b11, 1), group(0b01, 1)];
        assert_eq!(overloaded(demands(&[6, 6]), &groups, 6), None);
        // A chain of three that all have to move on.
        let groups = [
            group(0b0011, 1),
            group(0b0110, 1),
            group(0b1100, 1),
            group(0b1000, 1),
        ];
        assert_eq!(overloaded(demands(&[1, 1, 1, 1]), &groups, 1), None);
    }

    #[test]
    fn classes_that_ask_for_more_than_their_cpus_are_named() {
        let groups = [group(0b011, 1), group(0b111, 2)];
        assert_eq!(overloaded(demands(&[2, 1, 0]), &groups, 1), None);
        assert_eq!(overloaded(demands(&[2, 1, 1]), &groups, 1), Some(0b111));
        let groups = [group(0b011, 1), group(0b100, 2)];
        assert_eq!(overloaded(demands(&[1, 1, 1]), &groups, 1), Some(0b011));
    }
}
