//! The side of all others.

use std::fs::File;
use std::io;
use std::num::NonZeroU32;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering::{Acquire, Relaxed};
use std::sync::atomic::fence;
use std::thread::JoinHandle;
use std::time::Duration;

use prorata_core::slots::SCHEDULEES;
use prorata_core::slots::claim::{Owner, Schedulee};
use prorata_core::slots::error::SlotError;
use prorata_core::slots::geometry::{Cell, Geometry, Tick};
use prorata_core::slots::level::Level;
use prorata_core::slots::word::Word;
use rustix::io::Errno;
use rustix::mm::ProtFlags;
use rustix::thread::futex;
use rustix::time::Timespec;

use crate::layout::{HEADER_BYTES, Layout, MAGIC, OPEN, VERSION, read, read_client};
use crate::memory::Memory;
use crate::rows::Rows;

/// How often a thread that is to end is woken, until it has.
const END_INTERVAL: Duration = Duration::from_millis(1);

/// How often a copy of the claims is begun anew while they change, before the reader gives up.
const ATTEMPTS: u32 = 1_000;

/// Why a table cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum BulletinError {
    /// There is no table.
    #[error("there is no timetable at {0}: `prorata slots open` opens one")]
    None(PathBuf),
    /// The system refuses.
    #[error("the timetable at {path} cannot be read: {source}")]
    System {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// Not a table's file, or one of another version.
    #[error("{0} is no timetable of this version: use the same version of prorata everywhere")]
    Foreign(PathBuf),
    /// A table's file that says what cannot be.
    #[error("the timetable at {path} is damaged ({reason}): close and open it")]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        reason: SlotError,
    },
}

/// The clock of all tables: the monotonic one.
pub fn now_ns() -> u64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

/// A claim as everybody sees it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PublicClaim {
    /// The slot.
    pub cell: Cell,
    /// The owner.
    pub owner: Owner,
    /// What runs.
    pub schedulee: Schedulee,
    /// The level.
    pub level: Level,
    /// The first tick at which the claim is not valid any more.
    pub expires: Option<Tick>,
    /// A later claim has a greater number.
    pub number: u64,
}

/// All claims at one moment.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Snapshot {
    /// The number of the last change.
    pub generation: u64,
    /// Row by row.
    pub claims: Vec<PublicClaim>,
}

/// A table, mapped.
#[derive(Debug)]
pub struct Reader {
    memory: Memory,
    layout: Layout,
    geometry: Geometry,
    cpus: Vec<u32>,
}

impl Reader {
    /// Maps the table at a path.
    ///
    /// # Errors
    ///
    /// If there is none, or if it cannot be read.
    pub fn open(path: &Path) -> Result<Self, BulletinError> {
        let file = File::open(path).map_err(|source| match source.kind() {
            io::ErrorKind::NotFound => BulletinError::None(path.to_owned()),
            _ => BulletinError::System {
                path: path.to_owned(),
                source,
            },
        })?;
        Self::map(&OwnedFd::from(file), path)
    }

    fn map(file: &OwnedFd, path: &Path) -> Result<Self, BulletinError> {
        let system = |source| BulletinError::System {
            path: path.to_owned(),
            source,
        };
        let foreign = || BulletinError::Foreign(path.to_owned());
        let bytes = rustix::fs::fstat(file).map_err(|error| system(error.into()))?;
        let bytes = usize::try_from(bytes.st_size).unwrap_or(0);
        if bytes < HEADER_BYTES {
            return Err(foreign());
        }
        let memory = Memory::map(file.as_fd(), bytes, ProtFlags::READ).map_err(system)?;
        let header = memory.header();
        if header.magic.load(Acquire) != MAGIC || header.version.load(Relaxed) != VERSION {
            return Err(foreign());
        }
        let geometry = Geometry::new(
            header.rows.load(Relaxed),
            header.columns.load(Relaxed),
            header.slot_ns.load(Relaxed),
            header.epoch_ns.load(Relaxed),
        );
        let geometry = geometry.map_err(|reason| BulletinError::Damaged {
            path: path.to_owned(),
            reason,
        })?;
        let layout = Layout::of(&geometry);
        if bytes < layout.bytes {
            return Err(foreign());
        }
        let rows = memory.rows(&layout, geometry.rows() as usize);
        let cpus = rows.iter().map(|row| row.cpu.load(Relaxed)).collect();
        Ok(Self {
            memory,
            layout,
            geometry,
            cpus,
        })
    }

    /// The table's shape.
    pub fn geometry(&self) -> &Geometry {
        &self.geometry
    }

    /// The CPU of each row.
    pub fn cpus(&self) -> &[u32] {
        &self.cpus
    }

    /// Whether a daemon keeps this table.
    pub fn is_open(&self) -> bool {
        self.memory.header().state.load(Acquire) == OPEN
    }

    /// Whether the CPU of a row is there.
    pub fn is_online(&self, row: u32) -> bool {
        let rows = self.memory.rows(&self.layout, self.cpus.len());
        rows.get(row as usize)
            .is_some_and(|row| row.is_online.load(Relaxed) != 0)
    }

    /// The number of the last change.
    pub fn generation(&self) -> u64 {
        self.memory.header().generation.load(Relaxed)
    }

    /// What has the row's CPU at a tick, which is the present one or a later one; none where the
    /// fallback does. One look-up, whatever the number of claims; no call.
    pub fn at(&self, row: u32, tick: Tick) -> Option<Schedulee> {
        let word = self.word(row, tick)?;
        let period = tick / u64::from(self.geometry.columns());
        if !word.is_valid(period) || !self.is_online(row) {
            return None;
        }
        self.schedulee(word.schedulee)
    }

