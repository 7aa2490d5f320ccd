//! Lottery scheduling as an exponential race, on stride scheduling's queue.
//!
//! When each client's next pass lies an exponentially distributed number of
//! its strides ahead, the smallest pass is client `i`'s with probability
//! `t_i / T`, whatever happened before: a lottery (1994, 2). The exponential
//! distribution has no memory: what remains of a wait is distributed like a
//! whole one. So scaling what remains when tickets change, and keeping it
//! while a client is away, give exactly the new lottery's chances. The factor
//! `used / quantum` is the compensation ticket (1994, 3.4): a client that
//! used a fraction `f` of its quantum waits as if it had `1 / f` times its
//! tickets until its next turn.
//!
//! Two things differ from stride scheduling besides that one multiplication.
//! The present moment of the race is the latest winner's pass, so that is the
//! global pass here: the smooth one would drift away from it like a random
//! walk, and a client that joins would win too early or too late. And a client
//! that was taken while others won starts its next wait at the present moment.

use alloc::vec::Vec;

use rand_core::Rng;

use super::ClientIndex;
use super::race_exponential::{FRACTION_BITS, minus_ln};
use super::stride::{PassPolicy, Wait};
use super::stride_service::MAX_SERVICE;

/// The race's wait: the service used, times a random number of exponential
/// distribution and mean 1.
#[derive(Clone, Debug)]
pub struct Exponential<R> {
    generator: R,
    /// By client, of turns that are charged in pieces.
    pieces: Vec<Pieces>,
}

/// A turn that is charged in pieces: they have one chance.
#[derive(Clone, Copy, Default, Debug)]
struct Pieces {
    factor: u64,
    /// Of all pieces so far.
    service: u64,
}

impl<R: Rng> Wait for Exponential<R> {
    const GLOBAL_FOLLOWS_WINNER: bool = true;
    const IS_EXACT: bool = false;

    #[inline]
    fn wait(&mut self, service: u64) -> u64 {
        let factor = minus_ln(self.generator.next_u64());
        scaled(service, factor)
    }

    fn wait_in_pieces(&mut self, client: ClientIndex, begins: bool, service: u64) -> u64 {
        let index = client.0 as usize;
        if index >= self.pieces.len() {
            self.pieces.resize(index + 1, Pieces::default());
        }
        let pieces = &mut self.pieces[index];
        if begins || pieces.factor == 0 {
            *pieces = Pieces {
                factor: minus_ln(self.generator.next_u64()),
                service: 0,
            };
        }
        let before = pieces.service;
        pieces.service = before.saturating_add(service);
        scaled(pieces.service, pieces.factor) - scaled(before, pieces.factor)
    }
}

/// The service multiplied by the chance.
#[inline]
fn scaled(service: u64, factor: u64) -> u64 {
    let wait = (u128::from(service) * u128::from(factor)) >> FRACTION_BITS;
    wait.min(u128::from(MAX_SERVICE)) as u64
}

/// Lottery scheduling as a race (1994, 2; 1995, 2 for the queue). The
/// generator is drawn from once a charge and once when a client first joins.
pub type Race<R> = PassPolicy<Exponential<R>>;

impl<R: Rng> Race<R> {
    /// A race without clients that draws its numbers from `generator`.
    pub fn new(generator: R) -> Self {
        Self::starting_at(generator, 0)
    }

    /// A race that starts at `pass` instead of 0. Chances do not depend on
    /// it; tests of wrap-around start near the end.
    pub fn starting_at(generator: R, pass: u64) -> Self {
        let pieces = Vec::new();
        Self::with_wait(Exponential { generator, pieces }, pass)
    }
}
