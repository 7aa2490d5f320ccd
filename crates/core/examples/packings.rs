//! Random sets of periodic tasks and how much of each our search packs, for another solver to check
//! (`scripts/beside-highs`): a line a set, of bins, their size, the packed load, whether no packing has
//! more, and the items.
//!
//! The arguments are a seed and the number of sets.

use prorata_core::rng::{SeedableRng, Xoshiro256PlusPlus, below};
use prorata_core::slots::place::packing::pack;

/// Slots of a CPU.
const SIZE: u32 = 120;
/// Bins of the largest set.
const MOST_BINS: u64 = 8;
const STEPS: u32 = 1_000_000;

fn main() {
    let mut numbers = std::env::args().skip(1).map(|word| word.parse());
    let (Some(Ok(seed)), Some(Ok(sets))) = (numbers.next(), numbers.next()) else {
        eprintln!("usage: packings SEED SETS");
        std::process::exit(2);
    };
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
    for _ in 0..sets {
        let bins = 1 + below(&mut rng, MOST_BINS) as u32;
        // From four fifths of the room to a tenth more than there is: there the optimum is hard to see.
        let load = bins * SIZE * (80 + below(&mut rng, 31) as u32) / 100;
        let mut items: Vec<u32> = Vec::new();
        while items.iter().sum::<u32>() < load {
            items.push(6 + below(&mut rng, 55) as u32);
        }
        let packing = pack(&items, bins, SIZE, STEPS);
        let items: Vec<String> = items.iter().map(u32::to_string).collect();
        println!(
            "{bins} {SIZE} {} {} {}",
            packing.load,
            u32::from(packing.is_exact),
            items.join(" ")
        );
    }
}
