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
    /// The chunk that was begun first, `NONE` if there are no entries.
    first: u32,
    /// One past the latest entry, counting all entries of all chunks from 0.
    end: u32,
    len: u32,
    /// Pass of some entry, and the bits in which any other differs from it.
    pass: u64,
    spread: u64,
}

impl Bucket {
    const EMPTY: Self = Self {
        first: NONE,
        end: 0,
        len: 0,
        pass: 0,
        spread: 0,
    };

    /// Length, less one, of the smallest block of passes, aligned by a power
    /// of two, that all entries are in.
    fn block(&self) -> u64 {
        u64::MAX
            .checked_shr(self.spread.leading_zeros())
            .unwrap_or(0)
    }
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
        if bucket.len == 0 {
            bucket.pass = entry.pass;
        }
        bucket.spread |= bucket.pass ^ entry.pass;
        if bucket.end as usize % CHUNK == 0 {
            let chunk = self.acquire();
            if bucket.len == 0 {
                bucket.first = chunk;
            } else {
                self.next[bucket.end as usize / CHUNK - 1] = chunk;
            }
            bucket.end = chunk * CHUNK as u32;
        }
        self.entries[bucket.end as usize / CHUNK][bucket.end as usize % CHUNK] = entry;
        bucket.end += 1;
        bucket.len += 1;
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

    /// Takes entry by entry out of a bucket.
    #[inline]
    fn drain(&mut self, mut bucket: Bucket, mut each: impl FnMut(&mut Self, Entry)) {
        while bucket.len > 0 {
            let chunk = bucket.first as usize;
            let len = (bucket.len as usize).min(CHUNK);
            for place in 0..len {
                let entry = self.entries[chunk][place];
                each(self, entry);
            }
            bucket.len -= len as u32;
            bucket.first = self.next[chunk];
            self.release(chunk as u32);
        }
    }

    /// Moves the entries of a bucket to the end of a list.
    fn pour(&mut self, mut bucket: Bucket, list: &mut Vec<Entry>) {
        while bucket.len > 0 {
            let chunk = bucket.first as usize;
            let len = (bucket.len as usize).min(CHUNK);
            list.extend_from_slice(&self.entries[chunk][..len]);
            bucket.len -= len as u32;
            bucket.first = self.next[chunk];
            self.release(chunk as u32);
        }
    }

    fn release(&mut self, chunk: u32) {
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
    limit: u64,
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
            limit: position,
            len: 0,
            occupied_levels: 0,
            occupied: [0; LEVELS],
            buckets: Box::new([[Bucket::EMPTY; DIGITS]; LEVELS]),
            chunks: Chunks::default(),
        }
    }

    /// Drops all entries; those to come are not before `position`.
    pub(super) fn restart_at(&mut self, position: u64) {
        while let Some(bucket) = self.detach_first() {
            self.chunks.drain(bucket, |_, _| ());
        }
        self.position = position;
        self.limit = position;
        self.len = 0;
    }

    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.len == 0
    }

    #[inline]
    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// Entries before this pass belong elsewhere.
    #[inline]
    pub(super) fn limit(&self) -> u64 {
        self.limit
    }

    /// Adds an entry that is not before `limit`.
    #[inline]
    pub(super) fn insert(&mut self, entry: Entry) {
        self.len += 1;
        let (level, digit) = self.bucket_of(entry.pass);
        self.occupied_levels |= 1 << level;
        self.occupied[level] |= 1 << digit;
        self.chunks.push(&mut self.buckets[level][digit], entry);
    }

    #[inline]
    fn bucket_of(&self, pass: u64) -> (usize, usize) {
        let level = ((pass ^ self.position) | 1).ilog2() / DIGIT_BITS;
        let digit = (pass >> (level * DIGIT_BITS)) as usize % DIGITS;
        (level as usize, digit)
    }

    /// Moves the entries whose turn comes first to the end of a list, in
    /// order, until that is filled or nothing is left.
    pub(super) fn pour_into(&mut self, front: &mut Vec<Entry>) {
        while front.len() < FRONT_LENGTH {
            let Some(bucket) = self.detach_first() else {
                break;
            };
            let block = bucket.block();
            self.position = bucket.pass & !block;
            if block > 0 && bucket.len > SORTED_AT_ONCE {
                self.part(bucket);
                continue;
            }
            self.len -= bucket.len as usize;
            self.limit = (bucket.pass | block).wrapping_add(1);
            let start = front.len();
            self.chunks.pour(bucket, front);
            if block < 1 << 40 {
                front[start..].sort_unstable_by_key(|e| ((e.pass & block) << 24) | u64::from(e.client.0));
            } else {
                front[start..].sort_unstable_by_key(|e| (u128::from(e.pass & block) << 32) | u128::from(e.client.0));
            }
        }
        if self.is_empty() && front.len() < FRONT_LENGTH {
            self.limit = self.limit.wrapping_add(FAR);
        }
    }

    /// Parts the entries of a bucket among narrower ones.
    fn part(&mut self, bucket: Bucket) {
        let mut chunks = core::mem::take(&mut self.chunks);
        chunks.drain(bucket, |chunks, entry| {
            let (level, digit) = self.bucket_of(entry.pass);
            self.occupied_levels |= 1 << level;
            self.occupied[level] |= 1 << digit;
            chunks.push(&mut self.buckets[level][digit], entry);
        });
        self.chunks = chunks;
    }

    /// Takes out the bucket whose turn comes first. The digits of its level
    /// begin at that of the position, and at the highest level wrap around.
    fn detach_first(&mut self) -> Option<Bucket> {
        if self.len == 0 {
            return None;
        }
        let level = self.occupied_levels.trailing_zeros();
        let here = (self.position >> (level * DIGIT_BITS)) as u32 % DIGITS as u32;
        let occupied = &mut self.occupied[level as usize];
        let ahead = *occupied & (u64::MAX << here);
        let digit = if ahead != 0 { ahead } else { *occupied }.trailing_zeros();
        *occupied &= !(1 << digit);
        if *occupied == 0 {
            self.occupied_levels &= !(1 << level);
        }
        let bucket = &mut self.buckets[level as usize][digit as usize];
        Some(core::mem::replace(bucket, Bucket::EMPTY))
    }
}

/// The limit of a wheel without entries is so far ahead that few get to it.
const FAR: u64 = 1 << 61;
