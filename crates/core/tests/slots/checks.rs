//! What a check says, against brute force over all ticks until windows repeat.

use std::cmp::Reverse;

use prorata_core::rng::{SeedableRng, Xoshiro256PlusPlus, below};
use prorata_core::slots::check::{Claimant, Conflict, Counterexample, Outcome, Wish, check};
use prorata_core::slots::geometry::Cell;
use prorata_core::slots::level::Level;
use prorata_core::slots::place::View;
use prorata_core::slots::place::periodic::Periodic;
use prorata_core::slots::reservation::{Onset, Reservation};
use prorata_core::slots::timetable::Timetable;

use crate::rules::{open, user};

/// An empty table whose rows have a reservation.
pub(crate) fn empty(rows: u32, columns: u32, reservation: Reservation) -> View {
    let mut table: Timetable = open(rows, columns);
    for row in 0..rows {
        let reserved = table.reserve_slots(&user(0), row, reservation, Onset::Immediate, 0);
        reserved.unwrap();
    }
    View::unclaimed(&table)
}

pub(crate) const NOTHING: Reservation = Reservation {
    numerator: 0,
    denominator: 1,
};

pub(crate) fn random_reservation(rng: &mut Xoshiro256PlusPlus, columns: u32) -> Reservation {
    let denominator = 1 + below(rng, u64::from(columns)) as u32;
    Reservation {
        numerator: below(rng, 3).min(u64::from(denominator)) as u32,
        denominator,
    }
}

fn random_wish(rng: &mut Xoshiro256PlusPlus, rows: u32, columns: u32) -> Wish {
    let some = |rng: &mut Xoshiro256PlusPlus, most: u32| 1 + below(rng, u64::from(most)) as u32;
    let row = (below(rng, 2) == 0).then(|| below(rng, u64::from(rows)) as u32);
    match below(rng, 8) {
        0 => Wish::Slots(
            (0..some(rng, 3))
                .map(|_| Cell {
                    row: below(rng, u64::from(rows)) as u32,
                    column: below(rng, u64::from(columns)) as u32,
                })
                .collect(),
        ),
        1 => Wish::Gang {
            threads: some(rng, rows + 1),
            columns: (below(rng, 2) == 0).then(|| some(rng, 4)),
            preferred: row.into_iter().collect(),
        },
        2 => Wish::Event {
            slots: some(rng, 3),
            within: some(rng, columns + 2),
            row,
        },
        3 => Wish::Cache(some(rng, 5)),
        4 => Wish::BestEffort(some(rng, 5)),
        _ => {
            let period = some(rng, columns + 2);
            let jitter = (below(rng, 3) == 0).then(|| below(rng, 4) as u32);
            let slots = some(rng, period.div_ceil(3));
            let periodic = Periodic {
                jitter,
                ..Periodic::new(slots, period)
            };
            Wish::Periodic { periodic, row }
        }
    }
}

fn random_claimants(rng: &mut Xoshiro256PlusPlus, rows: u32, columns: u32) -> Vec<Claimant> {
    let claimants = (0..1 + below(rng, 5)).map(|_| Claimant {
        level: Level::ALL[below(rng, 7) as usize],
        wish: random_wish(rng, rows, columns),
    });
    claimants.collect()
}

/// The claims before a claim, in the order that the documentation states.
fn is_before(claimants: &[Claimant], first: usize, second: usize) -> bool {
    let key = |claimant: usize| {
        let Claimant { level, wish } = &claimants[claimant];
        let is_event = matches!(wish, Wish::Event { .. });
        let is_named = matches!(wish, Wish::Slots(_));
        (is_event, Reverse(*level), !is_named, claimant)
    };
    key(first) < key(second)
}

/// The claimant that has each tick's slot of a row.
pub(crate) struct Ticks<'a> {
    pub(crate) outcome: &'a Outcome,
    pub(crate) columns: u32,
}

