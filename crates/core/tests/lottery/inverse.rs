//! The inverse lottery (1994, 6.2).

use std::collections::BTreeMap;

use prorata_core::policy::inverse::InverseLottery;
use prorata_core::policy::{ClientIndex, Policy, PolicyError};
use prorata_core::rng::{ParkMiller, Rng, SeedableRng, Xoshiro256PlusPlus, below};

use crate::every_lottery::wins;
use crate::statistics::{ChiSquare, Sweep};

fn lottery<R: Rng>(rng: R, tickets: &[u32]) -> InverseLottery<R> {
    let mut lottery = InverseLottery::new(rng);
    for (index, &tickets) in tickets.iter().enumerate() {
        lottery.join(ClientIndex(index as u32), tickets).unwrap();
    }
    lottery
}

fn seeded(seed: u64, tickets: &[u32]) -> InverseLottery<Xoshiro256PlusPlus> {
    lottery(Xoshiro256PlusPlus::seed_from_u64(seed), tickets)
}

/// Every pair of a client and a ticket once: `T - t` of a client's pairs lose,
/// `(n - 1) * T` in all, which is `(1 - t/T) / (n - 1)` of them.
#[test]
fn exactly_the_papers_probability() {
    for tickets in [
        &[1, 1][..],
        &[5, 0],
        &[1, 2, 3],
        &[10, 2, 5, 1, 2],
        &[0, 0, 7],
        &[100, 1, 1, 1],
    ] {
        let n = tickets.len() as u64;
        let total = tickets.iter().sum::<u32>();
        let mut lottery = lottery(Sweep::new(&[n, u64::from(total)]), tickets);
        let losing = (n - 1) * u64::from(total);
        let counts = wins(&mut lottery, tickets.len(), losing);
        for (&count, tickets) in counts.iter().zip(tickets) {
            assert_eq!(count, u64::from(total - tickets));
        }
    }
}

#[test]
fn losses_follow_the_papers_probability() {
    for seed in [1, 2, 1994] {
        for tickets in [
            &[10, 2, 5, 1, 2][..],
            &[u32::MAX, u32::MAX, 1],
            &[1, 1, 1, 97],
        ] {
            let total: f64 = tickets.iter().copied().map(f64::from).sum();
            let weights: Vec<f64> = tickets
                .iter()
                .map(|&tickets| 1.0 - f64::from(tickets) / total)
                .collect();
            let modern = wins(&mut seeded(seed, tickets), tickets.len(), 100_000);
            let generator = ParkMiller::seed_from_u64(seed);
            let park_miller = wins(&mut lottery(generator, tickets), tickets.len(), 100_000);
            for counts in [modern, park_miller] {
                let chi_square = ChiSquare::of(&counts, &weights);
                assert!(!chi_square.refuses(), "{tickets:?}: {chi_square:?}");
            }
        }
    }
}

#[test]
fn where_the_formula_says_nothing() {
    assert_eq!(seeded(1, &[]).pick(), None);
    // One client loses, whatever it holds.
    assert_eq!(seeded(1, &[5]).pick(), Some(ClientIndex(0)));
    assert_eq!(seeded(1, &[0]).pick(), Some(ClientIndex(0)));
    // Without tickets, all lose alike.
    let counts = wins(&mut seeded(1, &[0, 0, 0]), 3, 30_000);
    assert!(!ChiSquare::of(&counts, &[1.0; 3]).refuses(), "{counts:?}");
    // A client that holds all tickets never loses.
    assert_eq!(wins(&mut seeded(1, &[0, 9]), 2, 1000), [1000, 0]);
}

#[test]
fn taken_clients_do_not_lose_but_count() {
    let mut lottery = seeded(6, &[10, 20, 30, 40]);
    lottery.take(ClientIndex(0)).unwrap();
    let counts = wins(&mut lottery, 4, 50_000);
    let chi_square = ChiSquare::of(&counts, &[0.0, 80.0, 70.0, 60.0]);
    assert!(!chi_square.refuses(), "{counts:?} {chi_square:?}");
}

#[test]
fn charges_do_not_change_the_chances() {
    let mut lottery = seeded(8, &[10, 20, 30]);
    lottery.charge(ClientIndex(0), 1, 100).unwrap();
    lottery.charge(ClientIndex(1), 300, 100).unwrap();
    let counts = wins(&mut lottery, 3, 50_000);
    let chi_square = ChiSquare::of(&counts, &[50.0, 40.0, 30.0]);
    assert!(!chi_square.refuses(), "{counts:?} {chi_square:?}");
}

/// Victims among `clients` clients.
fn victims<R: Rng>(lottery: &mut InverseLottery<R>, clients: usize, draws: u64) -> Vec<u64> {
    let mut counts = vec![0; clients];
    for _ in 0..draws {
        counts[lottery.pick_victim().unwrap().0 as usize] += 1;
    }
    counts
}

fn hold<R: Rng>(lottery: &mut InverseLottery<R>, holdings: &[u32]) {
    for (index, &units) in holdings.iter().enumerate() {
        let client = ClientIndex(index as u32);
        lottery.set_holding(client, units).unwrap();
    }
}

