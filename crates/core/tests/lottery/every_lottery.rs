//! All the lotteries, as one type.

use prorata_core::policy::lottery::{
    ClassLottery, ListLottery, ListOrder, Lottery, Selector, TreeLottery, Weight,
};
use prorata_core::policy::{ClientIndex, Policy};
use prorata_core::rng::{Rng, SeedableRng, Xoshiro256PlusPlus};

/// A policy that tells a client's effective tickets.
pub trait AnyLottery: Policy {
    fn effective_tickets(&self, client: ClientIndex) -> Weight;
}

impl<S: Selector, R: Rng> AnyLottery for Lottery<S, R> {
    fn effective_tickets(&self, client: ClientIndex) -> Weight {
        Lottery::effective_tickets(self, client)
    }
}

pub const MOVE_TO_FRONT: &str = "move-to-front list";

pub type Named = (&'static str, Box<dyn AnyLottery>);

/// One empty lottery of each kind, each with its own generator.
pub fn every_lottery_with<R: Rng + 'static>(mut generator: impl FnMut() -> R) -> Vec<Named> {
    vec![
        (
            MOVE_TO_FRONT,
            Box::new(ListLottery::new(ListOrder::MoveToFront, generator())),
        ),
        (
            "sorted list",
            Box::new(ListLottery::new(ListOrder::Sorted, generator())),
        ),
        ("tree", Box::new(TreeLottery::new(generator()))),
        ("classes", Box::new(ClassLottery::new(generator()))),
    ]
}

/// As above, with generators seeded one after the other from `seed`.
pub fn every_lottery(seed: u64) -> Vec<Named> {
    let mut seeds = Xoshiro256PlusPlus::seed_from_u64(seed);
    every_lottery_with(|| Xoshiro256PlusPlus::from_rng(&mut seeds))
}

/// Lets client i compete with `tickets[i]`.
pub fn join_all(lottery: &mut dyn AnyLottery, tickets: &[u32]) {
    for (index, &tickets) in tickets.iter().enumerate() {
        lottery.join(ClientIndex(index as u32), tickets).unwrap();
    }
}

/// How often each of the clients below `clients` wins `draws` lotteries, the
/// clients' standing unchanged. Draws without a winner are not counted.
pub fn wins(lottery: &mut (impl Policy + ?Sized), clients: usize, draws: u64) -> Vec<u64> {
    let mut counts = vec![0; clients];
    for _ in 0..draws {
        if let Some(winner) = lottery.pick() {
            counts[winner.0 as usize] += 1;
        }
    }
    counts
}
