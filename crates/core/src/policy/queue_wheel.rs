//! Clients whose turn comes later, in buckets by the digits of their pass.
//!
//! A wheel stands at a position. Each entry is in a bucket named by the
//! highest digit in which its pass differs from the position, and by its value
//! there: the later its turn, the wider the bucket. When the turn of a wide
//! bucket comes the wheel moves to its beginning, where its entries differ in
//! lower digits, and are parted among narrower buckets. What is short enough
//! to be sorted at once goes to the front.
//!
//! Entries are written one after the other into the chunks of their bucket and
//! read one after the other, so that the memory of a long queue is touched in
//! few places at a time.

use alloc::boxed::Box;
use alloc::vec::Vec;

use super::ClientIndex;
use super::queue::Entry;

const DIGIT_BITS: u32 = 6;
const DIGITS: usize = 1 << DIGIT_BITS;
const LEVELS: usize = u64::BITS.div_ceil(DIGIT_BITS) as usize;
/// Entries in a chunk of memory.
const CHUNK: usize = 64;
/// Up to this length a bucket is sorted as a whole.
const SORTED_AT_ONCE: u32 = 256;
/// The front is filled to this length.
const FRONT_LENGTH: usize = 32;
/// No chunk.
const NONE: u32 = u32::MAX;
/// Fills chunks where nothing is.
const NOBODY: Entry = Entry {
    pass: 0,
    client: ClientIndex(u32::MAX),
};

/// A list of chunks.
#[derive(Clone, Copy, Debug)]
struct Bucket {
    /// The chunk that was begun first, if there are entries.
    first: u32,
    /// One past the latest entry, counting all entries of all chunks from 0.
    end: u32,
    len: u32,
    /// Whether the entries are in order.
    sorted: bool,
    /// The latest entry, if there are any.
    last: Entry,
}

impl Bucket {
    const EMPTY: Self = Self {
        first: NONE,
        end: 0,
        len: 0,
        sorted: true,
        last: NOBODY,
    };
}

/// Memory for the entries of buckets.
#[derive(Clone, Default, Debug)]
struct Chunks {
    entries: Vec<[Entry; CHUNK]>,
    /// By chunk: the next one of the same bucket, or of the free ones.
    next: Vec<u32>,
    /// A free chunk, if there is any.
    free: Option<u32>,
}

impl Chunks {
    /// Adds an entry to a bucket.
    #[inline]
    fn push(&mut self, bucket: &mut Bucket, entry: Entry) {
        if bucket.len > 0 {
            bucket.sorted &= bucket.last.is_before(entry);
        }
        bucket.last = entry;
        if (bucket.end as usize).is_multiple_of(CHUNK) {
            self.lengthen(bucket);
        }
        self.entries[bucket.end as usize / CHUNK][bucket.end as usize % CHUNK] = entry;
        bucket.end += 1;
        bucket.len += 1;
    }

    fn lengthen(&mut self, bucket: &mut Bucket) {
        let chunk = self.acquire();
        if bucket.len == 0 {
            bucket.first = chunk;
        } else {
            self.next[bucket.end as usize / CHUNK - 1] = chunk;
        }
        bucket.end = chunk * CHUNK as u32;
    }

    fn acquire(&mut self) -> u32 {
        if let Some(chunk) = self.free {
            let next = self.next[chunk as usize];
            self.free = (next != NONE).then_some(next);
            return chunk;
        }
        self.entries.push([NOBODY; CHUNK]);
        self.next.push(NONE);
        (self.entries.len() - 1) as u32
    }

    /// Moves the entries of a bucket's first chunk to the end of a list.
    fn pour(&mut self, bucket: &mut Bucket, list: &mut Vec<Entry>) {
        list.extend_from_slice(self.first(bucket));
        self.shorten(bucket);
    }

    /// The entries of a bucket's first chunk.
    fn first(&self, bucket: &Bucket) -> &[Entry] {
        &self.entries[bucket.first as usize][..CHUNK.min(bucket.len as usize)]
    }

    /// Takes the first chunk away from a bucket.
    fn shorten(&mut self, bucket: &mut Bucket) {
        let chunk = bucket.first;
        bucket.len = bucket.len.saturating_sub(CHUNK as u32);
        bucket.first = self.next[chunk as usize];
        self.next[chunk as usize] = self.free.unwrap_or(NONE);
        self.free = Some(chunk);
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
    chunks: Chunks,
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
            chunks: Chunks::default(),
        }
    }

    /// Drops all entries; those to come are not before `position`.
    pub(super) fn restart_at(&mut self, position: u64) {
        while self.occupied_levels != 0 {
            let (level, digit) = self.first_bucket();
            let mut bucket = self.detach(level, digit);
            while bucket.len > 0 {
                self.chunks.shorten(&mut bucket);
            }
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
    pub(super) fn insert(&mut self, entry: Entry) {
        self.len += 1;
        self.file(entry);
    }

    /// Puts an entry into its bucket.
    #[inline]
    fn file(&mut self, entry: Entry) {
        let level = ((entry.pass ^ self.position) | 1).ilog2() / DIGIT_BITS;
        let digit = (entry.pass >> (level * DIGIT_BITS)) as usize % DIGITS;
        let level = level as usize;
        let bucket = &mut self.buckets[level][digit];
        if bucket.len == 0 {
            self.occupied_levels |= 1 << level;
            self.occupied[level] |= 1 << digit;
        }
        self.chunks.push(bucket, entry);
    }

    /// Moves the entries whose turn comes first to the end of a list, in
    /// order, until that is filled or nothing is left.
    pub(super) fn pour_into(&mut self, front: &mut Vec<Entry>) {
        while front.len() < FRONT_LENGTH && self.len > 0 {
            let (level, digit) = self.first_bucket();
            let bucket = &mut self.buckets[level][digit];
            if bucket.sorted && bucket.len > CHUNK as u32 {
                self.chunks.pour(bucket, front);
                self.len -= CHUNK;
                self.limit = self.chunks.entries[bucket.first as usize][0];
                continue;
            }
            let mut bucket = self.detach(level, digit);
            let width_less_one = (1 << (level as u32 * DIGIT_BITS)) - 1;
            self.position = bucket.last.pass & !width_less_one;
            if level > 0 && bucket.len > SORTED_AT_ONCE {
                self.part(bucket);
                continue;
            }
            self.len -= bucket.len as usize;
            self.limit = Entry::first_at((bucket.last.pass | width_less_one).wrapping_add(1));
            let start = front.len();
            while bucket.len > 0 {
                self.chunks.pour(&mut bucket, front);
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
    fn part(&mut self, mut bucket: Bucket) {
        while bucket.len > 0 {
            let chunk = bucket.first;
            let len = (bucket.len as usize).min(CHUNK);
            for place in 0..len {
                self.file(self.chunks.entries[chunk as usize][place]);
            }
            self.chunks.shorten(&mut bucket);
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
