//! Where library schedulers put their claims (2005, 2.3) and how they answer a revocation (2.4.2).
//!
//! All placers see a [`View`] and return columns or cells; claiming them is the caller's call.

pub mod best_effort;
pub mod cache;
pub mod cpu_choice;
pub mod edf;
pub mod event;
pub mod gang;
pub mod periodic;

use alloc::vec::Vec;

use super::geometry::Cell;
use super::timetable::Timetable;

/// Which cells a scheduler may hope to claim.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct View {
    columns: u32,
    /// Row by row.
    open: Vec<bool>,
}

impl View {
    /// A view of `rows` times `columns` cells.
    pub fn new(rows: u32, columns: u32, is_open: impl Fn(Cell) -> bool) -> Self {
        let cells = (0..rows).flat_map(|row| (0..columns).map(move |column| Cell { row, column }));
        Self {
            columns,
            open: cells.map(is_open).collect(),
        }
    }

    /// The unclaimed cells of a timetable whose CPUs are online and that no reservation keeps. A
    /// claim of one cell may make a reservation keep others.
    pub fn unclaimed(table: &Timetable) -> Self {
        let geometry = table.geometry();
        Self::new(geometry.rows(), geometry.columns(), |cell| {
            table.is_online(cell.row)
                && table.table().get(cell).is_none()
                && !table.is_reserved(cell)
        })
    }

    /// The number of columns.
    pub fn columns(&self) -> u32 {
        self.columns
    }

    /// The number of rows.
    pub fn rows(&self) -> u32 {
        self.open.len() as u32 / self.columns.max(1)
    }

    /// Whether a cell may be claimed.
    pub fn is_open(&self, cell: Cell) -> bool {
        self.open[(cell.row * self.columns + cell.column) as usize]
    }

    /// Closes a cell.
    pub fn close(&mut self, cell: Cell) {
        self.open[(cell.row * self.columns + cell.column) as usize] = false;
    }

    /// The number of open cells of a row.
    pub fn open_in(&self, row: u32) -> u32 {
        let columns = 0..self.columns;
        columns
            .filter(|&column| self.is_open(Cell { row, column }))
            .count() as u32
    }
}
