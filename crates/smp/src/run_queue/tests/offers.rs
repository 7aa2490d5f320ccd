//! What queues offer: a tournament finds what a scan finds.

use proptest::prelude::*;

use super::super::Comparison;
use super::super::goodness::NOBODY;
use super::super::offers::{Best, Offers};
use super::seeded;

/// A CPU that asks from a place is told of one as good as a scan knows; and of the
/// nearest of those where none is passed over.
fn check_near(scan: &Offers, tournament: &Offers, near: u32, except: &[u32]) {
    let best = scan.best_except(except).0;
    assert_eq!(scan.best_near(near, NOBODY, except).0, best);
    let (found, _) = tournament.best_near(near, NOBODY, except);
    assert_eq!(found.map(|found| found.value), best.map(|best| best.value));
    assert!(found.is_none_or(|found| !except.contains(&found.place)));
    let (nearest, examined) = tournament.best_near(near, NOBODY, &[]);
    assert!(examined <= 1 + tournament.places().next_power_of_two().ilog2());
    let Some(nearest) = nearest else { return };
    // Where no place is above the bar, one look tells.
    for offers in [scan, tournament] {
        let all = if offers.is_tournament() {
            1
        } else {
            offers.places()
        };
        assert_eq!(offers.best_near(near, nearest.value, &[]), (None, all));
        let less = offers.best_near(near, nearest.value - 1, &[]).0;
        assert_eq!(less.map(|less| less.value), Some(nearest.value));
    }
    // Matches between two places.
    let apart = |place: u32| u32::BITS - (place ^ near).leading_zeros();
    let equals = (0..scan.places()).filter(|&place| scan.get(place) == nearest.value);
    // The first match of a place is with its neighbour.
    let least = equals.map(|place| apart(place).max(1)).min();
    assert_eq!(Some(apart(nearest.place).max(1)), least);
}

/// A refused CPU is told of the first winner on its way up that is better and not
/// passed over.
fn check_nearest_above(scan: &Offers, tournament: &Offers, near: u32, bar: i64, except: &[u32]) {
    let (found, examined) = tournament.nearest_above(near, bar, except);
    let levels = tournament.places().next_power_of_two().ilog2();
    assert!(examined <= levels);
    let winner = |level: u32| {
        let outside = |place: &u32| place >> level != near >> level;
        let others: Vec<_> = (0..scan.places()).filter(outside).collect();
        scan.best_except(&others).0
    };
    let fits =
        |best: &Best| best.value > bar && best.place != near && !except.contains(&best.place);
    let expected = (1..=levels).filter_map(winner).find(fits);
    assert_eq!(found, expected);
}

proptest! {
    #![proptest_config(seeded(2001))]

    #[test]
    fn a_tournament_finds_what_a_scan_finds(
        places in 1..70u32,
        changes in prop::collection::vec((any::<u32>(), prop_oneof![Just(NOBODY), 0..9i64]), 1..200),
        except in prop::collection::vec(0..70u32, 0..6),
    ) {
        let [mut scan, mut tournament] =
            [Comparison::Scan, Comparison::Tournament].map(|how| Offers::new(places, how, 4));
        for (place, value) in changes {
            scan.set(place % places, value);
            let words = tournament.set(place % places, value);
            prop_assert!(words <= 2 + places.next_power_of_two().ilog2());
            prop_assert_eq!(scan.best_except(&[]).0, tournament.best_except(&[]).0);
            prop_assert_eq!(tournament.best_except(&[]).1, 1);
            prop_assert_eq!(scan.best_except(&except).0, tournament.best_except(&except).0);
            let fits = |place| !except.contains(&place);
            let above = scan.best_above_bar(fits).0;
            prop_assert_eq!(above, scan.best_except(&except).0.filter(|best| best.value > 4));
            prop_assert_eq!(tournament.best_above_bar(fits).0, above);
            let near = place % places;
            check_near(&scan, &tournament, near, &except);
            check_nearest_above(&scan, &tournament, near, value.min(8), &except);
        }
    }
}
