//! What a daemon writes is what others read.

use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use prorata_bulletin::{BulletinError, FILE_NAME, Reader, Rows, Writer};
use prorata_core::ids::ClientId;
use prorata_core::rng::{SeedableRng, Xoshiro256PlusPlus, below};
use prorata_core::slots::Mode;
use prorata_core::slots::bank::Amount;
use prorata_core::slots::claim::{Account, Caller, Owner, Schedulee, SlotRequest};
use prorata_core::slots::geometry::{Cell, Geometry};
use prorata_core::slots::level::Level;
use prorata_core::slots::timetable::Timetable;

const USER: u32 = 7;
const COLUMNS: u32 = 12;

fn caller() -> Caller {
    Caller {
        owner: Owner {
            user: USER,
            client: Some(ClientId::from_parts(3, 9)),
        },
        privileged: true,
    }
}

fn table(rows: u32) -> Timetable {
    let mut table = Timetable::open(Geometry::new(rows, COLUMNS, 1_000_000, 50).unwrap());
    let (account, amount) = (Account::User(USER), Amount::Absolute(100));
    for level in Level::ALL {
        table
            .set_tokens(&caller(), account, level, amount, Some(1), 0)
            .unwrap();
    }
    table
}

fn schedulee(number: u64) -> Schedulee {
    match number % 3 {
        0 => Schedulee::Client(ClientId::from_parts(number as u32, 1 << 31)),
        1 => Schedulee::Process {
            pid: number as u32,
            started: number << 40,
        },
        _ => Schedulee::Thread {
            tid: number as u32,
            started: 5,
        },
    }
}

/// Claims, changes and frees at random, in ticks that pass at random.
fn step(table: &mut Timetable, rng: &mut Xoshiro256PlusPlus, now: &mut u64) {
    *now += below(rng, 2);
    let rows = table.geometry().rows();
    let cell = Cell {
        row: below(rng, rows.into()) as u32,
        column: below(rng, COLUMNS.into()) as u32,
    };
    match below(rng, 4) {
        0 => drop(table.free_slots(&caller(), &[cell], *now).unwrap()),
        _ => {
            let request = SlotRequest {
                cell,
                schedulee: schedulee(below(rng, 20)),
                level: Level::ALL[below(rng, 7) as usize],
                expires: (below(rng, 3) == 0).then(|| *now + below(rng, 40)),
            };
            let requests = [request];
            drop(table.claim_slots(&caller(), &requests, Mode::BestEffort, None, *now));
        }
    }
}

fn compare(table: &Timetable, reader: &Reader, now: u64) {
    assert_eq!(reader.geometry(), table.geometry());
    assert_eq!(reader.generation(), table.generation());
    for row in 0..table.geometry().rows() {
        for tick in now..now + 3 * u64::from(COLUMNS) {
            assert_eq!(
                reader.at(row, tick),
                table.at(row, tick),
                "row {row}, tick {tick}"
            );
            assert_eq!(
                reader.next_claimed(row, tick),
                table.next_claimed(row, tick)
            );
        }
    }
    let snapshot = reader.snapshot().unwrap();
    assert_eq!(snapshot.generation, table.generation());
    let claims = table.table().claims();
    let expected: Vec<_> = claims
        .map(|(cell, claim)| {
            (
                cell,
                claim.owner,
                claim.schedulee,
                claim.level,
                claim.expires,
            )
        })
        .collect();
    let read = snapshot.claims.iter();
    let read: Vec<_> = read
        .map(|claim| {
            (
                claim.cell,
                claim.owner,
                claim.schedulee,
                claim.level,
                claim.expires,
            )
        })
        .collect();
    assert_eq!(read, expected);
}

