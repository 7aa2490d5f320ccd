//! The next few clients, sorted.

use alloc::vec::Vec;

use super::ClientIndex;
use super::queue::Entry;

/// From this length on, more entries are kept out where possible.
const LONG: usize = 64;
/// Not even as many entries are moved to make room for one.
const MAX_SHIFT: usize = 128;
/// Among as many at the end an entry's place is looked for one by one.
const NEAR: usize = 16;
/// So many entries are looked at together.
const WINDOW: usize = 64;

/// A sorted list that is taken from at its beginning.
#[derive(Clone, Default, Debug)]
pub(super) struct Front {
    /// Sorted from `head` on; what is before it is gone.
    entries: Vec<Entry>,
    head: usize,
    /// Entries up to here have been looked at, more or less.
    seen: usize,
}

impl Front {
    #[inline]
    pub(super) fn len(&self) -> usize {
        self.entries.len() - self.head
    }

    #[inline]
    pub(super) fn is_long(&self) -> bool {
        self.len() >= LONG
    }

    #[inline]
    pub(super) fn first(&self) -> Option<Entry> {
        self.entries.get(self.head).copied()
    }

    #[inline]
    pub(super) fn last(&self) -> Option<Entry> {
        self.entries[self.head..].last().copied()
    }

    /// The client that comes after so many others.
    #[inline]
    pub(super) fn likely_after(&self, others: usize) -> Option<ClientIndex> {
        let entry = self.entries.get(self.head + others)?;
        Some(entry.client)
    }

    pub(super) fn clear(&mut self) {
        self.entries.clear();
        self.head = 0;
        self.seen = 0;
    }

    #[inline]
    pub(super) fn remove_first(&mut self) {
        self.head += 1;
        if self.head == self.entries.len() {
            self.clear();
        }
    }

    /// Inserts an entry in its place, unless that means to move too many
    /// others. Cost: O(lg n).
    #[inline]
    pub(super) fn insert(&mut self, entry: Entry) -> bool {
        self.reclaim();
        let end = self.entries.len();
        if end - self.head > NEAR && entry.is_before(self.entries[end - 1 - NEAR]) {
            return self.insert_far_from_end(entry);
        }
        self.entries.push(entry);
        let mut place = end;
        while place > self.head && entry.is_before(self.entries[place - 1]) {
            self.entries[place] = self.entries[place - 1];
            place -= 1;
        }
        self.entries[place] = entry;
        true
    }

    fn insert_far_from_end(&mut self, entry: Entry) -> bool {
        let earlier = self.entries[self.head..].partition_point(|other| other.is_before(entry));
        let place = self.head + earlier;
        let later = self.entries.len() - place;
        if self.head > 0 && earlier < later.min(MAX_SHIFT) {
            self.entries.copy_within(self.head..place, self.head - 1);
            self.head -= 1;
            self.entries[place - 1] = entry;
        } else if later < MAX_SHIFT {
            self.entries.insert(place, entry);
        } else {
            return false;
        }
        true
    }

    /// Fills an empty front with what `fill` adds to an empty list, sorted.
    pub(super) fn refill(&mut self, fill: impl FnOnce(&mut Vec<Entry>)) {
        self.clear();
        fill(&mut self.entries);
    }

    /// Drops those of the next few entries that are not `live`, unless they
    /// have been looked at before. To look at many at a time is faster than
    /// one by one: their owner's memory is fetched for all of them together.
    #[inline]
    pub(super) fn look_ahead(&mut self, live: impl Fn(Entry) -> bool) {
        if self.head >= self.seen {
            self.seen = self.entries.len().min(self.head + WINDOW);
            let mut head = self.seen;
            for place in (self.head..self.seen).rev() {
                let entry = self.entries[place];
                if live(entry) {
                    head -= 1;
                    self.entries[head] = entry;
                }
            }
            self.head = head;
        }
    }

    /// Moves the entries to the beginning of their memory when it is used up
    /// and half of it is gone; otherwise it may grow.
    #[inline]
    fn reclaim(&mut self) {
        if self.entries.len() == self.entries.capacity() && 2 * self.head >= self.entries.len() {
            self.entries.copy_within(self.head.., 0);
            self.entries.truncate(self.entries.len() - self.head);
            self.seen = self.seen.saturating_sub(self.head);
            self.head = 0;
        }
    }
}
