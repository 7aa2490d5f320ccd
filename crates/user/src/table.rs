//! The table of deeds: a file that engine and guardian map into memory, and that outlives both.
//!
//! A deed is anything that the engine does to a process and that must be undone: it stops the
//! process, demotes it to `SCHED_IDLE`, binds its threads to CPUs, or raises them in a slot. The engine
//! writes a record before a deed and clears it after undoing the deed. (What control groups do has no record: the
//! header names their base, which tells the rest.) So after any death of the engine, the
//! table lists at least all deeds that must be undone. Memory shared through a file survives the
//! death of its writers, so a record needs no checksum: its flags are stored last and make it
//! valid. After a crash of the machine the boot identifier differs, and the records are void.
//!
//! ```text
//!   | header, three pages | record 0 | record 1 | ... | record MAX_RECORDS - 1 |
//! ```

mod journal;

use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::mem::offset_of;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use rustix::fs::FlockOperation;
use rustix::mm::{MapFlags, ProtFlags};
use rustix::thread::CpuSet;

use crate::error::EngineError;
use crate::process_id::ProcessId;
use crate::scheduler::Policy;
use crate::threads::{Ascent, Binding};

pub(crate) use journal::{Journal, RecordId};

const FILE_NAME: &str = "demoted.table";

/// "prorata" and the version of the layout.
const MAGIC: u64 = u64::from_le_bytes(*b"prorata\x05");

/// Records in a table. A process needs one, and so does each thread that is bound or has a policy
/// that is not the ordinary one.
pub(crate) const MAX_RECORDS: u32 = 1 << 15;

/// Longest directory of control groups.
const MAX_PATH_BYTES: usize = 2048;

const HEADER_BYTES: usize = 3 * 4096;
const _: () = assert!(size_of::<Header>() <= HEADER_BYTES);
const TABLE_BYTES: usize = HEADER_BYTES + MAX_RECORDS as usize * size_of::<Record>();

/// How long a new engine waits for an engine that lives: it may be about to end. (A daemon
/// waits for the end of its predecessor by a lock of its own.)
const PATIENCE_WITH_ENGINE: Duration = Duration::from_secs(1);

/// How long a new engine waits for its predecessor's guardian, which takes some milliseconds
/// unless the machine stands still.
const PATIENCE_WITH_GUARDIAN: Duration = Duration::from_secs(10);

/// Deeds, and what a record holds.
pub(crate) mod flag {
    /// The engine stopped the process.
    pub(crate) const STOPPED: u32 = 1;
    /// The engine put the process's fair threads in `SCHED_IDLE`.
    pub(crate) const IDLE: u32 = 2;
    /// The engine bound this one thread to `cpus`; without that it may use `own_cpus`.
    pub(crate) const BOUND: u32 = 4;
    /// `policy` holds this thread's own policy, whether the engine changed that or not.
    pub(crate) const OWN_POLICY: u32 = 8;
    /// The engine raised this one thread and bound it to `slot_cpus` for a slot; without that it may
    /// use `slot_own_cpus`, and has `slot_own_policy` and `slot_own_priority`.
    pub(crate) const RAISED: u32 = 16;
    /// Any deed that must be undone and that has a record.
    pub(crate) const TOUCHED: u32 = STOPPED | IDLE | BOUND | RAISED;
}

#[repr(C)]
struct Header {
    magic: AtomicU64,
    boot: [AtomicU64; 2],
    /// The engine promises to store a new value here before this time on the monotonic clock.
    alive_until_ns: AtomicU64,
    /// How often the guardian undid all deeds while the engine stalled. Raised before it begins.
    releases: AtomicU64,
    /// The last engine.
    engine_pid: AtomicU64,
    engine_start_time_ticks: AtomicU64,
    /// How often the guardian lowered what was raised while a keeper of slots stalled. Raised before
    /// it begins.
    lowerings: AtomicU64,
    /// The directory of the base of the engine's control groups, and its length in bytes. The
    /// length is zero while there is none, and while the directory changes.
    control_groups_bytes: AtomicU64,
    control_groups: [AtomicU64; MAX_PATH_BYTES / 8],
    /// By CPU: its keeper promises to store a new value before this time on the monotonic clock; the
    /// greatest number while nothing is raised there.
    keepers_until_ns: [AtomicU64; CpuSet::MAX_CPU],
}

/// Other fields than `flags` and the CPUs change only while their flag is not set. So a reader
/// that sees a flag sees its fields.
#[repr(C)]
struct Record {
    flags: AtomicU32,
    tid: AtomicU32,
    start_time_ticks: AtomicU64,
    /// Process that the thread `tid` belongs to.
    pid: AtomicU32,
    policy: AtomicU32,
    own_cpus: [AtomicU64; CpuSet::MAX_CPU / 64],
    cpus: [AtomicU64; CpuSet::MAX_CPU / 64],
    slot_own_policy: AtomicU32,
    slot_own_priority: AtomicU32,
    slot_own_cpus: [AtomicU64; CpuSet::MAX_CPU / 64],
    slot_cpus: [AtomicU64; CpuSet::MAX_CPU / 64],
}

