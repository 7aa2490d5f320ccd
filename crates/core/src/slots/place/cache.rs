//! Cache-sensitive tasks: long runs on one CPU (2005, 2.3).

use alloc::vec::Vec;

use super::View;
use crate::slots::geometry::Cell;

/// The row and first column of `length` successive slots, round the end of the table, that may be
/// claimed together: the first of the shortest run of open slots that has them, the first of equals.
/// A lost slot is answered by placing the run anew.
pub fn place(view: &View, length: u32) -> Option<Cell> {
    let columns = view.columns();
    let mut fitting: Vec<(Cell, u32)> = (0..view.rows())
        .flat_map(|row| runs(view, row))
        .filter(|&(_, run)| run >= length && length > 0)
        .collect();
    fitting.sort_by_key(|&(_, run)| run);
    let mut scratch = view.clone();
    let at = |cell: Cell, step| Cell {
        column: (cell.column + step) % columns,
        ..cell
    };
    // A reservation may refuse a piece at one place of the run and permit it at another.
    let mut pieces = fitting
        .into_iter()
        .flat_map(|(cell, run)| (0..=run - length).map(move |step| at(cell, step)));
    pieces.find(|&begin| scratch.permits((0..length).map(|step| at(begin, step))))
}

/// The runs of open slots of a row; a row that is all open is one run from column zero.
fn runs(view: &View, row: u32) -> impl Iterator<Item = (Cell, u32)> {
    let columns = view.columns();
    let open = move |column| {
        view.is_open(Cell {
            row,
            column: column % columns,
        })
    };
    let all = (0..columns).all(open);
    let begins =
        move |&column: &u32| open(column) && (!open(column + columns - 1) || all && column == 0);
    (0..columns).filter(begins).map(move |column| {
        let length = (0..columns).take_while(|step| open(column + step)).count();
        (Cell { row, column }, length as u32)
    })
}
