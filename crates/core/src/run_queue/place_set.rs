//! Some places of a pool: those that a task may run on which may not run
//! everywhere.

use alloc::vec;
use alloc::vec::Vec;

/// A set of places, one bit each.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PlaceSet(Vec<u64>);

impl PlaceSet {
    /// Those of `some` that are below `places`. Allocates.
    pub fn new(places: u32, some: impl IntoIterator<Item = u32>) -> Self {
        let mut words = vec![0; places.div_ceil(u64::BITS) as usize];
        for place in some.into_iter().filter(|&place| place < places) {
            words[(place / u64::BITS) as usize] |= 1 << (place % u64::BITS);
        }
        Self(words)
    }

    /// Whether a place is one of them.
    pub fn contains(&self, place: u32) -> bool {
        let word = self.0.get((place / u64::BITS) as usize);
        word.is_some_and(|word| word >> (place % u64::BITS) & 1 == 1)
    }

    /// All of them, in order.
    pub fn iter(&self) -> impl Iterator<Item = u32> {
        set_bits(&self.0)
    }

    /// The first and the last of those from `start` up and below `end`, of which
    /// there is one place at least.
    pub(super) fn ends(&self, start: u32, end: u32) -> Option<(u32, u32)> {
        let words = (0..).zip(&self.0).take(end.div_ceil(u64::BITS) as usize);
        let ends = words
            .skip((start / u64::BITS) as usize)
            .filter_map(|(number, word)| {
                let base = number * u64::BITS;
                let from = u64::MAX << start.saturating_sub(base);
                let upto = u64::MAX >> (u64::BITS - (end - base).min(u64::BITS));
                let bits = word & from & upto;
                let last = bits.checked_ilog2()?;
                Some((base + bits.trailing_zeros(), base + last))
            });
        ends.reduce(|(first, _), (_, last)| (first, last))
    }
}

/// The numbers of the bits that are set, in order.
pub(super) fn set_bits(words: &[u64]) -> impl Iterator<Item = u32> {
    let words = (0..).step_by(u64::BITS as usize).zip(words);
    words.flat_map(|(base, &word)| {
        let next = |&left: &u64| Some(left & left.wrapping_sub(1));
        let left = core::iter::successors(Some(word), next);
        let left = left.take_while(|&left| left != 0);
        left.map(move |left| base + left.trailing_zeros())
    })
}
