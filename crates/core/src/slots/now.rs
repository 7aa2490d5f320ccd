//! What runs at a tick: one look-up, whatever the number of claims (2005, 2.2 and 2.5).

use super::claim::Schedulee;
use super::geometry::{Cell, Tick};
use super::timetable::Timetable;
use super::word::Word;

impl Timetable {
    /// The schedulee of a row at a tick, which is not before the last `now`; none in an unclaimed
    /// slot, outside the table and on a CPU that is offline.
    pub fn at(&self, row: u32, tick: Tick) -> Option<Schedulee> {
        let word = self.word_at(row, tick)?;
        let period = tick / u64::from(self.geometry().columns());
        if !word.is_valid(period) {
            return None;
        }
        self.table().schedulees.get(word.schedulee)
    }

    /// The user that claimed that slot, whichever user the schedulee belongs to.
    pub fn claimant_at(&self, row: u32, tick: Tick) -> Option<u32> {
        self.at(row, tick)?;
        let column = self.geometry().column(tick);
        let index = self.geometry().index(Cell { row, column });
        Some(self.staging().user(index.ok()?, tick))
    }

    /// The first tick at or after `tick` in whose slot the row has a claim. The claim may expire
    /// before the tick, so a timer that is set by it looks at [`Timetable::at`].
    pub fn next_claimed(&self, row: u32, tick: Tick) -> Option<Tick> {
        let from = self.staging().from_tick().filter(|&from| from > tick);
        let now = self.ahead(row, tick);
        match from {
            None => now,
            Some(from) => now
                .filter(|&found| found < from)
                .or_else(|| self.ahead(row, from)),
        }
    }

    /// The same with the words that are in force at `tick`.
    fn ahead(&self, row: u32, tick: Tick) -> Option<Tick> {
        let column = self.geometry().column(tick);
        let next = self.staging().row(row, tick)?.next(column)?;
        self.geometry().comes_up(next, tick)
    }

    fn word_at(&self, row: u32, tick: Tick) -> Option<Word> {
        if !self.is_online(row) {
            return None;
        }
        let column = self.geometry().column(tick);
        let index = self.geometry().index(Cell { row, column });
        Word::unpack(self.staging().words(tick)[index.ok()?])
    }
}
