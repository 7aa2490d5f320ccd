//! The claimed columns of one row, as bits under a summary: neighbours are found in constant time.

use alloc::vec;
use alloc::vec::Vec;

/// A set of columns; at most 4,096, so that one word sums up all others.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct RowSet {
    words: Vec<u64>,
    summary: u64,
}

impl RowSet {
    pub(crate) fn new(columns: u32) -> Self {
        Self {
            words: vec![0; columns.div_ceil(64) as usize],
            summary: 0,
        }
    }

    pub(crate) fn set(&mut self, column: u32, present: bool) {
        let (word, bit) = (column as usize / 64, 1u64 << (column % 64));
        if present {
            self.words[word] |= bit;
        } else {
            self.words[word] &= !bit;
        }
        let sum = 1u64 << word;
        if self.words[word] == 0 {
            self.summary &= !sum;
        } else {
            self.summary |= sum;
        }
    }

    pub(crate) fn contains(&self, column: u32) -> bool {
        self.words[column as usize / 64] >> (column % 64) & 1 == 1
    }

    /// The first column at or after `from`, round the end.
    pub(crate) fn next(&self, from: u32) -> Option<u32> {
        let word = from as usize / 64;
        let here = self.words[word] & (!0 << (from % 64));
        if here != 0 {
            return Some(word as u32 * 64 + here.trailing_zeros());
        }
        let later = self.summary & (!0u64).checked_shl(word as u32 + 1).unwrap_or(0);
        let found = if later != 0 { later } else { self.summary };
        if found == 0 {
            return None;
        }
        let word = found.trailing_zeros();
        Some(word * 64 + self.words[word as usize].trailing_zeros())
    }

    /// The last column before `before`, round the end.
    pub(crate) fn previous(&self, before: u32) -> Option<u32> {
        let word = before as usize / 64;
        let here = self.words[word] & ((1u64 << (before % 64)) - 1);
        if here != 0 {
            return Some(word as u32 * 64 + 63 - here.leading_zeros());
        }
        let earlier = self.summary & ((1u64 << word) - 1);
        let found = if earlier != 0 { earlier } else { self.summary };
        if found == 0 {
            return None;
        }
        let word = 63 - found.leading_zeros();
        Some(word * 64 + 63 - self.words[word as usize].leading_zeros())
    }
}
