//! The greatest load of a set that any schedule without migration can have.
//!
//! As periods divide the table, a CPU can have tasks if and only if their load is at most one
//! (earliest deadline first in whole slots). So tasks are items, CPUs are bins, and the slots of a
//! table are the unit: a bin packing, solved by branch and bound.

use std::iter;

/// What was found out about a set.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Packing {
    /// Slots that were packed.
    pub load: u32,
    /// Whether no packing has more; otherwise the search was given up.
    pub is_exact: bool,
}

/// Packs as much of items as bins can hold, within a number of steps.
pub fn pack(items: &[u32], bins: u32, size: u32, steps: u32) -> Packing {
    let total: u32 = items.iter().sum();
    let mut search = Search {
        left: vec![0; size as usize + 1],
        size,
        steps,
    };
    for &item in items {
        search.left[item as usize] += 1;
    }
    // The sums are worked out only if not everything fits.
    let sums = iter::once_with(|| sums(items, total)).flatten();
    for left_out in iter::once(0).chain(sums) {
        let room = bins * size + left_out;
        if room < total {
            continue;
        }
        // What is left out fills a bin of its own, exactly.
        let outside = Bin {
            room: left_out,
            largest: left_out.min(size),
            must_fill: true,
        };
        match search.fill(outside, bins, room - total) {
            Some(true) => {
                return Packing {
                    load: total - left_out,
                    is_exact: true,
                };
            }
            Some(false) => {}
            None => break,
        }
    }
    Packing {
        load: greedy(items, bins, size),
        is_exact: false,
    }
}

/// All sums of one or more of the items, the smallest first.
fn sums(items: &[u32], total: u32) -> impl Iterator<Item = u32> {
    let mut reached = vec![false; total as usize + 1];
    reached[0] = true;
    let mut most = 0;
    for &item in items {
        most += item;
        for sum in (item..=most).rev() {
            reached[sum as usize] |= reached[(sum - item) as usize];
        }
    }
    (1..=total).filter(move |&sum| reached[sum as usize])
}

/// The load that has room, the largest item first in the fullest bin that has it.
fn greedy(items: &[u32], bins: u32, size: u32) -> u32 {
    let mut sorted = items.to_vec();
    sorted.sort_unstable_by_key(|&item| std::cmp::Reverse(item));
    let mut rooms = vec![size; bins as usize];
    let mut load = 0;
    for item in sorted {
        let fitting = rooms.iter_mut().filter(|room| **room >= item);
        if let Some(room) = fitting.min() {
            *room -= item;
            load += item;
        }
    }
    load
}

/// A bin that is being filled, its items in order of size.
struct Bin {
    room: u32,
    /// The size of the item put in last.
    largest: u32,
    must_fill: bool,
}

struct Search {
    /// How many items of each size are not in a bin.
    left: Vec<u32>,
    size: u32,
    steps: u32,
}

impl Search {
    /// Whether the items left fit a bin and `bins` more, if room for at most `waste` may stay
    /// empty; `None` once there are no steps left.
    fn fill(&mut self, bin: Bin, bins: u32, waste: u32) -> Option<bool> {
        self.steps = self.steps.checked_sub(1)?;
        for item in (1..=bin.largest.min(bin.room)).rev() {
            if self.left[item as usize] == 0 {
                continue;
            }
            let with = Bin {
                room: bin.room - item,
                largest: item,
                ..bin
            };
            self.left[item as usize] -= 1;
            let fits = self.fill(with, bins, waste);
            self.left[item as usize] += 1;
            if fits != Some(false) {
                return fits;
            }
        }
        self.close(&bin, bins, waste)
    }

    /// Goes on with the next bin, which has the largest item of all, as some bin must. A bin with
    /// room for an item that is left need not be tried: the item could as well be in it.
    fn close(&mut self, bin: &Bin, bins: u32, waste: u32) -> Option<bool> {
        let sizes = || (1..self.left.len()).filter(|&item| self.left[item] > 0);
        let (Some(smallest), Some(largest)) = (sizes().next(), sizes().next_back()) else {
            return Some(!bin.must_fill || bin.room == 0);
        };
        let is_done = match bin.must_fill {
            true => bin.room == 0,
            false => bin.room <= waste && bin.room < smallest as u32,
        };
        if !is_done || bins == 0 {
            return Some(false);
        }
        let waste = waste - bin.room;
        self.left[largest] -= 1;
        let next = Bin {
            room: self.size - largest as u32,
            largest: largest as u32,
            must_fill: false,
        };
        let fits = self.fill(next, bins - 1, waste);
        self.left[largest] += 1;
        fits
    }
}

#[cfg(test)]
mod tests {
    use prorata_core::rng::{SeedableRng, Xoshiro256PlusPlus, below};

    use super::*;

    /// Each item in each bin or in none.
    fn exhaustive(items: &[u32], rooms: &mut [u32]) -> u32 {
        let Some((&item, others)) = items.split_first() else {
            return 0;
        };
        let mut best = exhaustive(others, rooms);
        for bin in 0..rooms.len() {
            if rooms[bin] >= item {
                rooms[bin] -= item;
                best = best.max(item + exhaustive(others, rooms));
                rooms[bin] += item;
            }
        }
        best
    }

    #[test]
    fn packings_of_small_sets_are_those_of_exhaustive_search() {
        let (mut whole, mut in_part) = (0, 0);
        for seed in 0..3_000 {
            let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
            let bins = 1 + below(&mut rng, 3) as u32;
            let count = below(&mut rng, 8) + 1;
            let items: Vec<u32> = (0..count).map(|_| 6 + below(&mut rng, 55) as u32).collect();
            let best = exhaustive(&items, &mut vec![120; bins as usize]);
            let found = pack(&items, bins, 120, 1_000_000);
            let exact = Packing {
                load: best,
                is_exact: true,
            };
            assert_eq!(found, exact, "seed {seed}: {items:?}");
            let is_whole = best == items.iter().sum::<u32>();
            *(if is_whole { &mut whole } else { &mut in_part }) += 1;
            let given_up = pack(&items, bins, 120, 3);
            assert!(given_up.load <= best, "seed {seed}");
            assert!(!given_up.is_exact || given_up.load == best, "seed {seed}");
        }
        assert!(whole > 500 && in_part > 500, "{whole} {in_part}");
    }

    #[test]
    fn a_full_load_may_have_no_packing() {
        let found = pack(&[48; 5], 2, 120, 1_000);
        assert_eq!((found.load, found.is_exact), (192, true));
        let found = pack(&[60, 60, 60, 30, 30], 2, 120, 1_000);
        assert_eq!((found.load, found.is_exact), (240, true));
    }
}
