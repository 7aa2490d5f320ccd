//! Best-effort tasks: whatever is left (2005, 2.3).

use alloc::vec::Vec;

use super::View;
use crate::slots::geometry::Cell;

/// Up to `wanted` open slots, on the rows in the order given. A lost slot needs no answer: the
/// scheduler looks again when slots become free.
pub fn place(view: &View, rows: &[u32], wanted: usize) -> Vec<Cell> {
    let (columns, mut view) = (view.columns(), view.clone());
    let cells = rows
        .iter()
        .flat_map(|&row| (0..columns).map(move |column| Cell { row, column }));
    cells.filter(|&cell| view.take(cell)).take(wanted).collect()
}
