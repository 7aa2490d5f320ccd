//! Changes that take effect together, at the beginning of a slot.
//!
//! Two buffers of words: engines read the one in force before `from_tick`, the other from then on.
//! A change decided in tick `t` is in force from tick `t + 2`, the second boundary after the answer,
//! if the timetable advances in each tick that
//! [`super::timetable::Timetable::wakes_at`] names.

use alloc::vec;
use alloc::vec::Vec;

use super::geometry::{Geometry, Tick};
use super::row_set::RowSet;
use super::table::Table;

/// From how many ticks after its decision a change is in force.
pub const STAGES: Tick = 2;

/// The words of the table, twice.
#[derive(Clone, Debug)]
pub struct Staging {
    buffers: [Vec<u64>; 2],
    /// The users of the claims' owners, for each buffer; any number in an unclaimed cell.
    users: [Vec<u32>; 2],
    /// The claimed columns of each row, for each buffer.
    rows: [Vec<RowSet>; 2],
    active: usize,
    /// When the other buffer takes over, and its generation.
    pending: Option<(Tick, u64)>,
    generation: u64,
    /// Cells decided and not yet published, and the tick of the first such decision.
    dirty: Vec<usize>,
    decided: Option<Tick>,
    /// Cells in which the other buffer may differ from the newest published one.
    stale: Vec<usize>,
    /// Words written since they were last taken: buffer and cell.
    written: Vec<(usize, usize)>,
}

/// Which buffer readers use from which tick on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Switch {
    /// The buffer, zero or one. Before `from` the other one is in force.
    pub buffer: usize,
    /// The first tick.
    pub from: Tick,
}

impl Staging {
    pub(crate) fn new(geometry: &Geometry) -> Self {
        let words = vec![0; geometry.cells()];
        let rows = vec![RowSet::new(geometry.columns()); geometry.rows() as usize];
        Self {
            buffers: [words.clone(), words],
            users: [vec![0; geometry.cells()], vec![0; geometry.cells()]],
            rows: [rows.clone(), rows],
            active: 0,
            pending: None,
            generation: 0,
            dirty: Vec::new(),
            decided: None,
            stale: Vec::new(),
            written: Vec::new(),
        }
    }

    /// The next change of buffers, if one is published that is not in force yet.
    pub fn switch(&self) -> Option<Switch> {
        let buffer = 1 - self.active;
        self.pending.map(|(from, _)| Switch { buffer, from })
    }

    /// The buffer in force until the next change of buffers.
    pub fn active(&self) -> usize {
        self.active
    }

    /// One word of one buffer.
    pub fn word(&self, buffer: usize, index: usize) -> u64 {
        self.buffers[buffer][index]
    }

    pub(crate) fn take_written(&mut self) -> Vec<(usize, usize)> {
        core::mem::take(&mut self.written)
    }

    /// The words in force at a tick, which is not before the present one.
    pub fn words(&self, tick: Tick) -> &[u64] {
        &self.buffers[self.buffer(tick)]
    }

    /// The user of the owner of a claimed cell at a tick.
    pub(crate) fn user(&self, index: usize, tick: Tick) -> u32 {
        self.users[self.buffer(tick)][index]
    }

    /// The claimed columns in force at a tick.
    pub(crate) fn row(&self, row: u32, tick: Tick) -> Option<&RowSet> {
        self.rows[self.buffer(tick)].get(row as usize)
    }

    fn buffer(&self, tick: Tick) -> usize {
        match self.pending {
            Some((from, _)) if from <= tick => 1 - self.active,
            _ => self.active,
        }
    }

    /// The generation in force at a tick.
    pub fn generation(&self, tick: Tick) -> u64 {
        match self.pending {
            Some((from, generation)) if from <= tick => generation,
            _ => self.generation,
        }
    }

    /// From which tick the published changes hold, if they do not yet.
    pub fn from_tick(&self) -> Option<Tick> {
        self.pending.map(|(from, _)| from)
    }

    /// Notes that cells were changed in tick `now`.
    pub(crate) fn note(&mut self, cells: impl IntoIterator<Item = usize>, now: Tick) {
        self.dirty.extend(cells);
        limit(&mut self.dirty, self.buffers[0].len());
        if !self.dirty.is_empty() {
            self.decided.get_or_insert(now);
        }
    }

    /// Puts published changes into force whose time has come. Returns whether there were any.
    pub(crate) fn advance(&mut self, now: Tick) -> bool {
        match self.pending {
            Some((from, generation)) if from <= now => {
                self.active = 1 - self.active;
                self.generation = generation;
                self.pending = None;
                true
            }
            _ => false,
        }
    }

    /// Publishes what was decided, unless changes of an earlier tick are still to come into force.
    /// Returns whether it did.
    pub(crate) fn publish(&mut self, table: &Table, generation: u64, now: Tick) -> bool {
        let Some(decided) = self.decided else {
            return false;
        };
        let from = (decided + STAGES).max(now + 1);
        if self.pending.is_some_and(|(pending, _)| pending != from) {
            return false;
        }
        let joins = self.pending.is_some();
        let mut written = core::mem::take(&mut self.dirty);
        self.decided = None;
        // The word before a changed one names the distance to it.
        let geometry = table.geometry();
        for place in 0..written.len() {
            let cell = geometry.cell(written[place]);
            if let Some(column) = table.rows[cell.row as usize].previous(cell.column) {
                written.push(written[place] - cell.column as usize + column as usize);
            }
        }
        written.sort_unstable();
        written.dedup();
        let other = 1 - self.active;
        // A change that joins finds the earlier ones written already.
        let behind: &[usize] = if joins { &[] } else { &self.stale };
        for &index in written.iter().chain(behind) {
            let (cell, word) = (geometry.cell(index), table.word(index));
            self.buffers[other][index] = word;
            self.users[other][index] = table.at_index(index).map_or(0, |claim| claim.owner.user);
            self.rows[other][cell.row as usize].set(cell.column, word != 0);
            self.written.push((other, index));
        }
        limit(&mut self.written, 2 * geometry.cells());
        // A joining change leaves the cells of the first one different between the buffers.
        if joins {
            self.stale.extend(written);
            limit(&mut self.stale, geometry.cells());
        } else {
            self.stale = written;
        }
        self.pending = Some((from, generation));
        true
    }
}

/// Names each cell once, before a list that names some many times outgrows the table.
pub(crate) fn limit<T: Ord>(list: &mut Vec<T>, cells: usize) {
    if list.len() > 2 * cells {
        list.sort_unstable();
        list.dedup();
    }
}
