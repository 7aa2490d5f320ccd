//! Words of a timetable, and what slots cost (`bpf/word.h`), beside the core's.

use prorata_core::slots::SCHEDULEES;
use prorata_core::slots::word::Word;
use prorata_kernel::scheduler::GIFT;
use rand_core::Rng as _;

use super::{amount, numbers};
use crate::native::{self, CONSTANTS, Worth};

/// Random words say the same to the kernel as to the core, before and after they expire.
#[test]
fn words_are_the_core_s() {
    let mut random = numbers(60);
    for _ in 0..100_000 {
        let word = Word {
            schedulee: amount(&mut random, 19).min(SCHEDULEES as u64) as u32,
            distance: amount(&mut random, 12) as u32,
            expiry: (amount(&mut random, 32) - 1) as u32,
        };
        let bits = word.pack();
        let gift = Word {
            schedulee: word.schedulee | GIFT,
            ..word
        }
        .pack();
        assert_eq!(
            (native::is_gift(bits), native::is_gift(gift)),
            (false, true)
        );
        assert_eq!(native::distance_of(bits), word.distance, "{word:?}");
        let near = u64::from(word.expiry) + random.next_u64() % 5;
        for period in [0, near.saturating_sub(2), amount(&mut random, 40)] {
            let valid = Word::unpack(bits).is_some_and(|word| word.is_valid(period));
            let expected = if valid { word.schedulee } else { 0 };
            assert_eq!(native::schedulee_of(bits, period), expected, "{word:?}");
            assert_eq!(native::schedulee_of(gift, period), expected, "{word:?}");
        }
    }
    // Here the words of unclaimed cells name a distance, too.
    assert_eq!(native::schedulee_of(7 << 32, 0), 0);
    assert_eq!(
        (native::distance_of(7 << 32), native::distance_of(0)),
        (7, 4096)
    );
}

/// An entity is charged what takes its pass as far ahead as it may be, and no more: what its tickets are
/// due while passes move by the rest of the bound (core/src/entitlement: `room_ahead_ns`).
#[test]
fn slots_are_charged_up_to_the_bound() {
    let mut random = numbers(61);
    for _ in 0..100_000 {
        let tickets = amount(&mut random, 30);
        let worth = Worth::of(tickets);
        let furthest = amount(&mut random, 58);
        let ahead = amount(&mut random, 59) as i64 - amount(&mut random, 59) as i64;
        let service_ns = amount(&mut random, 33);
        let charged = native::charged_in_slot(service_ns, ahead as u64, furthest, worth);
        let room = (furthest as i64 - ahead).max(0);
        let due_ns = room as f64 / f64::from(1 << CONSTANTS.pass_bits) * tickets as f64;
        assert!(charged <= service_ns);
        let expected = due_ns.min(service_ns as f64);
        // Each of three operations rounds down by less than 2^-30, and the last to a whole number.
        let rounded = expected - charged as f64;
        let most = 1.0 + due_ns / f64::from(1 << 28);
        assert!((0.0..=most).contains(&rounded), "{charged} for {expected}");
        assert_eq!(
            native::charged_in_slot(service_ns, furthest, furthest, worth),
            0
        );
    }
}

/// The map has a place for each schedulee that the core may name, and none more.
#[test]
fn the_table_has_the_core_s_limits() {
    assert_eq!(CONSTANTS.schedulees, SCHEDULEES as u64);
    assert_eq!(
        CONSTANTS.by_claim,
        u64::from(prorata_kernel::scheduler::BY_CLAIM)
    );
    assert_eq!(CONSTANTS.cells_from, 8 + 1024);
    assert_eq!(
        (CONSTANTS.tally_words, CONSTANTS.lateness_buckets),
        (1024, 896)
    );
}
