//! Accounts: what they keep, what a donation leaves, and whose claims a reservation takes.

use prorata_core::ids::ClientId;
use prorata_core::slots::bank::{ACCOUNTS, Amount, DONATIONS};
use prorata_core::slots::claim::{Account, Caller, Owner};
use prorata_core::slots::error::SlotError;
use prorata_core::slots::level::Level;
use prorata_core::slots::reservation::Onset;
use prorata_core::slots::timetable::Timetable;

use crate::calls::{claim, reserve};
use crate::rules::{grant, open, request, user};

fn set(table: &mut Timetable, to: Account, count: u32, weight: Option<u32>) {
    let amount = Amount::Absolute(count);
    table
        .set_tokens(&user(0), to, Level::Gang, amount, weight, 0)
        .unwrap();
}

fn spent(table: &Timetable, account: u32) -> u64 {
    table
        .bank()
        .tokens(Account::User(account), Level::Gang)
        .spent
}

#[test]
fn empty_accounts_make_room_for_others() {
    let mut table = open(1, 4);
    for number in 0..=ACCOUNTS as u32 {
        set(&mut table, Account::User(number), 1, None);
        set(&mut table, Account::User(number), 0, None);
    }
    assert_eq!(table.bank().accounts().count(), 0);
    assert!(table.audit());
}

#[test]
fn a_donation_back_is_no_donation_to_undo() {
    let mut table = open(1, 4);
    let clients = [1, 2].map(|number| ClientId::from_parts(number, 0));
    let accounts = clients.map(Account::Client);
    let callers = clients.map(|client| Caller {
        owner: Owner {
            user: 1,
            client: Some(client),
        },
        privileged: false,
    });
    set(&mut table, accounts[0], 5, None);
    for (by, to) in [(0, 1), (1, 0)] {
        let donated = table.donate_tokens(&callers[by], accounts[to], Level::Gang, 5, 0);
        assert_eq!(donated.unwrap().value.moved, 5);
    }
    table.end_client(clients[0], 0);
    assert_eq!(table.bank().tokens(accounts[1], Level::Gang).count, 0);
    assert!(table.audit());
}

#[test]
fn an_account_without_weight_is_the_first_to_lose() {
    let mut table = open(1, 4);
    set(&mut table, Account::User(1), 3, Some(1));
    set(&mut table, Account::User(2), 1, Some(0));
    for (column, by) in [(0, 2), (1, 1), (2, 1), (3, 1)] {
        claim(
            &mut table,
            &user(by),
            &[request(0, column, by, Level::Gang)],
        );
    }
    assert_eq!(reserve(&mut table, 1, 4, Onset::Immediate), 1);
    assert_eq!((spent(&table, 1), spent(&table, 2)), (3, 0));
}

#[test]
fn losses_are_shared_out_one_by_one() {
    let mut table = open(1, 7);
    for (account, count) in [(1, 4), (2, 3)] {
        grant(&mut table, account, Level::Gang, count);
    }
    for column in 0..7 {
        let by = 1 + u32::from(column >= 4);
        claim(
            &mut table,
            &user(by),
            &[request(0, column, by, Level::Gang)],
        );
    }
    assert_eq!(reserve(&mut table, 4, 7, Onset::Immediate), 4);
    assert!(spent(&table, 1).abs_diff(spent(&table, 2)) <= 1);
}

#[test]
fn donations_are_taken_at_the_limit_and_refused_one_past() {
    let mut table = open(1, 4);
    for level in [Level::Gang, Level::Hard] {
        grant(&mut table, 1, level, DONATIONS as u32);
    }
    for number in 0..=DONATIONS as u32 {
        let level = [Level::Gang, Level::Hard][number as usize % 2];
        let to = Account::User(2 + number / 2);
        let donated = table.donate_tokens(&user(1), to, level, 1, 0);
        if number < DONATIONS as u32 {
            assert_eq!(donated.unwrap().value.moved, 1);
        } else {
            assert_eq!(donated, Err(SlotError::ManyDonations(DONATIONS)));
        }
    }
    assert!(table.audit());
}
