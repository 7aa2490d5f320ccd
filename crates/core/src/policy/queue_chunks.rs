//! Memory of long queues: entries in chunks that all queues take from one pool.
//!
//! Entries are written one after the other into the chunks of a run and read
//! one after the other, so that the memory of a long queue is touched in few
//! places at a time; and what one queue has done with, the next one gets.

use alloc::vec::Vec;

use super::ClientIndex;
use super::queue::Entry;

/// Entries in a chunk.
pub(super) const CHUNK: usize = 64;
/// No chunk.
const NONE: u32 = u32::MAX;
/// Fills chunks where nothing is.
const NOBODY: Entry = Entry {
    pass: 0,
    client: ClientIndex(u32::MAX),
};

/// Entries in the order of their coming. Places count all entries of all
/// chunks from 0.
#[derive(Clone, Copy, Debug)]
pub(super) struct Run {
    /// The place of the first entry, if there is any.
    begin: u32,
    /// One past that of the latest.
    end: u32,
    len: u32,
    /// The latest entry, if there is any.
    last: Entry,
}

impl Run {
    pub(super) const EMPTY: Self = Self {
        begin: 0,
        end: 0,
        len: 0,
        last: NOBODY,
    };

    #[inline]
    pub(super) fn len(&self) -> usize {
        self.len as usize
    }

    /// The latest entry.
    #[inline]
    pub(super) fn last(&self) -> Option<Entry> {
        (self.len > 0).then_some(self.last)
    }
}

/// The pool.
#[derive(Clone, Default, Debug)]
pub(super) struct Chunks {
    entries: Vec<[Entry; CHUNK]>,
    /// By chunk: the next one of the same run, or of the free ones.
    next: Vec<u32>,
    /// A free chunk, if there is any.
    free: Option<u32>,
}

impl Chunks {
    /// Adds an entry to a run. Allocates when there are more entries in all
    /// runs than ever before.
    #[inline]
    pub(super) fn push(&mut self, run: &mut Run, entry: Entry) {
        if run.len == 0 || (run.end as usize).is_multiple_of(CHUNK) {
            self.lengthen(run);
        }
        self.entries[run.end as usize / CHUNK][run.end as usize % CHUNK] = entry;
        run.last = entry;
        run.end += 1;
        run.len += 1;
    }

    fn lengthen(&mut self, run: &mut Run) {
        let chunk = self.acquire();
        if run.len == 0 {
            run.begin = chunk * CHUNK as u32;
        } else {
            self.next[run.end as usize / CHUNK - 1] = chunk;
        }
        run.end = chunk * CHUNK as u32;
    }

    fn acquire(&mut self) -> u32 {
        if let Some(chunk) = self.free {
            let next = self.next[chunk as usize];
            self.free = (next != NONE).then_some(next);
            return chunk;
        }
        if self.entries.len() == self.entries.capacity() {
            // Doubling would leave up to half of much memory unused.
            let more = self.entries.len() / 8 + 4;
            self.entries.reserve_exact(more);
            self.next.reserve_exact(more);
        }
        self.entries.push([NOBODY; CHUNK]);
        self.next.push(NONE);
        (self.entries.len() - 1) as u32
    }

    /// The entry that comes after so many others, at most [`CHUNK`].
    #[inline]
    pub(super) fn get(&self, run: &Run, others: usize) -> Option<Entry> {
        if others >= run.len() {
            return None;
        }
        let mut chunk = run.begin as usize / CHUNK;
        let mut offset = run.begin as usize % CHUNK + others;
        if offset >= CHUNK {
            chunk = self.next[chunk] as usize;
            offset -= CHUNK;
        }
        Some(self.entries[chunk][offset])
    }

    /// Takes the first entry out of a run.
    #[inline]
    pub(super) fn pop(&mut self, run: &mut Run) -> Option<Entry> {
        if run.len == 0 {
            return None;
        }
        let (chunk, offset) = (run.begin as usize / CHUNK, run.begin as usize % CHUNK);
        let entry = self.entries[chunk][offset];
        if run.len == 1 || offset + 1 == CHUNK {
            self.shorten(run, 1);
        } else {
            run.begin += 1;
            run.len -= 1;
        }
        Some(entry)
    }

    /// Moves the entries of a run's first chunk to the end of a list.
    pub(super) fn pour(&mut self, run: &mut Run, list: &mut Vec<Entry>) {
        let (chunk, offset) = (run.begin as usize / CHUNK, run.begin as usize % CHUNK);
        let len = run.len().min(CHUNK - offset);
        list.extend_from_slice(&self.entries[chunk][offset..offset + len]);
        self.shorten(run, len as u32);
    }

    /// Drops all entries of a run.
    pub(super) fn release(&mut self, mut run: Run) {
        while run.len > 0 {
            let in_chunk = run.len.min(CHUNK as u32 - run.begin % CHUNK as u32);
            self.shorten(&mut run, in_chunk);
        }
    }

    /// Takes the first chunk away from a run, with its `len` entries.
    fn shorten(&mut self, run: &mut Run, len: u32) {
        let chunk = run.begin / CHUNK as u32;
        run.len -= len;
        if run.len > 0 {
            run.begin = self.next[chunk as usize] * CHUNK as u32;
        }
        self.next[chunk as usize] = self.free.unwrap_or(NONE);
        self.free = Some(chunk);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::collections::VecDeque;
    use proptest::prelude::*;

    fn entry(number: u32) -> Entry {
        Entry {
            pass: number.into(),
            client: ClientIndex(number),
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig {
            failure_persistence: None,
            rng_seed: proptest::test_runner::RngSeed::Fixed(1995),
            ..ProptestConfig::default()
        })]

        /// Some runs side by side, against lists.
        #[test]
        fn runs_are_queues(
            operations in prop::collection::vec((0usize..3, 0u8..8, 1u32..200), 1..200)
        ) {
            let mut chunks = Chunks::default();
            let mut runs = [Run::EMPTY; 3];
            let mut models: [VecDeque<Entry>; 3] = Default::default();
            let mut pushed = 0;
            let mut most = 0;
            for (which, operation, count) in operations {
                let (run, model) = (&mut runs[which], &mut models[which]);
                match operation {
                    0 => {
                        chunks.release(core::mem::replace(run, Run::EMPTY));
                        model.clear();
                    }
                    1 => {
                        let mut list = Vec::new();
                        if run.len() > 0 {
                            chunks.pour(run, &mut list);
                        }
                        prop_assert!(model.is_empty() || !list.is_empty());
                        for entry in list {
                            prop_assert_eq!(Some(entry), model.pop_front());
                        }
                    }
                    2..4 => {
                        for _ in 0..count {
                            prop_assert_eq!(chunks.pop(run), model.pop_front());
                        }
                    }
                    _ => {
                        for _ in 0..count {
                            chunks.push(run, entry(pushed));
                            model.push_back(entry(pushed));
                            pushed += 1;
                        }
                    }
                }
                for (run, model) in runs.iter().zip(&models) {
                    prop_assert_eq!(run.len(), model.len());
                    prop_assert_eq!(run.last(), model.back().copied());
                    for others in [0, 1, 17, CHUNK] {
                        prop_assert_eq!(chunks.get(run, others), model.get(others).copied());
                    }
                }
                let all: usize = models.iter().map(VecDeque::len).sum();
                most = most.max(all);
            }
            // Each run's first and last chunk may be all but empty.
            prop_assert!(chunks.entries.len() <= most / CHUNK + 2 * runs.len());
        }
    }
}
