//! The tickets that tasks go by where their weights are kept feasible.
//!
//! Written by whoever changes the [`Weights`](super::Weights) of a pool, under
//! whatever keeps these together, and read where a task is at hand: under the
//! lock of its queue, or by the decision that moves it.
//!
//! No change is missed. Who writes a task's tickets then reads in whose queue it
//! was put last, and visits that one under its lock
//! ([`Reweigh`](super::Reweigh)); who puts a task into a queue, under that
//! lock, first writes whose it is and then reads the tickets. All these are in
//! one order (`SeqCst`): either the visitor comes to the queue where the task
//! is being put, and finds it there once it has the lock, or who puts it there
//! reads what was written. When changes overtake one another, the later visit
//! of a queue reads at least what the earlier one did.

use alloc::boxed::Box;
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use super::in_force::InForce;
use super::limits::{LimitError, MAX_WEIGHTED_TASKS};
use super::task::{Cpu, TaskIndex};

/// By task index; nothing for those that do not compete.
#[derive(Debug)]
pub struct FeasibleTickets(Box<[Entry]>);

#[derive(Debug)]
struct Entry {
    in_force: AtomicU64,
    /// The CPU in whose queue it was put last.
    cpu: AtomicU32,
}

/// Never put into a queue.
const NOWHERE: u32 = u32::MAX;

impl FeasibleTickets {
    /// Of tasks numbered below `tasks`, of whom nobody competes yet.
    pub(super) fn new(tasks: u32) -> Result<Self, LimitError> {
        if tasks > MAX_WEIGHTED_TASKS {
            return Err(LimitError::WeightedTasks(tasks));
        }
        let entry = |_| Entry {
            in_force: AtomicU64::new(InForce::word(None)),
            cpu: AtomicU32::new(NOWHERE),
        };
        Ok(Self((0..tasks).map(entry).collect()))
    }

    /// So many tasks can compete.
    pub fn tasks(&self) -> u32 {
        self.0.len() as u32
    }

    /// The feasible tickets of a task that competes.
    pub fn get(&self, TaskIndex(task): TaskIndex) -> Option<InForce> {
        let entry = self.0.get(task as usize)?;
        InForce::from_word(entry.in_force.load(Ordering::SeqCst))
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
    pub(super) fn set(&self, TaskIndex(task): TaskIndex, tickets: Option<InForce>) {
        if let Some(entry) = self.0.get(task as usize) {
            let word = InForce::word(tickets);
            entry.in_force.store(word, Ordering::SeqCst);
        }
    }

    /// In whose queue a task was put last.
    pub(super) fn cpu(&self, TaskIndex(task): TaskIndex) -> Option<Cpu> {
        let entry = self.0.get(task as usize)?;
        let cpu = entry.cpu.load(Ordering::SeqCst);
        (cpu != NOWHERE).then_some(Cpu(cpu))
    }

    /// A task is put into the queue of a CPU, whose lock is held.
    pub(super) fn put(&self, TaskIndex(task): TaskIndex, Cpu(cpu): Cpu) {
        if let Some(entry) = self.0.get(task as usize) {
            entry.cpu.store(cpu, Ordering::SeqCst);
        }
    }
}
