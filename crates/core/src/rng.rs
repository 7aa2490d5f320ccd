//! Random numbers for lotteries (1994, 4.1).
//!
//! Two generators: [`ParkMiller`], the paper's own, for repeating its
//! experiments, and [`Xoshiro256PlusPlus`], fast and with a long period, for
//! everything else. Both are seedable; neither is fit for secrets.

use core::convert::Infallible;

pub use rand_core::{Rng, SeedableRng};
use rand_core::{TryRng, utils};
pub use rand_xoshiro::Xoshiro256PlusPlus;

/// The Park-Miller generator, `S' = 16807 * S mod (2^31 - 1)`, computed as the
/// paper's assembly does (1994, Appendix A).
///
/// It has 2^31 - 2 states and visits them all. A number built from it takes at
/// most as many values: with more tickets than that, some never win.
///
/// [`ParkMiller::step`] gives the paper's values, 1 to 2^31 - 2. Their number
/// is not a power of two, so bits cut from them would be biased. The [`Rng`]
/// side therefore keeps only steps whose value less one is below 2^30 (one in
/// two), which leaves 30 uniform bits. A word takes its highest 30 bits from
/// one such step, the next 30 from the one after, and so on: the high bits,
/// which decide a lottery, come whole from one step, because within successive
/// steps the second is all but determined by the first.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ParkMiller {
    /// From 1 to `MODULUS - 1`: zero and `MODULUS` are fixed points.
    state: u32,
}

/// A seed on which the Park-Miller generator would never move.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{0} cannot seed the Park-Miller generator: give a number from 1 to 2147483646")]
pub struct InvalidSeed(
    /// The seed refused.
    pub u32,
);

impl ParkMiller {
    /// The multiplier, `A` in the paper.
    pub const MULTIPLIER: u32 = 16_807;
    /// The modulus, 2^31 - 1, a prime.
    pub const MODULUS: u32 = (1 << 31) - 1;

    /// Uniform bits in one accepted step.
    const STEP_BITS: u32 = 30;

    /// A generator whose state is `seed`.
    ///
    /// # Errors
    /// [`InvalidSeed`] unless `seed` is from 1 to 2^31 - 2.
    pub fn new(seed: u32) -> Result<Self, InvalidSeed> {
        if seed == 0 || seed >= Self::MODULUS {
            return Err(InvalidSeed(seed));
        }
        Ok(ParkMiller { state: seed })
    }

    /// The next value of the paper's `fastrand`, from 1 to 2^31 - 2.
    ///
    /// `A * S = P * 2^31 + Q`, and 2^31 is 1 modulo 2^31 - 1, so `S' = P + Q`,
    /// less 2^31 - 1 if that overflows 31 bits (clear bit 31, add one).
    #[inline]
    pub fn step(&mut self) -> u32 {
        let product = u64::from(Self::MULTIPLIER) * u64::from(self.state);
        let high = (product >> 31) as u32;
        let low = product as u32 & Self::MODULUS;
        let mut next = high + low;
        if next > Self::MODULUS {
            next = (next & Self::MODULUS) + 1;
        }
        self.state = next;
        next
    }

    /// 30 uniform bits; two steps on average.
    fn bits(&mut self) -> u32 {
        loop {
            let value = self.step() - 1;
            if value < 1 << Self::STEP_BITS {
                return value;
            }
        }
    }
}

impl TryRng for ParkMiller {
    type Error = Infallible;

    fn try_next_u32(&mut self) -> Result<u32, Infallible> {
        let high = self.bits() << 2;
        Ok(high | self.bits() >> 28)
    }

    fn try_next_u64(&mut self) -> Result<u64, Infallible> {
        let high = u64::from(self.bits()) << 34;
        let middle = u64::from(self.bits()) << 4;
        Ok(high | middle | u64::from(self.bits()) >> 26)
    }

    fn try_fill_bytes(&mut self, destination: &mut [u8]) -> Result<(), Infallible> {
        utils::fill_bytes_via_next_word(destination, || self.try_next_u64())
    }
}

impl SeedableRng for ParkMiller {
    type Seed = [u8; 4];

    /// The state is the seed, little-endian, modulo 2^31 - 1; where that is
    /// zero, which the generator cannot use, it is 1.
    fn from_seed(seed: [u8; 4]) -> Self {
        let state = u32::from_le_bytes(seed) % Self::MODULUS;
        ParkMiller {
            state: state.max(1),
        }
    }
}

/// A number below `bound`, each equally likely, without bias.
///
/// One multiplication of a 64-bit draw by `bound`; the draws that would make
/// some results likelier are thrown away (Lemire, *Fast Random Integer
/// Generation in an Interval*, 2019), fewer than one in 2^64 / `bound`.
///
/// # Panics
/// If `bound` is zero.
#[inline]
pub fn below<R: Rng + ?Sized>(rng: &mut R, bound: u64) -> u64 {
    below_of(|| rng.next_u64(), bound)
}

/// As [`below`], from a source of uniform words.
#[inline]
pub(crate) fn below_of(mut words: impl FnMut() -> u64, bound: u64) -> u64 {
    assert!(bound != 0, "nothing lies below zero");
    let mut product = u128::from(words()) * u128::from(bound);
    if (product as u64) < bound {
        let excess = bound.wrapping_neg() % bound;
        while (product as u64) < excess {
            product = u128::from(words()) * u128::from(bound);
        }
    }
    (product >> 64) as u64
}

/// As [`below`], for bounds that may not fit 64 bits.
///
/// A bound past 64 bits costs fewer than four 64-bit draws on average: as many
/// bits as the bound has, drawn again until they are below it.
///
/// # Panics
/// If `bound` is zero.
#[inline]
pub fn below_wide<R: Rng + ?Sized>(rng: &mut R, bound: u128) -> u128 {
    match u64::try_from(bound) {
        Ok(bound) => u128::from(below(rng, bound)),
        Err(_) => loop {
            let bits = u128::from(rng.next_u64()) << 64 | u128::from(rng.next_u64());
            let draw = bits >> bound.leading_zeros();
            if draw < bound {
                return draw;
            }
        },
    }
}
