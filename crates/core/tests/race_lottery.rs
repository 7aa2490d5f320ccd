//! The race is a lottery (1994, 2): chances of every pick against the
//! multinomial distribution, for a fixed list of seeds.

use prorata_core::policy::{ClientIndex, Policy, Race};
use rand_core::SeedableRng;
use rand_xoshiro::Xoshiro256PlusPlus;

const SEEDS: [u64; 8] = [1, 2, 3, 5, 8, 13, 21, 34];

type Lottery = Race<Xoshiro256PlusPlus>;

fn race(seed: u64, tickets: &[u32]) -> Lottery {
    let mut race = Race::new(Xoshiro256PlusPlus::seed_from_u64(seed));
    for (index, &tickets) in tickets.iter().enumerate() {
        race.join(ClientIndex(index as u32), tickets).unwrap();
    }
    race
}

fn win(race: &mut Lottery) -> usize {
    let client = race.pick().unwrap();
    race.charge(client, 1, 1).unwrap();
    client.0 as usize
}

fn wins(race: &mut Lottery, clients: usize, picks: usize) -> Vec<u64> {
    let mut wins = vec![0; clients];
    for _ in 0..picks {
        wins[win(race)] += 1;
    }
    wins
}

/// Chi-square of counts against chances, as standard deviations above its
/// mean by Wilson and Hilferty: 4.5 is a chance of 3 in a million, below one
/// in a thousand for all the tests here together.
fn deviation(counts: &[u64], weights: &[f64]) -> f64 {
    let total: u64 = counts.iter().sum();
    let weight: f64 = weights.iter().sum();
    let mut statistic = 0.0;
    let mut cells = 0;
    for (&count, &of) in counts.iter().zip(weights) {
        if of == 0.0 {
            assert_eq!(count, 0, "won without a chance");
            continue;
        }
        let expected = total as f64 * of / weight;
        assert!(expected > 10.0, "too few picks for chi-square: {expected}");
        statistic += (count as f64 - expected).powi(2) / expected;
        cells += 1;
    }
    let freedom = f64::from(cells - 1);
    let spread = 2.0 / (9.0 * freedom);
    ((statistic / freedom).cbrt() - (1.0 - spread)) / spread.sqrt()
}

fn assert_multinomial(counts: &[u64], tickets: &[u32], seed: u64) {
    let weights: Vec<f64> = tickets.iter().copied().map(f64::from).collect();
    let deviation = deviation(counts, &weights);
    assert!(
        deviation.abs() < 4.5,
        "seed {seed}: {deviation} for {counts:?} of {tickets:?}"
    );
}

#[test]
fn wins_are_multinomial() {
    let tickets = [1, 2, 3, 5, 8, 13, 21, 34, 55, 0, 89];
    for seed in SEEDS {
        let counts = wins(&mut race(seed, &tickets), tickets.len(), 200_000);
        assert_multinomial(&counts, &tickets, seed);
    }
}
