//! Placement keeps what it promises, and the scenario of 2.6 runs stage by stage.

use prorata_core::rng::{SeedableRng, Xoshiro256PlusPlus, below};
use prorata_core::slots::Mode;
use prorata_core::slots::claim::SlotRequest;
use prorata_core::slots::geometry::Cell;
use prorata_core::slots::level::Level;
use prorata_core::slots::notice::{Notice, Why};
use prorata_core::slots::place::cpu_choice::CpuChoice;
use prorata_core::slots::place::edf::on_one_cpu;
use prorata_core::slots::place::gang::{Answer, answer, place as place_gang};
use prorata_core::slots::place::periodic::{Fit, Periodic};
use prorata_core::slots::place::{View, best_effort, cache, event};
use prorata_core::slots::reservation::{Onset, Reservation};
use prorata_core::slots::timetable::Timetable;

use crate::rules::{grant, open, request, user};

fn random_view(rng: &mut Xoshiro256PlusPlus, rows: u32, columns: u32) -> View {
    let mut view = View::new(rows, columns, |_| true);
    for row in 0..rows {
        for column in 0..columns {
            if below(rng, 3) == 0 {
                view.close(Cell { row, column });
            }
        }
    }
    view
}

#[test]
fn periodic_placement_holds_m_of_n_in_every_window_with_its_jitter() {
    let mut placed = 0;
    for seed in 0..3_000 {
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
        let columns = 1 + below(&mut rng, 24) as u32;
        let view = random_view(&mut rng, 1, columns);
        let periodic = Periodic {
            slots: 1 + below(&mut rng, 3) as u32,
            period: 1 + below(&mut rng, u64::from(columns)) as u32,
            offset: below(&mut rng, u64::from(columns)) as u32,
            jitter: (below(&mut rng, 2) == 0).then(|| below(&mut rng, 4) as u32),
        };
        let fit = [Fit::Harmonic, Fit::OverAllocate][below(&mut rng, 2) as usize];
        let Some(chosen) = periodic.place(&view, 0, fit) else {
            continue;
        };
        placed += 1;
        let windows = periodic.windows(columns, fit);
        assert_eq!(windows.iter().map(|window| window.1).sum::<u32>(), columns);
        for (first, length) in windows {
            assert!(length <= periodic.period);
            let held: Vec<u32> = (0..length)
                .filter(|step| chosen.contains(&((first + step) % columns)))
                .collect();
            assert_eq!(held.len() as u32, periodic.slots, "seed {seed}");
            assert!(periodic.jitter.is_none_or(|jitter| held[0] <= jitter));
        }
        assert!(
            chosen
                .iter()
                .all(|&column| view.is_open(Cell { row: 0, column }))
        );
    }
    assert!(placed > 300, "{placed}");
}

#[test]
fn edf_meets_any_load_up_to_one() {
    let divisors: Vec<u32> = (1..=120).filter(|n| 120 % n == 0).collect();
    let empty = View::new(1, 120, |_| true);
    for seed in 0..2_000 {
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
        let (mut tasks, mut load) = (Vec::new(), 0);
        for _ in 0..20 {
            let period = divisors[below(&mut rng, 16) as usize];
            let slots = 1 + below(&mut rng, u64::from(period)) as u32;
            if load + slots * 120 / period <= 120 {
                load += slots * 120 / period;
                tasks.push(Periodic::new(slots, period));
            }
        }
        let row = on_one_cpu(&empty, 0, &tasks).unwrap();
        for (task, &Periodic { slots, period, .. }) in tasks.iter().enumerate() {
            for window in row.chunks(period as usize) {
                let held = window.iter().filter(|&&held| held == Some(task)).count();
                assert_eq!(held as u32, slots, "seed {seed}");
            }
        }
    }
    let full = Periodic::new(3, 5);
    assert!(on_one_cpu(&empty, 0, &[full, full]).is_err());
}

