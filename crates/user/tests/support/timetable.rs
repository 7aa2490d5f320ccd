//! A public timetable for an engine to enforce.

use std::path::{Path, PathBuf};
use std::time::Duration;

use prorata_bulletin::{FILE_NAME, Reader, Writer};
use prorata_core::slots::Mode;
use prorata_core::slots::bank::Amount;
use prorata_core::slots::claim::{Account, Caller, Owner, Schedulee, SlotRequest};
use prorata_core::slots::geometry::{Cell, Geometry};
use prorata_core::slots::level::Level;
use prorata_core::slots::timetable::Timetable;

use super::id_of;

/// What a daemon does about its table, as far as an engine sees it.
pub struct Bulletin {
    table: Timetable,
    writer: Writer,
    path: PathBuf,
}

impl Bulletin {
    /// A table of these CPUs with slots of so many milliseconds.
    pub fn open(directory: &Path, cpus: &[u32], columns: u32, slot_ms: u64) -> Bulletin {
        let path = directory.join(FILE_NAME);
        let (rows, slot_ns) = (cpus.len() as u32, slot_ms * super::MS);
        let geometry = Geometry::new(rows, columns, slot_ns, now_ns()).expect("a small table");
        let mut table = Timetable::open(geometry);
        let writer = Writer::create(&path, &mut table, cpus).expect("the directory is ours");
        Bulletin {
            table,
            writer,
            path,
        }
    }

    pub fn reader(&self) -> Reader {
        Reader::open(&self.path).expect("it is there")
    }

    /// The tick that is under way.
    pub fn tick(&self) -> u64 {
        self.table.geometry().tick_at(now_ns())
    }

    /// Claims these columns of a row, for a user, until a tick.
    pub fn claim_until(
        &mut self,
        user: u32,
        row: u32,
        columns: std::ops::Range<u32>,
        schedulee: Schedulee,
        expires: Option<u64>,
    ) {
        let caller = caller(user);
        let now = self.tick();
        let (account, amount) = (Account::User(user), Amount::Absolute(10_000));
        self.table
            .set_tokens(&caller, account, Level::Hard, amount, None, now)
            .expect("the caller is privileged");
        let requests = columns.map(|column| SlotRequest {
            cell: Cell { row, column },
            schedulee,
            level: Level::Hard,
            expires,
        });
        let requests: Vec<_> = requests.collect();
        self.table
            .claim_slots(&caller, &requests, Mode::AllOrNothing, None, now)
            .expect("they are free");
        self.writer.publish(&mut self.table);
        self.come_into_force();
    }

    /// A change in a later tick waits until this one is in force.
    fn come_into_force(&mut self) {
        while let Some(from) = self.table.staging().from_tick() {
            let begin_ns = self.table.geometry().begin_ns(from);
            std::thread::sleep(Duration::from_nanos(begin_ns.saturating_sub(now_ns())));
            self.table.advance(self.tick());
            self.writer.publish(&mut self.table);
        }
    }

    /// Frees these columns of a row, which is in force when this returns.
    pub fn free(&mut self, row: u32, columns: std::ops::Range<u32>) {
        let user = rustix::process::getuid().as_raw();
        let now = self.tick();
        let cells: Vec<Cell> = columns.map(|column| Cell { row, column }).collect();
        self.table
            .free_slots(&caller(user), &cells, now)
            .expect("they are ours");
        self.writer.publish(&mut self.table);
        self.come_into_force();
    }

    /// Claims columns for good, as this user.
    pub fn claim(&mut self, row: u32, columns: std::ops::Range<u32>, schedulee: Schedulee) {
        let user = rustix::process::getuid().as_raw();
        self.claim_until(user, row, columns, schedulee, None);
    }

    /// Notes that the CPU of a row has gone.
    pub fn set_offline(&mut self, row: u32) {
        self.table
            .set_online(row, false)
            .expect("there is such a row");
        self.writer.publish(&mut self.table);
    }
}

fn caller(user: u32) -> Caller {
    Caller {
        owner: Owner { user, client: None },
        privileged: true,
    }
}

/// A process as a schedulee.
pub fn process(pid: u32) -> Schedulee {
    let id = id_of(pid);
    Schedulee::Process {
        pid,
        started: id.start_time_ticks,
    }
}

/// A thread of a process as a schedulee.
pub fn thread(pid: u32, tid: u32) -> Schedulee {
    let stat = prorata_user::procfs::thread_stat(pid, tid).expect("it runs");
    Schedulee::Thread {
        tid,
        started: stat.start_time_ticks,
    }
}

pub fn now_ns() -> u64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    now.tv_sec as u64 * 1000 * super::MS + now.tv_nsec as u64
}
