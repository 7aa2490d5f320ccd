//! Cache-sensitive tasks: long runs on one CPU (2005, 2.3).

use super::View;
use crate::slots::geometry::Cell;

/// The row and first column of the shortest run of open slots, round the end of the table, that has
/// `length`; the first of equals. A lost slot is answered by placing the run anew.
pub fn place(view: &View, length: u32) -> Option<Cell> {
    let rows = 0..view.rows();
    let runs = rows.flat_map(|row| runs(view, row));
    let fitting = runs.filter(|&(_, run)| run >= length && length > 0);
    fitting.min_by_key(|&(_, run)| run).map(|(cell, _)| cell)
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
