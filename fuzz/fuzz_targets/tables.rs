//! Fuzzes readers of the public timetable: whatever words of its file are damaged, reading it ends, inside
//! the file.
#![no_main]

use std::fs;
use std::path::PathBuf;
use std::sync::OnceLock;

use libfuzzer_sys::fuzz_target;
use prorata_bulletin::{Reader, Writer};
use prorata_core::slots::Mode;
use prorata_core::slots::bank::Amount;
use prorata_core::slots::claim::{Account, Caller, Owner, Schedulee, SlotRequest};
use prorata_core::slots::geometry::{Cell, Geometry};
use prorata_core::slots::level::Level;
use prorata_core::slots::timetable::Timetable;

const ROWS: u32 = 2;
const COLUMNS: u32 = 12;

/// A table's file, and where damaged copies of it go.
struct Good {
    bytes: Vec<u8>,
    copy: PathBuf,
}

static GOOD: OnceLock<Good> = OnceLock::new();

fuzz_target!(|bytes: &[u8]| {
    let good = GOOD.get_or_init(good);
    let mut bad = good.bytes.clone();
    // Two bytes say where, and four what.
    for damage in bytes.chunks_exact(6) {
        let offset = usize::from(u16::from_ne_bytes([damage[0], damage[1]])) * 4 % (bad.len() - 3);
        bad[offset..offset + 4].copy_from_slice(&damage[2..]);
    }
    fs::write(&good.copy, &bad).expect("there is room");
    let Ok(reader) = Reader::open(&good.copy) else {
        return;
    };
    let _ = (reader.snapshot(), reader.published(), reader.is_open());
    for row in 0..=ROWS {
        let _ = (reader.at(row, 5), reader.is_online(row));
        let _ = (reader.next_claimed(row, 5), reader.next_claimed(row, u64::MAX - 5));
    }
});

fn good() -> Good {
    let path = std::env::temp_dir().join(format!("prorata-fuzz-{}", std::process::id()));
    let geometry = Geometry::new(ROWS, COLUMNS, 10_000_000, 0).expect("it is a shape");
    let mut table = Timetable::open(geometry);
    let caller = Caller {
        owner: Owner {
            user: 0,
            client: None,
        },
        privileged: true,
    };
    let more = Amount::Absolute(24);
    table
        .set_tokens(&caller, Account::User(0), Level::Hard, more, Some(1), 0)
        .expect("the bank has room");
    let request = |cell| SlotRequest {
        cell,
        schedulee: Schedulee::Process {
            pid: cell.column + 1,
            started: 1,
        },
        level: Level::Hard,
        expires: None,
    };
    let cells = (0..ROWS).flat_map(|row| (0..COLUMNS / 2).map(move |column| Cell { row, column }));
    let requests: Vec<SlotRequest> = cells.map(request).collect();
    table
        .claim_slots(&caller, &requests, Mode::AllOrNothing, None, 0)
        .expect("all are free");
    let writer = Writer::create(&path, &mut table, &[0, 1]).expect("there is room");
    let bytes = fs::read(&path).expect("it was written");
    drop(writer);
    Good {
        bytes,
        copy: path.with_extension("copy"),
    }
}
