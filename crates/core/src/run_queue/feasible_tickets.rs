//! The tickets that tasks go by where their weights are kept feasible.
//!
//! Written by whoever changes the [`Weights`](super::Weights) of a pool, under
//! whatever keeps these together, and read where a task is at hand: under the
//! lock of its queue, or by the decision that moves it.
//!
//! No change is missed. Who writes visits all queues of the pool afterwards
//! ([`Reweigh`](super::Reweigh)), one after another under their locks; a task
//! that comes into a queue after the visit is put there by a decision that
//! acquired the lock after the visitor released it, and so reads what was
//! written. When changes overtake one another, the later visit of a queue reads
//! at least what the earlier one did, by the same lock. So all accesses may be
//! relaxed.

use alloc::boxed::Box;
use core::sync::atomic::{AtomicU32, Ordering};

use super::limits::{LimitError, MAX_WEIGHTED_TASKS, Tickets};
use super::task::TaskIndex;

/// By task index; nothing for those that do not compete.
#[derive(Debug)]
pub struct FeasibleTickets(Box<[AtomicU32]>);

impl FeasibleTickets {
    /// Of tasks numbered below `tasks`, of whom nobody competes yet.
    pub(super) fn new(tasks: u32) -> Result<Self, LimitError> {
        if tasks > MAX_WEIGHTED_TASKS {
            return Err(LimitError::WeightedTasks(tasks));
        }
        Ok(Self((0..tasks).map(|_| AtomicU32::new(0)).collect()))
    }

    /// So many tasks can compete.
    pub fn tasks(&self) -> u32 {
        self.0.len() as u32
    }

    /// The feasible tickets of a task that competes.
    pub fn get(&self, TaskIndex(task): TaskIndex) -> Option<Tickets> {
        let word = self.0.get(task as usize)?;
        Tickets::new(word.load(Ordering::Relaxed)).ok()
    }

    /// Refuses a task that is beyond the last.
    pub(super) fn check(&self, task: TaskIndex) -> Result<(), LimitError> {
        let tasks = self.tasks();
        match task.0 < tasks {
            true => Ok(()),
            false => Err(LimitError::Task { task, tasks }),
        }
    }

    /// From now on a task, which passed the check, has these, or competes no more.
    pub(super) fn set(&self, TaskIndex(task): TaskIndex, tickets: u32) {
        if let Some(word) = self.0.get(task as usize) {
            word.store(tickets, Ordering::Relaxed);
        }
    }
}
