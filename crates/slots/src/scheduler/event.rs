//! Slots between now and a deadline.

use prorata_core::slots::geometry::{Cell, Tick};
use prorata_core::slots::place::{View, event};

use super::{Reply, Scheduler, rows};

/// An event-driven task: its claims should expire at the deadline.
#[derive(Clone, Debug)]
pub struct EventDriven {
    /// Slots wanted.
    pub slots: u32,
    /// The first tick that helps: two after the present one, when claims are in force.
    pub from: Tick,
    /// The first tick that is too late.
    pub deadline: Tick,
    /// The only row to use, if it matters.
    pub row: Option<u32>,
}

impl EventDriven {
    fn place(&self, view: &View, slots: u32) -> Option<Vec<Cell>> {
        rows(view, self.row).into_iter().find_map(|row| {
            let columns = event::place(view, row, slots, self.from, self.deadline)?;
            let cells = columns.into_iter().map(|column| Cell { row, column });
            Some(cells.collect())
        })
    }
}

impl Scheduler for EventDriven {
    fn plan(&mut self, view: &View) -> Option<Vec<Cell>> {
        self.place(view, self.slots)
    }

    fn reply(&mut self, _lost: Cell, _held: &[Cell], view: &View) -> Reply {
        Reply {
            claim: self.place(view, 1).unwrap_or_default(),
            free: Vec::new(),
        }
    }

    fn wish(&self) -> String {
        format!("{} slots before tick {}", self.slots, self.deadline)
    }
}
