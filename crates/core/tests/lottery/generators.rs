//! The generators (1994, 4.1 and Appendix A).

use prorata_core::rng::{
    InvalidSeed, ParkMiller, Rng, SeedableRng, Xoshiro256PlusPlus, below, below_wide,
};

use crate::statistics::{ChiSquare, Sweep, tally};

/// Park and Miller's own check of an implementation.
#[test]
fn park_miller_known_vector() {
    let mut generator = ParkMiller::new(1).unwrap();
    let value = (0..10_000).map(|_| generator.step()).last();
    assert_eq!(value, Some(1_043_618_065));
}

#[test]
fn park_miller_is_the_formula() {
    for seed in [1, 2, 16_807, 1 << 30, ParkMiller::MODULUS - 1] {
        let mut generator = ParkMiller::new(seed).unwrap();
        let mut state = u64::from(seed);
        for _ in 0..10_000 {
            state = state * u64::from(ParkMiller::MULTIPLIER) % u64::from(ParkMiller::MODULUS);
            assert_eq!(u64::from(generator.step()), state);
        }
    }
}

#[test]
fn park_miller_refuses_its_fixed_points() {
    assert_eq!(ParkMiller::new(0), Err(InvalidSeed(0)));
    let modulus = ParkMiller::MODULUS;
    assert!(ParkMiller::new(modulus - 1).is_ok());
    assert_eq!(ParkMiller::new(modulus), Err(InvalidSeed(modulus)));
    assert_eq!(ParkMiller::new(u32::MAX), Err(InvalidSeed(u32::MAX)));
    assert_eq!(
        InvalidSeed(0).to_string(),
        "0 cannot seed the Park-Miller generator: give a number from 1 to 2147483646"
    );
}

#[test]
fn park_miller_from_any_bytes() {
    let from = |seed: u32| ParkMiller::from_seed(seed.to_le_bytes());
    let valid = |seed: u32| ParkMiller::new(seed).unwrap();
    assert_eq!(from(1), valid(1));
    assert_eq!(from(123_456), valid(123_456));
    assert_eq!(from(0), valid(1));
    assert_eq!(from(ParkMiller::MODULUS), valid(1));
    assert_eq!(from(ParkMiller::MODULUS + 7), valid(7));
    assert_eq!(from(u32::MAX), valid(1));
}

/// The words are uniform wherever one looks at eight of their bits.
fn words_are_uniform<R: Rng>(generator: &mut R) {
    const DRAWS: usize = 100_000;
    for shift in (0..=56).step_by(4) {
        let mut counts = vec![0; 256];
        for _ in 0..DRAWS {
            counts[(generator.next_u64() >> shift) as usize & 255] += 1;
        }
        let chi_square = ChiSquare::of(&counts, &[1.0; 256]);
        assert!(!chi_square.refuses(), "u64 at {shift}: {chi_square:?}");
    }
    for shift in (0..=24).step_by(4) {
        let mut counts = vec![0; 256];
        for _ in 0..DRAWS {
            counts[(generator.next_u32() >> shift) as usize & 255] += 1;
        }
        let chi_square = ChiSquare::of(&counts, &[1.0; 256]);
        assert!(!chi_square.refuses(), "u32 at {shift}: {chi_square:?}");
    }
    let mut bytes = vec![0; DRAWS + 3];
    generator.fill_bytes(&mut bytes);
    let mut counts = vec![0; 256];
    for byte in bytes {
        counts[usize::from(byte)] += 1;
    }
    let chi_square = ChiSquare::of(&counts, &[1.0; 256]);
    assert!(!chi_square.refuses(), "bytes: {chi_square:?}");
}

#[test]
fn both_generators_give_uniform_words() {
    for seed in [1, 2, 1994] {
        words_are_uniform(&mut ParkMiller::seed_from_u64(seed));
        words_are_uniform(&mut Xoshiro256PlusPlus::seed_from_u64(seed));
    }
}

/// A word cut together from narrower steps would leave most of these values
/// out, because a step all but determines the next.
#[test]
fn park_miller_reaches_every_value_of_twenty_bits() {
    let counts = tally(&mut ParkMiller::seed_from_u64(5), 1 << 24, 1 << 20);
    // 16 draws a value: e^-16 of 2^20 values are missed, an expected 0.1.
    assert!(counts.iter().filter(|&&count| count == 0).count() <= 3);
    let mut coarse = vec![0; 1 << 12];
    for (value, count) in counts.into_iter().enumerate() {
        coarse[value >> 8] += count;
    }
    let chi_square = ChiSquare::of(&coarse, &vec![1.0; 1 << 12]);
    assert!(!chi_square.refuses(), "{chi_square:?}");
}

#[test]
fn below_is_uniform() {
    for seed in [1, 2, 1994] {
        for bound in [2, 3, 10, 100, 1000] {
            let modern = tally(&mut Xoshiro256PlusPlus::seed_from_u64(seed), 100_000, bound);
            let park_miller = tally(&mut ParkMiller::seed_from_u64(seed), 100_000, bound);
            for counts in [modern, park_miller] {
                let chi_square = ChiSquare::of(&counts, &vec![1.0; bound as usize]);
                assert!(!chi_square.refuses(), "below {bound}: {chi_square:?}");
            }
        }
    }
}

/// A bound of two thirds of the range, where a plain remainder or product
/// would make half of the values twice as likely.
#[test]
fn below_throws_biased_draws_away() {
    let bound = u64::MAX / 3 * 2;
    let mut generator = Xoshiro256PlusPlus::seed_from_u64(9);
    let mut odd = 0;
    let mut thirds = vec![0; 3];
    for _ in 0..100_000 {
        let draw = below(&mut generator, bound);
        odd += draw % 2;
        thirds[(draw / (bound / 3 + 1)) as usize] += 1;
    }
    assert!(!ChiSquare::of(&thirds, &[1.0; 3]).refuses(), "{thirds:?}");
    let parities = [odd, 100_000 - odd];
    assert!(!ChiSquare::of(&parities, &[1.0; 2]).refuses(), "{odd}");
}

#[test]
fn below_wide_continues_below() {
    let mut narrow = Xoshiro256PlusPlus::seed_from_u64(4);
    let mut wide = narrow.clone();
    for bound in [1, 10, u64::MAX] {
        assert_eq!(
            u128::from(below(&mut narrow, bound)),
            below_wide(&mut wide, u128::from(bound))
        );
    }
    // Past 64 bits: uniform over eleven equal parts of 11 * 2^80.
    let mut counts = vec![0; 11];
    for _ in 0..100_000 {
        counts[(below_wide(&mut wide, 11 << 80) >> 80) as usize] += 1;
    }
    assert!(!ChiSquare::of(&counts, &[1.0; 11]).refuses(), "{counts:?}");
    // The edge: 2^64 takes two words.
    let edge = below_wide(&mut Sweep::new(&[1 << 63]), 1 << 64);
    assert!(edge < 1 << 64);
}

#[test]
#[should_panic(expected = "nothing lies below zero")]
fn nothing_is_below_zero() {
    below(&mut Xoshiro256PlusPlus::seed_from_u64(1), 0);
}
