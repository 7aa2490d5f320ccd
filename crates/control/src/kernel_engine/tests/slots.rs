//! The timetable as the kernel is told it.

use std::path::PathBuf;

use prorata_bulletin::{FILE_NAME, Reader, Writer, now_ns};
use prorata_core::slots::Mode;
use prorata_core::slots::bank::Amount;
use prorata_core::slots::claim::{Account, Caller, Owner, Schedulee, SlotRequest};
use prorata_core::slots::geometry::{Cell, Geometry};
use prorata_core::slots::level::Level;
use prorata_core::slots::timetable::Timetable;
use prorata_core::slots::word::Word;
use prorata_kernel::scheduler::{GIFT, InSlot};

use super::over_fake::{EngineOverFake, Sleeper, eventually};
use super::*;

const COLUMNS: u32 = 10;
const STRANGER: u32 = 4_000_000;

fn caller(user: u32) -> Caller {
    Caller {
        owner: Owner { user, client: None },
        privileged: true,
    }
}

/// A table of two CPUs whose file an engine follows.
struct Published {
    table: Timetable,
    writer: Writer,
    path: PathBuf,
}

impl Published {
    fn new(over_fake: &EngineOverFake) -> Self {
        let geometry = Geometry::new(2, COLUMNS, 1_000_000, now_ns()).unwrap();
        let mut table = Timetable::open(geometry);
        for user in [0, STRANGER] {
            let (account, amount) = (Account::User(user), Amount::Absolute(100));
            let set = table.set_tokens(&caller(user), account, Level::Hard, amount, Some(1), 0);
            set.unwrap();
        }
        let path = over_fake.directory.path().join(FILE_NAME);
        let writer = Writer::create(&path, &mut table, &[0, 1]).unwrap();
        Self {
            table,
            writer,
            path,
        }
    }

    fn reader(&self) -> Reader {
        Reader::open(&self.path).unwrap()
    }

    /// Lets time pass, as a daemon does: a change may have to wait for the one before it.
    fn pass(&mut self) {
        let now = self.table.geometry().tick_at(now_ns());
        self.table.advance(now);
        self.writer.publish(&mut self.table);
    }

    /// A user claims cells of the first row for a schedulee.
    fn claim(&mut self, user: u32, columns: &[u32], schedulee: Schedulee) {
        let requests = columns.iter().map(|&column| SlotRequest {
            cell: Cell { row: 0, column },
            schedulee,
            level: Level::Hard,
            expires: None,
        });
        let requests: Vec<SlotRequest> = requests.collect();
        let now = self.table.geometry().tick_at(now_ns());
        let claimed =
            self.table
                .claim_slots(&caller(user), &requests, Mode::AllOrNothing, None, now);
        claimed.unwrap();
        self.writer.publish(&mut self.table);
    }
}

/// The schedulees of the first cells as the kernel was told them last.
fn told(over_fake: &EngineOverFake, cells: usize) -> Vec<Option<(InSlot, bool)>> {
    let books = over_fake.kernel.books();
    let words = books.words.iter().take(cells);
    let told = words.map(|word| {
        let word = Word::unpack(*word)?;
        let number = word.schedulee & !GIFT;
        Some((books.schedulees[&number], word.schedulee & GIFT != 0))
    });
    told.collect()
}

#[test]
fn the_kernel_is_told_each_change_of_the_timetable() {
    let over_fake = EngineOverFake::new();
    let client = over_fake.client(100);
    let sleeper = Sleeper::start();
    over_fake.engine.manage(client, sleeper.id()).unwrap();
    let mut published = Published::new(&over_fake);
    let enforced = over_fake.engine.enforce_slots(Some(published.reader()));
    assert_eq!(enforced.unwrap(), "kernel, among clients");
    assert_eq!(over_fake.kernel.books().cells, Some(20));

    let node = InSlot::Node(over_fake.node(client));
    published.claim(0, &[1, 2], Schedulee::Client(client));
    let expected = [None, Some((node, false)), Some((node, false)), None];
    eventually(|| {
        published.pass();
        (told(&over_fake, 4) == expected).then_some(())
    });

    // What another user claims for it is a gift; what does not live has no slots.
    let process = Schedulee::Process {
        pid: sleeper.id().pid,
        started: sleeper.id().start_time_ticks,
    };
    let ended = Schedulee::Process {
        pid: sleeper.id().pid,
        started: 1,
    };
    published.claim(STRANGER, &[0], process);
    published.claim(0, &[3], ended);
    published.claim(0, &[4], process);
    let in_slot = InSlot::Process {
        pid: sleeper.id().pid,
        started: sleeper.id().start_time_ticks,
    };
    let expected = [
        Some((in_slot, true)),
        Some((node, false)),
        Some((node, false)),
        None,
        Some((in_slot, false)),
    ];
    eventually(|| {
        published.pass();
        (told(&over_fake, 5) == expected).then_some(())
    });

    assert_eq!(over_fake.engine.enforce_slots(None).unwrap(), "none");
    assert_eq!(over_fake.kernel.books().cells, None);
}

#[test]
fn a_scheduler_that_is_loaded_again_is_told_the_timetable() {
    let over_fake = EngineOverFake::new();
    let client = over_fake.client(100);
    let mut published = Published::new(&over_fake);
    let reader = published.reader();
    over_fake.engine.enforce_slots(Some(reader)).unwrap();
    published.claim(0, &[7], Schedulee::Client(client));
    eventually(|| told(&over_fake, 8)[7]);
    over_fake.kernel.eject("a test");
    eventually(|| (over_fake.kernel.books().loads == 2).then_some(()));
    let node = InSlot::Node(over_fake.node(client));
    eventually(|| (told(&over_fake, 8).get(7) == Some(&Some((node, false)))).then_some(()));
}
