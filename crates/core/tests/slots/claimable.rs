//! What a placer returns, `claim_slots` takes whole.

use prorata_core::rng::{SeedableRng, Xoshiro256PlusPlus, below};
use prorata_core::slots::Mode;
use prorata_core::slots::geometry::Cell;
use prorata_core::slots::level::Level;
use prorata_core::slots::place::periodic::{Fit, Periodic};
use prorata_core::slots::place::{View, best_effort, cache, event, gang};
use prorata_core::slots::reservation::{Onset, Reservation};
use prorata_core::slots::timetable::Timetable;

use crate::rules::{grant, open, request, user};

const COLUMNS: u32 = 12;

fn random_table(rng: &mut Xoshiro256PlusPlus) -> Timetable {
    let mut table = open(3, COLUMNS);
    for account in 1..=2 {
        grant(&mut table, account, Level::Gang, 3 * COLUMNS);
    }
    for step in 0..20 {
        let row = below(rng, 3) as u32;
        if step % 5 < 4 {
            let column = below(rng, u64::from(COLUMNS)) as u32;
            let claim = [request(row, column, 1, Level::Gang)];
            let claimed = table.claim_slots(&user(1), &claim, Mode::BestEffort, None, 0);
            claimed.unwrap();
            continue;
        }
        let denominator = 1 + below(rng, u64::from(COLUMNS)) as u32;
        let reservation = Reservation {
            numerator: below(rng, 4).min(u64::from(denominator)) as u32,
            denominator,
        };
        let onset = [Onset::Immediate, Onset::Lazy][below(rng, 2) as usize];
        let reserved = table.reserve_slots(&user(0), row, reservation, onset, 0);
        reserved.unwrap();
    }
    table.set_online(0, below(rng, 4) > 0).unwrap();
    table
}

fn cells(row: u32, columns: Vec<u32>) -> Vec<Cell> {
    let cell = |column| Cell { row, column };
    columns.into_iter().map(cell).collect()
}

fn place(placer: u64, view: &View, rng: &mut Xoshiro256PlusPlus) -> Vec<Cell> {
    let wanted = 1 + below(rng, 5) as u32;
    match placer {
        0 => {
            let columns = event::place(view, 1, wanted, 7, 25);
            cells(1, columns.unwrap_or_default())
        }
        1 => cache::place(view, wanted).map_or_else(Vec::new, |begin| {
            let columns = (0..wanted).map(|step| (begin.column + step) % COLUMNS);
            cells(begin.row, columns.collect())
        }),
        2 => gang::place(view, wanted as usize, 2, &[2, 2, 9]).concat(),
        3 => best_effort::place(view, &[2, 1, 0], 4 * wanted as usize),
        _ => {
            let periodic = Periodic {
                slots: 1 + wanted / 3,
                period: 2 + below(rng, 6) as u32,
                offset: u32::MAX - wanted,
                jitter: None,
            };
            let columns = periodic.place(view, 2, Fit::Harmonic);
            cells(2, columns.unwrap_or_default())
        }
    }
}

#[test]
fn what_a_placer_returns_is_claimed_whole() {
    let mut placed = [0; 5];
    for seed in 0..2_000 {
        println!("seed {seed}");
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
        let table = random_table(&mut rng);
        let view = View::unclaimed(&table);
        for row in 0..3 {
            let cells = (0..COLUMNS).map(|column| Cell { row, column });
            let open = cells.filter(|&cell| view.is_open(cell)).count();
            assert_eq!(view.open_in(row) as usize, open, "row {row}");
        }
        for placer in 0..5 {
            let cells = place(placer, &View::unclaimed(&table), &mut rng);
            let claims: Vec<_> = cells
                .iter()
                .map(|cell| request(cell.row, cell.column, 2, Level::Gang))
                .collect();
            let mut copy = table.clone();
            let claimed = copy.claim_slots(&user(2), &claims, Mode::AllOrNothing, None, 0);
            assert!(claimed.is_ok(), "placer {placer}: {claimed:?}");
            let before = table.table().claimed();
            assert_eq!(
                copy.table().claimed(),
                before + cells.len(),
                "placer {placer}"
            );
            placed[placer as usize] += u32::from(!cells.is_empty());
        }
    }
    assert!(placed.iter().all(|&count| count > 200), "{placed:?}");
}

#[test]
fn a_run_that_a_reservation_forbids_is_not_offered() {
    let mut table = open(1, 120);
    let reservation = Reservation {
        numerator: 1,
        denominator: 10,
    };
    table
        .reserve_slots(&user(0), 0, reservation, Onset::Immediate, 0)
        .unwrap();
    let view = View::unclaimed(&table);
    assert_eq!(cache::place(&view, 12), None);
    assert_eq!(cache::place(&view, 9), Some(Cell { row: 0, column: 0 }));
}

#[test]
fn a_gang_takes_each_row_once_and_none_outside() {
    let view = View::new(2, 1, |_| true);
    assert_eq!(gang::in_column(&view, 0, 3, &[1, 1, 9]), None);
    let rows = gang::in_column(&view, 0, 2, &[1, 1, 9]).unwrap();
    assert_eq!(rows, [1, 0].map(|row| Cell { row, column: 0 }));
}
