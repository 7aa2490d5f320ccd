//! Long runs on one CPU.

use prorata_core::slots::geometry::Cell;
use prorata_core::slots::place::{View, cache};

use super::{Reply, Scheduler};

/// A cache-sensitive task: one run of successive slots. A lost slot breaks the run, so the whole run
/// is placed anew.
#[derive(Clone, Copy, Debug)]
pub struct CacheSensitive {
    /// Slots of the run.
    pub slots: u32,
}

impl Scheduler for CacheSensitive {
    fn plan(&mut self, view: &View) -> Option<Vec<Cell>> {
        let first = cache::place(view, self.slots)?;
        let columns = view.columns();
        let cell = |step| Cell {
            column: (first.column + step) % columns,
            ..first
        };
        Some((0..self.slots).map(cell).collect())
    }

    fn reply(&mut self, _lost: Cell, held: &[Cell], view: &View) -> Reply {
        match self.plan(view) {
            Some(claim) => Reply {
                free: held.to_vec(),
                claim,
            },
            None => Reply::default(),
        }
    }

    fn wish(&self) -> String {
        format!("{} successive slots of a CPU", self.slots)
    }
}
