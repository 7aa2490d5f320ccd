//! Compensation tickets (1994, 3.4 and 4.5; 1999, 3.1).

use proptest::prelude::*;
use proptest::test_runner::RngSeed;
use prorata_core::hybrid::{BOOST_ONE, MAX_BOOST};
use prorata_core::policy::ClientIndex;
use prorata_core::policy::lottery::{Compensation, Weight};

use crate::every_lottery::{AnyLottery, every_lottery, join_all, wins};
use crate::statistics::ChiSquare;

const A: ClientIndex = ClientIndex(0);
const B: ClientIndex = ClientIndex(1);
const QUANTUM: u64 = 100;

/// Whether a weight is as near to `tickets * quantum / used` as promised:
/// `2^-17 + v * 2^-32 + tickets * 2^-33`, in integers.
pub fn within_stated_error(weight: Weight, tickets: u32, used: u64, quantum: u64) -> bool {
    let [weight, tickets, used, quantum] =
        [weight.units(), u64::from(tickets), used, quantum].map(u128::from);
    let (used, quantum) = if used << 16 < quantum {
        (1, 1 << 16)
    } else if quantum << 16 < used {
        (1 << 16, 1)
    } else {
        (used, quantum)
    };
    let error = ((weight * used) << 17).abs_diff((tickets * quantum) << 33);
    error <= (used << 16) + 2 * tickets * quantum + tickets * used
}

/// 1994, 4.5: A and B hold 400 each; A uses its quanta whole, B a fifth.
#[test]
fn equal_funding_is_equal_time_whatever_is_used() {
    for (name, mut lottery) in every_lottery(45) {
        join_all(&mut *lottery, &[400, 400]);
        let (mut used_by, mut picks) = ([0, 0], [0, 0]);
        for _ in 0..60_000 {
            let winner = lottery.pick().unwrap();
            let used = if winner == A { QUANTUM } else { QUANTUM / 5 };
            lottery.charge(winner, used, QUANTUM).unwrap();
            used_by[winner.0 as usize] += used;
            picks[winner.0 as usize] += 1;
        }
        // B's first win comes without compensation; then it wins five times as
        // often and uses a fifth.
        let chi_square = ChiSquare::of(&picks, &[1.0, 5.0]);
        assert!(!chi_square.refuses(), "{name}: {picks:?} {chi_square:?}");
        let ratio = used_by[0] as f64 / used_by[1] as f64;
        assert!((ratio - 1.0).abs() < 0.06, "{name}: {used_by:?}");
        assert_eq!(lottery.effective_tickets(A), Weight::from_tickets(400));
        assert_eq!(lottery.effective_tickets(B), Weight::from_tickets(2000));
    }
}

/// 1999, 3.1: ten tickets and a quantum overrun by a quarter leave eight.
#[test]
fn overrunning_is_compensated_negatively() {
    for (name, mut lottery) in every_lottery(31) {
        join_all(&mut *lottery, &[10, 10]);
        lottery.charge(A, 125, QUANTUM).unwrap();
        let effective = lottery.effective_tickets(A);
        assert!(within_stated_error(effective, 10, 5, 4), "{effective:?}");
        assert_eq!(effective, Weight::from_tickets(8), "{name}");
        let counts = wins(&mut *lottery, 2, 50_000);
        let chi_square = ChiSquare::of(&counts, &[8.0, 10.0]);
        assert!(!chi_square.refuses(), "{name}: {chi_square:?}");
    }
}

#[test]
fn it_lasts_from_one_charge_to_the_next_across_an_absence() {
    for (name, mut lottery) in every_lottery(34) {
        let effective = |lottery: &dyn AnyLottery| lottery.effective_tickets(B);
        join_all(&mut *lottery, &[400, 400]);
        lottery.charge(B, 20, QUANTUM).unwrap();
        assert_eq!(effective(&*lottery), Weight::from_tickets(2000), "{name}");
        lottery.leave(B).unwrap();
        assert_eq!(effective(&*lottery), Weight::ZERO, "{name}");
        lottery.join(B, 100).unwrap();
        assert_eq!(effective(&*lottery), Weight::from_tickets(500), "{name}");
        lottery.set_tickets(B, 300).unwrap();
        assert_eq!(effective(&*lottery), Weight::from_tickets(1500), "{name}");
        lottery.take(B).unwrap();
        assert_eq!(effective(&*lottery), Weight::from_tickets(1500), "{name}");
        assert_eq!(wins(&mut *lottery, 2, 1000), [1000, 0], "{name}");
        lottery.charge(B, QUANTUM, QUANTUM).unwrap();
        assert_eq!(effective(&*lottery), Weight::from_tickets(300), "{name}");
        lottery.charge(B, 20, QUANTUM).unwrap();
        lottery.forget(B);
        lottery.join(B, 100).unwrap();
        assert_eq!(effective(&*lottery), Weight::from_tickets(100), "{name}");
    }
}

