//! Which waking clients are early, and in which order they run.
//!
//! First clients that wake from a sleep in the kernel, by the class of what they slept on
//! and then first come (1999, 3.1). Then clients that received less than they deserved,
//! least first: shortest processing time first, judged by history (1999, 3.3).

use super::boost::FRACTION_ONE;

/// What a client slept on, in the order of the resources' importance (1999, 3.1).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum WakeClass {
    /// A lock of the kernel, such as that of a vnode.
    Lock,
    /// A disk, holding a buffer.
    Disk,
    /// Another resource of the kernel.
    Other,
    /// Nothing in the kernel: it holds no kernel priority.
    User,
}

/// Whether a client that wakes is early: its lead is within the bound, and it holds a
/// kernel priority or received less than it deserved.
pub fn is_early(class: WakeClass, fraction: u32, lead_ns: u64, bound_ns: u64) -> bool {
    lead_ns <= bound_ns && (class != WakeClass::User || fraction < FRACTION_ONE)
}

/// The place of an early client among early clients: the least runs first.
///
/// ```text
///   61   60 59      46 45                 0
///   | class |    f    |  order of arrival |
/// ```
///
/// It is below 2^62, so that any two compare alike as numbers and by the sign of their
/// difference.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct EarlyRank(u64);

/// Bits of the number of an arrival.
const ARRIVAL_BITS: u32 = 46;
const FRACTION_BITS: u32 = 14;

impl EarlyRank {
    /// Of a client that woke as the `arrival`-th, modulo 2^46. `fraction` is below
    /// [`FRACTION_ONE`], or counts as just below; it does not matter for a client with a
    /// kernel priority.
    pub fn new(class: WakeClass, fraction: u32, arrival: u64) -> Self {
        let fraction = match class {
            WakeClass::User => u64::from(fraction.min(FRACTION_ONE - 1)),
            _ => 0,
        };
        let arrival = arrival & ((1 << ARRIVAL_BITS) - 1);
        Self((class as u64) << (ARRIVAL_BITS + FRACTION_BITS) | fraction << ARRIVAL_BITS | arrival)
    }

    /// The class and the fraction, without the order of arrival: a waking client preempts a
    /// running one only if it is less.
    pub fn importance(self) -> u64 {
        self.0 >> ARRIVAL_BITS
    }

    /// The rank that is this number.
    pub fn from_bits(bits: u64) -> Self {
        Self(bits)
    }

    /// What the client slept on.
    pub fn class(self) -> WakeClass {
        match self.0 >> (ARRIVAL_BITS + FRACTION_BITS) {
            0 => WakeClass::Lock,
            1 => WakeClass::Disk,
            2 => WakeClass::Other,
            _ => WakeClass::User,
        }
    }

    /// The fraction of what it deserved that a client received which holds no kernel priority.
    pub fn fraction(self) -> u32 {
        (self.0 >> ARRIVAL_BITS) as u32 & (FRACTION_ONE - 1)
    }

    /// As a number.
    pub fn bits(self) -> u64 {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hybrid::lead::LEAD_BOUND_NS;
    use proptest::prelude::*;

    const CLASSES: [WakeClass; 4] = [
        WakeClass::Lock,
        WakeClass::Disk,
        WakeClass::Other,
        WakeClass::User,
    ];

    #[test]
    fn a_lead_beyond_the_bound_makes_no_client_early() {
        for class in CLASSES {
            assert!(is_early(class, 0, LEAD_BOUND_NS, LEAD_BOUND_NS));
            assert!(!is_early(class, 0, LEAD_BOUND_NS + 1, LEAD_BOUND_NS));
        }
    }

    #[test]
    fn only_a_kernel_priority_makes_a_client_early_that_received_its_due() {
        for class in CLASSES {
            let early = is_early(class, FRACTION_ONE, 0, LEAD_BOUND_NS);
            assert_eq!(early, class != WakeClass::User);
        }
        assert!(is_early(
            WakeClass::User,
            FRACTION_ONE - 1,
            0,
            LEAD_BOUND_NS
        ));
    }

    #[test]
    fn classes_come_before_fractions_and_fractions_before_arrival() {
        let user = |fraction, arrival| EarlyRank::new(WakeClass::User, fraction, arrival);
        let late = EarlyRank::new(WakeClass::Lock, 0, (1 << ARRIVAL_BITS) - 1);
        assert!(late < EarlyRank::new(WakeClass::Disk, 0, 0));
        assert!(EarlyRank::new(WakeClass::Disk, 9, 1) < EarlyRank::new(WakeClass::Disk, 3, 2));
        assert!(EarlyRank::new(WakeClass::Other, FRACTION_ONE, 9) < user(0, 0));
        assert!(user(3, 9) < user(4, 0));
        assert!(user(4, 0) < user(4, 1));
        assert_eq!(user(u32::MAX, 0), user(FRACTION_ONE - 1, 0));
    }

    #[test]
    fn a_rank_tells_its_class_and_its_fraction() {
        for class in CLASSES {
            let rank = EarlyRank::new(class, FRACTION_ONE, u64::MAX);
            assert_eq!(EarlyRank::from_bits(rank.bits()), rank);
            assert_eq!(rank.class(), class);
        }
        for fraction in [0, 1, FRACTION_ONE - 1] {
            let rank = EarlyRank::new(WakeClass::User, fraction, u64::MAX);
            assert_eq!(rank.fraction(), fraction);
        }
    }

    proptest! {
        #[test]
        fn ranks_are_ordered_as_their_parts(
            one in (0..4usize, 0..FRACTION_ONE, 0..1u64 << ARRIVAL_BITS),
            other in (0..4usize, 0..FRACTION_ONE, 0..1u64 << ARRIVAL_BITS),
        ) {
            let parts = |(class, fraction, arrival): (usize, u32, u64)| {
                (class, if class == 3 { fraction } else { 0 }, arrival)
            };
            let rank = |(class, fraction, arrival): (usize, u32, u64)| {
                EarlyRank::new(CLASSES[class], fraction, arrival)
            };
            prop_assert_eq!(rank(one).cmp(&rank(other)), parts(one).cmp(&parts(other)));
            let difference = rank(one).bits().wrapping_sub(rank(other).bits()) as i64;
            prop_assert_eq!(rank(one) < rank(other), difference < 0);
        }
    }
}