impl Ticks<'_> {
    fn holder(&self, row: u32, tick: u32) -> Option<usize> {
        let column = tick % self.columns;
        self.outcome.holder(Cell { row, column })
    }

    /// A window's slots of a claimant, as steps from its beginning.
    fn steps(&self, claimant: usize, row: u32, first: u32, length: u32) -> Vec<u32> {
        let is_own = |step: &u32| self.holder(row, first + step) == Some(claimant);
        (0..length).filter(is_own).collect()
    }

    /// Each window of a task until they repeat, tick by tick.
    pub(crate) fn meets(&self, claimant: usize, periodic: &Periodic) -> bool {
        let cells = &self.outcome.cells[claimant];
        let row = cells[0].row;
        assert!(cells.iter().all(|cell| cell.row == row));
        (0..self.columns * periodic.period)
            .step_by(periodic.period as usize)
            .all(|first| {
                let steps = self.steps(claimant, row, first, periodic.period);
                let late = |jitter| steps[0] > jitter;
                steps.len() >= periodic.slots as usize && !periodic.jitter.is_some_and(late)
            })
    }
}

/// The table holds what it says, and no window of a reservation lacks unclaimed slots.
pub(crate) fn assert_is_sound(outcome: &Outcome, view: &View, reservation: Reservation) {
    let (rows, columns) = (view.rows(), view.columns());
    let mut held = 0;
    for (claimant, cells) in outcome.cells.iter().enumerate() {
        held += cells.len() as u32;
        let is_own = |cell: &Cell| outcome.holder(*cell) == Some(claimant);
        assert!(cells.iter().all(is_own));
    }
    assert_eq!(
        held,
        (0..rows).map(|row| outcome.claimed_in(row)).sum::<u32>()
    );
    let ticks = Ticks { outcome, columns };
    for row in 0..rows {
        for first in 0..columns {
            let window = first..first + reservation.denominator;
            let unclaimed = window.filter(|&tick| ticks.holder(row, tick).is_none());
            assert!(unclaimed.count() >= reservation.numerator as usize);
        }
    }
}

/// Whether a claimant without a conflict has what it wants.
fn has_its_wish(ticks: &Ticks<'_>, claimants: &[Claimant], claimant: usize) -> bool {
    let cells = &ticks.outcome.cells[claimant];
    let columns = ticks.columns;
    match &claimants[claimant].wish {
        Wish::Slots(named) => {
            let mut named = named.clone();
            named.sort_unstable();
            *cells == named
        }
        Wish::Periodic { periodic, row } => {
            row.is_none_or(|row| cells[0].row == row) && ticks.meets(claimant, periodic)
        }
        Wish::Gang {
            threads,
            columns: wanted,
            ..
        } => {
            let in_column = |column| cells.iter().filter(|c| c.column == column).count() as u32;
            let held: Vec<u32> = (0..columns).map(in_column).filter(|&n| n > 0).collect();
            let is_enough = held.len() as u32 >= wanted.unwrap_or(1);
            held.iter().all(|n| n == threads) && is_enough
        }
        Wish::Cache(length) => {
            let row = cells[0].row;
            let run = |&first: &u32| ticks.steps(claimant, row, first, *length).len();
            cells.len() == *length as usize
                && (0..columns).any(|first| run(&first) == *length as usize)
        }
        Wish::BestEffort(wanted) => cells.len() <= *wanted as usize,
        Wish::Event { .. } => cells.is_empty(),
    }
}

#[test]
fn without_a_conflict_brute_force_finds_none() {
    let (mut met, mut conflicts) = (0, 0);
    for seed in 0..6_000 {
        println!("seed {seed}");
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
        let (rows, columns) = (
            1 + below(&mut rng, 3) as u32,
            1 + below(&mut rng, 14) as u32,
        );
        let reservation = random_reservation(&mut rng, columns);
        let view = empty(rows, columns, reservation);
        let claimants = random_claimants(&mut rng, rows, columns);
        let outcome = check(&view, &claimants);
        assert_is_sound(&outcome, &view, reservation);
        let ticks = Ticks {
            outcome: &outcome,
            columns,
        };
        for claimant in 0..claimants.len() {
            let mut of = outcome.conflicts.iter().filter(|c| c.claimant == claimant);
            if of.next().is_some() {
                assert!(outcome.cells[claimant].is_empty());
                conflicts += 1;
            } else {
                assert!(has_its_wish(&ticks, &claimants, claimant), "{claimant}");
                met += 1;
            }
        }
    }
    assert!(met > 5_000 && conflicts > 2_000, "{met} {conflicts}");
}

