//! Threads that only advance together.

use prorata_core::slots::geometry::Cell;
use prorata_core::slots::place::View;
use prorata_core::slots::place::gang::{self, Answer};

use super::{Reply, Scheduler};

/// A gang: columns in which all of its threads run. A lost slot moves to another CPU of the same
/// column; where there is none, the rest of the column is freed, and another one claimed.
#[derive(Clone, Debug)]
pub struct Gang {
    /// Threads, each on a CPU of its own.
    pub threads: usize,
    /// Columns of a period.
    pub columns: usize,
    /// Rows to prefer.
    pub preferred: Vec<u32>,
}

impl Scheduler for Gang {
    fn plan(&mut self, view: &View) -> Option<Vec<Cell>> {
        let columns = gang::place(view, self.columns, self.threads, &self.preferred);
        (columns.len() == self.columns).then(|| columns.concat())
    }

    fn reply(&mut self, lost: Cell, held: &[Cell], view: &View) -> Reply {
        let of_column = held
            .iter()
            .copied()
            .filter(|cell| cell.column == lost.column);
        match gang::answer(view, lost, self.threads, &self.preferred) {
            Answer::Move(cell) => Reply {
                claim: vec![cell],
                free: Vec::new(),
            },
            Answer::Cancel(instead) => Reply {
                free: of_column.collect(),
                claim: instead.unwrap_or_default(),
            },
        }
    }

    fn more(&mut self, held: &[Cell], view: &View) -> Vec<Cell> {
        let missing = self
            .columns
            .saturating_sub(held.len() / self.threads.max(1));
        gang::place(view, missing, self.threads, &self.preferred).concat()
    }

    fn wants_free(&self) -> bool {
        true
    }

    fn wish(&self) -> String {
        format!("{} columns of {} CPUs", self.columns, self.threads)
    }
}