/// A copy of a record that is in use.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub(crate) index: u32,
    pub(crate) flags: u32,
    /// A process's first thread, or the one thread that the record is about.
    pub(crate) thread: ProcessId,
    pub(crate) pid: u32,
    pub(crate) policy: Policy,
    pub(crate) binding: Option<Binding>,
    pub(crate) ascent: Option<Ascent>,
}

/// The mapped file.
#[derive(Debug)]
pub(crate) struct Table {
    memory: NonNull<u8>,
    /// Locked as long as an engine or its guardian has the file open.
    file: OwnedFd,
}

// SAFETY: the memory is only accessed as atomics, for which sharing between
// threads (and processes) is sound.
unsafe impl Send for Table {}
// SAFETY: as above.
unsafe impl Sync for Table {}

impl Table {
    /// Opens or makes the table in a directory and locks it. It keeps the records of a dead
    /// engine, unless they are from before a reboot.
    pub(crate) fn open(directory: &Path) -> Result<Table, EngineError> {
        let patience = |engine: Option<ProcessId>| match engine.is_some_and(ProcessId::is_alive) {
            true => PATIENCE_WITH_ENGINE,
            false => PATIENCE_WITH_GUARDIAN,
        };
        Self::open_within(directory, patience)
    }

    /// The same, without waiting.
    pub(crate) fn open_at_once(directory: &Path) -> Result<Table, EngineError> {
        Self::open_within(directory, |_| Duration::ZERO)
    }

    fn open_within(
        directory: &Path,
        patience: impl Fn(Option<ProcessId>) -> Duration,
    ) -> Result<Table, EngineError> {
        let unusable = |source| EngineError::StateDirectory {
            path: directory.to_owned(),
            source,
        };
        std::fs::create_dir_all(directory).map_err(unusable)?;
        let file = open_file(&directory.join(FILE_NAME)).map_err(unusable)?;
        if !lock(&file, patience) {
            return Err(EngineError::AlreadyRunning(directory.to_owned()));
        }
        let boot = boot_id().map_err(unusable)?;
        let fits = file.metadata().map_err(unusable)?.len() == TABLE_BYTES as u64;
        if !fits {
            file.set_len(0).map_err(unusable)?;
            file.set_len(TABLE_BYTES as u64).map_err(unusable)?;
        }
        let table = Self::map(file.into()).map_err(unusable)?;
        if !table.is_of_boot(boot) {
            table.initialise(boot);
        }
        Ok(table)
    }

    /// Maps a table that was opened by another process.
    pub(crate) fn map(file: OwnedFd) -> io::Result<Table> {
        if rustix::fs::fstat(&file)?.st_size != TABLE_BYTES as i64 {
            return Err(io::ErrorKind::InvalidData.into());
        }
        // SAFETY: a new mapping at an address that the kernel chooses. The
        // file has the mapped length, is ours alone (mode 0600, locked) and
        // is never made shorter while it is locked.
        let memory = unsafe {
            rustix::mm::mmap(
                std::ptr::null_mut(),
                TABLE_BYTES,
                ProtFlags::READ | ProtFlags::WRITE,
                MapFlags::SHARED,
                &file,
                0,
            )
        }?;
        let memory = NonNull::new(memory.cast()).ok_or(io::ErrorKind::InvalidData)?;
        Ok(Table { memory, file })
    }

    fn header(&self) -> &Header {
        // SAFETY: the mapping is page-aligned, longer than a header, lives as
        // long as `self`, and any bytes make a valid header of atomics.
        unsafe { self.memory.cast().as_ref() }
    }

    fn records(&self) -> &[Record] {
        // SAFETY: the mapping holds MAX_RECORDS records after the header page,
        // which keeps them aligned; it lives as long as `self`, and any bytes
        // make a valid record of atomics.
        unsafe {
            let first = self.memory.add(HEADER_BYTES).cast::<Record>();
            std::slice::from_raw_parts(first.as_ptr(), MAX_RECORDS as usize)
        }
    }

    /// This process is the engine from now on.
    pub(crate) fn note_engine(&self) -> Result<(), EngineError> {
        let engine = ProcessId::of(std::process::id())?;
        let header = self.header();
        header
            .engine_pid
            .store(engine.pid.into(), Ordering::Relaxed);
        header
            .engine_start_time_ticks
            .store(engine.start_time_ticks, Ordering::Relaxed);
        // Its keepers have promised nothing yet; those of an engine before it never will again.
        for until_ns in &header.keepers_until_ns {
            until_ns.store(u64::MAX, Ordering::Relaxed);
        }
        Ok(())
    }

