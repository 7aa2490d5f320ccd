//! A planner for all periodic tasks at once: bins of CPUs, earliest deadline first within one.
//!
//! Where periods divide the table and tasks do not migrate, a CPU can have a set of tasks if and only
//! if its load is at most one, so the choice of CPUs is a bin packing.

use alloc::vec;
use alloc::vec::Vec;

/// A task: `slots` of every `period`, which divides the table.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Task {
    /// Slots wanted in each period.
    pub slots: u32,
    /// The period, in slots.
    pub period: u32,
}

impl Task {
    /// The slots that the task takes of the table; `None`: its period does not divide it.
    pub fn load(&self, columns: u32) -> Option<u32> {
        let fits = self.period > 0 && columns.is_multiple_of(self.period);
        (fits && self.slots <= self.period).then(|| columns / self.period * self.slots)
    }
}

/// The task of each column of one CPU; `None` if the load is above one or a period does not divide
/// the table.
pub fn on_one_cpu(tasks: &[Task], columns: u32) -> Option<Vec<Option<usize>>> {
    for task in tasks {
        task.load(columns)?;
    }
    let mut left = vec![0; tasks.len()];
    let mut row = vec![None; columns as usize];
    for column in 0..columns {
        for (left, task) in left.iter_mut().zip(tasks) {
            if column.is_multiple_of(task.period) {
                if *left > 0 {
                    return None;
                }
                *left = task.slots;
            }
        }
        let waiting = (0..tasks.len()).filter(|&task| left[task] > 0);
        let deadline = |task: &usize| column - column % tasks[*task].period + tasks[*task].period;
        let next = waiting.min_by_key(|task| (deadline(task), *task));
        if let Some(task) = next {
            left[task] -= 1;
            row[column as usize] = Some(task);
        }
    }
    left.iter().all(|&left| left == 0).then_some(row)
}

/// A CPU for each task, by first fit with the greatest load first; `None` if that finds none.
pub fn pack(tasks: &[Task], cpus: u32, columns: u32) -> Option<Vec<u32>> {
    let loads: Option<Vec<u32>> = tasks.iter().map(|task| task.load(columns)).collect();
    let loads = loads?;
    let mut order: Vec<usize> = (0..tasks.len()).collect();
    order.sort_by_key(|&task| core::cmp::Reverse(loads[task]));
    let mut rest = vec![columns; cpus as usize];
    let mut chosen = vec![0; tasks.len()];
    for task in order {
        let cpu = rest.iter().position(|&rest| rest >= loads[task])?;
        rest[cpu] -= loads[task];
        chosen[task] = cpu as u32;
    }
    Some(chosen)
}
