//! Where library schedulers put their claims (2005, 2.3) and how they answer a revocation (2.4.2).
//!
//! All placers see a [`View`] and return columns or cells; claiming them is the caller's call.

pub mod best_effort;
pub mod cache;
pub mod cpu_choice;
pub mod edf;
pub mod event;
pub mod gang;
pub mod packing;
pub mod periodic;
mod row;

use alloc::vec::Vec;

use super::geometry::Cell;
use super::reservation::Reservation;
use super::timetable::Timetable;
use row::Row;

/// Which cells a scheduler may hope to claim, with the reservations of their rows. What a placer
/// returns may be claimed whole.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct View {
    columns: u32,
    rows: Vec<Row>,
}

impl View {
    /// A view of `rows` times `columns` cells without reservations.
    pub fn new(rows: u32, columns: u32, is_open: impl Fn(Cell) -> bool) -> Self {
        let of_row = |row| Row::new(columns, |column| is_open(Cell { row, column }));
        Self {
            columns,
            rows: (0..rows).map(of_row).collect(),
        }
    }

    /// The same view with a reservation for each row, as far as there are some.
    pub fn with_reservations(mut self, reservations: Vec<Reservation>) -> Self {
        for (row, reservation) in self.rows.iter_mut().zip(reservations) {
            row.reservation = reservation;
        }
        self
    }

    /// The unclaimed cells of a timetable whose CPUs are online, as far as no reservation keeps them.
    pub fn unclaimed(table: &Timetable) -> Self {
        let geometry = table.geometry();
        let unclaimed = |cell| table.table().get(cell).is_none();
        let mut view = Self::new(geometry.rows(), geometry.columns(), unclaimed);
        for (number, row) in (0..).zip(&mut view.rows) {
            row.reservation = table.reservations[number as usize];
            row.online = table.is_online(number);
        }
        view
    }

    /// The number of columns.
    pub fn columns(&self) -> u32 {
        self.columns
    }

    /// The number of rows.
    pub fn rows(&self) -> u32 {
        self.rows.len() as u32
    }

    /// `None` outside the view.
    fn row(&self, row: u32) -> Option<&Row> {
        self.rows.get(row as usize)
    }

    /// Whether a cell may be claimed; none outside the view may.
    pub fn is_open(&self, cell: Cell) -> bool {
        self.row(cell.row)
            .is_some_and(|row| row.is_open(cell.column))
    }

    /// Closes a cell, as a claim of it does.
    pub fn close(&mut self, cell: Cell) {
        self.set(cell, false);
    }

    fn set(&mut self, cell: Cell, open: bool) {
        if let Some(row) = self.rows.get_mut(cell.row as usize)
            && cell.column < self.columns
        {
            row.set(cell.column, open);
        }
    }

    /// A view of one row, which is its row zero.
    pub(in crate::slots) fn one_row(&self, row: u32) -> Self {
        Self {
            columns: self.columns,
            rows: self.row(row).into_iter().cloned().collect(),
        }
    }

    /// Closes a cell if it is open; returns whether it was.
    pub(in crate::slots) fn take(&mut self, cell: Cell) -> bool {
        let row = self.rows.get_mut(cell.row as usize);
        row.is_some_and(|row| row.take(cell.column))
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
        self.row(row).map_or(0, Row::open)
    }

    /// The most slots of a row that may be claimed together; a reservation may permit fewer.
    pub fn room_in(&self, row: u32) -> u32 {
        self.row(row).map_or(0, Row::room)
    }

    /// For an unclaimed cell, the first column of a window in which its reservation keeps it.
    pub fn window_kept(&self, cell: Cell) -> Option<u32> {
        self.row(cell.row)?.window_kept(cell.column)
    }
}
