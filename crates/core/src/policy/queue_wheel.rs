//! Clients whose turn comes later, in buckets by the digits of their pass.
//!
//! A wheel stands at a position. Each entry is in a bucket named by the
//! highest digit in which its pass differs from the position, and by its value
//! there: the later its turn, the wider the bucket. When the turn of a wide
//! bucket comes the wheel moves to its beginning, where its entries differ in
//! lower digits, and are parted among narrower buckets. What is short enough
//! to be sorted at once goes to the front.

use alloc::boxed::Box;
use alloc::vec::Vec;

use super::queue::Entry;
use super::queue_chunks::{CHUNK, Chunks, Run};

const DIGIT_BITS: u32 = 6;
const DIGITS: usize = 1 << DIGIT_BITS;
const LEVELS: usize = u64::BITS.div_ceil(DIGIT_BITS) as usize;
/// Up to this length a bucket is sorted as a whole.
const SORTED_AT_ONCE: usize = 256;
/// The front is filled to this length.
const FRONT_LENGTH: usize = 32;

/// Entries of one digit.
#[derive(Clone, Copy, Debug)]
struct Bucket {
    run: Run,
    /// Whether the entries are in order.
    sorted: bool,
}

impl Bucket {
    const EMPTY: Self = Self {
        run: Run::EMPTY,
        sorted: true,
    };

    /// The latest entry of a bucket that has one.
    fn last(&self) -> Entry {
        self.run.last().expect("an occupied bucket holds something")
    }
}

/// Entries that are not before `limit`.
#[derive(Clone, Debug)]
pub(super) struct Wheel {
    /// No entry is before it.
    position: u64,
    /// Not before `position`.
    limit: Entry,
    len: usize,
    /// Bit by level: whether any bucket is occupied.
    occupied_levels: u16,
    /// By level, bit by digit: whether the bucket is occupied.
    occupied: [u64; LEVELS],
    buckets: Box<[[Bucket; DIGITS]; LEVELS]>,
}

impl Wheel {
    pub(super) fn starting_at(position: u64) -> Self {
        Self {
            position,
            limit: Entry::first_at(position),
            len: 0,
            occupied_levels: 0,
            occupied: [0; LEVELS],
            buckets: Box::new([[Bucket::EMPTY; DIGITS]; LEVELS]),
        }
    }

    /// Drops all entries; those to come are not before `position`.
    pub(super) fn restart_at(&mut self, position: u64, chunks: &mut Chunks) {
        while self.occupied_levels != 0 {
            let (level, digit) = self.first_bucket();
            chunks.release(self.detach(level, digit).run);
        }
        self.position = position;
        self.limit = Entry::first_at(position);
        self.len = 0;
    }

    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Entries before this one belong elsewhere.
    #[inline]
    pub(super) fn limit(&self) -> Entry {
        self.limit
    }

    /// Adds an entry that is not before `limit`.
    #[inline]
    pub(super) fn insert(&mut self, entry: Entry, chunks: &mut Chunks) {
        self.len += 1;
        self.file(entry, chunks);
    }

    /// Puts an entry into its bucket.
    #[inline]
    fn file(&mut self, entry: Entry, chunks: &mut Chunks) {
        let level = ((entry.pass ^ self.position) | 1).ilog2() / DIGIT_BITS;
        let digit = (entry.pass >> (level * DIGIT_BITS)) as usize % DIGITS;
        let level = level as usize;
        let bucket = &mut self.buckets[level][digit];
        match bucket.run.last() {
            Some(last) => bucket.sorted &= last.is_before(entry),
            None => {
                self.occupied_levels |= 1 << level;
                self.occupied[level] |= 1 << digit;
            }
        }
        chunks.push(&mut bucket.run, entry);
    }

    /// Moves the entries whose turn comes first to the end of a list, in
    /// order, until that is filled or nothing is left.
    pub(super) fn pour_into(&mut self, front: &mut Vec<Entry>, chunks: &mut Chunks) {
        while front.len() < FRONT_LENGTH && self.len > 0 {
            let (level, digit) = self.first_bucket();
            let bucket = &mut self.buckets[level][digit];
            if bucket.sorted && bucket.run.len() > CHUNK {
                chunks.pour(&mut bucket.run, front);
                self.len -= CHUNK;
                self.limit = chunks.get(&bucket.run, 0).expect("there are more");
                continue;
            }
            let mut bucket = self.detach(level, digit);
            let width_less_one = (1 << (level as u32 * DIGIT_BITS)) - 1;
            let last = bucket.last();
            self.position = last.pass & !width_less_one;
            if level > 0 && bucket.run.len() > SORTED_AT_ONCE {
                self.part(bucket.run, chunks);
                continue;
            }
            self.len -= bucket.run.len();
            self.limit = Entry::first_at((last.pass | width_less_one).wrapping_add(1));
            let start = front.len();
            while bucket.run.len() > 0 {
                chunks.pour(&mut bucket.run, front);
            }
            if !bucket.sorted {
                front[start..].sort_unstable();
            }
        }
        if self.len == 0 && front.len() < FRONT_LENGTH {
            self.limit.pass = self.limit.pass.wrapping_add(FAR);
        }
    }

    /// Parts the entries of a bucket among narrower ones.
    fn part(&mut self, mut run: Run, chunks: &mut Chunks) {
        while let Some(entry) = chunks.pop(&mut run) {
            self.file(entry, chunks);
        }
    }

    /// The bucket whose turn comes first, where there is any. The digits of a
    /// level begin at that of the position, and at the highest level wrap
    /// around.
    fn first_bucket(&self) -> (usize, usize) {
        let level = self.occupied_levels.trailing_zeros();
        let here = (self.position >> (level * DIGIT_BITS)) % DIGITS as u64;
        let occupied = self.occupied[level as usize];
        let ahead = occupied & (u64::MAX << here);
        let digit = if ahead != 0 { ahead } else { occupied }.trailing_zeros();
        (level as usize, digit as usize)
    }

    fn detach(&mut self, level: usize, digit: usize) -> Bucket {
        self.occupied[level] &= !(1 << digit);
        if self.occupied[level] == 0 {
            self.occupied_levels &= !(1 << level);
        }
        core::mem::replace(&mut self.buckets[level][digit], Bucket::EMPTY)
    }
}

/// The limit of a wheel without entries is so far ahead that few get to it.
const FAR: u64 = 1 << 61;
