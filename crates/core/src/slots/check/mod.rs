//! Whether claims fit an empty table together, before anybody makes them.
//!
//! The claims of a higher level come first, as they would preempt those of a lower one; within a
//! level named slots do, as they cannot go elsewhere, then the others in their order. A claim that
//! finds no place has a counterexample, and holds no slot.

mod placing;
pub mod plan;

use alloc::vec;
use alloc::vec::Vec;
use core::cmp::Reverse;

use super::geometry::Cell;
use super::level::Level;
use super::place::View;
use super::place::periodic::{Lack, Periodic};

/// What a claimant wants of the table (2005, 2.3).
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Wish {
    /// Named slots.
    Slots(Vec<Cell>),
    /// So many slots of every so many, on one CPU.
    Periodic {
        /// What it wants. A period that does not divide the table is placed by the next shorter
        /// one that does, and verified by its own.
        periodic: Periodic,
        /// The only CPU; `None`: any.
        row: Option<u32>,
    },
    /// Columns in which all threads run.
    Gang {
        /// CPUs in each column.
        threads: u32,
        /// How many columns; `None`: all that there are, and one at least.
        columns: Option<u32>,
        /// CPUs that come first.
        preferred: Vec<u32>,
    },
    /// Whenever it wakes, so many slots before a deadline.
    Event {
        /// How many.
        slots: u32,
        /// Slots from the one in which it wakes to the deadline.
        within: u32,
        /// The only CPU; `None`: any.
        row: Option<u32>,
    },
    /// So many successive slots of one CPU.
    Cache(u32),
    /// So many slots, or what is left of them.
    BestEffort(u32),
}

/// A claimant, and the level of its tokens.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Claimant {
    /// The level of the claim.
    pub level: Level,
    /// What it wants.
    pub wish: Wish,
}

/// Claimants are named by their places in the list.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Conflict {
    /// The claimant that does not get what it wants.
    pub claimant: usize,
    /// Where.
    pub counterexample: Counterexample,
}

/// Where a wish cannot be met.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Counterexample {
    /// The table has no such slot.
    Outside(Cell),
    /// The slot is claimed.
    Taken {
        /// The slot.
        cell: Cell,
        /// The claimant that has it; the refused one itself if it names a slot twice.
        by: usize,
    },
    /// A claim of the slot would leave too few unclaimed.
    Reserved {
        /// The slot.
        cell: Cell,
        /// The first column of the window that keeps it.
        first: u32,
    },
    /// On each CPU that it may use, a window has too few open slots, or its first one too late.
    Windows(Vec<Window>),
    /// Too few columns have room for a gang.
    Columns {
        /// Columns with room.
        found: u32,
        /// Of the others, one with the most open slots.
        column: u32,
        /// How many it has.
        open: u32,
        /// The claimants that have the others.
        held_by: Vec<usize>,
    },
    /// No run of open slots is long enough.
    Run {
        /// The first slot of the longest one.
        longest: Option<Cell>,
        /// Its length.
        has: u32,
    },
    /// No CPU was found that has room beside the other periodic tasks.
    Unplanned {
        /// Slots that it takes of a table.
        load: u32,
        /// The most slots that a CPU has left.
        room: u32,
    },
}

/// A window of one CPU that has not what it is to have.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Window {
    /// The CPU.
    pub row: u32,
    /// The window. For an event-driven claim it begins with the slot in which it wakes.
    pub lack: Lack,
    /// The claimants that have slots there.
    pub held_by: Vec<usize>,
}

/// What claims come to.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Outcome {
    /// The cells of each claimant, in order. What an event-driven claim would take is none's.
    pub cells: Vec<Vec<Cell>>,
    /// In the order in which the claims were looked at.
    pub conflicts: Vec<Conflict>,
    columns: u32,
    holders: Vec<Option<usize>>,
}

/// Makes all claims in an empty table, of which a view has the reservations.
pub fn check(empty: &View, claimants: &[Claimant]) -> Outcome {
    let mut placing = placing::Placing::new(empty, claimants);
    for claimant in order(claimants) {
        placing.place(claimant);
    }
    placing.outcome
}

/// The order in which claims are made. Event-driven ones come last, as they claim while all others
/// have their slots.
fn order(claimants: &[Claimant]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..claimants.len()).collect();
    order.sort_by_key(|&claimant| {
        let Claimant { level, wish } = &claimants[claimant];
        let is_event = matches!(wish, Wish::Event { .. });
        (is_event, Reverse(*level), !matches!(wish, Wish::Slots(_)))
    });
    order
}

impl Outcome {
    fn new(view: &View, claimants: usize) -> Self {
        Self {
            cells: vec![Vec::new(); claimants],
            conflicts: Vec::new(),
            columns: view.columns(),
            holders: vec![None; view.columns() as usize * view.rows() as usize],
        }
    }

    /// The claimant that has a cell.
    pub fn holder(&self, cell: Cell) -> Option<usize> {
        self.holders.get(self.index(cell)).copied().flatten()
    }

    fn index(&self, cell: Cell) -> usize {
        cell.row as usize * self.columns as usize + cell.column as usize
    }

    /// The number of claimed slots of a row.
    pub fn claimed_in(&self, row: u32) -> u32 {
        let cells = (0..self.columns).map(|column| Cell { row, column });
        cells.filter(|&cell| self.holder(cell).is_some()).count() as u32
    }

    /// The longest run of columns, round the end of the table, in which a claimant has no slot;
    /// `None` if it has none at all.
    pub fn blackout(&self, claimant: usize) -> Option<u32> {
        let mut held: Vec<u32> = self.cells[claimant].iter().map(|c| c.column).collect();
        held.sort_unstable();
        let last = *held.last()?;
        let before = core::iter::once(None).chain(held.iter().copied().map(Some));
        let gaps = before.zip(&held).map(|(before, &column)| match before {
            Some(before) => column.saturating_sub(before + 1),
            None => self.columns - 1 - last + column,
        });
        gaps.max()
    }

    /// The claimants that have slots of a row among columns.
    fn held_among(&self, row: u32, columns: impl Iterator<Item = u32>) -> Vec<usize> {
        let cells = columns.map(|column| Cell { row, column });
        distinct(cells.filter_map(|cell| self.holder(cell)))
    }
}

fn distinct(claimants: impl Iterator<Item = usize>) -> Vec<usize> {
    let mut distinct: Vec<usize> = claimants.collect();
    distinct.sort_unstable();
    distinct.dedup();
    distinct
}
