//! The queue of clients in the order of their passes.

use alloc::collections::BTreeSet;
use core::cmp::Ordering;

use super::ClientIndex;

/// A client waiting for its turn. Earlier passes come first, and of equal
/// passes the lower index. Passes wrap around: those compared with one
/// another lie less than half their range apart.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Entry {
    pub(super) pass: u64,
    pub(super) client: ClientIndex,
}

impl Ord for Entry {
    fn cmp(&self, other: &Self) -> Ordering {
        let difference = self.pass.wrapping_sub(other.pass) as i64;
        difference
            .cmp(&0)
            .then_with(|| self.client.cmp(&other.client))
    }
}

impl PartialOrd for Entry {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// Entries in order.
#[derive(Clone, Default, Debug)]
pub(super) struct PassQueue {
    entries: BTreeSet<Entry>,
}

impl PassQueue {
    pub(super) fn insert(&mut self, entry: Entry) {
        self.entries.insert(entry);
    }

    pub(super) fn remove(&mut self, entry: Entry) {
        self.entries.remove(&entry);
    }

    pub(super) fn first(&self) -> Option<Entry> {
        self.entries.first().copied()
    }

    pub(super) fn clear(&mut self) {
        self.entries.clear();
    }
}
