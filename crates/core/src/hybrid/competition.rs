//! Clients that competed lately: a client's due is its part of what all hold that competed
//! in the last ten seconds (1999, 4.1).
//!
//! Clients that compete now are counted by their pool. This counts those that blocked, by
//! the second. So a client that naps in step with others cannot choose the moment at which
//! few compete.

use super::window::{SLOT_NS, SLOTS};
use crate::ledger::Value;

/// Values of the clients that blocked in each of the last ten seconds.
#[derive(Clone, Default, Debug)]
pub(super) struct Sleepers {
    /// By the second modulo [`SLOTS`].
    values: [u128; SLOTS],
    /// The second up to which the slots are cleared.
    last: u64,
}

/// A client's entry.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct Entry {
    slot: u64,
    value: u128,
}

impl Sleepers {
    /// A client blocks.
    pub(super) fn add(&mut self, now_ns: u64, value: Value) -> Entry {
        self.advance(now_ns);
        self.values[place(self.last)] += value.0;
        Entry {
            slot: self.last,
            value: value.0,
        }
    }

    /// A client wakes.
    pub(super) fn remove(&mut self, now_ns: u64, entry: Entry) {
        self.advance(now_ns);
        if self.last - entry.slot < SLOTS as u64 {
            self.values[place(entry.slot)] -= entry.value;
        }
    }

    /// The value of all.
    pub(super) fn total(&mut self, now_ns: u64) -> Value {
        self.advance(now_ns);
        Value(self.values.iter().sum())
    }

    fn advance(&mut self, now_ns: u64) {
        let slot = now_ns / SLOT_NS;
        if slot <= self.last {
            return;
        }
        let passed = (slot - self.last).min(SLOTS as u64);
        for gone in slot + 1 - passed..=slot {
            self.values[place(gone)] = 0;
        }
        self.last = slot;
    }
}

fn place(slot: u64) -> usize {
    (slot % SLOTS as u64) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sleeper_counts_for_ten_seconds() {
        let mut sleepers = Sleepers::default();
        sleepers.add(SLOT_NS / 2, Value(7));
        sleepers.add(3 * SLOT_NS, Value(5));
        assert_eq!(sleepers.total(10 * SLOT_NS - 1), Value(12));
        assert_eq!(sleepers.total(10 * SLOT_NS), Value(5));
        assert_eq!(sleepers.total(13 * SLOT_NS), Value(0));
    }

    #[test]
    fn a_client_that_wakes_counts_no_longer_as_a_sleeper() {
        let mut sleepers = Sleepers::default();
        let (one, other) = (sleepers.add(0, Value(7)), sleepers.add(0, Value(5)));
        sleepers.remove(9 * SLOT_NS, one);
        assert_eq!(sleepers.total(9 * SLOT_NS), Value(5));
        sleepers.remove(30 * SLOT_NS, other);
        assert_eq!(sleepers.total(30 * SLOT_NS), Value(0));
    }
}
