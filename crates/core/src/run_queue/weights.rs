//! Feasible tickets for the tasks of a pool: none is entitled to more than a
//! CPU, which is all that it can use.
//!
//! By the dispatcher's own code ([`crate::feasible`]). A pass cannot make up
//! for weights that are not feasible: the pass of such a task falls behind
//! without end, and with it what the error bound rests on.

use alloc::vec::Vec;

use super::feasible_tickets::FeasibleTickets;
use super::in_force::InForce;
use super::layout::MAX_CPUS;
use super::limits::{LimitError, Tickets};
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
    /// Who was told of other tickets by the last change.
    told: Vec<TaskIndex>,
}

#[derive(Clone, Copy, Default, Debug)]
struct Member {
    /// In parts of a ticket; zero exactly while it does not compete.
    weight: u32,
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
    /// Of a pool of so many CPUs, 1 to [`MAX_CPUS`](super::MAX_CPUS).
    ///
    /// # Errors
    /// None, or too many.
    pub fn new(cpus: u32) -> Result<Self, LimitError> {
        if !(1..=MAX_CPUS).contains(&cpus) {
            return Err(LimitError::Cpus(cpus));
        }
        Ok(Self {
            cpus,
            members: Vec::new(),
            classes: Classes::new(),
            total: 0,
            infeasible: Vec::new(),
            spare: Vec::new(),
            told: Vec::new(),
        })
    }

    /// A task competes with this weight from now on, or no longer; all have
    /// their feasible tickets then. Returns who competed before and has other
    /// tickets now, by a part of one at least: twice as many as there are CPUs
    /// at most, and one more.
    ///
    /// Cost: O(1), and O(m log m) on m CPUs where weights are infeasible.
    ///
    /// # Errors
    /// A task beyond those whose tickets are kept.
    pub fn set(
        &mut self,
        task: TaskIndex,
        weight: Option<Tickets>,
        feasible: &FeasibleTickets,
    ) -> Result<&[TaskIndex], LimitError> {
        feasible.check(task)?;
        self.told.clear();
        let TaskIndex(index) = task;
        if index as usize >= self.members.len() {
            self.members.resize(index as usize + 1, Member::default());
        }
        let before = self.members[index as usize];
        if before.weight > 0
            && let Some(moved) = self.classes.remove(before.class, before.class_place)
        {
            self.members[moved as usize].class_place = before.class_place;
        }
        let whole = weight.map(InForce::whole);
        let weight = whole.map_or(0, InForce::parts);
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
        let had = feasible.get(task);
        feasible.set(task, whole);
        self.readjust(task, feasible);
        if before.weight > 0 && weight > 0 && feasible.get(task) != had {
            self.told.push(task);
        }
        Ok(&self.told)
    }

    /// Whether a task competes here.
    pub fn competes(&self, TaskIndex(index): TaskIndex) -> bool {
        let member = self.members.get(index as usize);
        member.is_some_and(|member| member.weight > 0)
    }

    /// Cuts weights that are infeasible, and restores those that no longer are.
    fn readjust(&mut self, changed: TaskIndex, feasible: &FeasibleTickets) {
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
        let mut told = core::mem::take(&mut self.told);
        let mut tell = |index: u32, tickets: Option<InForce>| {
            let task = TaskIndex(index);
            if feasible.get(task) != tickets {
                feasible.set(task, tickets);
                told.extend((task != changed).then_some(task));
            }
        };
        for &index in &now {
            let member = &mut self.members[index as usize];
            member.infeasible = true;
            let parts = readjustment.weight(member.demand());
            tell(index, InForce::new(parts, true));
        }
        for &index in &before {
            let member = self.members[index as usize];
            // Who no longer competes here may do so elsewhere.
            if !member.infeasible && member.weight > 0 {
                tell(index, InForce::new(member.weight, false));
            }
        }
        (self.spare, self.infeasible, self.told) = (before, now, told);
    }
}
