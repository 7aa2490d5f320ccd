//! The timetable in the kernel (`bpf/timetable.bpf.h`).
//!
//! A table is a map that is made when the table is opened. The caller says what each cell holds, in
//! words of the core ([`Word`]) with schedulees by its own numbers; each CPU looks at its own row.
//! Changes are written into the buffer that no CPU uses, and take effect together.

use std::io;
use std::ops::Range;
use std::os::fd::{AsFd as _, AsRawFd as _};
use std::ptr::NonNull;
use std::slice::from_raw_parts;
use std::sync::atomic::{AtomicU64, Ordering, fence};

use libbpf_rs::{MapCore as _, MapFlags, MapHandle, MapType, libbpf_sys};
use prorata_core::slots::geometry::{Geometry, Tick};
use prorata_core::slots::word::{Word, distances};
use rustix::time::{ClockId, clock_gettime};

use super::boundaries::Boundaries;
use super::loaded::{Scheduler, lock};
use super::slots::{InSlot, LATENESS_BUCKETS, RowTally};
use crate::KernelError;
use crate::observe::Waits;
use crate::prorata_skeleton::types;

/// The first words of `bpf/abi.h`.
const EPOCH: usize = 0;
const SLOT_NS: usize = 1;
const COLUMNS: usize = 2;
const CELLS: usize = 3;
const SWITCH: usize = 4;
const ROWS: usize = 8;
const CELLS_FROM: usize = ROWS + MAX_CPUS;
const MAX_CPUS: usize = 1024;
const TALLY_WORDS: usize = 1024;
const TALLY_HISTOGRAM: usize = 8;

/// The greatest number of a schedulee; 0 is none.
const SCHEDULEES: u32 = prorata_core::slots::SCHEDULEES as u32;
const SCHEDULEE_WORDS: usize = 2 * (SCHEDULEES as usize + 1);

const _: () = assert!(TALLY_HISTOGRAM + LATENESS_BUCKETS <= TALLY_WORDS);
const _: () = assert!(size_of::<types::slot>() == 80);

/// An open table.
pub(super) struct Timetable {
    words: Words,
    geometry: Geometry,
    cpus: Vec<u32>,
    /// The buffer that was published last, and from which tick on it is in force.
    buffer: usize,
    from: Tick,
    /// Which rows of that buffer have claims.
    claimed: Vec<bool>,
    boundaries: Boundaries,
}

impl Scheduler {
    /// Opens a timetable in which nothing is claimed, in the place of any other. `cpus` are those of
    /// its rows. Allocates: 16 bytes a cell, 1 MiB, and 8 KiB a row. Starts a real-time thread for each
    /// row. Where the kernel has no timer for boundaries ([`Scheduler::holds_limits`]: the same one), the
    /// threads keep those, too.
    ///
    /// # Errors
    ///
    /// If a CPU is beyond the kernel's table, or if there is no memory or no thread.
    pub fn open_timetable(&self, geometry: &Geometry, cpus: &[u32]) -> Result<(), KernelError> {
        if let Some(cpu) = cpus.iter().find(|cpu| **cpu as usize >= MAX_CPUS) {
            return Err(KernelError::NoSuchCpu { cpu: *cpu });
        }
        let boundaries = {
            let skeleton = lock(&self.skeleton);
            Boundaries::start(skeleton.progs.look_at_row.as_fd(), cpus, self.timed)
        };
        let table = boundaries
            .and_then(|boundaries| Timetable::new(*geometry, cpus.to_vec(), boundaries))
            .map_err(|why| self.refused(&why))?;
        let mut open = lock(&self.timetable);
        self.put_timetable(Some(&table))
            .map_err(|why| self.refused(&why))?;
        // What was under way by an earlier table ends.
        self.have_rows_looked_at(&table, |_, _| true)?;
        self.with_data(|data, _| {
            data.claims = 0;
            data.period_ns = geometry.period_ns();
        })?;
        *open = Some(table);
        Ok(())
    }

