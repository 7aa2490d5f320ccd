//! What a claim and a free of a slot cost, each by a call of its own and in vectors of 100, in an empty
//! table and in one with 100,000 claims.
//!
//! Calls come one by one with the ticks at which their changes come into force, as in a daemon.

use std::time::Instant;

use prorata_core::slots::Mode;
use prorata_core::slots::bank::Amount;
use prorata_core::slots::claim::{Account, Caller, Owner, Schedulee, SlotRequest};
use prorata_core::slots::geometry::{Cell, Geometry, Tick};
use prorata_core::slots::level::Level;
use prorata_core::slots::timetable::Timetable;
use prorata_report::figures::{self, Figure};

const ROWS: u32 = 1_024;
const COLUMNS: u32 = 120;
const SLOT_NS: u64 = 10_000_000;
/// Rows that a full table has claimed. The others are claimed and freed.
const CLAIMED_ROWS: u32 = 840;
const USER: u32 = 1_000;
const ROUNDS: usize = 400;

const CALLER: Caller = Caller {
    owner: Owner {
        user: USER,
        client: None,
    },
    privileged: true,
};

struct Bench {
    table: Timetable,
    now: Tick,
}

impl Bench {
    fn new(claimed_rows: u32) -> Self {
        let geometry = Geometry::new(ROWS, COLUMNS, SLOT_NS, 0).expect("a legal table");
        let mut bench = Bench {
            table: Timetable::open(geometry),
            now: 0,
        };
        let (account, amount) = (Account::User(USER), Amount::Absolute(1 << 20));
        bench
            .table
            .set_tokens(&CALLER, account, Level::Hard, amount, None, 0)
            .expect("the caller is privileged");
        for row in 0..claimed_rows {
            bench.claim(row, 0..COLUMNS);
        }
        bench
    }

    /// The change comes into force.
    fn go_on(&mut self) {
        self.now += 2;
        self.table.advance(self.now);
    }

    /// Claims slots of a row. Returns how long that took.
    fn claim(&mut self, row: u32, columns: std::ops::Range<u32>) -> u64 {
        let requests = columns.map(|column| SlotRequest {
            cell: Cell { row, column },
            schedulee: Schedulee::Process {
                pid: 1_000 + row,
                started: 1,
            },
            level: Level::Hard,
            expires: None,
        });
        let requests: Vec<SlotRequest> = requests.collect();
        let begun = Instant::now();
        let claimed =
            self.table
                .claim_slots(&CALLER, &requests, Mode::AllOrNothing, None, self.now);
        let ns = begun.elapsed().as_nanos() as u64;
        claimed.expect("they are free");
        self.go_on();
        ns
    }

    fn free(&mut self, row: u32, columns: std::ops::Range<u32>) -> u64 {
        let cells: Vec<Cell> = columns.map(|column| Cell { row, column }).collect();
        let begun = Instant::now();
        let freed = self.table.free_slots(&CALLER, &cells, self.now);
        let ns = begun.elapsed().as_nanos() as u64;
        freed.expect("they are ours");
        self.go_on();
        ns
    }

    /// The medians of a claim and of a free in vectors of this length, in ns a slot.
    fn measure(&mut self, length: u32) -> [f64; 2] {
        let (mut claims, mut frees) = (Vec::new(), Vec::new());
        for round in 0..ROUNDS {
            let row = CLAIMED_ROWS + (round as u32 * 7) % (ROWS - CLAIMED_ROWS);
            let first = (round as u32 * 11) % (COLUMNS - length + 1);
            claims.push(self.claim(row, first..first + length));
            frees.push(self.free(row, first..first + length));
        }
        [claims, frees].map(|mut ns| {
            ns.sort_unstable();
            ns[ROUNDS / 2] as f64 / f64::from(length)
        })
    }
}

fn main() {
    let mut reached = Vec::new();
    for (name, rows) in [("an empty table", 0), ("100,800 claims", CLAIMED_ROWS)] {
        let mut bench = Bench::new(rows);
        for length in [1, 100] {
            let measured = bench.measure(length);
            for (what, ns) in ["claim", "free"].into_iter().zip(measured) {
                println!("{what} of a slot, {length} in a call, {name}: {ns:.0} ns");
                // A thousand a millisecond.
                let figure = format!("{what} of a slot, {length} in a call, {name}");
                reached.push(Figure::at_most(figure, ns, "ns", 1_000.0));
            }
        }
    }
    figures::keep(env!("CARGO_TARGET_TMPDIR"), "timetable", &reached);
}
