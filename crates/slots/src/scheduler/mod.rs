//! Library schedulers: where to claim, and what to do about a lost slot (2005, 2.3 and 2.4.2).

mod best_effort;
mod cache;
mod event;
mod gang;
mod periodic;

pub use best_effort::BestEffort;
pub use cache::CacheSensitive;
pub use event::EventDriven;
pub use gang::Gang;
pub use periodic::Periodic;

use prorata_core::slots::geometry::{Cell, Geometry};
use prorata_core::slots::place::View;

/// What to do about a lost slot.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Reply {
    /// Slots to give up, which make no sense any more.
    pub free: Vec<Cell>,
    /// Slots to claim instead.
    pub claim: Vec<Cell>,
}

/// Decides where to claim. Decisions need nothing but a view.
pub trait Scheduler {
    /// Where to claim first; `None`: there is no room.
    fn plan(&mut self, view: &View) -> Option<Vec<Cell>>;

    /// What to do about a lost slot. `held` has those that are left.
    fn reply(&mut self, lost: Cell, held: &[Cell], view: &View) -> Reply;

    /// Where to claim more, now that slots have become free; mostly nowhere.
    fn more(&mut self, _held: &[Cell], _view: &View) -> Vec<Cell> {
        Vec::new()
    }

    /// Whether slots that become free are of interest.
    fn wants_free(&self) -> bool {
        false
    }

    /// What is wanted, in a few words.
    fn wish(&self) -> String;
}

impl<S: Scheduler + ?Sized> Scheduler for Box<S> {
    fn plan(&mut self, view: &View) -> Option<Vec<Cell>> {
        (**self).plan(view)
    }

    fn reply(&mut self, lost: Cell, held: &[Cell], view: &View) -> Reply {
        (**self).reply(lost, held, view)
    }

    fn more(&mut self, held: &[Cell], view: &View) -> Vec<Cell> {
        (**self).more(held, view)
    }

    fn wants_free(&self) -> bool {
        (**self).wants_free()
    }

    fn wish(&self) -> String {
        (**self).wish()
    }
}

/// The slots that hold so much time, at least one.
pub(crate) fn slots_of(geometry: &Geometry, time_ns: u64) -> u32 {
    let slots = time_ns.div_ceil(geometry.slot_ns()).max(1);
    u32::try_from(slots).unwrap_or(u32::MAX)
}

/// The rows to try: one, or all in their order.
pub(crate) fn rows(view: &View, row: Option<u32>) -> Vec<u32> {
    match row {
        Some(row) => vec![row],
        None => (0..view.rows()).collect(),
    }
}
