//! The queue of clients in the order of their passes.
//!
//! Who is charged moves behind most others, so passes come out of the queue
//! almost in the order of time. A monotone queue makes use of that:
//!
//! ```text
//!   front   the next few clients, sorted
//!   wheel   all that come later, in buckets by the digits of their pass,
//!           sorted a bucket at a time when its turn comes
//!   side    a heap for those that would have to be squeezed into the middle
//!           of a long front: mostly clients that come back with credit
//! ```
//!
//! Entries that are overtaken by events (a client left, or was charged out of
//! turn) stay behind and are skipped when their turn comes; the owner says
//! which those are. There are never more of them than the owner has places.

use alloc::collections::BinaryHeap;
use core::cmp::{Ordering, Reverse};

use super::ClientIndex;
use super::queue_front::Front;
use super::queue_wheel::Wheel;

/// A client waiting for its turn. Earlier passes come first, and of equal
/// passes the lower index. Passes wrap around: those compared with one
/// another lie less than half their range apart.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Entry {
    pub(super) pass: u64,
    pub(super) client: ClientIndex,
}

impl Entry {
    /// The order, without branches.
    #[inline]
    pub(super) const fn is_before(self, other: Self) -> bool {
        let difference = self.pass.wrapping_sub(other.pass) as i64;
        (difference < 0) | ((difference == 0) & (self.client.0 < other.client.0))
    }
}

/// Whether one pass comes before another.
#[inline]
pub(super) const fn before(one: u64, other: u64) -> bool {
    (one.wrapping_sub(other) as i64) < 0
}

impl Ord for Entry {
    #[inline]
    fn cmp(&self, other: &Self) -> Ordering {
        let difference = self.pass.wrapping_sub(other.pass) as i64;
        difference
            .cmp(&0)
            .then_with(|| self.client.cmp(&other.client))
    }
}

impl PartialOrd for Entry {
    #[inline]
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// Entries in the order of [`Entry`].
#[derive(Clone, Debug)]
pub(super) struct PassQueue {
    /// All before the wheel's limit.
    front: Front,
    /// All not before its limit.
    wheel: Wheel,
    side: BinaryHeap<Reverse<Entry>>,
}

impl PassQueue {
    /// An empty queue, best for entries that are not before `first`.
    pub(super) fn starting_at(first: u64) -> Self {
        Self {
            front: Front::default(),
            wheel: Wheel::starting_at(first),
            side: BinaryHeap::new(),
        }
    }

    /// Drops all entries.
    pub(super) fn restart_at(&mut self, first: u64) {
        self.front.clear();
        self.wheel.restart_at(first);
        self.side.clear();
    }

    /// Whether so many entries are to be skipped, or have ended up in the
    /// heap, that the owner of so many places should restart the queue and
    /// insert everybody anew. Between two such times lie as many operations
    /// as an eighth of the places, so it costs O(1) on average.
    #[inline]
    pub(super) fn is_worn(&self, places: usize) -> bool {
        const SPARE: usize = 64;
        let side = self.side.len();
        let all = self.front.len() + self.wheel.len() + side;
        all > 2 * places + SPARE || side > places / 8 + SPARE
    }

    /// Cost: O(1) and a share in sorting later; O(lg n) at worst. Allocates
    /// when there are more entries than ever before.
    #[inline]
    pub(super) fn insert(&mut self, entry: Entry) {
        if before(entry.pass, self.wheel.limit()) && self.wheel.is_empty() {
            self.limit_front(entry.pass);
        }
        if !before(entry.pass, self.wheel.limit()) {
            self.wheel.insert(entry);
        } else if !self.front.insert(entry) {
            self.side.push(Reverse(entry));
        }
    }

    /// Lets the wheel begin where the front ends, now that the front has grown
    /// long and there is something to come behind it.
    #[inline]
    fn limit_front(&mut self, pass: u64) {
        if let Some(last) = self.front.last()
            && self.front.is_long()
            && before(last.pass, pass)
        {
            self.wheel.restart_at(last.pass.wrapping_add(1));
        }
    }

    /// Takes out an entry. Unless it is first, it stays and is to be skipped.
    #[inline]
    pub(super) fn remove(&mut self, entry: Entry) {
        if self.front.first() == Some(entry) {
            self.front.remove_first();
        } else if self.side.peek() == Some(&Reverse(entry)) {
            self.side.pop();
        }
    }

    /// The first entry of those that are `live`.
    #[inline]
    pub(super) fn first(&mut self, live: impl Fn(Entry) -> bool) -> Option<Entry> {
        loop {
            self.front.look_ahead(&live);
            let entry = match (self.front.first(), self.side.peek()) {
                (Some(entry), None) => entry,
                (Some(front), Some(Reverse(side))) => front.min(*side),
                (None, Some(Reverse(side))) if before(side.pass, self.wheel.limit()) => *side,
                (None, _) if !self.wheel.is_empty() => {
                    self.front.refill(|entries| self.wheel.pour_into(entries));
                    continue;
                }
                (None, Some(Reverse(side))) => *side,
                (None, None) => return None,
            };
            if live(entry) {
                return Some(entry);
            }
            self.remove(entry);
        }
    }
}