#[test]
fn the_factor_has_limits() {
    let (largest, smallest) = (Compensation::LARGEST, Compensation::SMALLEST);
    assert_eq!(Compensation::earned(0, 1), largest);
    assert_eq!(Compensation::earned(0, u64::MAX), largest);
    assert_eq!(Compensation::earned(1, 1 << 16), largest);
    assert_eq!(Compensation::earned(1, (1 << 16) + 1), largest);
    assert_ne!(Compensation::earned(1, (1 << 16) - 1), largest);
    assert_eq!(Compensation::earned(1 << 16, 1), smallest);
    assert_eq!(Compensation::earned((1 << 16) + 1, 1), smallest);
    assert_ne!(Compensation::earned((1 << 16) - 1, 1), smallest);
    assert_eq!(Compensation::earned(u64::MAX, 1), smallest);
    assert_eq!(Compensation::earned(u64::MAX, u64::MAX), Compensation::NONE);
    // The smallest and the largest weight that there are.
    assert_eq!(smallest.weigh(0), Weight::ZERO);
    assert_eq!(smallest.weigh(1).units(), 1);
    assert_eq!(largest.weigh(u32::MAX).units(), u64::from(u32::MAX) << 32);
}

/// The sum of a few such weights passes 64 bits.
#[test]
fn the_largest_weights_compete_alike() {
    for (name, mut lottery) in every_lottery(64) {
        join_all(&mut *lottery, &[u32::MAX; 9]);
        for index in 0..9 {
            lottery.charge(ClientIndex(index), 0, QUANTUM).unwrap();
        }
        lottery.set_tickets(ClientIndex(4), u32::MAX / 2).unwrap();
        let counts = wins(&mut *lottery, 9, 60_000);
        let mut weights = [2.0; 9];
        weights[4] = 1.0;
        let chi_square = ChiSquare::of(&counts, &weights);
        assert!(!chi_square.refuses(), "{name}: {chi_square:?}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 4096,
        failure_persistence: None,
        rng_seed: RngSeed::Fixed(1994),
        ..ProptestConfig::default()
    })]

    #[test]
    fn weights_keep_their_promise(
        tickets in prop_oneof![0..100u32, any::<u32>(), Just(u32::MAX)],
        used in prop_oneof![0..200u64, 0..1u64 << 40],
        quantum in prop_oneof![1..200u64, 1..1u64 << 40],
    ) {
        let weight = Compensation::earned(used, quantum).weigh(tickets);
        prop_assert!(within_stated_error(weight, tickets, used, quantum), "{:?}", weight);
        prop_assert_eq!(weight.is_zero(), tickets == 0);
        let significant = 64 - weight.units().leading_zeros() - weight.units().trailing_zeros() % 64;
        prop_assert!(significant <= Weight::SIGNIFICANT_BITS);
        prop_assert_eq!(Compensation::NONE.weigh(tickets), Weight::from_tickets(tickets));
    }
}

/// 1999, 4.1: a boost or compensation, never both.
#[test]
fn a_boost_replaces_compensation_until_the_next_charge() {
    for (name, mut lottery) in every_lottery(41) {
        join_all(&mut *lottery, &[400, 400]);
        let effective = |lottery: &dyn AnyLottery| lottery.effective_tickets(B);
        lottery.charge(B, 20, QUANTUM).unwrap();
        lottery.set_boost(B, Some(3 * BOOST_ONE));
        assert_eq!(effective(&*lottery), Weight::from_tickets(1200), "{name}");
        let counts = wins(&mut *lottery, 2, 40_000);
        let chi_square = ChiSquare::of(&counts, &[1.0, 3.0]);
        assert!(!chi_square.refuses(), "{name}: {counts:?} {chi_square:?}");
        lottery.charge(B, 50, QUANTUM).unwrap();
        assert_eq!(effective(&*lottery), Weight::from_tickets(800), "{name}");
        // Without a boost, compensation stays.
        lottery.set_boost(B, None);
        assert_eq!(effective(&*lottery), Weight::from_tickets(800), "{name}");
        // A boost that ends leaves none.
        lottery.set_boost(B, Some(2 * BOOST_ONE));
        lottery.set_boost(B, None);
        assert_eq!(effective(&*lottery), Weight::from_tickets(400), "{name}");
    }
}

#[test]
fn a_boost_is_at_most_ten_thousand() {
    for (name, mut lottery) in every_lottery(42) {
        join_all(&mut *lottery, &[u32::MAX, 1]);
        for (boost, tickets) in [(MAX_BOOST, 10_000), (MAX_BOOST + 1, 10_000), (BOOST_ONE, 1)] {
            lottery.set_boost(B, Some(boost));
            let effective = lottery.effective_tickets(B);
            assert_eq!(effective, Weight::from_tickets(tickets), "{name}");
        }
        lottery.set_boost(A, Some(MAX_BOOST));
        let effective = lottery.effective_tickets(A).tickets() as f64;
        let exact = f64::from(u32::MAX) * 10_000.0;
        assert!(
            (effective / exact - 1.0).abs() < 1e-9,
            "{name}: {effective}"
        );
    }
}

#[test]
fn boosts_of_clients_that_do_not_compete_are_ignored() {
    for (name, mut lottery) in every_lottery(43) {
        lottery.set_boost(A, Some(MAX_BOOST));
        lottery.join(A, 5).unwrap();
        assert_eq!(
            lottery.effective_tickets(A),
            Weight::from_tickets(5),
            "{name}"
        );
    }
}
