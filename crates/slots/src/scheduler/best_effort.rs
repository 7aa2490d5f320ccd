//! Whatever is left.

use prorata_core::slots::geometry::Cell;
use prorata_core::slots::place::{View, best_effort};

use super::{Reply, Scheduler, rows};

/// A best-effort task: up to so many slots, now or when some become free.
#[derive(Clone, Copy, Debug)]
pub struct BestEffort {
    /// Slots wanted at most.
    pub slots: usize,
    /// The only row to use, if it matters.
    pub row: Option<u32>,
}

impl Scheduler for BestEffort {
    fn plan(&mut self, view: &View) -> Option<Vec<Cell>> {
        Some(best_effort::place(view, &rows(view, self.row), self.slots))
    }

    fn reply(&mut self, _lost: Cell, held: &[Cell], view: &View) -> Reply {
        Reply {
            claim: self.more(held, view),
            free: Vec::new(),
        }
    }

    fn more(&mut self, held: &[Cell], view: &View) -> Vec<Cell> {
        let missing = self.slots.saturating_sub(held.len());
        best_effort::place(view, &rows(view, self.row), missing)
    }

    fn wants_free(&self) -> bool {
        true
    }

    fn wish(&self) -> String {
        format!("up to {} slots", self.slots)
    }
}
