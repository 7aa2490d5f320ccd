//! Every lottery against the multinomial distribution (1994, 2.2), with both
//! generators, and the power of the test itself.

use prorata_core::policy::lottery::ClassLottery;
use prorata_core::policy::{ClientIndex, Policy};
use prorata_core::rng::{ParkMiller, SeedableRng, Xoshiro256PlusPlus};

use crate::every_lottery::{every_lottery, every_lottery_with, join_all, wins};
use crate::statistics::ChiSquare;

const SEEDS: [u64; 6] = [1, 2, 1994, 1995, 0xdead_beef, u64::MAX];

fn as_weights(tickets: &[u32]) -> Vec<f64> {
    tickets.iter().copied().map(f64::from).collect()
}

#[test]
fn wins_are_in_proportion_to_tickets() {
    let sets: [&[u32]; 5] = [
        &[1, 1],
        &[10, 2, 5, 1, 2],
        &[3, 0, 2, 0, 1],
        &[1, 2, 4, 8, 16, 32, 64, 127, 128, 129, 255, 256],
        &[u32::MAX, u32::MAX - 1, 1 << 31, (1 << 31) - 1, 1, 0],
    ];
    for seed in SEEDS {
        for tickets in sets {
            for (name, mut lottery) in every_lottery(seed) {
                join_all(&mut *lottery, tickets);
                let counts = wins(&mut *lottery, tickets.len(), 40_000);
                let chi_square = ChiSquare::of(&counts, &as_weights(tickets));
                assert!(
                    !chi_square.refuses(),
                    "{name}, seed {seed}, {tickets:?}: {chi_square:?}"
                );
            }
        }
    }
}

#[test]
fn a_thousand_clients_in_proportion() {
    let tickets: Vec<u32> = (0..1000).map(|index| 1 + index * 7919 % 1009).collect();
    for (name, mut lottery) in every_lottery(7) {
        join_all(&mut *lottery, &tickets);
        let counts = wins(&mut *lottery, tickets.len(), 200_000);
        let chi_square = ChiSquare::of(&counts, &as_weights(&tickets));
        assert!(!chi_square.refuses(), "{name}: {chi_square:?}");
    }
}

/// The sum of the constant-time lottery's columns passes 64 bits.
#[test]
fn a_million_clients_with_the_most_tickets() {
    const CLIENTS: u32 = 1 << 20;
    for seed in SEEDS {
        println!("seed {seed}");
        let mut lottery = ClassLottery::new(Xoshiro256PlusPlus::seed_from_u64(seed));
        // One in four each: all that there are, and just above, at and just
        // below the border of a class.
        let tickets = [u32::MAX, (1 << 31) + 1, 1 << 31, (1 << 31) - 1];
        for client in 0..CLIENTS {
            let tickets = tickets[client as usize % 4];
            lottery.join(ClientIndex(client), tickets).unwrap();
        }
        let mut counts = [0; 4];
        for _ in 0..40_000 {
            counts[lottery.pick().unwrap().0 as usize % 4] += 1;
        }
        let chi_square = ChiSquare::of(&counts, &as_weights(&tickets));
        assert!(!chi_square.refuses(), "{counts:?}: {chi_square:?}");
    }
}

#[test]
fn park_miller_draws_in_proportion_too() {
    let tickets = [10, 2, 5, 1, 2];
    for seed in [1, 42, 1994] {
        let mut seeds = ParkMiller::new(seed).unwrap();
        for (name, mut lottery) in every_lottery_with(|| ParkMiller::from_rng(&mut seeds)) {
            join_all(&mut *lottery, &tickets);
            let counts = wins(&mut *lottery, tickets.len(), 40_000);
            let chi_square = ChiSquare::of(&counts, &as_weights(&tickets));
            assert!(!chi_square.refuses(), "{name}, seed {seed}: {chi_square:?}");
        }
    }
}

/// The test is worth something: as many draws as here would expose a lottery
/// that gave any one of these clients 2 % too much.
#[test]
fn a_weight_wrong_by_two_percent_is_refused() {
    let tickets = [500, 300, 200];
    for (name, mut lottery) in every_lottery(20) {
        join_all(&mut *lottery, &tickets);
        let counts = wins(&mut *lottery, tickets.len(), 3_000_000);
        let right = ChiSquare::of(&counts, &as_weights(&tickets));
        assert!(!right.refuses(), "{name}: {right:?}");
        for client in 0..tickets.len() {
            let mut weights = as_weights(&tickets);
            weights[client] *= 1.02;
            let wrong = ChiSquare::of(&counts, &weights);
            assert!(wrong.refuses(), "{name}, {client} off by 2 %: {wrong:?}");
        }
    }
}

#[test]
fn a_change_counts_from_the_next_lottery_on() {
    for (name, mut lottery) in every_lottery(3) {
        join_all(&mut *lottery, &[1, 0, 0]);
        assert_eq!(wins(&mut *lottery, 3, 100), [100, 0, 0], "{name}");
        lottery.set_tickets(ClientIndex(1), 5).unwrap();
        lottery.set_tickets(ClientIndex(0), 0).unwrap();
        assert_eq!(wins(&mut *lottery, 3, 100), [0, 100, 0], "{name}");
        lottery.join(ClientIndex(9), 1).unwrap();
        lottery.leave(ClientIndex(1)).unwrap();
        assert_eq!(lottery.pick(), Some(ClientIndex(9)), "{name}");
        lottery.forget(ClientIndex(9));
        assert_eq!(lottery.pick(), None, "{name}");
    }
}