    /// From which tick on the last published change is in force, and what each cell holds from then on,
    /// row by row: the word and its schedulee. The daemon may publish another change meanwhile:
    /// [`Reader::sequence`] tells.
    pub fn published(&self) -> (Tick, Vec<Option<(Word, Schedulee)>>) {
        let switch = self.memory.header().switch.load(Acquire);
        let (from, buffer) = (switch >> 1, (switch & 1) as usize);
        let words = self
            .memory
            .words(&self.layout, buffer, self.geometry.cells());
        let read = |word: &std::sync::atomic::AtomicU64| {
            let word = Word::unpack(word.load(Acquire))?;
            Some((word, self.schedulee(word.schedulee)?))
        };
        (from, words.iter().map(read).collect())
    }

    /// The first tick at or after `tick` in whose slot the row has a claim, which may expire before.
    ///
    /// Cost: a look-up each unclaimed slot on the way, a period and two at most.
    pub fn next_claimed(&self, row: u32, tick: Tick) -> Option<Tick> {
        // A change that is not in force yet is so after two slots.
        let last = tick.saturating_add(u64::from(self.geometry.columns()) + 2);
        (tick..last).find(|&tick| self.word(row, tick).is_some())
    }

    fn word(&self, row: u32, tick: Tick) -> Option<Word> {
        let column = self.geometry.column(tick);
        let index = self.geometry.index(Cell { row, column }).ok()?;
        let switch = self.memory.header().switch.load(Acquire);
        let (from, buffer) = (switch >> 1, (switch & 1) as usize);
        let buffer = if tick >= from { buffer } else { 1 - buffer };
        let words = self
            .memory
            .words(&self.layout, buffer, self.geometry.cells());
        Word::unpack(words[index].load(Acquire))
    }

    fn schedulee(&self, number: u32) -> Option<Schedulee> {
        let place = (number as usize).checked_sub(1)?;
        let record = &self.memory.schedulees(&self.layout)[..SCHEDULEES].get(place)?;
        let (kind, id) = (record.kind.load(Relaxed), record.id.load(Relaxed));
        read(kind, id, record.started.load(Relaxed))
    }

    /// All claims as decided; they are in force at the second boundary after their decision at
    /// latest. `None`: the table changes too fast.
    pub fn snapshot(&self) -> Option<Snapshot> {
        let header = self.memory.header();
        for _ in 0..ATTEMPTS {
            let before = header.sequence.load(Acquire);
            if before % 2 == 1 {
                std::thread::yield_now();
                continue;
            }
            let snapshot = Snapshot {
                generation: header.generation.load(Relaxed),
                claims: self.claims(),
            };
            fence(Acquire);
            if header.sequence.load(Relaxed) == before {
                return Some(snapshot);
            }
        }
        None
    }

    fn claims(&self) -> Vec<PublicClaim> {
        let records = self.memory.claims(&self.layout, self.geometry.cells());
        let claim = |(index, record): (usize, &crate::layout::ClaimRecord)| {
            let place = (record.level.load(Relaxed) as usize).checked_sub(1)?;
            let client = (record.has_client.load(Relaxed) != 0)
                .then(|| read_client(record.client.load(Relaxed)));
            let expires = record.expires.load(Relaxed);
            Some(PublicClaim {
                cell: self.geometry.cell(index),
                owner: Owner {
                    user: record.user.load(Relaxed),
                    client,
                },
                schedulee: self.schedulee(record.schedulee.load(Relaxed))?,
                level: *Level::ALL.get(place)?,
                expires: (expires > 0).then_some(expires),
                number: record.number.load(Relaxed),
            })
        };
        records.iter().enumerate().filter_map(claim).collect()
    }

    /// Waits until a thread has ended that waits for this table, and finds out by itself that it is to
    /// end. Meanwhile the waits of all programs end again and again.
    pub fn join(&self, thread: JoinHandle<()>) {
        let word = &self.memory.header().sequence;
        // A thread that was about to sleep misses a wake.
        while !thread.is_finished() {
            // It fails only if the memory is gone.
            let _ = futex::wake(word, futex::Flags::empty(), i32::MAX as u32);
            std::thread::sleep(END_INTERVAL);
        }
        let _ = thread.join();
    }

    /// A number that changes with the table, to wait for the next change.
    pub fn sequence(&self) -> u32 {
        self.memory.header().sequence.load(Acquire)
    }

    /// Waits until the table is not as it was at `sequence`, or until a time on the monotonic clock;
    /// may return earlier. The time is kept as exactly as the thread's timers are.
    pub fn wait(&self, sequence: u32, until_ns: Option<u64>) -> io::Result<()> {
        self.wait_for(Rows::ALL, sequence, until_ns)
    }

    /// The same for changes of some rows. Changes of others end it at times, too.
    pub fn wait_for(&self, rows: Rows, sequence: u32, until_ns: Option<u64>) -> io::Result<()> {
        let until = until_ns.map(|until_ns| Timespec {
            tv_sec: (until_ns / 1_000_000_000) as i64,
            tv_nsec: (until_ns % 1_000_000_000) as _,
        });
        let word = &self.memory.header().sequence;
        // A wait for no row would have no end.
        let bits = rows.bits().unwrap_or(NonZeroU32::MAX);
        match futex::wait_bitset(word, futex::Flags::empty(), sequence, until.as_ref(), bits) {
            Ok(()) | Err(Errno::AGAIN | Errno::TIMEDOUT | Errno::INTR) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }
}
