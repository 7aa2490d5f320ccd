//! Exponentially distributed numbers in fixed point, without floating point:
//! the same on every machine, and no more than 64-bit arithmetic, so that a
//! kernel can do it too.

/// Fractional bits of [`minus_ln`]'s result.
pub(super) const FRACTION_BITS: u32 = 40;

/// Fractional bits inside the computation.
const INNER_BITS: u32 = 56;

/// Fractional bits of the factors of products: of two numbers below 2^-6 with
/// these the product keeps within 64 bits.
const FACTOR_BITS: u32 = 36;

/// Steps that one is divided into by the table of logarithms.
const STEPS: u64 = 128;

/// `-ln(u)` for the number `u` between 0 and 1 that 64 random bits stand for,
/// in units of 2^-[`FRACTION_BITS`]: exponentially distributed with mean 1 if
/// the bits are uniform. Absolute error below 2^-36. The largest result is
/// 64 ln 2 = 44.4.
///
/// `u = (bits | 1) / 2^64` is split into `2^-shift * c * (1 + r)`, with `c` in
/// [1/2, 1] the nearest of the table's steps; four terms of its series give
/// `ln(1 + r)`, since `|r| <= 2^-7`.
#[inline]
pub(super) fn minus_ln(bits: u64) -> u64 {
    let bits = bits | 1;
    let shift = bits.leading_zeros();
    let mantissa = bits << shift;
    let step = (mantissa >> 56).div_ceil(2);
    // The difference is below half a step, 2^56, so it fits if it wraps.
    let difference = mantissa.wrapping_sub(step << 57) as i64;
    let r = difference / (2 * step) as i64;

    let short = |number: i64| number >> (INNER_BITS - FACTOR_BITS);
    let times = |a: i64, b: i64| (short(a) * short(b)) >> (2 * FACTOR_BITS - INNER_BITS);
    let square = times(r, r);
    let cube = times(square, r);
    let fourth = times(square, square);
    let series = square / 2 - cube / 3 + fourth / 4 - r;

    let table = &MINUS_LN_OF_STEP;
    let logarithm = u64::from(shift) * table[0] + table[(step - STEPS / 2) as usize];
    logarithm.saturating_add_signed(series) >> (INNER_BITS - FRACTION_BITS)
}

/// `-ln(step / STEPS)` for the steps from one half, where it is `ln 2`, to
/// one, in units of 2^-[`INNER_BITS`].
const MINUS_LN_OF_STEP: [u64; (STEPS / 2 + 1) as usize] = {
    let mut table = [0; (STEPS / 2 + 1) as usize];
    let mut index = 0;
    while index < table.len() {
        table[index] = minus_ln_of_step(STEPS / 2 + index as u64);
        index += 1;
    }
    table
};

/// By `-ln(x) = 2 artanh(z) = 2 (z + z^3 / 3 + z^5 / 5 + ...)` for
/// `z = (1 - x) / (1 + x)`, at most 1/3 here.
const fn minus_ln_of_step(step: u64) -> u64 {
    const GUARD_BITS: u32 = 8;
    let (below, above) = ((STEPS - step) as u128, (STEPS + step) as u128);
    let mut power = (below << (INNER_BITS + GUARD_BITS)) / above;
    let mut sum = 0;
    let mut exponent = 1;
    while power > 0 {
        sum += power / exponent;
        power = power * below * below / (above * above);
        exponent += 2;
    }
    ((2 * sum) >> GUARD_BITS) as u64
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use rand_core::{Rng, SeedableRng};
    use rand_xoshiro::Xoshiro256PlusPlus;

    fn error(bits: u64) -> f64 {
        let exact = -(((bits | 1) as f64).ln() - 64.0 * core::f64::consts::LN_2);
        // Near one the conversion to f64 would round; there ln(1 - x) = -x.
        let below_one = (bits | 1).wrapping_neg() as f64 / 2f64.powi(64);
        let exact = if below_one < 1e-6 {
            below_one + below_one * below_one / 2.0
        } else {
            exact
        };
        (minus_ln(bits) as f64 / 2f64.powi(FRACTION_BITS as i32) - exact).abs()
    }

    #[test]
    fn the_logarithm_is_right_to_36_bits() {
        let mut generator = Xoshiro256PlusPlus::seed_from_u64(1);
        let mut worst = 0f64;
        for _ in 0..1_000_000 {
            let bits = generator.next_u64();
            let shift = generator.next_u64() % 64;
            worst = worst
                .max(error(bits))
                .max(error(bits >> shift))
                .max(error(!(bits >> shift)));
        }
        for step in 0..=STEPS {
            for around in 0..1000 {
                let edge = (u128::from(step) << 57) as u64;
                worst = worst.max(error(edge.wrapping_add(around)));
                worst = worst.max(error(edge.wrapping_sub(around)));
                worst = worst.max(error(edge.wrapping_add(1 << 56).wrapping_sub(around)));
            }
        }
        std::println!("largest error 2^{:.1}", worst.log2());
        assert!(worst < 2f64.powi(-36), "2^{}", worst.log2());
    }

    #[test]
    fn the_ends_of_the_range() {
        assert_eq!(minus_ln(u64::MAX), 0);
        let largest = 64.0 * core::f64::consts::LN_2;
        assert!((minus_ln(0) as f64 / 2f64.powi(FRACTION_BITS as i32) - largest).abs() < 1e-10);
    }

    #[test]
    fn mean_and_variance_are_one() {
        let mut generator = Xoshiro256PlusPlus::seed_from_u64(2);
        let (mut sum, mut squares) = (0.0, 0.0);
        let draws = 1_000_000;
        for _ in 0..draws {
            let x = minus_ln(generator.next_u64()) as f64 / 2f64.powi(FRACTION_BITS as i32);
            sum += x;
            squares += x * x;
        }
        let mean = sum / f64::from(draws);
        let variance = squares / f64::from(draws) - mean * mean;
        // Standard deviations of these estimates: 0.001 and 0.0028.
        assert!((mean - 1.0).abs() < 0.004, "{mean}");
        assert!((variance - 1.0).abs() < 0.012, "{variance}");
    }
}