    /// Notes the base of control groups that is made, before any of them is used. Fails if its
    /// directory is too long.
    pub(crate) fn note_control_groups(&self, base: &Path) -> io::Result<()> {
        let bytes = base.as_os_str().as_bytes();
        if bytes.len() > MAX_PATH_BYTES {
            return Err(io::ErrorKind::InvalidFilename.into());
        }
        let header = self.header();
        header.control_groups_bytes.store(0, Ordering::Release);
        for (word, bytes) in header.control_groups.iter().zip(bytes.chunks(8)) {
            let mut padded = [0; 8];
            padded[..bytes.len()].copy_from_slice(bytes);
            word.store(u64::from_ne_bytes(padded), Ordering::Relaxed);
        }
        let length = bytes.len() as u64;
        header.control_groups_bytes.store(length, Ordering::Release);
        Ok(())
    }

    /// The base of the last engine's control groups, if it had any.
    pub(crate) fn control_groups(&self) -> Option<PathBuf> {
        let header = self.header();
        let length = header.control_groups_bytes.load(Ordering::Acquire) as usize;
        let words = header.control_groups.iter();
        let words = words.map(|word| word.load(Ordering::Relaxed).to_ne_bytes());
        let bytes: Vec<u8> = words.flatten().take(length).collect();
        (!bytes.is_empty()).then(|| OsString::from_vec(bytes).into())
    }

    /// A name that no other table has.
    pub(crate) fn name(&self) -> io::Result<String> {
        let file = rustix::fs::fstat(&self.file)?;
        Ok(format!("{:x}-{:x}", file.st_dev, file.st_ino))
    }

    fn is_of_boot(&self, boot: [u64; 2]) -> bool {
        let header = self.header();
        header.magic.load(Ordering::Acquire) == MAGIC
            && header.boot.each_ref().map(|b| b.load(Ordering::Relaxed)) == boot
    }

    fn initialise(&self, boot: [u64; 2]) {
        let header = self.header();
        header.magic.store(0, Ordering::Release);
        for record in self.records() {
            // Reading first leaves untouched pages of the sparse file alone.
            if record.flags.load(Ordering::Relaxed) != 0 {
                record.flags.store(0, Ordering::Relaxed);
            }
        }
        for (word, value) in header.boot.iter().zip(boot) {
            word.store(value, Ordering::Relaxed);
        }
        header.releases.store(0, Ordering::Relaxed);
        for until_ns in &header.keepers_until_ns {
            until_ns.store(u64::MAX, Ordering::Relaxed);
        }
        header.lowerings.store(0, Ordering::Relaxed);
        header.control_groups_bytes.store(0, Ordering::Relaxed);
        header.magic.store(MAGIC, Ordering::Release);
    }

    /// Frees every record without a deed.
    fn clear_untouched(&self) {
        for record in self.records() {
            let flags = record.flags.load(Ordering::Relaxed);
            if flags != 0 && flags & flag::TOUCHED == 0 {
                record.flags.store(0, Ordering::Release);
            }
        }
    }

    /// All records in use.
    pub(crate) fn entries(&self) -> impl Iterator<Item = Entry> + '_ {
        (0..).zip(self.records()).filter_map(|(index, record)| {
            let flags = record.flags.load(Ordering::Acquire);
            (flags != 0).then(|| record.entry(index, flags))
        })
    }

    /// Whether there are deeds to undo of these kinds.
    pub(crate) fn is_anything(&self, deeds: u32) -> bool {
        let touched = |record: &Record| record.flags.load(Ordering::Relaxed) & deeds != 0;
        self.records().iter().any(touched)
    }

    fn is_unused(&self, index: u32) -> bool {
        self.records()[index as usize].flags.load(Ordering::Relaxed) == 0
    }

    /// Clears some flags of a record.
    pub(crate) fn clear(&self, index: u32, flags: u32) {
        let record = &self.records()[index as usize];
        record.flags.fetch_and(!flags, Ordering::Release);
    }

    /// Promises to promise again before this time on the monotonic clock.
    pub(crate) fn promise(&self, alive_until_ns: u64) {
        let header = self.header();
        header
            .alive_until_ns
            .store(alive_until_ns, Ordering::Release);
    }

    /// The engine's last promise.
    pub(crate) fn promised_ns(&self) -> u64 {
        self.header().alive_until_ns.load(Ordering::Acquire)
    }

    /// Announces that the guardian is about to undo all deeds.
    pub(crate) fn announce_release(&self) {
        self.header().releases.fetch_add(1, Ordering::SeqCst);
    }

    /// How often that was announced.
    pub(crate) fn releases(&self) -> u64 {
        self.header().releases.load(Ordering::SeqCst)
    }

    /// Promises for the keeper of a CPU to promise again before this time on the monotonic clock.
    pub(crate) fn promise_as_keeper(&self, cpu: u32, until_ns: u64) {
        let promises = &self.header().keepers_until_ns;
        if let Some(promise) = promises.get(cpu as usize) {
            promise.store(until_ns, Ordering::Release);
        }
    }

    /// The CPUs whose keepers have not kept their promises.
    pub(crate) fn stalled_keepers(&self, now_ns: u64) -> CpuSet {
        let mut stalled = CpuSet::new();
        for (cpu, until_ns) in self.header().keepers_until_ns.iter().enumerate() {
            if until_ns.load(Ordering::Acquire) < now_ns {
                stalled.set(cpu);
            }
        }
        stalled
    }

    /// Announces that the guardian is about to lower what is raised.
    pub(crate) fn announce_lowering(&self) {
        self.header().lowerings.fetch_add(1, Ordering::SeqCst);
    }

    /// How often that was announced.
    pub(crate) fn lowerings(&self) -> u64 {
        self.header().lowerings.load(Ordering::SeqCst)
    }
}

