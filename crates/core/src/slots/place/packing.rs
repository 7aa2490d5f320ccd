//! A CPU for each of many tasks: as much load as any schedule without migration can have.
//!
//! As periods divide the table, a CPU can have tasks if and only if their load is at most one
//! (earliest deadline first in whole slots). So tasks are items, CPUs are bins, and the slots of a
//! table are the unit: a bin packing, solved by branch and bound.

use alloc::vec;
use alloc::vec::Vec;
use core::cmp::Reverse;
use core::iter;

/// What was found out about a set.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Packing {
    /// The bin of each item, or `None` if it is left out, as items of no size are.
    pub bins: Vec<Option<u32>>,
    /// Slots that were packed.
    pub load: u32,
    /// Whether no packing has more; otherwise the search was given up.
    pub is_exact: bool,
}

/// Packs as much of items as bins can hold, within a number of steps.
pub fn pack(items: &[u32], bins: u32, size: u32, steps: u32) -> Packing {
    let fitting: Vec<u32> = items.iter().copied().filter(|&item| item <= size).collect();
    let total: u32 = fitting.iter().sum();
    let mut search = Search {
        left: vec![0; size as usize + 1],
        size,
        steps,
        packed: Vec::new(),
    };
    for &item in &fitting {
        search.left[item as usize] += 1;
    }
    // The sums are worked out only if not everything fits.
    let sums = iter::once_with(|| sums(&fitting, total)).flatten();
    for left_out in iter::once(0).chain(sums) {
        let room = bins * size + left_out;
        if room < total {
            continue;
        }
        // What is left out fills a bin of its own, exactly.
        let outside = Bin {
            number: None,
            room: left_out,
            largest: left_out.min(size),
        };
        match search.fill(outside, bins, room - total) {
            Some(true) => {
                return Packing {
                    bins: bins_of(items, &search.packed),
                    load: total - left_out,
                    is_exact: true,
                };
            }
            Some(false) => {}
            None => break,
        }
    }
    let packed = greedy(&fitting, bins, size);
    Packing {
        bins: bins_of(items, &packed),
        load: packed.iter().map(|&(item, _)| item).sum(),
        is_exact: false,
    }
}

/// The bin of each item, by those of all items of a size.
fn bins_of(items: &[u32], packed: &[(u32, u32)]) -> Vec<Option<u32>> {
    let mut by_size: Vec<usize> = (0..items.len()).collect();
    by_size.sort_by_key(|&item| items[item]);
    let mut packed = packed.to_vec();
    packed.sort_unstable();
    let mut packed = packed.into_iter().peekable();
    let mut bins = vec![None; items.len()];
    for item in by_size {
        bins[item] = packed
            .next_if(|&(size, _)| size == items[item])
            .map(|(_, bin)| bin);
    }
    bins
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

/// Items that have room and their bins, the largest item first in the fullest bin that has it.
fn greedy(items: &[u32], bins: u32, size: u32) -> Vec<(u32, u32)> {
    let mut sorted = items.to_vec();
    sorted.sort_unstable_by_key(|&item| Reverse(item));
    let mut rooms = vec![size; bins as usize];
    let mut packed = Vec::new();
    for item in sorted {
        let fitting = (0..).zip(&mut rooms).filter(|(_, room)| **room >= item);
        if let Some((bin, room)) = fitting.min_by_key(|(_, room)| **room) {
            *room -= item;
            packed.push((item, bin));
        }
    }
    packed
}

/// A bin that is being filled, its items in order of size.
struct Bin {
    /// `None`: what is left out, which must fill it.
    number: Option<u32>,
    room: u32,
    /// The size of the item put in last.
    largest: u32,
}

struct Search {
    /// How many items of each size are not in a bin.
    left: Vec<u32>,
    size: u32,
    steps: u32,
    /// Items in bins, and their bins.
    packed: Vec<(u32, u32)>,
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
            let fits = self.put(item, with, bins, waste);
            if fits != Some(false) {
                return fits;
            }
        }
        self.close(&bin, bins, waste)
    }

    /// Goes on with a bin that an item was put in.
    fn put(&mut self, item: u32, bin: Bin, bins: u32, waste: u32) -> Option<bool> {
        self.left[item as usize] -= 1;
        let packed = self.packed.len();
        self.packed.extend(bin.number.map(|number| (item, number)));
        let fits = self.fill(bin, bins, waste);
        if fits != Some(true) {
            self.packed.truncate(packed);
        }
        self.left[item as usize] += 1;
        fits
    }

    /// Goes on with the next bin, which has the largest item of all, as some bin must. A bin with
    /// room for an item that is left need not be tried: the item could as well be in it.
    fn close(&mut self, bin: &Bin, bins: u32, waste: u32) -> Option<bool> {
        let sizes = || (1..self.left.len()).filter(|&item| self.left[item] > 0);
        let (Some(smallest), Some(largest)) = (sizes().next(), sizes().next_back()) else {
            return Some(bin.number.is_some() || bin.room == 0);
        };
        let is_done = match bin.number {
            None => bin.room == 0,
            Some(_) => bin.room <= waste && bin.room < smallest as u32,
        };
        if !is_done || bins == 0 {
            return Some(false);
        }
        let waste = waste - bin.room;
        let largest = largest as u32;
        let next = Bin {
            number: Some(bin.number.map_or(0, |number| number + 1)),
            room: self.size - largest,
            largest,
        };
        self.put(largest, next, bins - 1, waste)
    }
}
