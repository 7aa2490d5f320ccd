//! What happens when: a queue of events in the order of their times, and among
//! equal times in the order in which they were put in.
//!
//! Time never goes back, so this is a radix heap. An event waits in the bucket
//! of the highest bit in which its time differs from the present:
//!
//! ```text
//!   bucket 0: now | 1: differs in bit 0 | 2: in bit 1 | ... | 64: in bit 63
//! ```
//!
//! When bucket 0 is empty, the earliest time of the lowest bucket that is not
//! becomes the present, and that bucket's events move to lower ones. Two
//! events of the same time are always in the same bucket, one behind the other
//! as they were put in, so no sequence number is kept.
//!
//! Cost: an event moves down at most once a bit, in long runs through memory;
//! in practice O(1) and no cache miss of its own. Allocates only while a
//! bucket grows beyond what it ever held.

/// See the module.
#[derive(Debug)]
pub struct EventQueue<E> {
    /// The present: no event is earlier.
    now: u64,
    /// By highest differing bit, see the module.
    buckets: [Vec<(u64, E)>; BUCKETS],
    /// Events of bucket 0 that were taken out already.
    taken: usize,
    /// Bit `b` is set exactly if bucket `b + 1` holds something.
    occupied: u64,
}

const BUCKETS: usize = 65;
/// A bucket that becomes the lowest with so few events: they are near.
const NEAR: usize = 64;
/// With so few they are next.
const NEAREST: usize = 8;

impl<E> Default for EventQueue<E> {
    fn default() -> Self {
        Self {
            now: 0,
            buckets: [const { Vec::new() }; BUCKETS],
            taken: 0,
            occupied: 0,
        }
    }
}

impl<E: Copy> EventQueue<E> {
    /// An empty queue at time zero.
    pub fn new() -> Self {
        Self::default()
    }

    /// Puts an event in, which is not in the past.
    #[inline]
    pub fn push(&mut self, time: u64, event: E) {
        debug_assert!(time >= self.now);
        let bucket = bucket_of(time, self.now);
        if bucket > 0 {
            self.occupied |= 1 << (bucket - 1);
        }
        self.buckets[bucket].push((time, event));
    }

    /// Whether there is an event of the present.
    pub fn has_present(&self) -> bool {
        self.taken < self.buckets[0].len()
    }

    /// Takes the next event of the present out.
    #[inline]
    pub fn pop(&mut self) -> Option<E> {
        let (_, event) = *self.buckets[0].get(self.taken)?;
        self.taken += 1;
        Some(event)
    }

    /// Goes to the time of the next event, unless it is after `end` or there
    /// is none. Events of the present must have been taken out. `soon` is told
    /// of events that are near, some of them several times; of the nearest
    /// with true.
    #[inline]
    pub fn advance(&mut self, end: u64, soon: impl Fn(E, bool)) -> Option<u64> {
        debug_assert_eq!(self.taken, self.buckets[0].len());
        self.buckets[0].clear();
        self.taken = 0;
        if self.occupied == 0 {
            return None;
        }
        let bucket = self.occupied.trailing_zeros() as usize + 1;
        let mut events = core::mem::take(&mut self.buckets[bucket]);
        let earliest = events.iter().map(|event| event.0).min();
        let earliest = earliest.expect("an occupied bucket holds something");
        if earliest <= end {
            self.now = earliest;
            self.occupied &= self.occupied - 1;
            let nearest = events.len() <= NEAREST;
            if events.len() <= NEAR {
                events.iter().for_each(|(_, event)| soon(*event, nearest));
            }
            for (time, event) in events.drain(..) {
                self.push(time, event);
            }
        }
        self.buckets[bucket] = events;
        (earliest <= end).then_some(earliest)
    }
}

#[inline]
fn bucket_of(time: u64, now: u64) -> usize {
    (u64::BITS - (time ^ now).leading_zeros()) as usize
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    #[test]
    fn nothing_comes_out_of_an_empty_queue() {
        let mut queue = EventQueue::<u8>::new();
        assert_eq!(queue.pop(), None);
        assert_eq!(queue.advance(u64::MAX, |_, _| ()), None);
    }

    #[test]
    fn an_event_after_the_end_stays() {
        let mut queue = EventQueue::new();
        queue.push(10, 'a');
        assert_eq!(queue.advance(9, |_, _| ()), None);
        assert_eq!(queue.pop(), None);
        queue.push(7, 'b');
        assert_eq!(queue.advance(9, |_, _| ()), Some(7));
        assert_eq!(queue.pop(), Some('b'));
        assert_eq!(queue.advance(10, |_, _| ()), Some(10));
        assert_eq!(queue.pop(), Some('a'));
        assert_eq!(queue.advance(u64::MAX, |_, _| ()), None);
    }

    proptest! {
        #![proptest_config(ProptestConfig {
            failure_persistence: None,
            rng_seed: proptest::test_runner::RngSeed::Fixed(1994),
            ..ProptestConfig::default()
        })]

        /// The model is a sorted map from (time, sequence).
        #[test]
        fn events_come_out_by_time_then_sequence(
            operations in prop::collection::vec(
                prop::option::weighted(0.6, prop_oneof![0u64..4, 0u64..1000, any::<u64>()]), 1..400)
        ) {
            let mut queue = EventQueue::new();
            let mut model = BTreeMap::new();
            let mut now = 0u64;
            for (sequence, operation) in operations.into_iter().enumerate() {
                match operation {
                    Some(delay) => {
                        let time = now.saturating_add(delay);
                        queue.push(time, sequence);
                        model.insert((time, sequence), sequence);
                    }
                    None => {
                        let event = queue.pop().or_else(|| {
                            queue.advance(u64::MAX, |_, _| ()).and_then(|time| {
                                now = time;
                                queue.pop()
                            })
                        });
                        let expected = model.pop_first();
                        prop_assert_eq!(event, expected.map(|(_, event)| event));
                        if let Some(((time, _), _)) = expected {
                            prop_assert_eq!(now, time);
                        }
                    }
                }
            }
        }
    }
}
