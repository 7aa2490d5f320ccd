//! Event-driven tasks: slots between now and a deadline, which expire with it (2005, 2.3).

use alloc::vec::Vec;

use super::View;
use crate::slots::geometry::Tick;

/// The first open slots of a row in the ticks from `from` up to `deadline`, at most one period
/// ahead; `None` if there are too few. The claims expire at the deadline. A lost slot is answered by
/// placing one slot again.
pub fn place(view: &View, row: u32, wanted: u32, from: Tick, deadline: Tick) -> Option<Vec<u32>> {
    let columns = u64::from(view.columns());
    let mut row = view.row(row)?.clone();
    let end = deadline.min(from.saturating_add(columns));
    let open = (from..end)
        .map(|tick| (tick % columns) as u32)
        .filter(|&column| row.take(column));
    let chosen: Vec<u32> = open.take(wanted as usize).collect();
    (chosen.len() == wanted as usize).then_some(chosen)
}
