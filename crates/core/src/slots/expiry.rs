//! Claims that expire, in the order of their ends (2005, 2.2).

use alloc::collections::BTreeSet;

use super::geometry::Tick;

/// The cells whose claims expire, the first to end first.
#[derive(Clone, Default, Debug)]
pub(crate) struct Expiries(BTreeSet<(Tick, usize)>);

impl Expiries {
    pub(crate) fn add(&mut self, expires: Tick, index: usize) {
        self.0.insert((expires, index));
    }

    pub(crate) fn remove(&mut self, expires: Tick, index: usize) {
        self.0.remove(&(expires, index));
    }

    /// The tick at which the next claim ends.
    pub(crate) fn next(&self) -> Option<Tick> {
        self.0.first().map(|&(expires, _)| expires)
    }

    /// A cell whose claim is over at `now`.
    pub(crate) fn over(&self, now: Tick) -> Option<usize> {
        self.0
            .first()
            .filter(|&&(expires, _)| expires <= now)
            .map(|&(_, index)| index)
    }
}