#[test]
fn victims_by_exactly_tickets_and_holding() {
    let (tickets, holdings) = ([10, 2, 5, 0, 3], [7, 100, 0, 11, 64]);
    let stakes: Vec<u64> = tickets
        .iter()
        .zip(holdings)
        .map(|(tickets, units)| u64::from((20 - tickets) * units))
        .collect();
    let total = stakes.iter().sum();
    let mut lottery = lottery(Sweep::new(&[total]), &tickets);
    hold(&mut lottery, &holdings);
    assert_eq!(victims(&mut lottery, 5, total), stakes);
}

#[test]
fn victims_where_the_formula_says_nothing() {
    let mut lottery = seeded(2, &[9, 0]);
    assert_eq!(lottery.pick_victim(), None);
    // The only holder has all tickets: it is the victim all the same.
    hold(&mut lottery, &[5, 0]);
    assert_eq!(victims(&mut lottery, 2, 100), [100, 0]);
    hold(&mut lottery, &[5, 1]);
    assert_eq!(victims(&mut lottery, 2, 100), [0, 100]);
    // No client has tickets: by holding alone.
    lottery.set_tickets(ClientIndex(0), 0).unwrap();
    let counts = victims(&mut lottery, 2, 30_000);
    assert!(!ChiSquare::of(&counts, &[5.0, 1.0]).refuses(), "{counts:?}");
}

#[test]
fn the_largest_stakes_fit() {
    let mut lottery = seeded(3, &[u32::MAX; 4]);
    hold(&mut lottery, &[u32::MAX, u32::MAX / 2, u32::MAX, 0]);
    let counts = victims(&mut lottery, 4, 50_000);
    let chi_square = ChiSquare::of(&counts, &[2.0, 1.0, 2.0, 0.0]);
    assert!(!chi_square.refuses(), "{counts:?} {chi_square:?}");
}

#[test]
fn holdings_are_remembered_until_forgotten() {
    let (one, other) = (ClientIndex(0), ClientIndex(1));
    let mut lottery = seeded(4, &[1, 1]);
    hold(&mut lottery, &[3, 4]);
    lottery.leave(one).unwrap();
    assert_eq!(victims(&mut lottery, 2, 100), [0, 100]);
    assert_eq!(
        lottery.set_holding(one, 1),
        Err(PolicyError::NotJoined(one))
    );
    lottery.take(other).unwrap();
    assert_eq!(lottery.pick_victim(), None);
    lottery.join(one, 1).unwrap();
    assert_eq!(victims(&mut lottery, 2, 100), [100, 0]);
    lottery.forget(one);
    lottery.join(one, 1).unwrap();
    assert_eq!(lottery.pick_victim(), None);
}

/// Both choices against plain arithmetic after a random history.
#[test]
fn histories_leave_the_chances_right() {
    const CLIENTS: u64 = 10;
    for seed in 0..30 {
        let mut choices = Xoshiro256PlusPlus::seed_from_u64(seed);
        let mut lottery = InverseLottery::new(Xoshiro256PlusPlus::seed_from_u64(!seed));
        // Tickets, units and whether it is taken, of those that compete.
        let mut books: BTreeMap<ClientIndex, (u32, u32, bool)> = BTreeMap::new();
        for _ in 0..400 {
            let client = ClientIndex(below(&mut choices, CLIENTS) as u32);
            let number = below(&mut choices, 60) as u32;
            match (below(&mut choices, 6), books.get_mut(&client)) {
                (_, None) => {
                    lottery.join(client, number).unwrap();
                    books.insert(client, (number, 0, false));
                }
                (0, Some(_)) => {
                    lottery.forget(client);
                    books.remove(&client);
                }
                (1, Some((tickets, ..))) => {
                    *tickets = number;
                    lottery.set_tickets(client, number).unwrap();
                }
                (2, Some((.., taken))) => {
                    *taken = true;
                    lottery.take(client).unwrap();
                }
                (3, Some((.., taken))) => {
                    *taken = false;
                    lottery.charge(client, 1, 2).unwrap();
                }
                (_, Some((_, units, _))) => {
                    *units = number;
                    lottery.set_holding(client, number).unwrap();
                }
            }
        }
        let total = books.values().map(|(tickets, ..)| tickets).sum::<u32>();
        assert_eq!(lottery.total_tickets(), u64::from(total));
        let (mut losers, mut stakes) = ([0.0; CLIENTS as usize], [0.0; CLIENTS as usize]);
        for (client, &(tickets, units, taken)) in &books {
            let index = client.0 as usize;
            losers[index] = f64::from(u8::from(!taken)) * f64::from(total - tickets);
            stakes[index] = losers[index] * f64::from(units);
        }
        for (counts, weights) in [
            (wins(&mut lottery, CLIENTS as usize, 20_000), losers),
            (victims(&mut lottery, CLIENTS as usize, 20_000), stakes),
        ] {
            let chi_square = ChiSquare::of(&counts, &weights);
            assert!(!chi_square.refuses(), "seed {seed}: {chi_square:?}");
        }
    }
}