/// The slots of a row that are open to a claim, without reservations.
fn open_to(claimants: &[Claimant], outcome: &Outcome, of: usize, cell: Cell) -> bool {
    match outcome.holder(cell) {
        None => true,
        Some(holder) if matches!(claimants[of].wish, Wish::Event { .. }) => {
            claimants[holder].level < claimants[of].level
        }
        Some(holder) => !is_before(claimants, holder, of),
    }
}

/// Whether a row has room for a task, window by window with the earliest open slots, and in all
/// of its own windows.
fn has_room(periodic: &Periodic, columns: u32, is_open: impl Fn(u32) -> bool) -> bool {
    let mut shorter = (1..=periodic.period.min(columns)).rev();
    let harmonic = shorter.find(|n| columns.is_multiple_of(*n)).unwrap();
    let mut own = vec![false; columns as usize];
    for first in (0..columns).step_by(harmonic as usize) {
        let open = (first..first + harmonic).filter(|&column| is_open(column));
        let taken: Vec<u32> = open.take(periodic.slots as usize).collect();
        if taken.len() < periodic.slots as usize {
            return false;
        }
        taken.iter().for_each(|&column| own[column as usize] = true);
    }
    let windows = (0..columns * periodic.period).step_by(periodic.period as usize);
    windows.into_iter().all(|first| {
        let own = |step: &u32| own[((first + step) % columns) as usize];
        let steps: Vec<u32> = (0..periodic.period).filter(own).collect();
        let late = |jitter| steps[0] > jitter;
        steps.len() >= periodic.slots as usize && !periodic.jitter.is_some_and(late)
    })
}

/// Whether a counterexample is one, without reservations.
fn is_real(
    claimants: &[Claimant],
    outcome: &Outcome,
    conflict: &Conflict,
    (rows, columns): (u32, u32),
) -> bool {
    let claimant = conflict.claimant;
    let is_open = |row, tick: u32| {
        let column = tick % columns;
        open_to(claimants, outcome, claimant, Cell { row, column })
    };
    match (&conflict.counterexample, &claimants[claimant].wish) {
        (Counterexample::Taken { cell, by }, Wish::Slots(named)) => {
            let times = named.iter().filter(|named| *named == cell).count();
            *by == claimant && times > 1
                || outcome.holder(*cell) == Some(*by) && is_before(claimants, *by, claimant)
        }
        (Counterexample::Windows(windows), Wish::Periodic { periodic, row }) => {
            let tried: Vec<u32> = windows.iter().map(|window| window.row).collect();
            let all = row.map_or_else(|| (0..rows).collect(), |row| vec![row]);
            assert_eq!(tried.len(), all.len());
            all.iter().all(|row| {
                let room = has_room(periodic, columns, |column| is_open(*row, column));
                tried.contains(row) && !room
            })
        }
        (Counterexample::Windows(windows), Wish::Event { slots, .. }) => {
            windows.iter().all(|window| {
                let lack = window.lack;
                let wake = lack.first as u32;
                // In force from the second slot on, and at most a round of the table.
                let end = (wake + lack.length).min(wake + 2 + columns);
                let found = (wake + 2..end).filter(|&tick| is_open(window.row, tick));
                lack.has < *slots && lack.has == found.count() as u32
            })
        }
        (
            Counterexample::Columns {
                found,
                column,
                open,
                ..
            },
            Wish::Gang {
                threads,
                columns: wanted,
                ..
            },
        ) => {
            let open_in = |column| (0..rows).filter(|&row| is_open(row, column)).count() as u32;
            let roomy = (0..columns).filter(|&column| open_in(column) >= *threads);
            *found == roomy.count() as u32
                && *found < wanted.unwrap_or(1)
                && *open < *threads
                && (*found == columns || *open == open_in(*column))
        }
        (Counterexample::Run { longest, has }, Wish::Cache(length)) => {
            let run = |row, first| {
                (0..columns)
                    .take_while(|step| is_open(row, first + step))
                    .count()
            };
            let runs = (0..rows).flat_map(|row| (0..columns).map(move |first| run(row, first)));
            let most = runs.max().unwrap_or(0) as u32;
            let begins = longest.is_none_or(|c| run(c.row, c.column) as u32 >= *has);
            *has == most && most < *length && begins
        }
        _ => false,
    }
}