/// Locks the file of a table. Waits while another process has it locked, and returns whether that
/// process let go of it in time. How long is told by the last engine.
fn lock(file: &File, patience: impl Fn(Option<ProcessId>) -> Duration) -> bool {
    let begun = Instant::now();
    while rustix::fs::flock(file, FlockOperation::NonBlockingLockExclusive).is_err() {
        if begun.elapsed() >= patience(engine_of(file)) {
            return false;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    true
}

/// The last engine of a table's file.
fn engine_of(file: &File) -> Option<ProcessId> {
    let mut words = [[0; 8]; 2];
    let start = offset_of!(Header, engine_pid) as u64;
    file.read_exact_at(words.as_flattened_mut(), start).ok()?;
    let [pid, start_time_ticks] = words.map(u64::from_ne_bytes);
    Some(ProcessId {
        pid: pid.try_into().ok()?,
        start_time_ticks,
    })
}

impl AsFd for Table {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

impl Drop for Table {
    fn drop(&mut self) {
        // SAFETY: the mapping was made with this length in `map`, and nothing
        // borrows from `self` any more.
        let _ = unsafe { rustix::mm::munmap(self.memory.as_ptr().cast(), TABLE_BYTES) };
    }
}

impl Record {
    fn entry(&self, index: u32, flags: u32) -> Entry {
        let binding = (flags & flag::BOUND != 0).then(|| Binding {
            own: load_cpus(&self.own_cpus),
            ours: load_cpus(&self.cpus),
        });
        let ascent = (flags & flag::RAISED != 0).then(|| Ascent {
            own_policy: Policy(self.slot_own_policy.load(Ordering::Relaxed)),
            own_priority: self.slot_own_priority.load(Ordering::Relaxed),
            binding: Binding {
                own: load_cpus(&self.slot_own_cpus),
                ours: load_cpus(&self.slot_cpus),
            },
        });
        Entry {
            index,
            flags,
            thread: ProcessId {
                pid: self.tid.load(Ordering::Relaxed),
                start_time_ticks: self.start_time_ticks.load(Ordering::Relaxed),
            },
            pid: self.pid.load(Ordering::Relaxed),
            policy: Policy(self.policy.load(Ordering::Relaxed)),
            binding,
            ascent,
        }
    }
}

fn load_cpus(words: &[AtomicU64]) -> CpuSet {
    let mut cpus = CpuSet::new();
    for (index, word) in words.iter().enumerate() {
        let bits = word.load(Ordering::Relaxed);
        (0..64)
            .filter(|bit| bits >> bit & 1 == 1)
            .for_each(|bit| cpus.set(index * 64 + bit));
    }
    cpus
}

fn store_cpus(words: &[AtomicU64], cpus: &CpuSet) {
    for (index, word) in words.iter().enumerate() {
        let bits = (0..64).filter(|bit| cpus.is_set(index * 64 + bit));
        word.store(bits.map(|bit| 1 << bit).sum(), Ordering::Relaxed);
    }
}

fn open_file(path: &Path) -> io::Result<File> {
    use std::os::unix::fs::OpenOptionsExt;
    std::fs::OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o600)
        .open(path)
}

/// Names this boot of the machine.
fn boot_id() -> io::Result<[u64; 2]> {
    let text = std::fs::read_to_string("/proc/sys/kernel/random/boot_id")?;
    let hex: String = text.chars().filter(char::is_ascii_hexdigit).collect();
    let invalid = |_| io::Error::from(io::ErrorKind::InvalidData);
    let value = u128::from_str_radix(&hex, 16).map_err(invalid)?;
    Ok([value as u64, (value >> 64) as u64])
}

#[cfg(test)]
mod tests;