#[test]
fn the_load_of_the_thesis_is_65_percent() {
    let task = Periodic::new;
    let load = |task: Periodic| task.load(120).unwrap();
    assert_eq!(load(task(10, 40)) + load(task(2, 5)), 78);
    assert_eq!(task(1, 7).load(120), None);
}

/// Tables of more than a word, windows round the end, against counting slot by slot.
#[test]
fn a_task_is_placed_wherever_each_window_has_room() {
    let (mut placed, mut refused) = (0, 0);
    for seed in 0..500 {
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
        let columns = 1 + below(&mut rng, 200) as u32;
        let view = random_view(&mut rng, 2, columns);
        let periodic = Periodic {
            slots: 1 + below(&mut rng, 20) as u32,
            period: 1 + below(&mut rng, 70) as u32,
            offset: below(&mut rng, u64::from(columns)) as u32,
            jitter: None,
        };
        let is_open = |column: u32| view.is_open(Cell { row: 1, column });
        let open = (0..columns).filter(|&column| is_open(column)).count();
        assert_eq!(view.open_in(1) as usize, open, "seed {seed}");
        let windows = periodic.windows(columns, Fit::OverAllocate);
        let fits = windows.iter().all(|&(first, length)| {
            let window = (first..first + length).map(|column| column % columns);
            window.filter(|&column| is_open(column)).count() >= periodic.slots as usize
        });
        let found = periodic.place(&view, 1, Fit::OverAllocate);
        assert_eq!(found.is_some(), fits, "seed {seed}");
        *(if fits { &mut placed } else { &mut refused }) += 1;
    }
    assert!(placed > 50 && refused > 50, "{placed} {refused}");
}

#[test]
fn the_other_placers_take_open_slots() {
    let open_columns = [2, 3, 4, 7, 9, 0];
    let view = View::new(1, 10, |cell| open_columns.contains(&cell.column));
    assert_eq!(event::place(&view, 0, 3, 17, 23), Some(vec![7, 9, 0]));
    assert_eq!(event::place(&view, 0, 3, 17, 20), None);
    assert_eq!(cache::place(&view, 2), Some(Cell { row: 0, column: 9 }));
    assert_eq!(cache::place(&view, 3), Some(Cell { row: 0, column: 2 }));
    assert_eq!(cache::place(&view, 4), None);
    assert_eq!(best_effort::place(&view, &[0], 20).len(), 6);
    let view = View::new(3, 2, |cell| {
        cell.row > 0 && (cell.row > 1 || cell.column == 0)
    });
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(1);
    let mut order =
        |choice: CpuChoice, room| -> Vec<u32> { choice.order(&view, room, &mut rng).collect() };
    assert_eq!(order(CpuChoice::LeastUtilised, 0), [2, 1, 0]);
    assert_eq!(order(CpuChoice::MostUtilised, 0), [0, 1, 2]);
    assert_eq!(order(CpuChoice::MostUtilised, 1), [1, 2]);
    let mut random = order(CpuChoice::Random, 0);
    random.sort_unstable();
    assert_eq!(random, [0, 1, 2]);
}

fn claim(table: &mut Timetable, by: u32, requests: &[SlotRequest], now: u64) -> Vec<Notice> {
    let outcome = table.claim_slots(&user(by), requests, Mode::AllOrNothing, None, now);
    assert!(table.audit());
    outcome.unwrap().notices
}

