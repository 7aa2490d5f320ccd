//! Bin packing against exhaustive search, and earliest deadline first against brute force.

use prorata_core::rng::{SeedableRng, Xoshiro256PlusPlus, below};
use prorata_core::slots::place::View;
use prorata_core::slots::place::edf::on_one_cpu;
use prorata_core::slots::place::packing::pack;
use prorata_core::slots::place::periodic::Periodic;

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

/// The load of a packing whose bins hold what they are said to.
fn load_of(items: &[u32], bins: u32, size: u32, packed: &[Option<u32>]) -> u32 {
    assert_eq!(packed.len(), items.len());
    let mut loads = vec![0; bins as usize];
    for (&item, bin) in items.iter().zip(packed) {
        if let Some(bin) = bin {
            loads[*bin as usize] += item;
        }
    }
    assert!(loads.iter().all(|&load| load <= size), "{packed:?}");
    loads.iter().sum()
}

#[test]
fn packings_of_small_sets_are_those_of_exhaustive_search() {
    let (mut whole, mut in_part) = (0, 0);
    for seed in 0..3_000 {
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
        let bins = 1 + below(&mut rng, 3) as u32;
        let count = below(&mut rng, 8) + 1;
        let mut items: Vec<u32> = (0..count).map(|_| 6 + below(&mut rng, 55) as u32).collect();
        if below(&mut rng, 4) == 0 {
            items.push(below(&mut rng, 2) as u32 * 121);
        }
        let best = exhaustive(&items, &mut vec![120; bins as usize]);
        let found = pack(&items, bins, 120, 1_000_000);
        assert!(found.is_exact, "seed {seed}: {items:?}");
        assert_eq!(found.load, best, "seed {seed}: {items:?}");
        assert_eq!(load_of(&items, bins, 120, &found.bins), best, "seed {seed}");
        let is_whole = best == items.iter().sum::<u32>();
        *(if is_whole { &mut whole } else { &mut in_part }) += 1;
        let given_up = pack(&items, bins, 120, 3);
        let load = load_of(&items, bins, 120, &given_up.bins);
        assert_eq!(given_up.load, load, "seed {seed}");
        assert!(!given_up.is_exact || load == best, "seed {seed}");
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

/// Whether each unit of work can have a column of its own, by augmenting paths.
fn has_matching(units: &[Vec<u32>], columns: u32) -> bool {
    fn augment(
        unit: usize,
        units: &[Vec<u32>],
        holder: &mut [Option<usize>],
        seen: &mut [bool],
    ) -> bool {
        for &column in &units[unit] {
            let column = column as usize;
            if std::mem::replace(&mut seen[column], true) {
                continue;
            }
            let is_free = match holder[column] {
                None => true,
                Some(other) => augment(other, units, holder, seen),
            };
            if is_free {
                holder[column] = Some(unit);
                return true;
            }
        }
        false
    }
    let mut holder = vec![None; columns as usize];
    (0..units.len())
        .all(|unit| augment(unit, units, &mut holder, &mut vec![false; columns as usize]))
}

#[test]
fn edf_meets_deadlines_and_jitter_whenever_any_order_does() {
    let (mut met, mut missed) = (0, 0);
    for seed in 0..3_000 {
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
        let columns = [6u32, 12, 24][below(&mut rng, 3) as usize];
        let closed: Vec<bool> = (0..columns).map(|_| below(&mut rng, 8) == 0).collect();
        let view = View::new(1, columns, |cell| !closed[cell.column as usize]);
        let periods: Vec<u32> = (1..=columns)
            .filter(|n| columns.is_multiple_of(*n))
            .collect();
        let tasks: Vec<Periodic> = (0..1 + below(&mut rng, 4))
            .map(|_| {
                let period = periods[below(&mut rng, periods.len() as u64) as usize];
                let slots = 1 + below(&mut rng, u64::from(period.div_ceil(3))) as u32;
                let jitter = (below(&mut rng, 2) == 0).then(|| below(&mut rng, 4) as u32);
                Periodic {
                    jitter,
                    ..Periodic::new(slots, period)
                }
            })
            .collect();
        let mut units = Vec::new();
        for task in &tasks {
            for begin in (0..columns).step_by(task.period as usize) {
                for slot in 0..task.slots {
                    let first = task.jitter.filter(|_| slot == 0);
                    let length = first.map_or(task.period, |j| (j + 1).min(task.period));
                    let open = (begin..begin + length).filter(|&c| !closed[c as usize]);
                    units.push(open.collect::<Vec<u32>>());
                }
            }
        }
        match on_one_cpu(&view, 0, &tasks) {
            Ok(row) => {
                assert!(has_matching(&units, columns), "seed {seed}");
                for (place, task) in tasks.iter().enumerate() {
                    let own = (0..columns).filter(|&c| row[c as usize] == Some(place));
                    let own: Vec<u32> = own.collect();
                    assert!(own.iter().all(|&c| !closed[c as usize]), "seed {seed}");
                    assert_eq!(task.verify(&own, columns), Ok(()), "seed {seed}");
                }
                met += 1;
            }
            Err(found) => {
                assert!(!has_matching(&units, columns), "seed {seed}: {found:?}");
                missed += 1;
            }
        }
    }
    assert!(met > 500 && missed > 500, "{met} {missed}");
}
