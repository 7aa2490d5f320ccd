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

use alloc::vec;
use alloc::vec::Vec;

use super::geometry::Cell;
use super::reservation::{NONE, Reservation};
use super::timetable::Timetable;

/// Which cells a scheduler may hope to claim, with the reservations of their rows. What a placer
/// returns may be claimed whole.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct View {
    columns: u32,
    /// The cells that count as claimed, row by row.
    claimed: Vec<bool>,
    /// Whether each row's CPU is there.
    online: Vec<bool>,
    /// One a row.
    reservations: Vec<Reservation>,
}

impl View {
    /// A view of `rows` times `columns` cells without reservations.
    pub fn new(rows: u32, columns: u32, is_open: impl Fn(Cell) -> bool) -> Self {
        let cells = (0..rows).flat_map(|row| (0..columns).map(move |column| Cell { row, column }));
        Self {
            columns,
            claimed: cells.map(|cell| !is_open(cell)).collect(),
            online: vec![true; rows as usize],
            reservations: vec![NONE; rows as usize],
        }
    }

    /// The unclaimed cells of a timetable whose CPUs are online, as far as no reservation keeps them.
    pub fn unclaimed(table: &Timetable) -> Self {
        let geometry = table.geometry();
        let unclaimed = |cell| table.table().get(cell).is_none();
        let mut view = Self::new(geometry.rows(), geometry.columns(), unclaimed);
        view.reservations.clone_from(&table.reservations);
        view.online = (0..geometry.rows())
            .map(|row| table.is_online(row))
            .collect();
        view
    }

    /// The number of columns.
    pub fn columns(&self) -> u32 {
        self.columns
    }

    /// The number of rows.
    pub fn rows(&self) -> u32 {
        self.online.len() as u32
    }

    fn index(&self, cell: Cell) -> Option<usize> {
        let inside = cell.row < self.rows() && cell.column < self.columns;
        inside.then(|| cell.row as usize * self.columns as usize + cell.column as usize)
    }

    /// Whether a cell may be claimed; none outside the view may.
    pub fn is_open(&self, cell: Cell) -> bool {
        let Some(index) = self.index(cell) else {
            return false;
        };
        if self.claimed[index] || !self.online[cell.row as usize] {
            return false;
        }
        let row = &self.claimed[index - cell.column as usize..];
        let is_claimed = |column| row[column as usize];
        self.reservations[cell.row as usize].permits(cell.column, self.columns, is_claimed)
    }

    /// Closes a cell, as a claim of it does.
    pub fn close(&mut self, cell: Cell) {
        self.set(cell, false);
    }

    fn set(&mut self, cell: Cell, open: bool) {
        if let Some(index) = self.index(cell) {
            self.claimed[index] = !open;
        }
    }

    /// Closes a cell if it is open; returns whether it was.
    fn take(&mut self, cell: Cell) -> bool {
        let open = self.is_open(cell);
        if open {
            self.close(cell);
        }
        open
    }

    /// Whether all of some cells may be claimed together; the view is afterwards as it was.
    fn permits(&mut self, cells: impl Iterator<Item = Cell> + Clone) -> bool {
        let taken = cells.clone().take_while(|&cell| self.take(cell)).count();
        let all = cells.clone().count() == taken;
        for cell in cells.take(taken) {
            self.set(cell, true);
        }
        all
    }

    /// The number of open cells of a row.
    pub fn open_in(&self, row: u32) -> u32 {
        let columns = 0..self.columns;
        columns
            .filter(|&column| self.is_open(Cell { row, column }))
            .count() as u32
    }
}
