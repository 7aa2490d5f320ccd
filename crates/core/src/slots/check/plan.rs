//! A table for all periodic tasks at once (2005, 4.4): a coordinated scheduler.
//!
//! CPUs are chosen by bin packing, slots by earliest deadline first. Where named slots, a
//! reservation or a bound on the jitter are in the way of that, tasks are given CPUs one by one,
//! the largest first, as long as all of the CPU meet their deadlines.

use alloc::vec;
use alloc::vec::Vec;
use core::cmp::Reverse;

use super::placing::Placing;
use super::{Claimant, Conflict, Counterexample, Outcome, Wish, order};
use crate::slots::geometry::Cell;
use crate::slots::place::View;
use crate::slots::place::edf::on_one_cpu;
use crate::slots::place::packing::pack;
use crate::slots::place::periodic::Periodic;

/// What a plan comes to.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Plan {
    /// The table, and the claims that have no place in it.
    pub outcome: Outcome,
    /// Whether no other table without migration has room for all periodic tasks.
    pub is_impossible: bool,
}

/// A periodic claim, by the period that it is placed by.
#[derive(Clone, Copy)]
struct Task {
    claimant: usize,
    periodic: Periodic,
    load: u32,
    row: Option<u32>,
}

/// Plans a table, of which an empty view has the reservations. Named slots stay where they are; the
/// other claims get what the periodic tasks leave. The search for CPUs is given up after a number
/// of steps.
pub fn plan(empty: &View, claimants: &[Claimant], steps: u32) -> Plan {
    let mut placing = Placing::new(empty, claimants);
    let others = order(claimants);
    let is_named = |claimant: &&usize| matches!(claimants[**claimant].wish, Wish::Slots(_));
    let is_periodic =
        |claimant: &&usize| matches!(claimants[**claimant].wish, Wish::Periodic { .. });
    for &claimant in others.iter().filter(is_named) {
        placing.place(claimant);
    }
    let tasks = tasks(claimants, empty.columns());
    let (rows, has_no_room) = rows(&placing.view, &tasks, steps);
    take_columns(&mut placing, &tasks, &rows);
    for &claimant in others.iter().filter(|c| !is_named(c) && !is_periodic(c)) {
        placing.place(claimant);
    }
    // A task may need fewer slots by its own period than by a shorter one.
    let divides = |task: &Task| match &claimants[task.claimant].wish {
        Wish::Periodic { periodic, .. } => periodic.period == task.periodic.period,
        _ => true,
    };
    Plan {
        outcome: placing.outcome,
        is_impossible: has_no_room && tasks.iter().all(divides),
    }
}

fn tasks(claimants: &[Claimant], columns: u32) -> Vec<Task> {
    let tasks = claimants.iter().enumerate().filter_map(|(claimant, of)| {
        let Wish::Periodic { periodic, row } = &of.wish else {
            return None;
        };
        let periodic = Periodic {
            period: periodic.harmonic_period(columns),
            ..*periodic
        };
        Some(Task {
            claimant,
            periodic,
            load: columns
                .checked_div(periodic.period)
                .map_or(u32::MAX, |periods| periods.saturating_mul(periodic.slots)),
            row: *row,
        })
    });
    tasks.collect()
}

/// A CPU for each task, as far as one was found, and whether there is none for all.
fn rows(view: &View, tasks: &[Task], steps: u32) -> (Vec<Option<u32>>, bool) {
    let rooms: Vec<u32> = (0..view.rows()).map(|row| view.room_in(row)).collect();
    let loads: Vec<u32> = tasks.iter().map(|task| task.load).collect();
    let sum = |of: &[u32]| of.iter().map(|&each| u64::from(each)).sum::<u64>();
    let largest_room = rooms.iter().copied().max().unwrap_or(0);
    let mut is_impossible =
        sum(&loads) > sum(&rooms) || loads.iter().any(|&load| load > largest_room);
    let are_equal = rooms.iter().all(|&room| room == largest_room);
    if !is_impossible && are_equal && tasks.iter().all(|task| task.row.is_none()) {
        let packing = pack(&loads, view.rows(), largest_room, steps);
        let is_whole = u64::from(packing.load) == sum(&loads);
        is_impossible = packing.is_exact && !is_whole;
        let meets = |row| on_one_cpu(view, row, &periodics(tasks, &packing.bins, row)).is_ok();
        if is_whole && (0..view.rows()).all(meets) {
            return (packing.bins, false);
        }
    }
    (one_by_one(view, tasks), is_impossible)
}

