//! Plans meet every deadline, and find a table where brute force does.

use prorata_core::rng::{SeedableRng, Xoshiro256PlusPlus, below};
use prorata_core::slots::check::plan::plan;
use prorata_core::slots::check::{Claimant, Counterexample, Wish};
use prorata_core::slots::geometry::Cell;
use prorata_core::slots::level::Level;
use prorata_core::slots::place::periodic::Periodic;

use crate::checks::{NOTHING, Ticks, assert_is_sound, empty, random_reservation};

const STEPS: u32 = 100_000;

fn claimant(periodic: Periodic, row: Option<u32>) -> Claimant {
    Claimant {
        level: Level::Hard,
        wish: Wish::Periodic { periodic, row },
    }
}

/// Whether CPUs with room for so many slots can have all loads.
fn packs(loads: &[u32], rooms: &mut [u32]) -> bool {
    let Some((&load, others)) = loads.split_first() else {
        return true;
    };
    (0..rooms.len()).any(|cpu| {
        let fits = rooms[cpu] >= load;
        if fits {
            rooms[cpu] -= load;
        }
        let all = fits && packs(others, rooms);
        if fits {
            rooms[cpu] += load;
        }
        all
    })
}

fn random_tasks(rng: &mut Xoshiro256PlusPlus, columns: u32, most: u64) -> Vec<Periodic> {
    let divisors: Vec<u32> = (1..=columns)
        .filter(|n| columns.is_multiple_of(*n))
        .collect();
    let tasks = (0..1 + below(rng, most)).map(|_| {
        let period = divisors[below(rng, divisors.len() as u64) as usize];
        Periodic::new(1 + below(rng, u64::from(period)) as u32, period)
    });
    tasks.collect()
}

#[test]
fn a_plan_is_found_wherever_one_exists() {
    let (mut found, mut impossible) = (0, 0);
    for seed in 0..3_000 {
        println!("seed {seed}");
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
        let (rows, columns) = (1 + below(&mut rng, 3) as u32, 24);
        let tasks = random_tasks(&mut rng, columns, 7);
        let claimants: Vec<Claimant> = tasks.iter().map(|task| claimant(*task, None)).collect();
        let view = empty(rows, columns, NOTHING);
        let plan = plan(&view, &claimants, STEPS);
        let loads: Vec<u32> = tasks
            .iter()
            .map(|task| task.load(columns).unwrap())
            .collect();
        let exists = packs(&loads, &mut vec![columns; rows as usize]);
        assert_eq!(plan.is_impossible, !exists);
        assert_eq!(plan.outcome.conflicts.is_empty(), exists);
        assert_is_sound(&plan.outcome, &view, NOTHING);
        let outcome = &plan.outcome;
        let ticks = Ticks { outcome, columns };
        for (task, periodic) in tasks.iter().enumerate() {
            let has_cells = !outcome.cells[task].is_empty();
            assert!(!has_cells || ticks.meets(task, periodic));
            assert_eq!(
                has_cells,
                !outcome.conflicts.iter().any(|c| c.claimant == task)
            );
        }
        *(if exists { &mut found } else { &mut impossible }) += 1;
    }
    assert!(found > 500 && impossible > 500, "{found} {impossible}");
}

/// With named slots, reservations, bounds on the jitter, periods that do not divide the table and
/// tasks that may use one CPU only.
#[test]
fn what_is_planned_meets_every_deadline() {
    let (mut whole, mut in_part) = (0, 0);
    for seed in 0..4_000 {
        println!("seed {seed}");
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
        let (rows, columns) = (
            1 + below(&mut rng, 3) as u32,
            1 + below(&mut rng, 16) as u32,
        );
        let reservation = random_reservation(&mut rng, columns);
        let mut claimants = Vec::new();
        for _ in 0..1 + below(&mut rng, 5) {
            let period = 1 + below(&mut rng, u64::from(columns) + 2) as u32;
            let slots = 1 + below(&mut rng, u64::from(period.div_ceil(4))) as u32;
            let periodic = Periodic {
                jitter: (below(&mut rng, 3) == 0).then(|| below(&mut rng, 3) as u32),
                ..Periodic::new(slots, period)
            };
            let row = (below(&mut rng, 3) == 0).then(|| below(&mut rng, u64::from(rows)) as u32);
            claimants.push(claimant(periodic, row));
        }
        let named = Cell {
            row: 0,
            column: below(&mut rng, u64::from(columns)) as u32,
        };
        for wish in [Wish::Slots(vec![named]), Wish::BestEffort(3)] {
            let level = Level::BestEffort;
            claimants.push(Claimant { level, wish });
        }
        let view = empty(rows, columns, reservation);
        let plan = plan(&view, &claimants, STEPS);
        assert_is_sound(&plan.outcome, &view, reservation);
        let outcome = &plan.outcome;
        let ticks = Ticks { outcome, columns };
        for (place, claimant) in claimants.iter().enumerate() {
            let has_conflict = outcome.conflicts.iter().any(|c| c.claimant == place);
            if let Wish::Periodic { periodic, row } = &claimant.wish {
                assert_eq!(has_conflict, outcome.cells[place].is_empty());
                assert!(has_conflict || ticks.meets(place, periodic));
                let own = |cell: &Cell| row.is_none_or(|row| row == cell.row);
                assert!(outcome.cells[place].iter().all(own));
            }
        }
        assert!(!plan.is_impossible || !outcome.conflicts.is_empty());
        *(if outcome.conflicts.is_empty() {
            &mut whole
        } else {
            &mut in_part
        }) += 1;
    }
    assert!(whole > 500 && in_part > 500, "{whole} {in_part}");
}

/// A load of one on each CPU. First fit with the largest first puts 4, 4, 3 on one CPU and 3, 3,
/// 3, 2 on the other, and has no room for the other 2.
#[test]
fn a_packing_that_first_fit_misses_is_planned() {
    let tasks = [4, 4, 3, 3, 3, 3, 2, 2].map(|slots| claimant(Periodic::new(slots, 12), None));
    let plan = plan(&empty(2, 12, NOTHING), &tasks, STEPS);
    assert_eq!(plan.outcome.conflicts, []);
}

#[test]
fn a_task_without_room_names_what_is_left() {
    let tasks = [3, 3].map(|slots| claimant(Periodic::new(slots, 4), None));
    let plan = plan(&empty(1, 12, NOTHING), &tasks, STEPS);
    assert!(plan.is_impossible);
    assert_eq!(plan.outcome.conflicts.len(), 1);
    assert_eq!(
        plan.outcome.conflicts[0].counterexample,
        Counterexample::Unplanned { load: 9, room: 3 }
    );
}

/// Two tasks want 4 of every 9 slots, which is less than a CPU, and are placed by every 6.
#[test]
fn nothing_is_certain_of_a_task_that_is_placed_by_a_shorter_period() {
    let tasks = [4, 4].map(|slots| claimant(Periodic::new(slots, 9), None));
    let planned = plan(&empty(1, 12, NOTHING), &tasks, STEPS);
    assert_eq!(planned.outcome.conflicts.len(), 1);
    assert!(!planned.is_impossible);
    let tasks = [5, 5].map(|slots| claimant(Periodic::new(slots, 6), None));
    assert!(plan(&empty(1, 12, NOTHING), &tasks, STEPS).is_impossible);
}
