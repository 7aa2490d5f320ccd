//! One row of a [`View`](super::View).

use alloc::vec;
use alloc::vec::Vec;

use crate::slots::reservation::{NONE, Reservation};

/// Which columns of one CPU a scheduler may hope to claim, with the CPU's reservation.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Row {
    columns: u32,
    /// A bit for each unclaimed column; none past the last one.
    unclaimed: Vec<u64>,
    /// Whether the CPU is there.
    pub(super) online: bool,
    pub(super) reservation: Reservation,
}

impl Row {
    pub(super) fn new(columns: u32, is_unclaimed: impl Fn(u32) -> bool) -> Self {
        let mut row = Self {
            columns,
            unclaimed: vec![0; columns.div_ceil(u64::BITS) as usize],
            online: true,
            reservation: NONE,
        };
        for column in (0..columns).filter(|&column| is_unclaimed(column)) {
            row.set(column, true);
        }
        row
    }

    /// Whether a column may be claimed.
    pub(super) fn is_open(&self, column: u32) -> bool {
        let is_claimed = |column| !self.is_unclaimed(column);
        let reservation = &self.reservation;
        self.online
            && self.is_unclaimed(column)
            && reservation.permits(column, self.columns, is_claimed)
    }

    /// Whether a column is there and unclaimed.
    fn is_unclaimed(&self, column: u32) -> bool {
        let (word, bit) = place_of(column);
        let word = self.unclaimed.get(word);
        word.is_some_and(|word| word & bit != 0)
    }

    pub(super) fn set(&mut self, column: u32, unclaimed: bool) {
        debug_assert!(column < self.columns);
        let (word, bit) = place_of(column);
        match unclaimed {
            true => self.unclaimed[word] |= bit,
            false => self.unclaimed[word] &= !bit,
        }
    }

    /// Closes a column if it is open; returns whether it was.
    pub(super) fn take(&mut self, column: u32) -> bool {
        let open = self.is_open(column);
        if open {
            self.set(column, false);
        }
        open
    }

    /// The number of open columns.
    pub(super) fn open(&self) -> u32 {
        match (self.online, self.reservation.numerator) {
            (false, _) => 0,
            (true, 0) => self.unclaimed_between(0, self.columns),
            _ => {
                let claimed = (0..self.columns).map(|column| !self.is_unclaimed(column));
                let claimed: Vec<bool> = claimed.collect();
                let kept = self.reservation.keeps(&claimed);
                let open = claimed
                    .iter()
                    .zip(kept)
                    .filter(|(claimed, kept)| !**claimed && !kept);
                open.count() as u32
            }
        }
    }

    /// The most columns that can be claimed together: those that the reservation keeps unclaimed are
    /// no fewer than its part of the row.
    pub(super) fn room(&self) -> u32 {
        let (part, of) = (self.reservation.numerator, self.reservation.denominator);
        let kept = (u64::from(part) * u64::from(self.columns)).div_ceil(u64::from(of)) as u32;
        match self.online {
            true => self.unclaimed_between(0, self.columns).saturating_sub(kept),
            false => 0,
        }
    }

    /// The first column of a window that a claim of an unclaimed column would leave with too few
    /// unclaimed ones.
    pub(super) fn window_kept(&self, column: u32) -> Option<u32> {
        let claimed = (0..self.columns).map(|other| other == column || !self.is_unclaimed(other));
        let deficits = self.reservation.deficits(&claimed.collect::<Vec<_>>());
        deficits
            .iter()
            .position(|&lack| lack > 0)
            .map(|first| first as u32)
    }

    /// The number of unclaimed columns of a window, round the end of the table at most once. So
    /// many may be open, and no more.
    pub(super) fn unclaimed_in(&self, (first, length): (u32, u32)) -> u32 {
        let first = first % self.columns;
        let beyond = length.saturating_sub(self.columns - first);
        self.unclaimed_between(first, first + length - beyond) + self.unclaimed_between(0, beyond)
    }

    /// The number of unclaimed columns from one up to another, that one not included.
    fn unclaimed_between(&self, first: u32, end: u32) -> u32 {
        let words = first / u64::BITS..end.div_ceil(u64::BITS);
        let inside = words.map(|word| {
            let below = |column: u32| match column.saturating_sub(word * u64::BITS) {
                bits @ 0..u64::BITS => (1 << bits) - 1,
                _ => u64::MAX,
            };
            self.unclaimed[word as usize] & below(end) & !below(first)
        });
        inside.map(u64::count_ones).sum()
    }
}

/// The word of a column, and its bit there.
fn place_of(column: u32) -> (usize, u64) {
    ((column / u64::BITS) as usize, 1 << (column % u64::BITS))
}
