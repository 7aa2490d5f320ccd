//! The queue of clients in the order of their passes.
//!
//! A client that is charged moves behind most others, so passes come out of the
//! queue almost in the order of time. A monotone queue makes use of that:
//!
//! ```text
//!   front   the next few clients, sorted
//!   wheel   all that come later, in buckets by the digits of their pass,
//!           sorted a bucket at a time when its turn comes
//!   side    a heap for those that would have to be squeezed into the middle
//!           of a long front: mostly clients that come back with credit
//!   fifos   beside these, for tickets that many clients have: those that ran
//!           a whole quantum, which come in their order
//! ```
//!
//! Entries that are overtaken by events (a client left, or was charged out of
//! turn) stay behind and are skipped when their turn comes; the owner says
//! which those are. There are hardly more of them than half the owner's places.

use alloc::collections::BinaryHeap;
use core::cmp::{Ordering, Reverse};

use super::ClientIndex;
use super::queue_chunks::Chunks;
use super::queue_fifos::{FifoIndex, Fifos};
use super::queue_front::Front;
use super::queue_wheel::Wheel;

/// A client waiting for its turn. Earlier passes come first, and of equal
/// passes the lower index. Passes wrap around: those compared with one
/// another lie less than half their range apart.
///
/// Packed into twelve bytes, as there can be millions.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(Rust, packed(4))]
pub(super) struct Entry {
    pub(super) pass: u64,
    pub(super) client: ClientIndex,
}

impl Entry {
    /// What comes first at a pass.
    pub(super) const fn first_at(pass: u64) -> Self {
        Self {
            pass,
            client: ClientIndex(0),
        }
    }

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
        let (client, other) = (self.client, other.client);
        difference.cmp(&0).then_with(|| client.cmp(&other))
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
    fifos: Fifos,
    /// Memory of the wheel and the FIFOs.
    chunks: Chunks,
    /// Entries left behind since the last restart, and eight times those that
    /// went to the side.
    wear: usize,
}

impl PassQueue {
    /// An empty queue, best for entries that are not before `first`.
    pub(super) fn starting_at(first: u64) -> Self {
        Self {
            front: Front::default(),
            wheel: Wheel::starting_at(first),
            side: BinaryHeap::new(),
            fifos: Fifos::new(),
            chunks: Chunks::default(),
            wear: 0,
        }
    }

    /// Drops all entries.
    pub(super) fn restart_at(&mut self, first: u64) {
        self.front.clear();
        self.wheel.restart_at(first, &mut self.chunks);
        self.side.clear();
        self.fifos.clear(&mut self.chunks);
        self.wear = 0;
    }

    /// Whether so many entries are to be skipped, or have ended up in the
    /// heap, that the owner of so many places should restart the queue and
    /// insert all clients anew. Between two such times lie as many operations
    /// as a sixteenth of the places, so it costs O(1) on average.
    #[inline]
    pub(super) fn is_worn(&self, places: usize) -> bool {
        self.wear > places / 2 + 64
    }

    /// A client comes to compete with tickets: where its equals wait.
    pub(super) fn admit(&mut self, tickets: u32) -> FifoIndex {
        self.fifos.admit(tickets)
    }

    /// A client that was admitted with these tickets ceases to compete.
    pub(super) fn dismiss(&mut self, fifo: FifoIndex, tickets: u32) {
        self.fifos.dismiss(fifo, tickets);
    }

    /// Inserts the entry of a client that ran a whole quantum and was admitted
    /// with these tickets. Cost: O(1) where many have as many tickets; else
    /// that of `insert`, and it allocates as that does.
    #[inline]
    pub(super) fn insert_behind_equals(&mut self, fifo: FifoIndex, tickets: u32, entry: Entry) {
        if !self.fifos.push(fifo, tickets, entry, &mut self.chunks) {
            self.insert(entry);
        }
    }

