//! A program finds its own slots in the public table.

use prorata_bulletin::{FILE_NAME, Reader, Writer};
use prorata_core::slots::Mode;
use prorata_core::slots::bank::Amount;
use prorata_core::slots::claim::{Account, Caller, Owner, SlotRequest};
use prorata_core::slots::timetable::Timetable;
use prorata_slots::{Cell, Geometry, Level, Schedulee, next_slot};

const CALLER: Caller = Caller {
    owner: Owner {
        user: 7,
        client: None,
    },
    privileged: true,
};

fn process(pid: u32) -> Schedulee {
    Schedulee::Process { pid, started: 1 }
}

#[test]
fn the_next_own_slot_is_found_on_any_cpu_and_round_the_end() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join(FILE_NAME);
    let mut table = Timetable::open(Geometry::new(2, 12, 1_000_000, 0).unwrap());
    let (account, amount) = (Account::User(7), Amount::Absolute(24));
    table
        .set_tokens(&CALLER, account, Level::Hard, amount, Some(1), 0)
        .unwrap();
    let writer = Writer::create(&path, &mut table, &[0, 1]).unwrap();
    let reader = Reader::open(&path).unwrap();
    let next = |pid, from| next_slot(&reader, from, |schedulee| schedulee == process(pid));
    assert_eq!(next(1, 0), None);
    let request = |row, column, pid| SlotRequest {
        cell: Cell { row, column },
        schedulee: process(pid),
        level: Level::Hard,
        expires: None,
    };
    let requests = [request(0, 3, 1), request(1, 7, 1), request(0, 5, 2)];
    table
        .claim_slots(&CALLER, &requests, Mode::AllOrNothing, None, 0)
        .unwrap();
    writer.publish(&mut table);
    assert_eq!(
        [0, 3, 4, 7, 8].map(|from| next(1, from)),
        [3, 3, 7, 7, 15].map(Some)
    );
    assert_eq!(next(2, 6), Some(17));
    assert_eq!(next(3, 0), None);
    // Claims that come into force at tick 2 are not there before.
    let early = [request(0, 0, 4), request(0, 1, 4)];
    table
        .claim_slots(&CALLER, &early, Mode::AllOrNothing, None, 0)
        .unwrap();
    writer.publish(&mut table);
    assert_eq!(next(4, 0), Some(12));
}
