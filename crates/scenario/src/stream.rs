//! Many streams of random numbers from one seed. Each purpose and each client has a stream
//! of its own, so that another client does not change the draws of the others.

use prorata_core::rng::{Rng, SeedableRng, Xoshiro256PlusPlus};
pub use rand_xoshiro::SplitMix64;

/// The purpose of random numbers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Purpose {
    /// The policy's lotteries; by the number of earlier policies.
    Policy = 1,
    /// Lotteries for mutexes; by mutex.
    Mutex = 2,
    /// Random tickets; by client.
    Tickets = 3,
    /// Durations; by thread, in the order of their creation.
    Durations = 4,
    /// Trials of fault mode.
    Faults = 5,
    /// Which spinning CPU gets a lock.
    Locks = 6,
}

/// A seed for stream `index` of a purpose.
pub(crate) fn split(seed: u64, purpose: Purpose, index: u64) -> u64 {
    // Each word is mixed into the state that the word before left.
    let stir = |state: u64, word: u64| SplitMix64::seed_from_u64(state ^ word).next_u64();
    stir(stir(stir(0, seed), purpose as u64), index)
}

/// A generator of high quality, 32 bytes.
pub fn stream(seed: u64, purpose: Purpose, index: u64) -> Xoshiro256PlusPlus {
    Xoshiro256PlusPlus::seed_from_u64(split(seed, purpose, index))
}

/// A generator of 8 bytes, for use where many are needed.
pub fn small_stream(seed: u64, purpose: Purpose, index: u64) -> SplitMix64 {
    SplitMix64::seed_from_u64(split(seed, purpose, index))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn streams_differ_by_seed_purpose_and_index() {
        let mut seen = BTreeSet::new();
        for seed in 0..10 {
            for purpose in [
                Purpose::Policy,
                Purpose::Mutex,
                Purpose::Tickets,
                Purpose::Durations,
                Purpose::Faults,
                Purpose::Locks,
            ] {
                for index in 0..10 {
                    assert!(seen.insert(split(seed, purpose, index)));
                }
            }
        }
    }

    #[test]
    fn streams_are_the_same_for_ever() {
        // Computed separately, in Python.
        assert_eq!(split(1, Purpose::Policy, 0), 6_301_985_355_436_268_297);
        let mut stream = small_stream(1, Purpose::Durations, 2);
        assert_eq!(stream.next_u64(), 12_835_125_697_315_198_167);
    }
}
