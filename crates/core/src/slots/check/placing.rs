//! Claims made one after the other.

use alloc::vec::Vec;

use super::{Claimant, Conflict, Counterexample, Outcome, Window, Wish, distinct};
use crate::rng::{SeedableRng, Xoshiro256PlusPlus};
use crate::slots::geometry::{Cell, Tick};
use crate::slots::level::Level;
use crate::slots::place::cpu_choice::CpuChoice;
use crate::slots::place::periodic::{Fit, Lack, Periodic};
use crate::slots::place::{View, best_effort, cache, gang};
use crate::slots::staging::STAGES;

/// A table that is being filled.
pub(super) struct Placing<'a> {
    pub(super) claimants: &'a [Claimant],
    /// What is left.
    pub(super) view: View,
    pub(super) outcome: Outcome,
}

type Placed = Result<Vec<Cell>, Counterexample>;

impl<'a> Placing<'a> {
    pub(super) fn new(empty: &View, claimants: &'a [Claimant]) -> Self {
        Self {
            claimants,
            view: empty.clone(),
            outcome: Outcome::new(empty, claimants.len()),
        }
    }

    /// Makes a claim, or finds out why it cannot be made.
    pub(super) fn place(&mut self, claimant: usize) {
        let Claimant { level, wish } = &self.claimants[claimant];
        let placed = match wish {
            Wish::Slots(cells) => self.named(claimant, cells),
            Wish::Periodic { periodic, row } => self.periodic(periodic, *row),
            Wish::Gang {
                threads,
                columns,
                preferred,
            } => self.gang(*threads, *columns, preferred),
            Wish::Event { slots, within, row } => self.event(*level, *slots, *within, *row),
            Wish::Cache(length) => self.run(*length),
            Wish::BestEffort(slots) => {
                let rows = self.most_used_first();
                Ok(best_effort::place(&self.view, &rows, *slots as usize))
            }
        };
        match placed {
            Ok(cells) => self.claim(claimant, &cells),
            Err(counterexample) => self.outcome.conflicts.push(Conflict {
                claimant,
                counterexample,
            }),
        }
    }

    /// Gives open cells to a claimant.
    pub(super) fn claim(&mut self, claimant: usize, cells: &[Cell]) {
        for &cell in cells {
            self.view.close(cell);
            let index = self.outcome.index(cell);
            self.outcome.holders[index] = Some(claimant);
        }
        let held = &mut self.outcome.cells[claimant];
        held.extend(cells);
        held.sort_unstable();
    }

    fn named(&self, claimant: usize, cells: &[Cell]) -> Placed {
        let mut view = self.view.clone();
        for (place, &cell) in cells.iter().enumerate() {
            if cell.row >= view.rows() || cell.column >= view.columns() {
                return Err(Counterexample::Outside(cell));
            }
            if !view.is_open(cell) {
                let named_before = cells[..place].contains(&cell).then_some(claimant);
                return Err(match self.outcome.holder(cell).or(named_before) {
                    Some(by) => Counterexample::Taken { cell, by },
                    None => Counterexample::Reserved {
                        cell,
                        first: view.window_kept(cell).unwrap_or(cell.column),
                    },
                });
            }
            view.close(cell);
        }
        Ok(cells.to_vec())
    }

    fn periodic(&self, periodic: &Periodic, row: Option<u32>) -> Placed {
        let columns = self.view.columns();
        let mut windows = Vec::new();
        for row in self.rows(row) {
            let found = periodic.try_place(&self.view, row, Fit::Harmonic);
            let verified = found.and_then(|mut found| {
                found.sort_unstable();
                periodic.verify(&found, columns).map(|()| found)
            });
            match verified {
                Ok(found) => {
                    return Ok(found
                        .into_iter()
                        .map(|column| Cell { row, column })
                        .collect());
                }
                Err(lack) => windows.push(self.window(row, lack)),
            }
        }
        Err(Counterexample::Windows(windows))
    }

    pub(super) fn window(&self, row: u32, lack: Lack) -> Window {
        let columns = u64::from(self.view.columns());
        let ticks = lack.first..lack.first + u64::from(lack.length).min(columns);
        let among = ticks.map(|tick| (tick % columns) as u32);
        Window {
            row,
            lack,
            held_by: self.outcome.held_among(row, among),
        }
    }

