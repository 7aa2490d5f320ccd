//! Calls at the edges: what ends with a client, what a refused call leaves.

use prorata_core::ids::ClientId;
use prorata_core::slots::Mode;
use prorata_core::slots::bank::Amount;
use prorata_core::slots::claim::{Account, Caller, Owner, SlotRequest};
use prorata_core::slots::error::SlotError;
use prorata_core::slots::geometry::{Cell, Geometry};
use prorata_core::slots::level::Level;
use prorata_core::slots::reservation::{Onset, Reservation};
use prorata_core::slots::timetable::Timetable;

use crate::rules::{grant, open, request, user};

pub fn claim(table: &mut Timetable, by: &Caller, requests: &[SlotRequest]) {
    table
        .claim_slots(by, requests, Mode::AllOrNothing, None, 0)
        .unwrap();
}

#[test]
fn a_client_of_two_users_ends_with_all_its_claims() {
    let mut table = open(1, 4);
    let client = ClientId::from_parts(9, 0);
    let to = Account::Client(client);
    table
        .set_tokens(&user(0), to, Level::Gang, Amount::Absolute(2), None, 0)
        .unwrap();
    for user in 1..=2 {
        let owner = Owner {
            user,
            client: Some(client),
        };
        let by = Caller {
            owner,
            privileged: false,
        };
        claim(&mut table, &by, &[request(0, user, 5, Level::Gang)]);
    }
    table.end_client(client, 0);
    assert_eq!(table.table().claimed(), 0);
    assert!(table.audit());
}

#[test]
fn refused_vectors_leave_no_schedulees_behind() {
    let mut table = open(1, 600);
    grant(&mut table, 1, Level::Gang, 511);
    for vector in 0..130 {
        let requests: Vec<_> = (0..512)
            .map(|n| request(0, n, vector * 512 + n, Level::Gang))
            .collect();
        let refused = table.claim_slots(&user(1), &requests, Mode::AllOrNothing, None, 0);
        assert!(matches!(refused, Err(SlotError::NoToken { .. })));
    }
    claim(&mut table, &user(1), &[request(0, 0, 1 << 20, Level::Gang)]);
}

#[test]
fn a_claim_runs_at_least_once_before_it_expires() {
    for column in 0..4 {
        for expires in 0..12 {
            let mut table = open(1, 4);
            grant(&mut table, 1, Level::Gang, 1);
            let brief = SlotRequest {
                expires: Some(expires),
                ..request(0, column, 7, Level::Gang)
            };
            table.advance(3);
            let claimed = table.claim_slots(&user(1), &[brief], Mode::AllOrNothing, None, 3);
            let claimed = claimed.is_ok();
            let mut runs = 0;
            for tick in 4..20 {
                table.advance(tick);
                runs += u32::from(table.at(0, tick).is_some());
            }
            assert_eq!(runs > 0, claimed, "column {column}, expires {expires}");
        }
    }
}

#[test]
fn a_cell_outside_keeps_no_other_from_being_freed() {
    let mut table = open(1, 4);
    grant(&mut table, 1, Level::Gang, 1);
    claim(&mut table, &user(1), &[request(0, 2, 7, Level::Gang)]);
    let cells = [(9, 0), (0, 2)].map(|(row, column)| Cell { row, column });
    let freed = table.free_slots(&user(1), &cells, 0).unwrap();
    assert_eq!(freed.value, [cells[0]]);
    assert_eq!(table.table().claimed(), 0);
}

pub fn reserve(table: &mut Timetable, numerator: u32, denominator: u32, onset: Onset) -> usize {
    let reservation = Reservation {
        numerator,
        denominator,
    };
    let outcome = table.reserve_slots(&user(0), 0, reservation, onset, 0);
    outcome.unwrap().value
}

#[test]
fn a_lazy_reservation_lets_a_full_window_change_hands() {
    let mut table = open(1, 2);
    grant(&mut table, 1, Level::Gang, 2);
    grant(&mut table, 2, Level::Hard, 1);
    let both = [0, 1].map(|column| request(0, column, 1, Level::Gang));
    claim(&mut table, &user(1), &both);
    assert_eq!(reserve(&mut table, 1, 2, Onset::Lazy), 0);
    claim(&mut table, &user(2), &[request(0, 0, 2, Level::Hard)]);
    table.free_slots(&user(1), &[both[1].cell], 0).unwrap();
    let again = table.claim_slots(&user(1), &both[1..], Mode::AllOrNothing, None, 0);
    assert_eq!(again, Err(SlotError::Reserved(both[1].cell)));
}

#[test]
fn ticks_begin_where_the_geometry_says() {
    let geometry = Geometry::new(1, 4, 2_000_000, 500).unwrap();
    for tick in 0..20 {
        let begin = geometry.begin_ns(tick);
        assert_eq!(begin, 500 + tick * 2_000_000);
        assert_eq!(geometry.tick_at(begin), tick);
        assert_eq!(geometry.tick_at(begin + 1_999_999), tick);
    }
    assert_eq!(geometry.tick_at(0), 0);
}

#[test]
fn the_timetable_wakes_at_changes_and_at_ends() {
    let mut table = open(1, 4);
    grant(&mut table, 1, Level::Gang, 1);
    assert_eq!(table.wakes_at(), None);
    let brief = SlotRequest {
        expires: Some(9),
        ..request(0, 0, 7, Level::Gang)
    };
    claim(&mut table, &user(1), &[brief]);
    assert_eq!(table.wakes_at(), Some(2));
    table.advance(2);
    assert_eq!(table.wakes_at(), Some(9));
    table.advance(9);
    assert_eq!(table.wakes_at(), Some(11));
    table.advance(11);
    assert_eq!(table.wakes_at(), None);
}

#[test]
fn tokens_are_told_level_by_level() {
    let mut table = open(1, 4);
    grant(&mut table, 1, Level::Gang, 3);
    claim(&mut table, &user(1), &[request(0, 0, 7, Level::Gang)]);
    let tokens = table.get_tokens(Account::User(1), 0).value;
    for (level, tokens) in tokens.iter().enumerate() {
        let told = (tokens.count, tokens.spent, tokens.weight);
        let gang = level == Level::Gang.index();
        assert_eq!(told, if gang { (2, 1, 1) } else { (0, 0, 0) });
    }
}

#[test]
fn an_old_generation_and_an_expiry_past_all_words_are_refused() {
    let mut table = open(1, 4);
    grant(&mut table, 1, Level::Gang, 1);
    let far = SlotRequest {
        expires: Some(4 << 32),
        ..request(0, 0, 7, Level::Gang)
    };
    let mut claim = |request, generation| {
        let mode = Mode::AllOrNothing;
        table.claim_slots(&user(1), &[request], mode, Some(generation), 0)
    };
    assert_eq!(claim(far, 0), Err(SlotError::FarExpiry(4 << 32)));
    assert!(claim(request(0, 0, 7, Level::Gang), 0).is_ok());
    let changed = SlotError::Changed {
        expected: 0,
        now: 1,
    };
    assert_eq!(claim(far, 0), Err(changed));
}