#[test]
fn counterexamples_are_real() {
    let mut seen = [0; 5];
    for seed in 0..8_000 {
        println!("seed {seed}");
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
        let (rows, columns) = (
            1 + below(&mut rng, 3) as u32,
            1 + below(&mut rng, 14) as u32,
        );
        let claimants = random_claimants(&mut rng, rows, columns);
        let outcome = check(&empty(rows, columns, NOTHING), &claimants);
        for conflict in &outcome.conflicts {
            let real = is_real(&claimants, &outcome, conflict, (rows, columns));
            assert!(real, "{conflict:?} {claimants:?}");
            let kind = match (&conflict.counterexample, &claimants[conflict.claimant].wish) {
                (Counterexample::Windows(_), Wish::Event { .. }) => 0,
                (Counterexample::Windows(_), _) => 1,
                (Counterexample::Columns { .. }, _) => 2,
                (Counterexample::Run { .. }, _) => 3,
                _ => 4,
            };
            seen[kind] += 1;
        }
    }
    assert!(seen.iter().all(|&count| count > 50), "{seen:?}");
}

#[test]
fn a_reservation_keeps_a_named_slot() {
    let reservation = Reservation {
        numerator: 1,
        denominator: 3,
    };
    let named = |columns: &[u32]| {
        let cells = columns.iter().map(|&column| Cell { row: 0, column });
        Claimant {
            level: Level::Hard,
            wish: Wish::Slots(cells.collect()),
        }
    };
    let outcome = check(&empty(1, 6, reservation), &[named(&[0, 1]), named(&[5])]);
    let conflict = Conflict {
        claimant: 1,
        counterexample: Counterexample::Reserved {
            cell: Cell { row: 0, column: 5 },
            first: 5,
        },
    };
    assert_eq!(outcome.conflicts, [conflict]);
    let outside = check(&empty(1, 6, reservation), &[named(&[6])]);
    let cell = Cell { row: 0, column: 6 };
    assert_eq!(
        outside.conflicts[0].counterexample,
        Counterexample::Outside(cell)
    );
}

/// A period of five slots in a table of twelve is placed by four. If slots 8 and 9 are taken, it
/// gets 0, 1, 4, 5, 10 and 11, and only slot 5 is in its window from 5 to 9.
#[test]
fn a_period_that_does_not_divide_the_table_is_verified_round_by_round() {
    let periodic = Wish::Periodic {
        periodic: Periodic::new(2, 5),
        row: None,
    };
    let of = |level, wish| Claimant { level, wish };
    let alone = check(
        &empty(1, 12, NOTHING),
        &[of(Level::Soft1, periodic.clone())],
    );
    assert_eq!(alone.conflicts, []);
    let cells = [8, 9].map(|column| Cell { row: 0, column });
    let both = [
        of(Level::Hard, Wish::Slots(cells.to_vec())),
        of(Level::Soft1, periodic),
    ];
    let outcome = check(&empty(1, 12, NOTHING), &both);
    let Counterexample::Windows(windows) = &outcome.conflicts[0].counterexample else {
        panic!("{:?}", outcome.conflicts);
    };
    assert_eq!((windows[0].lack.first, windows[0].lack.has), (5, 1));
    assert_eq!(windows[0].held_by, [0]);
}

#[test]
fn blackouts_are_the_longest_waits() {
    for seed in 0..500 {
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
        let columns = 1 + below(&mut rng, 12) as u32;
        let claimants = random_claimants(&mut rng, 2, columns);
        let outcome = check(&empty(2, columns, NOTHING), &claimants);
        for (claimant, cells) in outcome.cells.iter().enumerate() {
            let is_dark = |tick| !cells.iter().any(|cell| cell.column == tick % columns);
            let wait = |first| {
                (0..columns)
                    .take_while(|step| is_dark(first + step))
                    .count()
            };
            let longest = (0..columns).map(wait).max().map(|wait| wait as u32);
            let longest = longest.filter(|_| !cells.is_empty());
            assert_eq!(outcome.blackout(claimant), longest, "seed {seed}");
        }
    }
}
