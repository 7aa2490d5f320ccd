//! What a client's tickets weigh in the next lottery: the compensation rule
//! (1994, 3.4 and 4.5; 1999, 3.1), the same for every lottery.

use crate::hybrid::{BOOST_ONE, MAX_BOOST};

/// Tickets after compensation, in units of 2^-16 ticket.
///
/// Invariant: at most 32 significant bits, so that a weight is exactly 32 bits
/// and a power of two. Plain tickets satisfy it by themselves.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Weight(u64);

impl Weight {
    /// The weight of a client that cannot win.
    pub const ZERO: Weight = Weight(0);
    /// Binary digits after the point.
    pub const FRACTION_BITS: u32 = 16;
    /// Significant binary digits.
    pub const SIGNIFICANT_BITS: u32 = 32;

    /// The weight of tickets without compensation; exact.
    #[inline]
    pub const fn from_tickets(tickets: u32) -> Weight {
        Weight((tickets as u64) << Self::FRACTION_BITS)
    }

    /// The weight in units of 2^-16 ticket. The sum over 2^24 clients stays
    /// below 2^88.
    #[inline]
    pub const fn units(self) -> u64 {
        self.0
    }

    /// The number of zeros before the highest digit, of 64: the class of the
    /// weight. 64 for no weight.
    #[inline]
    pub(super) const fn leading_zeros(self) -> u32 {
        self.0.leading_zeros()
    }

    /// The 32 significant digits of a weight that is not zero, which are all
    /// that it has; the highest is set.
    #[inline]
    pub(super) const fn significand(self) -> u32 {
        (self.0 << self.0.leading_zeros() >> 32) as u32
    }

    /// The weight with these digits after that many zeros.
    #[inline]
    pub(super) const fn from_significand(significand: u32, leading_zeros: u32) -> Weight {
        Weight((significand as u64) << 32 >> leading_zeros)
    }

    /// The whole tickets in a weight.
    #[inline]
    pub const fn tickets(self) -> u64 {
        self.0 >> Self::FRACTION_BITS
    }

    /// Whether the client cannot win.
    #[inline]
    pub const fn is_zero(self) -> bool {
        self.0 == 0
    }
}

/// The factor by which a client's tickets count more or less until its next
/// quantum ends: `quantum / used` of the last one.
///
/// A client that used a fraction `f < 1` of its quantum competes with `t / f`
/// (1994, 3.4): a compensation ticket of `t / f - t`. One that overran it
/// competes with less than `t`, a negative compensation ticket (1999, 3.1).
///
/// The factor is held between 2^-16 and 2^16, so that a client that used
/// nothing does not win for ever and one that overran still wins some day. It
/// is stored in units of 2^-32, rounded to nearest.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Compensation(u64);

impl Default for Compensation {
    fn default() -> Self {
        Compensation::NONE
    }
}

impl Compensation {
    /// The factor 1: the last quantum was used exactly, or there was none.
    pub const NONE: Compensation = Compensation(1 << 32);
    /// The largest factor, 2^16: that of a client that used nothing.
    pub const LARGEST: Compensation = Compensation(1 << 48);
    /// The smallest factor, 2^-16.
    pub const SMALLEST: Compensation = Compensation(1 << 16);

    /// The factor earned by using `used` of a `quantum`, which must not be
    /// zero.
    #[inline]
    pub fn earned(used: u64, quantum: u64) -> Compensation {
        debug_assert!(quantum != 0);
        if used == quantum {
            return Self::NONE;
        }
        if used == 0 {
            return Self::LARGEST;
        }
        let used = u128::from(used);
        let factor = ((u128::from(quantum) << 32) + used / 2) / used;
        let limits = u128::from(Self::SMALLEST.0)..=u128::from(Self::LARGEST.0);
        Compensation(factor.clamp(*limits.start(), *limits.end()) as u64)
    }

    /// The factor of a boost, which is at most 10,000 (1999, 3.3); exact.
    #[inline]
    pub fn boosted(boost: u32) -> Compensation {
        let boost = boost.min(MAX_BOOST);
        Compensation(u64::from(boost) * ((1 << 32) / u64::from(BOOST_ONE)))
    }

    /// What `tickets` weigh with this factor.
    ///
    /// Against the exact `v = tickets * quantum / used`, between the limits of
    /// the factor, the weight is off by at most `2^-17 + v * 2^-32 + tickets *
    /// 2^-33` tickets: its own last place, its 32 significant bits, and the
    /// factor's last place. One ticket or more never weigh nothing.
    #[inline]
    pub fn weigh(self, tickets: u32) -> Weight {
        if self == Self::NONE || tickets == 0 {
            return Weight::from_tickets(tickets);
        }
        // At most (2^32 - 1) * 2^48, in units of 2^-32 ticket.
        let product = u128::from(tickets) * u128::from(self.0);
        let length = u128::BITS - product.leading_zeros();
        let dropped = length
            .saturating_sub(Weight::SIGNIFICANT_BITS)
            .max(32 - Weight::FRACTION_BITS);
        let rounded = (product + (1 << (dropped - 1))) >> dropped;
        // Rounding never passes 2^64: the largest product needs none.
        Weight((rounded as u64) << (dropped - (32 - Weight::FRACTION_BITS)))
    }
}
