//! Fair shares end, staging is whole, words survive packing, and limits hold.

use prorata_core::ids::ClientId;
use prorata_core::rng::{SeedableRng, Xoshiro256PlusPlus, below};
use prorata_core::slots::Mode;
use prorata_core::slots::bank::Amount;
use prorata_core::slots::claim::{Account, Caller, Owner, Schedulee, SlotRequest, VECTOR};
use prorata_core::slots::error::SlotError;
use prorata_core::slots::geometry::{Cell, Geometry};
use prorata_core::slots::level::Level;
use prorata_core::slots::share::{Share, may_take};
use prorata_core::slots::timetable::Timetable;
use prorata_core::slots::word::{Word, expiry_period};

pub fn user(user: u32) -> Caller {
    Caller {
        owner: Owner { user, client: None },
        privileged: user == 0,
    }
}

pub fn request(row: u32, column: u32, client: u32, level: Level) -> SlotRequest {
    SlotRequest {
        cell: Cell { row, column },
        schedulee: Schedulee::Client(ClientId::from_parts(client, 0)),
        level,
        expires: None,
    }
}

pub fn open(rows: u32, columns: u32) -> Timetable {
    Timetable::open(Geometry::new(rows, columns, 10_000_000, 0).unwrap())
}

pub fn grant(table: &mut Timetable, to: u32, level: Level, count: u32) {
    let amount = Amount::Absolute(count);
    let to = Account::User(to);
    table
        .set_tokens(&user(0), to, level, amount, Some(1), 0)
        .unwrap();
}

/// Preempts until nobody may; returns the steps.
fn settle(shares: &mut [Share], mut next: impl FnMut(u64) -> u64) -> u64 {
    for steps in 0..1_000_000 {
        let pairs = (0..shares.len()).flat_map(|p| (0..shares.len()).map(move |q| (p, q)));
        let able = pairs.filter(|&(p, q)| p != q && may_take(shares[p], shares[q]));
        let able: Vec<_> = able.collect();
        if able.is_empty() {
            return steps;
        }
        let (taker, holder) = able[next(able.len() as u64) as usize];
        shares[taker].claims += 1;
        shares[holder].claims -= 1;
    }
    panic!("preemptions do not end: {shares:?}");
}

fn share(claims: u64, weight: u32) -> Share {
    Share { claims, weight }
}

#[test]
fn preemptions_of_all_small_shares_end() {
    for n in 0..8_u64.pow(2) {
        for w in 0..4_u32.pow(3) {
            let mut shares = [
                share(n % 8, w % 4),
                share(n / 8, w / 4 % 4),
                share(5, w / 16),
            ];
            settle(&mut shares, |_| 0);
        }
    }
}

#[test]
fn preemptions_of_random_shares_end() {
    for seed in 0..300 {
        println!("seed {seed}");
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
        let accounts = 2 + below(&mut rng, 5);
        let mut shares: Vec<Share> = (0..accounts)
            .map(|_| share(below(&mut rng, 60), below(&mut rng, 20) as u32))
            .collect();
        settle(&mut shares, |bound| below(&mut rng, bound));
    }
}

#[test]
fn equal_accounts_come_to_60_60_and_40_40_40() {
    let mut table = open(1, 120);
    for account in 1..=3 {
        grant(&mut table, account, Level::BestEffort, 120);
        // Each tries all slots in turn; eight rounds are more than enough for nobody to gain.
        for (by, column) in (0..8)
            .flat_map(|_| 1..=account)
            .flat_map(|by| (0..120).map(move |column| (by, column)))
        {
            let claim = request(0, column, by, Level::BestEffort);
            table
                .claim_slots(&user(by), &[claim], Mode::BestEffort, None, 0)
                .unwrap();
        }
        let counts: Vec<u64> = (1..=account)
            .map(|a| {
                let tokens = table.bank().tokens(Account::User(a), Level::BestEffort);
                tokens.spent
            })
            .collect();
        assert_eq!(counts, vec![120 / u64::from(account); account as usize]);
        assert!(table.audit());
    }
}

#[test]
fn system_and_hard_do_not_share_and_only_system_preempts_hard() {
    let mut table = open(1, 4);
    for account in 1..=2 {
        for level in Level::ALL {
            grant(&mut table, account, level, 4);
        }
    }
    let mut claim = |account, level| {
        let claim = [request(0, 0, account, level)];
        let mode = Mode::AllOrNothing;
        table
            .claim_slots(&user(account), &claim, mode, None, 0)
            .is_ok()
    };
    assert!(claim(1, Level::Hard));
    assert!(!claim(2, Level::Hard));
    assert!(!claim(2, Level::Soft1));
    assert!(claim(2, Level::System));
    assert!(!claim(1, Level::System));
}

