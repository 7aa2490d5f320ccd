//! Gangs: columns in which all threads run at once (2005, 2.3).

use alloc::vec::Vec;

use super::View;
use crate::slots::geometry::Cell;

/// Rows of a column for `threads` threads, those of `preferred` first, each once; `None` if too few
/// are open.
pub fn in_column(view: &View, column: u32, threads: usize, preferred: &[u32]) -> Option<Vec<Cell>> {
    let others = (0..view.rows()).filter(|row| !preferred.contains(row));
    let rows = preferred.iter().copied().chain(others);
    let cells = rows.map(|row| Cell { row, column });
    let mut chosen = Vec::new();
    for cell in cells.filter(|&cell| view.is_open(cell)) {
        if chosen.len() < threads && !chosen.contains(&cell) {
            chosen.push(cell);
        }
    }
    (chosen.len() == threads).then_some(chosen)
}

/// The first `wanted` columns that hold the gang; fewer if the table has not so many.
pub fn place(view: &View, wanted: usize, threads: usize, preferred: &[u32]) -> Vec<Vec<Cell>> {
    let mut view = view.clone();
    let mut chosen = Vec::new();
    for column in 0..view.columns() {
        if chosen.len() == wanted {
            break;
        }
        if let Some(cells) = in_column(&view, column, threads, preferred) {
            cells.iter().for_each(|&cell| view.close(cell));
            chosen.push(cells);
        }
    }
    chosen
}

/// The answer to a lost slot (2005, 2.4.2).
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Answer {
    /// Claim another row of the column.
    Move(Cell),
    /// Free the rest of the column; claim a whole other column if there is one.
    Cancel(Option<Vec<Cell>>),
}

/// What to do about a lost cell.
pub fn answer(view: &View, lost: Cell, threads: usize, preferred: &[u32]) -> Answer {
    match in_column(view, lost.column, 1, preferred) {
        Some(cells) => Answer::Move(cells[0]),
        None => Answer::Cancel(place(view, 1, threads, preferred).pop()),
    }
}
