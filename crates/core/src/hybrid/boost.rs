//! What part of its due a client received, and the boost for it (1999, 3.3 and 4.1).

/// A fraction of one: all that was deserved was received.
pub const FRACTION_ONE: u32 = 1 << BITS;
/// A boost of one: none.
pub const BOOST_ONE: u32 = 1 << BITS;
/// The greatest boost, 10,000: that of a client that received a tenth or less.
pub const MAX_BOOST: u32 = 10_000 * BOOST_ONE;
const BITS: u32 = 14;
/// The ratio of deserved to received at which the boost is greatest.
const MAX_RATIO: u64 = 10;
/// Ten seconds of 2^16 CPUs, and twice that: neither sum of a window is longer.
const MAX_NS: u64 = 1 << 50;

/// The fraction `f = received / deserved` in units of 1 / [`FRACTION_ONE`], rounded down.
/// It is one for a client that received all it deserved or more, or deserved nothing.
/// Times above 2^50 ns (13 days) count as so long.
pub fn fraction(received_ns: u64, deserved_ns: u64) -> u32 {
    let (received_ns, deserved_ns) = (received_ns.min(MAX_NS), deserved_ns.min(MAX_NS));
    match received_ns < deserved_ns {
        true => ((received_ns << BITS) / deserved_ns) as u32,
        false => FRACTION_ONE,
    }
}

/// The boost `min((1/f)^4, 10,000)` in units of 1 / [`BOOST_ONE`]; one for a client that
/// received all it deserved.
///
/// The ratio is clipped at 10 before it is raised. Each of three divisions rounds down; the
/// result is too low by less than 1 part in 2^11.
pub fn boost(received_ns: u64, deserved_ns: u64) -> u32 {
    let (received_ns, deserved_ns) = (received_ns.min(MAX_NS), deserved_ns.min(MAX_NS));
    if received_ns >= deserved_ns {
        return BOOST_ONE;
    }
    if received_ns * MAX_RATIO <= deserved_ns {
        return MAX_BOOST;
    }
    let ratio = (deserved_ns << BITS) / received_ns;
    let square = (ratio * ratio) >> BITS;
    ((square * square) >> BITS) as u32
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_boost_is_clipped_at_a_tenth_of_what_is_deserved() {
        assert_eq!(boost(0, 10), MAX_BOOST);
        assert_eq!(boost(1, 10), MAX_BOOST);
        assert!(boost(1_001, 10_000) < MAX_BOOST);
        assert_eq!(boost(1, 2), 16 * BOOST_ONE);
        assert_eq!(boost(10, 10), BOOST_ONE);
        assert_eq!(boost(11, 10), BOOST_ONE);
    }

    #[test]
    fn a_client_that_deserves_nothing_has_no_boost() {
        assert_eq!(boost(0, 0), BOOST_ONE);
        assert_eq!(fraction(0, 0), FRACTION_ONE);
    }

    #[test]
    fn the_fraction_is_below_one_exactly_below_the_due() {
        assert_eq!(fraction(0, 1), 0);
        assert_eq!(fraction(1, 2), FRACTION_ONE / 2);
        assert_eq!(fraction(MAX_NS - 1, MAX_NS), FRACTION_ONE - 1);
        assert_eq!(fraction(MAX_NS, MAX_NS), FRACTION_ONE);
        assert_eq!(fraction(MAX_NS, u64::MAX), FRACTION_ONE);
    }

    proptest! {
        #[test]
        fn the_boost_is_the_fourth_power(received_ns in 1..MAX_NS, deserved_ns in 1..MAX_NS) {
            let ratio = deserved_ns as f64 / received_ns as f64;
            let exact = ratio.clamp(1.0, 10.0).powi(4) * f64::from(BOOST_ONE);
            let boost = f64::from(boost(received_ns, deserved_ns));
            prop_assert!(boost <= exact * (1.0 + 1e-12));
            prop_assert!(boost >= exact * (1.0 - 1.0 / 2048.0) - 1.0, "{} {}", boost, exact);
        }

        #[test]
        fn the_boost_near_the_clip_is_the_fourth_power(received_ns in 1..1u64 << 40, tenths in 10u64..=110) {
            let deserved_ns = received_ns * tenths / 10;
            let ratio = deserved_ns as f64 / received_ns as f64;
            let exact = ratio.clamp(1.0, 10.0).powi(4) * f64::from(BOOST_ONE);
            let boost = f64::from(boost(received_ns, deserved_ns));
            prop_assert!((boost - exact).abs() <= exact / 2048.0 + 1.0, "{} {}", boost, exact);
        }

        #[test]
        fn less_received_is_never_less_boost(
            received_ns in 0..MAX_NS, more in 0..MAX_NS, deserved_ns in 0..MAX_NS,
        ) {
            let least = received_ns.min(more);
            prop_assert!(boost(least, deserved_ns) >= boost(received_ns.max(more), deserved_ns));
            prop_assert!(fraction(least, deserved_ns) <= fraction(received_ns.max(more), deserved_ns));
        }
    }
}