    /// Closes the table, if one is open: slots that are under way end now.
    pub fn close_timetable(&self) -> Result<(), KernelError> {
        let Some(table) = lock(&self.timetable).take() else {
            return Ok(());
        };
        self.put_timetable(None).map_err(|why| self.refused(&why))?;
        // No CPU finds a table.
        self.have_rows_looked_at(&table, |_, _| true)?;
        self.with_data(|data, _| data.claims = 0)
    }

    /// Gives a schedulee a number, from 1 to 65,536, in the place of any other, which no word in force
    /// or published names any more. Returns false if there is no such process or thread: the number
    /// then stays what it was.
    ///
    /// # Errors
    ///
    /// If no table is open, or the number is out of range.
    pub fn name_schedulee(&self, number: u32, schedulee: InSlot) -> Result<bool, KernelError> {
        if lock(&self.timetable).is_none() {
            return Err(KernelError::NoTimetable);
        }
        if !(1..=SCHEDULEES).contains(&number) {
            return Err(KernelError::NoSuchSchedulee { number });
        }
        let (kind, id, started) = match schedulee {
            InSlot::Node(node) => (1, node, 0),
            InSlot::Process { pid, started } => (2, pid, started),
            InSlot::Thread { tid, started } => (3, tid, started),
        };
        // The kernel compares the lower half of the start, which wraps after 497 days.
        let named = self.ask(
            |progs| &progs.name_schedulee,
            [number, kind, id, started as u32],
        );
        match named {
            Ok(_) => Ok(true),
            Err(why) if why.raw_os_error() == Some(libc::ESRCH) => Ok(false),
            Err(why) => Err(self.refused(&why)),
        }
    }

    /// Puts words into all cells, row by row, from a tick on, or from the next one if that has begun.
    /// Only schedulee and expiry of each count. With [`GIFT`](super::GIFT) in the schedulee the slot
    /// costs no tickets, and interrupts no turn elsewhere. Cost: a look at each cell, and a look of each CPU
    /// whose row would be looked at too late; the caller waits for those, but at most 20 ms for a CPU that a
    /// program of a higher class has. Returns from which tick on the words are in force.
    ///
    /// # Errors
    ///
    /// If no table is open, or the scheduler was unloaded.
    pub fn publish_slots(&self, words: &[u64], from: Tick) -> Result<Tick, KernelError> {
        let mut open = lock(&self.timetable);
        let table = open.as_mut().ok_or(KernelError::NoTimetable)?;
        assert_eq!(words.len(), table.geometry.cells(), "a word for each cell");
        if words.iter().any(|word| *word != 0) {
            self.with_data(|data, _| (data.claims, data.had_claims) = (1, 1))?;
        }
        let changed = table.publish(words, from, now_ns());
        let begins_ns = table.geometry.begin_ns(table.from);
        // A CPU reads the word that tells the change, and then tells when it looks again. If it looks
        // at this moment, that time is past.
        fence(Ordering::SeqCst);
        let looks = now_ns()..=begins_ns;
        self.have_rows_looked_at(table, |row, due_ns| {
            changed[row] && !looks.contains(&due_ns)
        })?;
        Ok(table.from)
    }

    /// Looks after the open table, which is to happen about once a second: CPUs that came back look
    /// at their rows, and decisions cost what they do without a table if nothing is claimed.
    pub fn look_after_slots(&self) -> Result<(), KernelError> {
        let open = lock(&self.timetable);
        let Some(table) = open.as_ref() else {
            return Ok(());
        };
        let now_ns = now_ns();
        if !table.claimed.contains(&true) && table.geometry.tick_at(now_ns) > table.from {
            self.with_data(|data, _| data.claims = 0)?;
        }
        let late_ns = now_ns.saturating_sub(table.geometry.slot_ns());
        self.have_rows_looked_at(table, |row, due_ns| {
            due_ns < late_ns && (due_ns != 0 || table.claimed[row])
        })
    }

    /// What became of the slots of each row since the table was opened; nothing if none is open.
    pub fn slot_tallies(&self) -> Vec<RowTally> {
        lock(&self.timetable)
            .as_ref()
            .map_or_else(Vec::new, Timetable::tallies)
    }

