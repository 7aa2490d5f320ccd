//! Periodic tasks: m slots of every n (2005, 2.3; Liu and Layland).

use alloc::vec::Vec;

use super::View;
use crate::slots::geometry::Cell;

/// What to do with a period that does not divide the table (2005, 5).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fit {
    /// Take the next shorter period that divides the table.
    Harmonic,
    /// Take m slots of each window that begins, the short one at the table's end included.
    OverAllocate,
}

/// m slots of every n.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Periodic {
    /// Slots wanted in each window.
    pub slots: u32,
    /// Slots of a window.
    pub period: u32,
    /// The column of the first window.
    pub offset: u32,
    /// How many slots after its window's beginning a job may begin; `None`: anywhere in the window.
    pub jitter: Option<u32>,
}

impl Periodic {
    /// The windows of a table: first column, counted without its end, and length.
    pub fn windows(&self, columns: u32, fit: Fit) -> Vec<(u32, u32)> {
        if self.period == 0 || columns == 0 {
            return Vec::new();
        }
        let longest = self.period.min(columns);
        let period = match fit {
            Fit::Harmonic => (1..=longest)
                .rev()
                .find(|period| columns.is_multiple_of(*period)),
            Fit::OverAllocate => Some(longest),
        };
        let period = period.unwrap_or(1);
        let begins = (0..columns).step_by(period as usize);
        let window = |begin| (self.offset % columns + begin, period.min(columns - begin));
        begins.map(window).collect()
    }

    /// Slots on one row, the earliest open ones of each window; `None` if a window has too few.
    pub fn place(&self, view: &View, row: u32, fit: Fit) -> Option<Vec<u32>> {
        let (windows, row) = (self.windows(view.columns(), fit), view.row(row)?);
        // Mostly a window is too full, which is seen without a look at each slot.
        let has_room = |&window: &_| row.unclaimed_in(window) >= self.slots;
        if !windows.iter().all(has_room) {
            return None;
        }
        let (mut row, mut chosen) = (row.clone(), Vec::new());
        for (first, length) in windows {
            let steps = (0..length).map(|step| (step, (first + step) % view.columns()));
            let mut open = steps.filter(|&(_, column)| row.take(column));
            for nth in 0..self.slots {
                let (step, column) = open.next()?;
                if nth == 0 && self.jitter.is_some_and(|jitter| step > jitter) {
                    return None;
                }
                chosen.push(column);
            }
        }
        Some(chosen)
    }

    /// The answer to a revocation: another slot in the window of the one that was lost.
    pub fn make_up(&self, view: &View, row: u32, lost: u32, fit: Fit) -> Option<u32> {
        let columns = view.columns();
        let holds = |&(first, length): &(u32, u32)| {
            (0..length).any(|step| (first + step) % columns == lost)
        };
        let (first, length) = self.windows(columns, fit).into_iter().find(holds)?;
        let mut window = (0..length).map(|step| (first + step) % columns);
        window.find(|&column| view.is_open(Cell { row, column }))
    }
}