/// The tasks of a CPU.
fn periodics(tasks: &[Task], rows: &[Option<u32>], row: u32) -> Vec<Periodic> {
    let of_row = tasks.iter().zip(rows).filter(|(_, of)| **of == Some(row));
    of_row.map(|(task, _)| task.periodic).collect()
}

/// Those that may use one CPU only come first, then those with the least jitter, then the largest;
/// each takes the CPU that has the least room and has enough.
fn one_by_one(view: &View, tasks: &[Task]) -> Vec<Option<u32>> {
    let mut order: Vec<usize> = (0..tasks.len()).collect();
    order.sort_by_key(|&task| {
        let Task {
            row,
            periodic,
            load,
            ..
        } = tasks[task];
        let jitter = periodic.jitter.unwrap_or(periodic.period);
        (row.is_none(), jitter >= periodic.period, Reverse(load))
    });
    let mut rows = vec![None; tasks.len()];
    let mut rooms: Vec<(u32, u32)> = (0..view.rows())
        .map(|row| (view.room_in(row), row))
        .collect();
    for task in order {
        let load = tasks[task].load;
        rooms.sort_unstable();
        let may_use = |row| tasks[task].row.is_none_or(|only| only == row);
        let fits = rooms.iter().position(|&(room, row)| {
            if room < load || !may_use(row) {
                return false;
            }
            rows[task] = Some(row);
            on_one_cpu(view, row, &periodics(tasks, &rows, row)).is_ok()
        });
        match fits {
            Some(place) => rooms[place].0 -= load,
            None => rows[task] = None,
        }
    }
    rows
}

/// Gives tasks the slots of their CPUs. A task whose own windows are not those of the period that
/// it was placed by may lack some.
fn take_columns(placing: &mut Placing<'_>, tasks: &[Task], rows: &[Option<u32>]) {
    for row in 0..placing.view.rows() {
        let planned = on_one_cpu(&placing.view, row, &periodics(tasks, rows, row));
        let planned = planned.unwrap_or_default();
        let of_row = (0..tasks.len()).filter(|&task| rows[task] == Some(row));
        for (place, task) in of_row.enumerate() {
            let columns = (0..).zip(&planned).filter(|(_, of)| **of == Some(place));
            let columns: Vec<u32> = columns.map(|(column, _)| column).collect();
            take_verified(placing, tasks[task].claimant, row, &columns);
        }
    }
    let rooms = (0..placing.view.rows()).map(|row| placing.view.room_in(row));
    let room = rooms.max().unwrap_or(0);
    for (task, _) in tasks.iter().zip(rows).filter(|(_, row)| row.is_none()) {
        let load = task.load;
        placing.outcome.conflicts.push(Conflict {
            claimant: task.claimant,
            counterexample: Counterexample::Unplanned { load, room },
        });
    }
}

fn take_verified(placing: &mut Placing<'_>, claimant: usize, row: u32, columns: &[u32]) {
    let Wish::Periodic { periodic, .. } = &placing.claimants[claimant].wish else {
        return;
    };
    match periodic.verify(columns, placing.view.columns()) {
        Ok(()) => {
            let cells = columns.iter().map(|&column| Cell { row, column });
            placing.claim(claimant, &cells.collect::<Vec<_>>());
        }
        Err(lack) => {
            let windows = [placing.window(row, lack)].to_vec();
            placing.outcome.conflicts.push(Conflict {
                claimant,
                counterexample: Counterexample::Windows(windows),
            });
        }
    }
}