/// CPUs are numbered from one in the thesis.
#[test]
fn the_scenario_of_2_6_runs_stage_by_stage() {
    const A: u32 = 1;
    const B: u32 = 2;
    const C: u32 = 3;
    let mut table = open(4, 12);
    let reservation = Reservation {
        numerator: 1,
        denominator: 6,
    };
    for row in 0..4 {
        table
            .reserve_slots(&user(0), row, reservation, Onset::Immediate, 0)
            .unwrap();
    }
    grant(&mut table, A, Level::Gang, 36);
    grant(&mut table, B, Level::Hard, 4);
    grant(&mut table, C, Level::Soft1, 4);
    // (i) One slot in six is reserved: ten of twelve columns.
    for column in 0..12 {
        let gang = [1, 2, 3].map(|row| request(row, column, A, Level::Gang));
        let outcome = table.claim_slots(&user(A), &gang, Mode::BestEffort, None, 0);
        let claimed = outcome.unwrap().value.claimed.len();
        assert_eq!(claimed, if column % 6 == 5 { 0 } else { 3 });
    }
    assert_eq!(table.table().claimed(), 30);
    // (ii) B takes 20 of 60 ms on CPU 3.
    let periodic = Periodic {
        slots: 2,
        period: 6,
        offset: 0,
        jitter: None,
    };
    let low = View::new(4, 12, |cell| {
        let claim = table.table().get(cell);
        claim.is_some_and(|claim| claim.level < Level::Hard)
    });
    let columns = periodic.place(&low, 2, Fit::Harmonic).unwrap();
    assert_eq!(columns, [0, 1, 6, 7]);
    let requests: Vec<_> = columns
        .iter()
        .map(|&column| request(2, column, B, Level::Hard))
        .collect();
    let lost = claim(&mut table, B, &requests, 3);
    assert_eq!(lost.len(), 4);
    // (iii) A moves the thread to CPU 1.
    for notice in lost {
        assert_eq!(notice.why, Why::Preempted(user(B).owner));
        let answer = answer(&View::unclaimed(&table), notice.cell, 3, &[1, 2, 3]);
        let moved = Cell {
            row: 0,
            ..notice.cell
        };
        assert_eq!(answer, Answer::Move(moved));
        claim(
            &mut table,
            A,
            &[request(0, moved.column, A, Level::Gang)],
            4,
        );
    }
    // (iv) C runs in column 6, the first that is reserved, and takes 40 ms on CPU 1, as soon as
    // claims of now are in force.
    let now = 12 + 5;
    for tick in 5..=now {
        table.advance(tick);
    }
    assert_eq!(table.at(0, now), None);
    let low = View::new(4, 12, |cell| {
        let claim = table.table().get(cell);
        claim.is_none_or(|claim| claim.level < Level::Soft1)
    });
    let (begin, end) = (now + 2, now + 6);
    let columns = event::place(&low, 0, 4, begin, end).unwrap();
    assert_eq!(columns, [7, 8, 9, 10]);
    let brief: Vec<_> = columns
        .into_iter()
        .map(|column| SlotRequest {
            expires: Some(end),
            ..request(0, column, C, Level::Soft1)
        })
        .collect();
    let lost = claim(&mut table, C, &brief, now);
    let columns: Vec<u32> = lost.iter().map(|notice| notice.cell.column).collect();
    assert_eq!(columns, [7]);
    assert!(
        lost.iter()
            .all(|notice| notice.why == Why::Preempted(user(C).owner))
    );
    let others = answer(&View::unclaimed(&table), lost[0].cell, 3, &[0, 1, 3]);
    assert_eq!(others, Answer::Cancel(None));
    for tick in now + 1..end {
        assert_eq!(table.advance(tick).notices, []);
        let runs = table.at(0, tick) == Some(brief[0].schedulee);
        assert_eq!(runs, tick >= begin);
    }
    // (v) C's claims expire, and A claims its slots back.
    let expired = table.advance(end);
    assert_eq!(table.at(0, end), None);
    assert_eq!(expired.freed.len(), 4);
    assert!(
        expired
            .notices
            .iter()
            .all(|notice| notice.why == Why::Expired)
    );
    let back = lost
        .iter()
        .map(|notice| request(0, notice.cell.column, A, Level::Gang));
    claim(&mut table, A, &back.collect::<Vec<_>>(), end);
    assert!(place_gang(&View::unclaimed(&table), 1, 3, &[]).is_empty());
    assert_eq!(table.table().claimed(), 34);
}
