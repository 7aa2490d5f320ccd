//! From values in base units to the ticket counts that policies work with.
//!
//! Policies count tickets in 32 bits; values span 52 bits before the binary
//! point and 32 behind it. Only ratios matter to a policy, so all values are
//! shifted by the same number of bits, chosen so that the largest keeps at
//! least 24 significant bits. The shift changes rarely: when the largest value
//! leaves that range, and for the sake of precision only after many changes.

use crate::ledger::Value;

/// Power of two between a value's raw bits and a ticket.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Scale {
    /// Bits to shift a raw value right; negative shifts left.
    shift: i32,
}

/// The largest value becomes a ticket count of 25 to 32 bits ...
const BITS: core::ops::RangeInclusive<i32> = 25..=32;
/// ... and this many when the scale is chosen anew, so that there is room to
/// both sides.
const CHOSEN_BITS: i32 = 29;

impl Scale {
    /// One base unit is one ticket, until the first values are known.
    pub(super) const INITIAL: Scale = Scale { shift: 32 };

    /// Whether it suits a largest value of so many bits.
    pub(super) fn suits(self, bits: u8) -> bool {
        bits == 0 || BITS.contains(&(i32::from(bits) - self.shift))
    }

    /// Whether a value of so many bits would be more tickets than there are.
    pub(super) fn overflows(self, bits: u8) -> bool {
        i32::from(bits) - self.shift > *BITS.end()
    }

    /// This scale if it suits a largest value of so many bits, else one that
    /// does.
    pub(super) fn suited_to(self, bits: u8) -> Scale {
        if self.suits(bits) {
            return self;
        }
        Scale {
            shift: i32::from(bits) - CHOSEN_BITS,
        }
    }

    /// Tickets for a value, rounded down but at least one for any value above
    /// zero. Relative error: below 2^-24 for the largest value of those that
    /// the scale suits, and a ticket more or less for the smallest.
    pub(super) fn tickets(self, value: Value) -> u32 {
        if value.0 == 0 {
            return 0;
        }
        let scaled = if self.shift >= 0 {
            value.0 >> self.shift
        } else {
            value.0 << -self.shift
        };
        scaled.clamp(1, u128::from(u32::MAX)) as u32
    }

    /// The value that a number of tickets stands for, rounded down.
    pub(super) fn value(self, tickets: u32) -> Value {
        match self.shift {
            shift @ 0.. => Value(u128::from(tickets) << shift),
            shift => Value(u128::from(tickets) >> -shift),
        }
    }

    /// Tickets of the value of many clients, rounded down, at most 2^63.
    pub(super) fn sum(self, value: Value) -> u64 {
        let most = 1 << 63;
        let scaled = match self.shift {
            shift @ 0.. => value.0 >> shift,
            shift if value.0.leading_zeros() >= -shift as u32 => value.0 << -shift,
            _ => most,
        };
        scaled.min(most) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_scale_keeps_ratios_for_tiny_and_for_huge_values() {
        for bits in [1, 5, 20, 32, 40, 63, 84] {
            let largest = Value(3 << bits);
            let scale = Scale::INITIAL.suited_to(largest.bits());
            assert!(scale.tickets(largest) >= 1 << 24, "{bits}");
            let third = scale.tickets(Value(1 << bits));
            assert!(scale.tickets(largest).abs_diff(3 * third) <= 3, "{bits}");
        }
    }

    #[test]
    fn the_scale_stays_while_it_suits() {
        let scale = Scale::INITIAL.suited_to(Value(1000 << 32).bits());
        assert_eq!(scale.suited_to(Value(4000 << 32).bits()), scale);
        assert_eq!(scale.suited_to(Value(100 << 32).bits()), scale);
        assert_ne!(scale.suited_to(1), scale);
        assert_eq!(scale.suited_to(0), scale);
    }

    #[test]
    fn a_value_above_zero_is_never_worth_nothing() {
        let scale = Scale::INITIAL.suited_to(85);
        assert_eq!(scale.tickets(Value(1)), 1);
        assert_eq!(scale.tickets(Value(0)), 0);
    }
}
