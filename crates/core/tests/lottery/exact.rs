//! Exactness by enumeration: every value that a draw can take, once.

use prorata_core::policy::ClientIndex;
use prorata_core::policy::lottery::{ListLottery, ListOrder};
use prorata_core::policy::{Policy, lottery::Weight};

use crate::every_lottery::{MOVE_TO_FRONT, every_lottery_with, join_all, wins};
use crate::statistics::Sweep;

/// The number of values of one draw: the sum of all weights, where `columns`
/// says whether each is rounded up to the next power of two first (for the
/// constant-time lottery).
fn values(tickets: &[u32], columns: bool) -> u64 {
    let one = |&tickets: &u32| match (tickets, columns) {
        (0, _) => 0,
        (_, true) => 2 << tickets.ilog2(),
        (_, false) => u64::from(tickets),
    };
    tickets.iter().map(one).sum::<u64>() << Weight::FRACTION_BITS
}

#[test]
fn each_client_wins_as_many_draws_as_its_weight() {
    for tickets in [&[1, 2][..], &[3, 0, 1], &[1, 1, 1], &[4]] {
        let total = values(tickets, false);
        let mut bounds = [false, false, false, true]
            .into_iter()
            .map(|columns| values(tickets, columns));
        for (name, mut lottery) in every_lottery_with(|| Sweep::new(&[bounds.next().unwrap()])) {
            if name == MOVE_TO_FRONT {
                // A draw changes what the next value means: see below.
                continue;
            }
            join_all(&mut *lottery, tickets);
            // The rejected draws are skipped on the way; as many picks as
            // there are units of weight use each accepted draw exactly once.
            let counts = wins(&mut *lottery, tickets.len(), total);
            assert_eq!(counts, units(tickets), "{name}");
        }
    }
}

#[test]
fn so_does_each_client_of_a_list_that_moves() {
    let tickets = [1, 0, 2];
    let total = values(&tickets, false);
    let mut counts = [0; 3];
    for value in 0..total {
        let rng = Sweep::starting_at(&[total], &[value]);
        let mut lottery = ListLottery::new(ListOrder::MoveToFront, rng);
        join_all(&mut lottery, &tickets);
        counts[lottery.pick().unwrap().0 as usize] += 1;
    }
    assert_eq!(counts[..], units(&tickets));
}

fn units(tickets: &[u32]) -> Vec<u64> {
    let weights = tickets.iter().copied().map(Weight::from_tickets);
    weights.map(Weight::units).collect()
}

/// 1994, Figure 1: five clients with 10, 2, 5, 1 and 2 tickets; the fifteenth
/// of the 20 tickets belongs to the third client.
#[test]
fn figure_1() {
    const TICKETS: [u32; 5] = [10, 2, 5, 1, 2];
    let holder_of = |ordinal: u64| {
        let total = values(&TICKETS, false);
        let first_unit = (ordinal - 1) << Weight::FRACTION_BITS;
        let rng = Sweep::starting_at(&[total], &[first_unit]);
        let mut lottery = ListLottery::new(ListOrder::MoveToFront, rng);
        // The client that joins last is at the front.
        for (index, tickets) in TICKETS.into_iter().enumerate().rev() {
            lottery
                .join(ClientIndex(index as u32 + 1), tickets)
                .unwrap();
        }
        let holder = lottery.pick().unwrap();
        (holder.0, lottery.examined())
    };
    assert_eq!(holder_of(15), (3, 3));
    assert_eq!(holder_of(1), (1, 1));
    assert_eq!(holder_of(10), (1, 1));
    assert_eq!(holder_of(11), (2, 2));
    assert_eq!(holder_of(12), (2, 2));
    assert_eq!(holder_of(13), (3, 3));
    assert_eq!(holder_of(17), (3, 3));
    assert_eq!(holder_of(18), (4, 4));
    assert_eq!(holder_of(20), (5, 5));
}
