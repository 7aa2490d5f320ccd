//! Periodic tasks: m slots of every n (2005, 2.3; Liu and Layland).

use alloc::vec::Vec;

use super::View;
use crate::slots::geometry::{Cell, Tick};

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

/// What a window has of what it is to have.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Lack {
    /// The window's first tick; past the table's end for one that only a later round has.
    pub first: Tick,
    /// Slots of the window.
    pub length: u32,
    /// Slots that the task has there, or could have.
    pub has: u32,
    /// How many slots after the window's beginning the first of them is.
    pub begins: Option<u32>,
}

impl Lack {
    /// Whether the window lacks nothing.
    pub(crate) fn is_met(&self, periodic: &Periodic) -> bool {
        let late = |begins| periodic.jitter.is_some_and(|jitter| begins > jitter);
        self.has >= periodic.slots && !self.begins.is_some_and(late)
    }
}

impl Periodic {
    /// `slots` of every `period`, from the beginning of the table and anywhere in a window.
    pub const fn new(slots: u32, period: u32) -> Self {
        Self {
            slots,
            period,
            offset: 0,
            jitter: None,
        }
    }

    /// The slots that the task takes of the table; `None`: its period does not divide it.
    pub fn load(&self, columns: u32) -> Option<u32> {
        let fits = self.period > 0 && columns.is_multiple_of(self.period);
        (fits && self.slots <= self.period).then(|| columns / self.period * self.slots)
    }

    /// The longest period that divides the table and is not longer than the task's; zero if the
    /// task's is.
    pub fn harmonic_period(&self, columns: u32) -> u32 {
        let longest = self.period.min(columns);
        let mut shorter = (1..=longest).rev();
        shorter
            .find(|period| columns.is_multiple_of(*period))
            .unwrap_or(0)
    }

    /// The windows of a table: first column, counted without its end, and length.
    pub fn windows(&self, columns: u32, fit: Fit) -> Vec<(u32, u32)> {
        let period = match fit {
            Fit::Harmonic => self.harmonic_period(columns),
            Fit::OverAllocate => self.period.min(columns),
        };
        if period == 0 {
            return Vec::new();
        }
        let begins = (0..columns).step_by(period as usize);
        let window = |begin| (self.offset % columns + begin, period.min(columns - begin));
        begins.map(window).collect()
    }

    /// Slots on one row, the earliest open ones of each window; `None` if a window has too few.
    pub fn place(&self, view: &View, row: u32, fit: Fit) -> Option<Vec<u32>> {
        self.try_place(view, row, fit).ok()
    }

    /// As [`Periodic::place`]; names the first window that has too few, or in which the first comes
    /// too late.
    pub fn try_place(&self, view: &View, row: u32, fit: Fit) -> Result<Vec<u32>, Lack> {
        let windows = self.windows(view.columns(), fit);
        let lack = |(first, length): (u32, u32), has, begins| Lack {
            first: first.into(),
            length,
            has,
            begins,
        };
        let Some(row) = view.row(row) else {
            let first = windows.first().copied().unwrap_or_default();
            return Err(lack(first, 0, None));
        };
        // Mostly a window is too full, which is seen without a look at each slot.
        for &window in &windows {
            let unclaimed = row.unclaimed_in(window);
            if unclaimed < self.slots {
                return Err(lack(window, unclaimed, None));
            }
        }
        let (mut row, mut chosen) = (row.clone(), Vec::new());
        for (first, length) in windows {
            let steps = (0..length).map(|step| (step, (first + step) % view.columns()));
            let open = steps.filter(|&(_, column)| row.take(column));
            let (mut has, mut begins) = (0, None);
            for (step, column) in open.take(self.slots as usize) {
                has += 1;
                begins = begins.or(Some(step));
                chosen.push(column);
            }
            let found = lack((first, length), has, begins);
            if !found.is_met(self) {
                return Err(found);
            }
        }
        Ok(chosen)
    }

    /// The first window, of all that begin in ticks from zero on until they repeat, that lacks
    /// something with these columns of a row, in their order. Where the period divides the table,
    /// these are the windows of one round.
    pub fn verify(&self, chosen: &[u32], columns: u32) -> Result<(), Lack> {
        let held = chosen.len();
        let before = |tick: Tick| {
            let column = (tick % u64::from(columns)) as u32;
            let before = chosen.partition_point(|&chosen| chosen < column);
            (
                tick / u64::from(columns) * held as u64 + before as u64,
                column,
                before,
            )
        };
        for window in 0..columns / greatest_common_divisor(self.period, columns) {
            let first = u64::from(self.offset) + u64::from(window) * u64::from(self.period);
            let (earlier, column, next) = before(first);
            let (by_its_end, ..) = before(first + u64::from(self.period));
            let round_the_end = chosen.first().map(|next| next + columns);
            let next = chosen.get(next).copied().or(round_the_end);
            let found = Lack {
                first,
                length: self.period,
                has: (by_its_end - earlier) as u32,
                begins: next.map(|next| next - column),
            };
            if !found.is_met(self) {
                return Err(found);
            }
        }
        Ok(())
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

fn greatest_common_divisor(a: u32, b: u32) -> u32 {
    match b {
        0 => a,
        _ => greatest_common_divisor(b, a % b),
    }
}
