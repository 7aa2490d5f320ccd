//! What the order of a list saves (1994, 4.2): clients examined in a search.

use prorata_core::policy::lottery::{ListLottery, ListOrder};
use prorata_core::policy::{ClientIndex, Policy};
use prorata_core::rng::{SeedableRng, Xoshiro256PlusPlus};

const CLIENTS: u32 = 200;
const DRAWS: u32 = 20_000;

/// Clients examined in an average search, for the given tickets.
fn search_length(order: ListOrder, tickets: impl Fn(u32) -> u32) -> f64 {
    let mut lottery = ListLottery::new(order, Xoshiro256PlusPlus::seed_from_u64(11));
    for index in 0..CLIENTS {
        lottery.join(ClientIndex(index), tickets(index)).unwrap();
    }
    for _ in 0..DRAWS {
        lottery.pick().unwrap();
    }
    lottery.examined() as f64 / f64::from(DRAWS)
}

/// Client i holds about 2^20 / i^2 tickets, shuffled over the indexes.
fn skewed(index: u32) -> u32 {
    let rank = index * 77 % CLIENTS + 1;
    (1 << 20) / (rank * rank)
}

#[test]
fn an_uneven_distribution_shortens_the_search() {
    let unordered: f64 = f64::from(CLIENTS + 1) / 2.0;
    let move_to_front = search_length(ListOrder::MoveToFront, skewed);
    let sorted = search_length(ListOrder::Sorted, skewed);
    assert!(move_to_front < unordered / 10.0, "{move_to_front}");
    assert!(sorted < move_to_front, "{sorted} against {move_to_front}");
    // The sorted search has a known mean: the rank, weighted by tickets.
    let ranks = 1..=u64::from(CLIENTS);
    let tickets = |rank: u64| (1u64 << 20) / (rank * rank);
    let total: u64 = ranks.clone().map(tickets).sum();
    let mean = ranks.map(|rank| rank * tickets(rank)).sum::<u64>() as f64 / total as f64;
    assert!(
        (sorted - mean).abs() < 0.1 * mean,
        "{sorted} against {mean}"
    );
}

#[test]
fn an_even_distribution_leaves_nothing_to_save() {
    let unordered = f64::from(CLIENTS + 1) / 2.0;
    for order in [ListOrder::MoveToFront, ListOrder::Sorted] {
        let length = search_length(order, |_| 1);
        assert!((length - unordered).abs() < 0.03 * unordered, "{length}");
    }
}

#[test]
fn compensation_moves_a_client_up_a_sorted_list() {
    let mut lottery = ListLottery::new(ListOrder::Sorted, Xoshiro256PlusPlus::seed_from_u64(1));
    for index in 0..100 {
        lottery.join(ClientIndex(index), 10).unwrap();
    }
    // Client 50 used a ten-thousandth: it holds 99 % of all, at the front.
    lottery.charge(ClientIndex(50), 1, 10_000).unwrap();
    for _ in 0..1000 {
        lottery.pick();
    }
    assert!(lottery.examined() < 2_500, "{}", lottery.examined());
}
