//! Where everything is in the file.

use std::mem::{offset_of, size_of};
use std::sync::atomic::{AtomicU32, AtomicU64};

use prorata_core::ids::ClientId;
use prorata_core::slots::SCHEDULEES;
use prorata_core::slots::claim::Schedulee;
use prorata_core::slots::geometry::Geometry;

/// The file's name, beside the daemon's socket.
pub const FILE_NAME: &str = "slots";

/// Changes whenever the layout does.
pub const VERSION: u32 = 1;

/// Begins every file.
pub(crate) const MAGIC: u64 = u64::from_le_bytes(*b"prslots\0");

/// Bytes before the CPUs of the rows.
pub(crate) const HEADER_BYTES: usize = 4_096;

/// Programs read the table by [`Header::state`].
pub(crate) const OPEN: u32 = 1;
/// The table is of a daemon that has ended, or was closed.
pub(crate) const CLOSED: u32 = 2;

/// What is fixed while a table is open, and what says where to read.
#[repr(C)]
pub(crate) struct Header {
    /// [`MAGIC`], written last when the file is made.
    pub magic: AtomicU64,
    pub version: AtomicU32,
    /// [`OPEN`] or [`CLOSED`].
    pub state: AtomicU32,
    pub rows: AtomicU32,
    pub columns: AtomicU32,
    pub slot_ns: AtomicU64,
    /// When slot zero begins, on the monotonic clock.
    pub epoch_ns: AtomicU64,
    /// `from << 1 | buffer`: the buffer in force from that tick on; before it the other one is.
    pub switch: AtomicU64,
    /// The number of the last change.
    pub generation: AtomicU64,
    /// Odd while claims change; readers wait for changes of it.
    pub sequence: AtomicU32,
    pub padding: AtomicU32,
}

const _: () = assert!(size_of::<Header>() <= HEADER_BYTES);
// As the C header has them.
const _: () = assert!(offset_of!(Header, rows) == 16 && offset_of!(Header, slot_ns) == 24);
const _: () = assert!(offset_of!(Header, switch) == 40 && offset_of!(Header, sequence) == 56);

/// The CPU of a row.
#[repr(C)]
pub(crate) struct RowRecord {
    pub cpu: AtomicU32,
    pub is_online: AtomicU32,
}

/// A claim as decided; the level is zero where there is none.
#[repr(C)]
pub(crate) struct ClaimRecord {
    pub number: AtomicU64,
    /// The first tick at which the claim is not valid any more; zero if there is none.
    pub expires: AtomicU64,
    pub user: AtomicU32,
    /// 1 + the place in [`prorata_core::slots::level::Level::ALL`].
    pub level: AtomicU32,
    /// Slot and generation of the client that is the owner; zero and zero if no client is.
    pub client: AtomicU64,
    /// The schedulee's number.
    pub schedulee: AtomicU32,
    pub has_client: AtomicU32,
}

/// A schedulee by number. It changes only while no word in force or published names it.
#[repr(C)]
pub(crate) struct ScheduleeRecord {
    /// 1 client, 2 process, 3 thread.
    pub kind: AtomicU32,
    /// The pid or tid.
    pub id: AtomicU32,
    /// The start time, or a client.
    pub started: AtomicU64,
}

/// Offsets of the parts, in bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Layout {
    pub rows: usize,
    pub words: [usize; 2],
    pub claims: usize,
    pub schedulees: usize,
    pub bytes: usize,
}

impl Layout {
    /// The layout of a table, all parts being aligned to eight bytes.
    pub fn of(geometry: &Geometry) -> Self {
        let (rows, cells) = (geometry.rows() as usize, geometry.cells());
        let words = HEADER_BYTES + rows * size_of::<RowRecord>();
        let second = words + cells * size_of::<AtomicU64>();
        let claims = second + cells * size_of::<AtomicU64>();
        let schedulees = claims + cells * size_of::<ClaimRecord>();
        Self {
            rows: HEADER_BYTES,
            words: [words, second],
            claims,
            schedulees,
            bytes: schedulees + SCHEDULEES * size_of::<ScheduleeRecord>(),
        }
    }
}

/// A client in 64 bits.
pub(crate) fn written_client(client: ClientId) -> u64 {
    u64::from(client.generation()) << 32 | u64::from(client.index())
}

/// The reverse of [`written_client`].
pub(crate) fn read_client(bits: u64) -> ClientId {
    ClientId::from_parts(bits as u32, (bits >> 32) as u32)
}

/// The kind of a record, its number and its time of start.
pub(crate) fn written(schedulee: Schedulee) -> (u32, u32, u64) {
    match schedulee {
        Schedulee::Client(client) => (1, 0, written_client(client)),
        Schedulee::Process { pid, started } => (2, pid, started),
        Schedulee::Thread { tid, started } => (3, tid, started),
    }
}

/// The reverse of [`written`]; `None` for what is none.
pub(crate) fn read(kind: u32, id: u32, started: u64) -> Option<Schedulee> {
    match kind {
        1 => Some(Schedulee::Client(read_client(started))),
        2 => Some(Schedulee::Process { pid: id, started }),
        3 => Some(Schedulee::Thread { tid: id, started }),
        _ => None,
    }
}
