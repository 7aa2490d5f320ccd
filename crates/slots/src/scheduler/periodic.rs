//! m slots of every n on one CPU.

use prorata_core::slots::geometry::{Cell, Geometry};
use prorata_core::slots::place::View;
use prorata_core::slots::place::periodic::{Fit, Periodic as Windows};

use super::{Reply, Scheduler, rows, slots_of};
use crate::error::SlotsError;

/// A periodic task. A lost slot is made up for in the same window.
#[derive(Clone, Debug)]
pub struct Periodic {
    /// The slots wanted.
    pub windows: Windows,
    /// What to do with a period that does not divide the table.
    pub fit: Fit,
    /// The only row to use, if it matters.
    pub row: Option<u32>,
}

impl Periodic {
    /// So many slots of so many successive ones, anywhere in them.
    pub fn of_slots(slots: u32, period: u32) -> Self {
        Self {
            windows: Windows {
                slots,
                period,
                offset: 0,
                jitter: None,
            },
            fit: Fit::Harmonic,
            row: None,
        }
    }

    /// So much time of every period. Time is rounded up to whole slots, and the period down: the
    /// promise holds.
    ///
    /// # Errors
    ///
    /// If the time is longer than the period, or the period than the table.
    pub fn of_time(geometry: &Geometry, time_ns: u64, period_ns: u64) -> Result<Self, SlotsError> {
        let period = u32::try_from(period_ns / geometry.slot_ns()).unwrap_or(u32::MAX);
        let slots = slots_of(geometry, time_ns);
        if period == 0 || slots > period || period > geometry.columns() {
            return Err(SlotsError::Wish(format!(
                "{} ms of every {} ms do not fit slots of {} ms, {} in a period: choose a longer \
                 period, less time, or open a table with other slots",
                time_ns as f64 / 1e6,
                period_ns as f64 / 1e6,
                geometry.slot_ns() as f64 / 1e6,
                geometry.columns(),
            )));
        }
        Ok(Self::of_slots(slots, period))
    }
}

impl Scheduler for Periodic {
    fn plan(&mut self, view: &View) -> Option<Vec<Cell>> {
        rows(view, self.row).into_iter().find_map(|row| {
            let columns = self.windows.place(view, row, self.fit)?;
            let cells = columns.into_iter().map(|column| Cell { row, column });
            Some(cells.collect())
        })
    }

    fn reply(&mut self, lost: Cell, held: &[Cell], view: &View) -> Reply {
        let row = lost.row;
        if let Some(column) = self.windows.make_up(view, row, lost.column, self.fit) {
            return Reply {
                claim: vec![Cell { row, column }],
                free: Vec::new(),
            };
        }
        // The window is full: perhaps another CPU has room for the whole task.
        match self.plan(view) {
            Some(claim) if self.row.is_none() => Reply {
                free: held.to_vec(),
                claim,
            },
            _ => Reply::default(),
        }
    }

    fn wish(&self) -> String {
        let Windows { slots, period, .. } = self.windows;
        format!("{slots} of every {period} slots of a CPU")
    }
}