    /// Has the CPUs of these rows look at them. `needs` is asked with a row and the time at which its
    /// CPU looks at the row next.
    fn have_rows_looked_at(
        &self,
        table: &Timetable,
        needs: impl Fn(usize, u64) -> bool,
    ) -> Result<(), KernelError> {
        let due_ns: Vec<u64> = self.with_data(|_, tables| {
            let slots = table.cpus.iter().map(|&cpu| &tables.slots[cpu as usize]);
            slots.map(|slot| slot.due_ns).collect()
        })?;
        let rows = due_ns.iter().enumerate();
        let rows = rows.filter(|&(row, &due_ns)| needs(row, due_ns));
        table.boundaries.look(rows.map(|(row, _)| row));
        Ok(())
    }

    fn put_timetable(&self, table: Option<&Timetable>) -> io::Result<()> {
        let skeleton = lock(&self.skeleton);
        let outer = &skeleton.maps.timetable;
        let first = 0_u32.to_ne_bytes();
        let put = match table {
            Some(table) => {
                let map = table.words.map.as_fd().as_raw_fd();
                outer.update(&first, &map.to_ne_bytes(), MapFlags::ANY)
            }
            None => outer.delete(&first),
        };
        put.map_err(io::Error::other)
    }
}

impl Timetable {
    fn new(geometry: Geometry, cpus: Vec<u32>, boundaries: Boundaries) -> io::Result<Self> {
        let (cells, rows) = (geometry.cells(), geometry.rows() as usize);
        let schedulees = CELLS_FROM + 2 * cells;
        let tallies = schedulees + SCHEDULEE_WORDS;
        let words = Words::new(tallies + rows * TALLY_WORDS)?;
        let put = |index: usize, word| words.all()[index].store(word, Ordering::Relaxed);
        put(EPOCH, geometry.begin_ns(0));
        put(SLOT_NS, geometry.slot_ns());
        put(COLUMNS, geometry.columns().into());
        put(CELLS, cells as u64);
        for (row, cpu) in cpus.iter().enumerate() {
            put(ROWS + *cpu as usize, row as u64 + 1);
        }
        Ok(Self {
            words,
            geometry,
            cpus,
            buffer: 0,
            from: 0,
            claimed: vec![false; rows],
            boundaries,
        })
    }

    /// Returns which rows change.
    fn publish(&mut self, words: &[u64], from: Tick, now_ns: u64) -> Vec<bool> {
        let tick = self.geometry.tick_at(now_ns);
        // What is to be in force, but is not yet, is replaced.
        let (in_force, written) = match tick >= self.from {
            true => (self.buffer, 1 - self.buffer),
            false => (1 - self.buffer, self.buffer),
        };
        self.from = from.max(tick + 1).max(self.from);
        self.buffer = written;
        let columns = self.geometry.columns() as usize;
        let rows = words.chunks_exact(columns);
        self.claimed = rows.map(|row| row.iter().any(|word| *word != 0)).collect();
        let mut changed = Vec::with_capacity(self.cpus.len());
        for (row, words) in words.chunks_exact(columns).enumerate() {
            let cells = row * columns..(row + 1) * columns;
            let before = self.buffer(in_force, cells.clone());
            let after = self.buffer(written, cells);
            let mut changes = false;
            for (place, word) in after.iter().zip(chained(words)) {
                place.store(word, Ordering::Relaxed);
            }
            for (before, after) in before.iter().zip(after) {
                changes |= before.load(Ordering::Relaxed) != after.load(Ordering::Relaxed);
            }
            changed.push(changes);
        }
        let switch = self.from << 1 | written as u64;
        self.words.all()[SWITCH].store(switch, Ordering::Release);
        changed
    }

    fn buffer(&self, buffer: usize, cells: Range<usize>) -> &[AtomicU64] {
        let start = CELLS_FROM + buffer * self.geometry.cells();
        &self.words.all()[start + cells.start..start + cells.end]
    }