    fn gang(&self, threads: u32, wanted: Option<u32>, preferred: &[u32]) -> Placed {
        let columns = self.view.columns();
        let most = wanted.unwrap_or(columns);
        let found = gang::place(&self.view, most as usize, threads as usize, preferred);
        if found.len() as u32 >= wanted.unwrap_or(1) {
            return Ok(found.concat());
        }
        let mut left = self.view.clone();
        found.iter().flatten().for_each(|&cell| left.close(cell));
        let rows = || 0..left.rows();
        let open_in = |column| {
            let cells = rows().map(|row| Cell { row, column });
            cells.filter(|&cell| left.is_open(cell)).count() as u32
        };
        let is_found = |column: &u32| found.iter().flatten().any(|cell| cell.column == *column);
        let others = (0..columns).filter(|column| !is_found(column)).rev();
        let best = others.map(|column| (open_in(column), column));
        let (open, column) = best.max_by_key(|&(open, _)| open).unwrap_or_default();
        let holders = rows().filter_map(|row| self.outcome.holder(Cell { row, column }));
        Err(Counterexample::Columns {
            found: found.len() as u32,
            column,
            open,
            held_by: distinct(holders),
        })
    }

    /// Whether it finds its slots whenever it wakes. It may preempt lower levels; what it takes of
    /// unclaimed slots a reservation must permit.
    fn event(&self, level: Level, wanted: u32, within: u32, row: Option<u32>) -> Placed {
        let mut windows = Vec::new();
        for row in self.rows(row) {
            let wakes = 0..self.view.columns();
            let mut has = wakes.map(|column| (column, self.found_by(level, row, column, within)));
            let Some((column, has)) = has.find(|&(_, has)| has < wanted) else {
                return Ok(Vec::new());
            };
            let lack = Lack {
                first: column.into(),
                length: within,
                has,
                begins: None,
            };
            windows.push(self.window(row, lack));
        }
        Err(Counterexample::Windows(windows))
    }

    /// Slots that one that wakes in a column may claim before its deadline.
    fn found_by(&self, level: Level, row: u32, column: u32, within: u32) -> u32 {
        let columns = self.view.columns();
        let mut view = self.view.one_row(row);
        let mut is_found = |tick: &Tick| {
            let column = (tick % u64::from(columns)) as u32;
            match self.outcome.holder(Cell { row, column }) {
                Some(holder) => self.claimants[holder].level < level,
                None => view.take(Cell { row: 0, column }),
            }
        };
        // A claim is in force from the second slot after the one in which it is made.
        let wake = Tick::from(column);
        let from = wake + STAGES;
        let end = (wake + u64::from(within)).min(from + u64::from(columns));
        (from..end).filter(|tick| is_found(tick)).count() as u32
    }

    fn run(&self, length: u32) -> Placed {
        let columns = self.view.columns();
        if let Some(begin) = cache::place(&self.view, length) {
            let steps = (0..length).map(|step| Cell {
                column: (begin.column + step) % columns,
                ..begin
            });
            return Ok(steps.collect());
        }
        // Of a run that may be claimed, any part may be.
        let (mut has, mut longest, mut over) = (0, None, length.min(columns + 1));
        while has + 1 < over {
            let middle = has + (over - has) / 2;
            match cache::place(&self.view, middle) {
                Some(begin) => (has, longest) = (middle, Some(begin)),
                None => over = middle,
            }
        }
        Err(Counterexample::Run { longest, has })
    }

    /// The CPUs to try: the only one, or all, the most used one first.
    fn rows(&self, only: Option<u32>) -> Vec<u32> {
        only.map_or_else(|| self.most_used_first(), |row| [row].to_vec())
    }

    pub(super) fn most_used_first(&self) -> Vec<u32> {
        // Nothing is drawn for this choice.
        let mut lots = Xoshiro256PlusPlus::seed_from_u64(0);
        let order = CpuChoice::MostUtilised.order(&self.view, 0, &mut lots);
        order.collect()
    }
}
