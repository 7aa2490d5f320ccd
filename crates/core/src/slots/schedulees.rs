//! Numbers of schedulees, as words name them.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use super::claim::Schedulee;

/// The most schedulees of a table.
pub const SCHEDULEES: usize = 65_536;

#[derive(Clone, Debug)]
struct Entry {
    schedulee: Schedulee,
    claims: u32,
    /// Released after the last publication: a word that is still read may name it.
    fresh: bool,
    /// The publications before it was added; until the next one, no word names it.
    added: u64,
}

/// Schedulees and their numbers, from one on. A number is used again only once no published word
/// can name its former bearer.
#[derive(Clone, Default, Debug)]
pub(crate) struct Schedulees {
    entries: Vec<Option<Entry>>,
    numbers: BTreeMap<Schedulee, u32>,
    unused: Vec<u32>,
    fresh: Vec<u32>,
    staged: Vec<u32>,
    publications: u64,
}

impl Schedulees {
    pub(crate) fn has_room(&self, schedulee: &Schedulee) -> bool {
        self.numbers.len() < SCHEDULEES || self.numbers.contains_key(schedulee)
    }

    pub(crate) fn number(&self, schedulee: &Schedulee) -> Option<u32> {
        self.numbers.get(schedulee).copied()
    }

    pub(crate) fn get(&self, number: u32) -> Option<Schedulee> {
        let entry = self.entries.get(number.checked_sub(1)? as usize)?;
        entry.as_ref().map(|entry| entry.schedulee)
    }

    /// Counts one more claim.
    pub(crate) fn hold(&mut self, schedulee: Schedulee) {
        let number = match self.numbers.get(&schedulee) {
            Some(&number) => number,
            None => self.add(schedulee),
        };
        if let Some(entry) = &mut self.entries[number as usize - 1] {
            entry.claims += 1;
        }
    }

    fn add(&mut self, schedulee: Schedulee) -> u32 {
        let number = self.unused.pop().unwrap_or_else(|| {
            self.entries.push(None);
            self.entries.len() as u32
        });
        self.entries[number as usize - 1] = Some(Entry {
            schedulee,
            claims: 0,
            fresh: false,
            added: self.publications,
        });
        self.numbers.insert(schedulee, number);
        number
    }

    /// Counts one claim less.
    pub(crate) fn release(&mut self, schedulee: &Schedulee) {
        let Some(number) = self.number(schedulee) else {
            return;
        };
        let Some(entry) = &mut self.entries[number as usize - 1] else {
            return;
        };
        entry.claims -= 1;
        if entry.claims > 0 || entry.fresh {
            return;
        }
        if entry.added < self.publications {
            entry.fresh = true;
            self.fresh.push(number);
        } else {
            self.free(number);
        }
    }

    fn free(&mut self, number: u32) {
        if let Some(entry) = self.entries[number as usize - 1].take() {
            self.numbers.remove(&entry.schedulee);
            self.unused.push(number);
        }
    }

    /// The changes so far are published.
    pub(crate) fn published(&mut self) {
        self.publications += 1;
        for number in self.fresh.drain(..) {
            if let Some(entry) = &mut self.entries[number as usize - 1] {
                entry.fresh = false;
                self.staged.push(number);
            }
        }
    }

    /// The published changes are in force: no older word is read any more.
    pub(crate) fn in_force(&mut self) {
        for number in core::mem::take(&mut self.staged) {
            let entry = self.entries[number as usize - 1].as_ref();
            if entry.is_some_and(|entry| entry.claims == 0 && !entry.fresh) {
                self.free(number);
            }
        }
    }
}