    fn tallies(&self) -> Vec<RowTally> {
        let start = CELLS_FROM + 2 * self.geometry.cells() + SCHEDULEE_WORDS;
        let rows = self.words.all()[start..].chunks_exact(TALLY_WORDS);
        let rows = rows.zip(&self.cpus).map(|(words, &cpu)| {
            let word = |index: usize| words[index].load(Ordering::Relaxed);
            let histogram = TALLY_HISTOGRAM..TALLY_HISTOGRAM + LATENESS_BUCKETS;
            RowTally {
                cpu,
                begun: word(0),
                missed: word(1),
                ran: word(2),
                idle: word(3),
                lost: word(4),
                stolen_ns: word(5),
                late: Waits {
                    counts: histogram.map(word).collect(),
                    longest_ns: word(6),
                },
            }
        });
        rows.collect()
    }
}

/// The words of a row with the distance to the next claimed column in each, also where no claim is.
fn chained(words: &[u64]) -> impl Iterator<Item = u64> {
    let claimed: Vec<bool> = words.iter().map(|word| *word != 0).collect();
    let chained = |(word, distance): (&u64, u32)| {
        let word = Word::unpack(*word);
        let chained = Word {
            schedulee: word.map_or(0, |word| word.schedulee),
            distance,
            expiry: word.map_or(0, |word| word.expiry),
        };
        if distance == 0 { 0 } else { chained.pack() }
    };
    words.iter().zip(distances(&claimed)).map(chained)
}

/// The table's map, mapped.
struct Words {
    map: MapHandle,
    start: NonNull<AtomicU64>,
    count: usize,
}

// SAFETY: the memory is only accessed as atomics, for which sharing between threads is sound.
unsafe impl Send for Words {}

impl Words {
    /// All zero.
    fn new(count: usize) -> io::Result<Self> {
        let options = libbpf_sys::bpf_map_create_opts {
            sz: size_of::<libbpf_sys::bpf_map_create_opts>() as libbpf_sys::size_t,
            map_flags: libbpf_sys::BPF_F_MMAPABLE | libbpf_sys::BPF_F_INNER_MAP,
            ..Default::default()
        };
        let map = MapHandle::create(
            MapType::Array,
            Some("timetable"),
            4,
            8,
            count as u32,
            &options,
        )
        .map_err(io::Error::other)?;
        // SAFETY: a new mapping at an address that the kernel chooses.
        let start = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                count * 8,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED,
                map.as_fd().as_raw_fd(),
                0,
            )
        };
        let start = match start {
            libc::MAP_FAILED => None,
            start => NonNull::new(start.cast()),
        };
        let start = start.ok_or_else(io::Error::last_os_error)?;
        Ok(Self { map, start, count })
    }

    fn all(&self) -> &[AtomicU64] {
        // SAFETY: the mapping has as many words, is page-aligned and lives as long as `self`; the
        // kernel writes them atomically.
        unsafe { from_raw_parts(self.start.as_ptr(), self.count) }
    }
}

impl Drop for Words {
    fn drop(&mut self) {
        // SAFETY: the mapping is this value's own, and no reference into it outlives the value.
        unsafe { libc::munmap(self.start.as_ptr().cast(), self.count * 8) };
    }
}

fn now_ns() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_word_names_the_distance_to_the_next_claimed_column() {
        let claim = |schedulee, expiry| {
            Word {
                schedulee,
                distance: 1,
                expiry,
            }
            .pack()
        };
        let mut words = vec![0; 6];
        assert_eq!(chained(&words).collect::<Vec<_>>(), [0; 6]);
        words[1] = claim(7, 0);
        words[4] = claim(9, 3);
        let found: Vec<_> = chained(&words)
            .map(|word| (word >> 44, word >> 32 & 0xfff, word as u32))
            .collect();
        let expected = [
            (0, 1, 0),
            (7, 3, 0),
            (0, 2, 0),
            (0, 1, 0),
            (9, 3, 3),
            (0, 2, 0),
        ];
        assert_eq!(found, expected);
        // A row of the most columns with one claim: the distance is the whole row.
        let mut words = vec![0; 4096];
        words[5] = claim(1, 0);
        let chained: Vec<u64> = chained(&words).collect();
        assert_eq!(Word::unpack(chained[5]).unwrap().distance, 4096);
        assert_eq!(chained[6] >> 32 & 0xfff, 4095);
    }
}
