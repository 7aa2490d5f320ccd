//! Feasible tickets for the tasks of a pool: none is entitled to more than a
//! CPU, which is all that it can use.
//!
//! By the dispatcher's own code ([`crate::feasible`]). A pass cannot make up
//! for weights that are not feasible: the pass of such a task falls behind
//! without end, and with it what the error bound rests on.

use alloc::vec::Vec;
use core::num::NonZeroU32;

use super::task::TaskIndex;
use crate::dispatcher::active::Classes;
use crate::feasible::Demand;

/// Weights of the tasks that compete in a pool, and the tickets that follow.
///
/// Changes together, so it is to be kept under a lock of its own; it is needed
/// when a task wakes, blocks, moves or is given other weight, not when one is
/// chosen.
#[derive(Debug)]
pub struct Weights {
    cpus: u32,
    /// By task index.
    members: Vec<Member>,
    classes: Classes,
    /// Sum over those who compete.
    total: u64,
    infeasible: Vec<u32>,
    /// Work space, kept to spare the allocations.
    spare: Vec<u32>,
}

#[derive(Clone, Copy, Default, Debug)]
struct Member {
    /// Zero exactly while it does not compete.
    weight: u32,
    /// What it was told last.
    tickets: u32,
    class: u8,
    class_place: u32,
    /// Whether it is in the list of those who are.
    infeasible: bool,
}

impl Member {
    fn demand(&self) -> Demand {
        Demand {
            weight: self.weight,
            cpus: 1,
        }
    }
}

impl Weights {
    /// Of a pool of so many CPUs, at least 1.
    pub fn new(cpus: u32) -> Self {
        Self {
            cpus,
            members: Vec::new(),
            classes: Classes::new(),
            total: 0,
            infeasible: Vec::new(),
            spare: Vec::new(),
        }
    }

    /// A task competes with this weight from now on, or no longer. `changed`
    /// is cleared and filled with everybody who has other tickets now, this
    /// task included: at most twice as many as there are CPUs, and one.
    ///
    /// Cost: O(1), and O(m log m) on m CPUs where weights are infeasible.
    pub fn set(
        &mut self,
        TaskIndex(index): TaskIndex,
        weight: Option<NonZeroU32>,
        changed: &mut Vec<(TaskIndex, NonZeroU32)>,
    ) {
        changed.clear();
        if index as usize >= self.members.len() {
            self.members.resize(index as usize + 1, Member::default());
        }
        let before = self.members[index as usize];
        let weight = weight.map_or(0, NonZeroU32::get);
        if before.weight > 0
            && let Some(moved) = self.classes.remove(before.class, before.class_place)
        {
            self.members[moved as usize].class_place = before.class_place;
        }
        self.total = self.total - u64::from(before.weight) + u64::from(weight);
        let member = &mut self.members[index as usize];
        *member = Member {
            weight,
            ..Member::default()
        };
        if weight > 0 {
            member.class = member.demand().density_bits() as u8;
            member.class_place = self.classes.add(member.class, index);
        }
        self.readjust(index, changed);
    }

    fn readjust(&mut self, index: u32, changed: &mut Vec<(TaskIndex, NonZeroU32)>) {
        let members = &self.members;
        let demand = |index: u32| members[index as usize].demand();
        let (total, cpus) = (self.total, self.cpus);
        let readjustment = self
            .classes
            .find_infeasible(total, cpus, demand, &mut self.spare);
        core::mem::swap(&mut self.infeasible, &mut self.spare);
        let before = core::mem::take(&mut self.spare);
        let now = core::mem::take(&mut self.infeasible);
        for &index in &before {
            self.members[index as usize].infeasible = false;
        }
        for &index in &now {
            self.members[index as usize].infeasible = true;
            let demand = self.members[index as usize].demand();
            self.tell(index, readjustment.weight(demand), changed);
        }
        for &index in before.iter().chain([&index]) {
            let member = self.members[index as usize];
            if !member.infeasible {
                self.tell(index, member.weight, changed);
            }
        }
        (self.spare, self.infeasible) = (before, now);
    }

    fn tell(&mut self, index: u32, tickets: u32, changed: &mut Vec<(TaskIndex, NonZeroU32)>) {
        let before = core::mem::replace(&mut self.members[index as usize].tickets, tickets);
        if let Some(tickets) = NonZeroU32::new(tickets).filter(|t| t.get() != before) {
            changed.push((TaskIndex(index), tickets));
        }
    }
}
