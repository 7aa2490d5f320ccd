//! The daemon's side.

use std::fs::{File, OpenOptions, Permissions, remove_file, rename, set_permissions};
use std::io;
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::fence;

use prorata_core::slots::claim::Claim;
use prorata_core::slots::geometry::Geometry;
use prorata_core::slots::timetable::{News, Timetable};
use prorata_core::slots::word::Word;
use rustix::mm::ProtFlags;
use rustix::thread::futex;

use crate::layout::{
    CLOSED, ClaimRecord, Layout, MAGIC, OPEN, RowRecord, VERSION, written, written_client,
};
use crate::memory::Memory;
use crate::rows::Rows;

/// The only writer of a table's file. Dropping it closes the table and removes the file.
#[derive(Debug)]
pub struct Writer {
    memory: Memory,
    layout: Layout,
    geometry: Geometry,
    /// None once another table has it.
    path: Option<PathBuf>,
}

impl Writer {
    /// Makes the file of a table, in which all claims of the table are, and puts it in the place of
    /// any other. `cpus` has the CPU of each row.
    ///
    /// # Errors
    ///
    /// If the file cannot be made; a file of that name stays.
    pub fn create(path: &Path, table: &mut Timetable, cpus: &[u32]) -> io::Result<Self> {
        let geometry = *table.geometry();
        let layout = Layout::of(&geometry);
        let new = path.with_extension("new");
        match remove_file(&new) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&new)?;
        let writer = Self::fill(&file, layout, table, cpus, path);
        let placed = writer.and_then(|writer| {
            set_permissions(&new, Permissions::from_mode(0o444))?;
            rename(&new, path)?;
            Ok(writer)
        });
        if placed.is_err() {
            let _ = remove_file(&new);
        }
        placed
    }

    fn fill(
        file: &File,
        layout: Layout,
        table: &mut Timetable,
        cpus: &[u32],
        path: &Path,
    ) -> io::Result<Self> {
        file.set_len(layout.bytes as u64)?;
        let memory = Memory::map(file, layout.bytes, ProtFlags::READ | ProtFlags::WRITE)?;
        let geometry = *table.geometry();
        let header = memory.header();
        header.version.store(VERSION, Relaxed);
        header.rows.store(geometry.rows(), Relaxed);
        header.columns.store(geometry.columns(), Relaxed);
        header.slot_ns.store(geometry.slot_ns(), Relaxed);
        header.epoch_ns.store(geometry.begin_ns(0), Relaxed);
        header.state.store(OPEN, Relaxed);
        let rows = memory.rows(&layout, geometry.rows() as usize);
        for (row, &cpu) in rows.iter().zip(cpus) {
            row.cpu.store(cpu, Relaxed);
        }
        let writer = Self {
            memory,
            layout,
            geometry,
            path: Some(path.to_owned()),
        };
        writer.write_whole(table);
        writer.memory.header().magic.store(MAGIC, Release);
        Ok(writer)
    }

    fn write_whole(&self, table: &mut Timetable) {
        table.take_news();
        let cells = self.geometry.cells();
        for buffer in 0..2 {
            let words = self.memory.words(&self.layout, buffer, cells);
            for (index, word) in words.iter().enumerate() {
                let bits = table.staging().word(buffer, index);
                // An untouched page of the sparse file takes no memory.
                let Some(Word { schedulee, .. }) = Word::unpack(bits) else {
                    continue;
                };
                word.store(bits, Relaxed);
                // Its claim may have ended, and the word be in force.
                self.write_schedulee(table, schedulee);
            }
        }
        let claimed: Vec<usize> = (0..cells)
            .filter(|&index| table.table().get(self.geometry.cell(index)).is_some())
            .collect();
        self.write_claims(table, &claimed);
        // Earlier changes of buffers are in force already, and never announced.
        let active = table.staging().active() as u64;
        self.memory.header().switch.store(active, Relaxed);
        self.write_rest(table);
    }

    /// Makes what changed in the table known to all readers, and returns what did. Only this writer
    /// may take the table's news.
    ///
    /// Cost: the changed cells and the rows; one system call.
    pub fn publish(&self, table: &mut Timetable) -> News {
        let (news, rows) = self.write(table);
        self.wake(rows);
        news
    }

    /// The same for readers that look, and the rows whose changes others wait for: [`Self::wake`] wakes
    /// those.
    pub fn write(&self, table: &mut Timetable) -> (News, Rows) {
        let news = table.take_news();
        let rows = self.changed_rows(table, &news);
        if rows == Rows::default() {
            return (news, rows);
        }
        let header = self.memory.header();
        let sequence = header.sequence.load(Relaxed);
        header.sequence.store(sequence.wrapping_add(1), Relaxed);
        fence(Release);
        // Schedulees are numbered before a word names them.
        self.write_claims(table, &news.claims);
        for &(buffer, index) in &news.words {
            let words = self
                .memory
                .words(&self.layout, buffer, self.geometry.cells());
            // With the schedulee that it names: a joining change moves no switch.
            words[index].store(table.staging().word(buffer, index), Release);
        }
        self.write_rest(table);
        header.sequence.store(sequence.wrapping_add(2), Release);
        (news, rows)
    }

    /// Wakes readers that wait for changes of these rows.
    pub fn wake(&self, rows: Rows) {
        if let Some(bits) = rows.bits() {
            let all = i32::MAX as u32;
            let sequence = &self.memory.header().sequence;
            // Without waiters there is nothing to wake; the call has no other way to fail here.
            let _ = futex::wake_bitset(sequence, futex::Flags::empty(), all, bits);
        }
    }

    fn rows(&self) -> impl Iterator<Item = (u32, &RowRecord)> {
        let rows = self
            .memory
            .rows(&self.layout, self.geometry.rows() as usize);
        (0..).zip(rows)
    }

    /// Rows in which anything changed.
    fn changed_rows(&self, table: &Timetable, news: &News) -> Rows {
        let row_of = |index| self.geometry.cell(index).row;
        let claims = news.claims.iter().map(|&index| row_of(index));
        let words = news.words.iter().map(|&(_, index)| row_of(index));
        let turned = self
            .rows()
            .filter(|&(number, row)| (row.is_online.load(Relaxed) != 0) != table.is_online(number));
        claims
            .chain(words)
            .chain(turned.map(|(number, _)| number))
            .collect()
    }

    fn write_rest(&self, table: &Timetable) {
        for (number, row) in self.rows() {
            row.is_online.store(table.is_online(number).into(), Relaxed);
        }
        let header = self.memory.header();
        header.generation.store(table.generation(), Relaxed);
        if let Some(switch) = table.staging().switch() {
            let bits = switch.from << 1 | switch.buffer as u64;
            header.switch.store(bits, Release);
        }
    }

    fn write_claims(&self, table: &Timetable, indices: &[usize]) {
        let claims = self.memory.claims(&self.layout, self.geometry.cells());
        for &index in indices {
            let record = &claims[index];
            match table.table().get(self.geometry.cell(index)) {
                None => record.level.store(0, Relaxed),
                Some(claim) => self.write_claim(table, record, claim),
            }
        }
    }

    fn write_schedulee(&self, table: &Timetable, number: u32) {
        let Some(schedulee) = table.schedulee(number) else {
            return;
        };
        let (kind, id, started) = written(schedulee);
        let record = &self.memory.schedulees(&self.layout)[number as usize - 1];
        record.id.store(id, Relaxed);
        record.started.store(started, Relaxed);
        record.kind.store(kind, Relaxed);
    }

    fn write_claim(&self, table: &Timetable, record: &ClaimRecord, claim: &Claim) {
        let number = table.number_of(&claim.schedulee).unwrap_or(0);
        self.write_schedulee(table, number);
        let client = claim.owner.client;
        record.number.store(claim.number, Relaxed);
        record.expires.store(claim.expires.unwrap_or(0), Relaxed);
        record.user.store(claim.owner.user, Relaxed);
        record
            .client
            .store(client.map_or(0, written_client), Relaxed);
        record.has_client.store(client.is_some().into(), Relaxed);
        record.schedulee.store(number, Relaxed);
        record.level.store(1 + claim.level.index() as u32, Relaxed);
    }
}

impl Writer {
    /// Closes the table for its readers and leaves the file of its name alone, which is another
    /// table's.
    pub fn give_way(mut self) {
        self.path = None;
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        let header = self.memory.header();
        header.state.store(CLOSED, Release);
        header.sequence.fetch_add(2, Acquire);
        self.wake(Rows::ALL);
        if let Some(path) = &self.path {
            let _ = remove_file(path);
        }
    }
}