#[test]
fn readers_see_the_table_after_each_publication() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join(FILE_NAME);
    for seed in 0..20 {
        println!("seed {seed}");
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
        let (mut table, mut now) = (table(2), 0);
        for _ in 0..10 {
            step(&mut table, &mut rng, &mut now);
        }
        let writer = Writer::create(&path, &mut table, &[4, 6]).unwrap();
        let reader = Reader::open(&path).unwrap();
        assert_eq!(reader.cpus(), [4, 6]);
        compare(&table, &reader, now);
        for _ in 0..300 {
            step(&mut table, &mut rng, &mut now);
            writer.publish(&mut table);
            compare(&table, &reader, now);
        }
        table.set_online(1, false).unwrap();
        writer.publish(&mut table);
        compare(&table, &reader, now);
        drop(writer);
        assert!(!reader.is_open());
        assert!(matches!(Reader::open(&path), Err(BulletinError::None(_))));
    }
}

#[test]
fn a_new_file_shows_claims_that_came_into_force_before_it() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join(FILE_NAME);
    let mut table = table(1);
    let request = SlotRequest {
        cell: Cell { row: 0, column: 3 },
        schedulee: schedulee(1),
        level: Level::Hard,
        expires: None,
    };
    table
        .claim_slots(&caller(), &[request], Mode::AllOrNothing, None, 0)
        .unwrap();
    table.advance(COLUMNS.into());
    assert_eq!(table.staging().switch(), None);
    let _writer = Writer::create(&path, &mut table, &[0]).unwrap();
    let reader = Reader::open(&path).unwrap();
    compare(&table, &reader, COLUMNS.into());
    assert_eq!(reader.at(0, u64::from(COLUMNS) + 3), Some(schedulee(1)));
}

/// A snapshot is never a mixture: each change here moves all claims to another owner's level.
#[test]
fn a_copy_of_the_claims_is_of_one_moment() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join(FILE_NAME);
    let mut table = table(1);
    let writer = Writer::create(&path, &mut table, &[0]).unwrap();
    let reader = Reader::open(&path).unwrap();
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut whole = 0;
            let mut is_done = false;
            while !is_done || whole == 0 {
                is_done = done.load(Ordering::Acquire);
                // A reader whose every attempt is disturbed has none.
                let Some(snapshot) = reader.snapshot() else {
                    assert!(!is_done, "nothing disturbs it any more");
                    continue;
                };
                let levels = snapshot.claims.iter().map(|claim| claim.level);
                let levels: std::collections::BTreeSet<_> = levels.collect();
                assert!(levels.len() <= 1, "{levels:?}");
                whole += levels.len();
            }
        });
        for round in 0..2_000 {
            let request = |column| SlotRequest {
                cell: Cell { row: 0, column },
                schedulee: schedulee(1),
                level: Level::ALL[round % 7],
                expires: None,
            };
            let requests: Vec<_> = (0..COLUMNS).map(request).collect();
            let now = round as u64;
            let claimed = table.claim_slots(&caller(), &requests, Mode::BestEffort, None, now);
            assert_eq!(claimed.unwrap().value.claimed.len(), 12);
            writer.publish(&mut table);
        }
        done.store(true, Ordering::Release);
    });
}

#[test]
fn a_change_wakes_those_that_wait() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join(FILE_NAME);
    let mut table = table(1);
    let writer = Writer::create(&path, &mut table, &[0]).unwrap();
    let reader = Reader::open(&path).unwrap();
    let before = reader.sequence();
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| {
            while reader.sequence() == before {
                reader.wait(before, None).unwrap();
            }
        });
        // Without a change nobody is woken.
        writer.publish(&mut table);
        assert_eq!(reader.sequence(), before);
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(1);
        while reader.sequence() == before {
            step(&mut table, &mut rng, &mut 0);
            writer.publish(&mut table);
        }
        waiting.join().unwrap();
    });
    // A time that has passed ends the wait.
    reader.wait(reader.sequence(), Some(1)).unwrap();
}