    /// Cost: O(1) and a share in sorting later; O(lg n) at worst. Allocates
    /// when there are more entries than ever before.
    #[inline]
    pub(super) fn insert(&mut self, entry: Entry) {
        if !entry.is_before(self.wheel.limit()) {
            self.wheel.insert(entry, &mut self.chunks);
        } else if self.front.is_long() {
            self.insert_beside_long_front(entry);
        } else {
            self.front.insert(entry);
        }
    }

    fn insert_beside_long_front(&mut self, entry: Entry) {
        if self.wheel.is_empty()
            && let Some(last) = self.front.last()
            && before(last.pass, entry.pass)
        {
            // The front has grown long enough; let the wheel begin behind it.
            let behind = last.pass.wrapping_add(1);
            self.wheel.restart_at(behind, &mut self.chunks);
            self.wheel.insert(entry, &mut self.chunks);
        } else if !self.front.insert(entry) {
            self.side.push(Reverse(entry));
            self.wear += 8;
        }
    }

    /// Takes out an entry. Unless it is first, it stays and is to be skipped.
    #[inline]
    pub(super) fn remove(&mut self, entry: Entry) {
        if self.fifos.is_first(entry) {
            self.fifos.remove_first(&mut self.chunks);
        } else {
            self.remove_sorted(entry);
        }
    }

    #[inline]
    fn remove_sorted(&mut self, entry: Entry) {
        if self.front.first() == Some(entry) {
            self.front.remove_first();
        } else {
            self.remove_later(entry);
        }
    }

    fn remove_later(&mut self, entry: Entry) {
        if self.side.peek() == Some(&Reverse(entry)) {
            self.side.pop();
        } else {
            self.wear += 1;
        }
    }

    /// The first entry of those that are `live`. Has clients fetched that come
    /// soon after it.
    #[inline]
    pub(super) fn first(
        &mut self,
        live: impl Fn(Entry) -> bool,
        fetch: impl Fn(ClientIndex),
    ) -> Option<Entry> {
        let sorted = self.first_sorted(&live);
        while let Some(first) = self.fifos.first(&fetch, &self.chunks) {
            if sorted.is_some_and(|sorted| sorted.is_before(first)) {
                break;
            }
            if live(first) {
                return Some(first);
            }
            self.fifos.remove_first(&mut self.chunks);
        }
        sorted
    }

    /// The client whose entry would be first after so many others went, if
    /// nothing came between and all were of the kind of the first.
    #[inline]
    pub(super) fn likely_after(&self, others: usize) -> Option<ClientIndex> {
        match (self.front.first(), self.fifos.head()) {
            (Some(front), Some(fifo)) if fifo.is_before(front) => {
                self.fifos.likely_after(others, &self.chunks)
            }
            (None, Some(_)) => self.fifos.likely_after(others, &self.chunks),
            (_, _) => self.front.likely_after(others),
        }
    }

    /// The first entry outside the FIFOs.
    #[inline]
    fn first_sorted(&mut self, live: impl Fn(Entry) -> bool) -> Option<Entry> {
        loop {
            self.front.look_ahead(&live);
            match self.front.first() {
                Some(entry) if self.side.is_empty() => {
                    if live(entry) {
                        return Some(entry);
                    }
                    self.front.remove_first();
                }
                front => match self.first_beside(front)? {
                    Some(entry) if live(entry) => return Some(entry),
                    Some(entry) => self.remove_sorted(entry),
                    None => {}
                },
            }
        }
    }

    /// The first entry of front and side together; `None` if the front had to
    /// be filled to know it.
    fn first_beside(&mut self, front: Option<Entry>) -> Option<Option<Entry>> {
        let side = self.side.peek().map(|side| side.0);
        match (front, side) {
            (Some(front), Some(side)) => Some(Some(front.min(side))),
            (Some(front), None) => Some(Some(front)),
            (None, Some(side)) if self.wheel.is_empty() || side.is_before(self.wheel.limit()) => {
                Some(Some(side))
            }
            (None, None) if self.wheel.is_empty() => None,
            (None, _) => {
                let (wheel, chunks) = (&mut self.wheel, &mut self.chunks);
                self.front
                    .refill(|entries| wheel.pour_into(entries, chunks));
                Some(None)
            }
        }
    }
}
