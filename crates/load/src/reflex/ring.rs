//! A ring of threads with a token.

use crate::compute::Compute;
use std::io::{self, PipeReader, PipeWriter, Read as _, Write as _, pipe};
use std::ops::AddAssign;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::yield_now;

use prorata_core::rng::{Rng as _, SeedableRng as _, Xoshiro256PlusPlus};

/// A thread's place in its ring.
#[derive(Debug)]
pub struct Stop {
    /// From 0.
    pub number: u64,
    from_before: PipeReader,
    to_next: PipeWriter,
}

/// The rounds of a thread.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Tally {
    pub rounds: u64,
    /// Of these, ended by a yield.
    pub yields: u64,
    /// Of these, ended by passing the token on.
    pub passes: u64,
}

impl AddAssign for Tally {
    fn add_assign(&mut self, other: Self) {
        self.rounds += other.rounds;
        self.yields += other.yields;
        self.passes += other.passes;
    }
}

impl Stop {
    /// A ring of so many threads. A token for so many rounds waits before the first.
    pub fn ring(threads: u64, rounds: u64) -> io::Result<Vec<Self>> {
        let pipes: Vec<_> = (0..threads).map(|_| pipe()).collect::<Result<_, _>>()?;
        let (from_before, mut to_next): (Vec<_>, Vec<_>) = pipes.into_iter().unzip();
        to_next[0].write_all(&rounds.to_le_bytes())?;
        // Each thread writes to where its successor reads.
        to_next.rotate_left(1);
        let ends = from_before.into_iter().zip(to_next).zip(0..);
        let stops = ends.map(|((from_before, to_next), number)| Self {
            number,
            from_before,
            to_next,
        });
        Ok(stops.collect())
    }

    /// Performs rounds whenever the token comes, until it comes no more.
    pub fn perform(
        &mut self,
        yield_probability: f64,
        seed: u64,
        compute: Compute,
        done: &AtomicU64,
        stopped: &AtomicBool,
    ) -> io::Result<Tally> {
        let mut chance = Xoshiro256PlusPlus::seed_from_u64(seed);
        let mut yields = || ((chance.next_u64() >> 11) as f64) < yield_probability * TWO_TO_53;
        let mut tally = Tally::default();
        while let Some(mut left) = self.token()? {
            let before = tally.rounds;
            loop {
                compute.perform();
                left -= 1;
                tally.rounds += 1;
                if left == 0 || stopped.load(Ordering::Relaxed) || !yields() {
                    break;
                }
                tally.yields += 1;
                yield_now();
            }
            done.fetch_add(tally.rounds - before, Ordering::Relaxed);
            if left == 0 || stopped.load(Ordering::Relaxed) {
                break;
            }
            self.to_next.write_all(&left.to_le_bytes())?;
            tally.passes += 1;
        }
        Ok(tally)
    }

    /// Waits for the token. Returns the rounds left to it, or none after its end.
    fn token(&mut self) -> io::Result<Option<u64>> {
        let mut token = [0; size_of::<u64>()];
        match self.from_before.read_exact(&mut token) {
            Ok(()) => Ok(Some(u64::from_le_bytes(token))),
            // A token is written at once, so a reader never sees half of it.
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(None),
            Err(error) => Err(error),
        }
    }
}

/// Chances are drawn as so many equal parts.
const TWO_TO_53: f64 = (1_u64 << 53) as f64;