#[test]
fn a_change_wakes_those_that_wait_for_its_row() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join(FILE_NAME);
    let mut table = table(2);
    let writer = Writer::create(&path, &mut table, &[0, 1]).unwrap();
    let mut claim = |row| {
        let request = SlotRequest {
            cell: Cell { row, column: 0 },
            schedulee: schedulee(1),
            level: Level::Hard,
            expires: None,
        };
        let claimed = table.claim_slots(&caller(), &[request], Mode::AllOrNothing, None, 0);
        claimed.unwrap();
        writer.publish(&mut table);
    };
    let reader = Reader::open(&path).unwrap();
    let before = reader.sequence();
    let own = || rustix::thread::gettid().as_raw_nonzero().get();
    let (tell, told) = std::sync::mpsc::channel();
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| {
            tell.send(own()).unwrap();
            reader.wait_for(Rows::one(1), before, None).unwrap();
            reader.sequence()
        });
        let thread = told.recv().unwrap();
        while !sleeps(thread) {
            std::thread::yield_now();
        }
        claim(0);
        let other = reader.sequence();
        assert_ne!(other, before);
        // A wake would show at once.
        assert!(sleeps(thread));
        claim(1);
        assert_ne!(waiting.join().unwrap(), other);
    });
}

/// Whether a thread of this process sleeps.
fn sleeps(thread: i32) -> bool {
    let state = std::fs::read_to_string(format!("/proc/self/task/{thread}/stat"));
    state.is_ok_and(|state| state.contains(") S "))
}

#[test]
fn what_is_no_table_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join(FILE_NAME);
    assert!(matches!(Reader::open(&path), Err(BulletinError::None(_))));
    for bytes in [0, 1, 4_095, 4_096, 100_000] {
        std::fs::write(&path, vec![b'x'; bytes]).unwrap();
        assert!(matches!(
            Reader::open(&path),
            Err(BulletinError::Foreign(_))
        ));
    }
    std::fs::remove_file(&path).unwrap();
    damage_each_byte(&path);
}

/// Reads all that a table's file says, past its rows too. Returns whether it is one.
fn read_all(path: &Path) -> bool {
    let Ok(reader) = Reader::open(path) else {
        return false;
    };
    let _ = (reader.snapshot(), reader.published(), reader.is_open());
    for row in 0..3 {
        let _ = (reader.at(row, 5), reader.next_claimed(row, u64::MAX - 5));
        let _ = (reader.next_claimed(row, 5), reader.is_online(row));
    }
    true
}

/// Bytes from the beginning that the next test damages: header, words, claims and some schedulees.
const DAMAGED_BYTES: u64 = 8_192;

#[test]
fn no_damage_harms_a_reader() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join(FILE_NAME);
    let copy = path.with_extension("copy");
    let mut table = table(2);
    let (mut rng, mut now) = (Xoshiro256PlusPlus::seed_from_u64(2), 0);
    (0..50).for_each(|_| step(&mut table, &mut rng, &mut now));
    let _writer = Writer::create(&path, &mut table, &[0, 1]).unwrap();
    let good = std::fs::read(&path).unwrap();
    std::fs::write(&copy, &good).unwrap();
    let file = std::fs::OpenOptions::new().write(true).open(&copy).unwrap();
    let mut read = 0;
    for seed in 0..2_000 {
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
        for _ in 0..=below(&mut rng, 16) {
            let offset = below(&mut rng, DAMAGED_BYTES / 4) * 4;
            let bits = below(&mut rng, u64::from(u32::MAX)) as u32;
            let word = [0, 1, 3, bits, u32::MAX][below(&mut rng, 5) as usize];
            file.write_all_at(&word.to_ne_bytes(), offset).unwrap();
        }
        read += u32::from(read_all(&copy));
        file.write_all_at(&good[..DAMAGED_BYTES as usize], 0)
            .unwrap();
    }
    assert!(read > 1_000, "only {read} were tables");
}

/// Whatever the header says, reading ends, within the file.
fn damage_each_byte(path: &Path) {
    let copy = path.with_extension("copy");
    let mut table = table(1);
    let _writer = Writer::create(path, &mut table, &[0]).unwrap();
    let good = std::fs::read(path).unwrap();
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(1);
    for offset in 0..128 {
        let mut bad = good.clone();
        bad[offset] ^= 1 + below(&mut rng, 255) as u8;
        std::fs::write(&copy, &bad).unwrap();
        read_all(&copy);
    }
    std::fs::write(&copy, &good[..good.len() - 1]).unwrap();
    assert!(matches!(
        Reader::open(&copy),
        Err(BulletinError::Foreign(_))
    ));
}
