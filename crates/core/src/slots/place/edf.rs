//! Earliest deadline first on one CPU, in whole slots.
//!
//! Where nothing else is claimed or reserved, and no jitter is bounded, a CPU can have a set of
//! tasks whose periods divide the table if and only if their load is at most one. So the choice of
//! CPUs is a bin packing.

use alloc::vec;
use alloc::vec::Vec;

use super::View;
use super::periodic::{Lack, Periodic};

/// A task that misses a deadline, and where.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Missed {
    /// The task's place among the tasks.
    pub task: usize,
    /// Its window.
    pub lack: Lack,
}

/// A job of a task: what it needs in the window that began last.
#[derive(Clone, Copy)]
struct Job {
    left: u32,
    begins: Option<u32>,
}

/// The task of each column of one CPU, in columns that are open. Offsets of tasks do not count,
/// and their periods must divide the table.
///
/// Slots that a reservation keeps are left as late as it permits, so in a table with a reservation
/// a task may miss a deadline that another order would meet.
pub fn on_one_cpu(view: &View, row: u32, tasks: &[Periodic]) -> Result<Vec<Option<usize>>, Missed> {
    let columns = view.columns();
    let mut row = view.row(row).cloned();
    let mut jobs: Vec<Job> = tasks.iter().map(job).collect();
    let mut chosen = vec![None; columns as usize];
    for column in 0..columns {
        for (task, periodic) in tasks.iter().enumerate() {
            if column > 0 && column.is_multiple_of(periodic.period) {
                finish(tasks, &jobs, task, column - periodic.period)?;
                jobs[task] = job(periodic);
            }
        }
        let waiting = (0..tasks.len()).filter(|&task| jobs[task].left > 0);
        let deadline = |task: &usize| deadline(&tasks[*task], jobs[*task], column);
        let Some(task) = waiting.min_by_key(|task| (deadline(task), *task)) else {
            continue;
        };
        if row.as_mut().is_some_and(|row| row.take(column)) {
            chosen[column as usize] = Some(task);
            let job = &mut jobs[task];
            job.left -= 1;
            job.begins = job.begins.or(Some(column % tasks[task].period));
        }
    }
    for (task, periodic) in tasks.iter().enumerate() {
        finish(tasks, &jobs, task, columns - periodic.period)?;
    }
    Ok(chosen)
}

fn job(task: &Periodic) -> Job {
    let (left, begins) = (task.slots, None);
    Job { left, begins }
}

/// The column before which a waiting job must have its next slot. A bound on the jitter is the
/// deadline of a job's first slot.
fn deadline(task: &Periodic, job: Job, column: u32) -> u32 {
    let begin = column - column % task.period;
    let first = task.jitter.filter(|_| job.begins.is_none());
    begin + first.map_or(task.period, |jitter| (jitter + 1).min(task.period))
}

/// Whether the job of a window has met its deadlines.
fn finish(tasks: &[Periodic], jobs: &[Job], task: usize, first: u32) -> Result<(), Missed> {
    let (periodic, job) = (&tasks[task], jobs[task]);
    let lack = Lack {
        first: first.into(),
        length: periodic.period,
        has: periodic.slots - job.left,
        begins: job.begins,
    };
    match lack.is_met(periodic) {
        true => Ok(()),
        false => Err(Missed { task, lack }),
    }
}