#[test]
fn staging_never_shows_half_a_gang() {
    for seed in 0..100 {
        println!("seed {seed}");
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
        let mut table = open(4, 5);
        grant(&mut table, 1, Level::Gang, 20);
        let mut decided = 0;
        for tick in 0..60 {
            table.advance(tick);
            let running: Vec<_> = (0..4).map(|row| table.at(row, tick)).collect();
            assert!(running.iter().all(|&run| run == running[0]), "{running:?}");
            for _ in 0..below(&mut rng, 3) {
                let column = below(&mut rng, 5) as u32;
                decided += 1;
                let gang = [0, 1, 2, 3].map(|row| request(row, column, decided, Level::Gang));
                if below(&mut rng, 3) > 0 {
                    let mode = Mode::AllOrNothing;
                    let outcome = table.claim_slots(&user(1), &gang, mode, None, tick);
                    outcome.unwrap();
                } else {
                    let cells = gang.map(|member| member.cell);
                    table.free_slots(&user(1), &cells, tick).unwrap();
                }
            }
        }
    }
}

#[test]
fn words_survive_packing() {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(1);
    for _ in 0..10_000 {
        let word = Word {
            schedulee: 1 + below(&mut rng, (1 << 20) - 1) as u32,
            distance: 1 + below(&mut rng, 4_096) as u32,
            expiry: below(&mut rng, 1 << 32) as u32,
        };
        assert_eq!(Word::unpack(word.pack()), Some(word));
    }
    assert_eq!(Word::unpack(0), None);
}

#[test]
fn a_packed_expiry_loses_no_tick() {
    for columns in 1..7 {
        for column in 0..columns {
            for tick in (u64::from(column)..60).step_by(columns as usize) {
                for expires in u64::from(column) + 1..60 {
                    let expiry = expiry_period(expires, column, columns).unwrap();
                    let word = Word {
                        schedulee: 1,
                        distance: 1,
                        expiry,
                    };
                    let valid = word.is_valid(tick / u64::from(columns));
                    assert_eq!(valid, tick < expires, "{tick} {expires} {column}/{columns}");
                }
            }
        }
    }
}

#[test]
fn shapes_are_taken_at_the_limit_and_refused_one_past() {
    let shape = |rows, columns, ns| Geometry::new(rows, columns, ns, 0).is_ok();
    assert!(shape(256, 4_096, 1_000_000) && !shape(257, 4_096, 1_000_000));
    assert!(!shape(1, 4_097, 1_000_000) && !shape(0, 1, 1_000_000) && !shape(1, 0, 1_000_000));
    assert!(shape(1 << 20, 1, 100_000_000) && !shape((1 << 20) + 1, 1, 1_000_000));
    assert!(!shape(1, 1, 999_999) && !shape(1, 1, 100_000_001));
}

#[test]
fn vectors_and_schedulees_are_taken_at_the_limit_and_refused_one_past() {
    let mut table = open(17, 4_096);
    grant(&mut table, 1, Level::BestEffort, 1 << 20);
    let all: Vec<SlotRequest> = (0..=65_536)
        .map(|n| request(n / 4_096, n % 4_096, n, Level::BestEffort))
        .collect();
    let mode = Mode::AllOrNothing;
    for vector in all[..65_536].chunks(VECTOR) {
        table.claim_slots(&user(1), vector, mode, None, 0).unwrap();
    }
    let one_more = table.claim_slots(&user(1), &all[65_536..], mode, None, 0);
    assert_eq!(one_more, Err(SlotError::ManySchedulees(65_536)));
    let long = table.claim_slots(&user(1), &all[..=VECTOR], mode, None, 0);
    assert_eq!(long, Err(SlotError::LongVector(VECTOR + 1)));
    assert!(table.audit());
}

#[test]
fn ten_thousand_claimants_and_accounts_past_the_limit_leave_the_bank_intact() {
    let mut table = open(100, 120);
    for account in 1..=10_000 {
        grant(&mut table, account, Level::BestEffort, 1);
        let claim = request(account % 100, account / 100, account, Level::BestEffort);
        table
            .claim_slots(&user(account), &[claim], Mode::AllOrNothing, None, 0)
            .unwrap();
    }
    assert_eq!(table.table().claimed(), 10_000);
    for account in 10_001..=65_536 {
        grant(&mut table, account, Level::BestEffort, 1);
    }
    let to = Account::User(65_537);
    let one_more = table.set_tokens(&user(0), to, Level::Gang, Amount::Absolute(1), None, 0);
    assert_eq!(one_more, Err(SlotError::ManyAccounts(65_536)));
    assert!(table.audit());
}

#[test]
fn a_row_without_cpu_keeps_its_claims_and_runs_none() {
    let mut table = open(2, 2);
    grant(&mut table, 1, Level::Gang, 1);
    let claim = [request(1, 0, 7, Level::Gang)];
    table
        .claim_slots(&user(1), &claim, Mode::AllOrNothing, None, 0)
        .unwrap();
    table.set_online(1, false).unwrap();
    assert_eq!(table.at(1, 2), None);
    table.set_online(1, true).unwrap();
    assert_eq!(table.at(1, 2), Some(claim[0].schedulee));
    assert!(table.set_online(2, false).is_err());
}
