//! Looking for slots of one's own, so that a program can act in step with them (2005, 2.1).

use prorata_bulletin::Reader;
use prorata_core::slots::claim::Schedulee;
use prorata_core::slots::geometry::Tick;

/// The first tick at or after `from` in which one of the schedulees has a slot, on any CPU; `None`
/// if none has one within a period.
///
/// Cost: a look-up for each slot on the way, and no call.
pub fn next_slot(
    table: &Reader,
    from: Tick,
    mut is_wanted: impl FnMut(Schedulee) -> bool,
) -> Option<Tick> {
    let geometry = table.geometry();
    // A change that is not in force yet is so after two slots.
    let last = from.saturating_add(u64::from(geometry.columns()) + 2);
    let mut is_there = |tick: Tick| {
        let mut rows = 0..geometry.rows();
        rows.any(|row| table.at(row, tick).is_some_and(&mut is_wanted))
    };
    (from..last).find(|&tick| is_there(tick))
}
