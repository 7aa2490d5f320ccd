//! The timetable: table, bank and staging behind one door.
//!
//! Each call takes the present tick, is wholly checked before anything else can see a change, and
//! returns what it did with the notices that are due. A refused call changes nothing but that time
//! passes: claims expire in it, and their notices wait for the next call that is accepted.

use alloc::vec;
use alloc::vec::Vec;

use super::bank::Bank;
use super::claim::{Account, Claim, Owner, Schedulee, SlotRequest};
use super::error::SlotError;
use super::geometry::{Cell, Geometry, Tick};
use super::level::{LEVELS, Level};
use super::notice::{Notice, Outcome, Why};
use super::reservation::{NONE, Reservation};
use super::staging::{Staging, limit};
use super::table::Table;

/// All of slot scheduling that takes no clock, no CPU and no process.
#[derive(Clone, Debug)]
pub struct Timetable {
    table: Table,
    pub(crate) bank: Bank,
    staging: Staging,
    pub(crate) reservations: Vec<Reservation>,
    online: Vec<bool>,
    generation: u64,
    /// Claims made so far.
    pub(crate) claims_made: u64,
    now: Tick,
    notices: Vec<Notice>,
    freed: Vec<Cell>,
    /// Cells whose claims changed since they were last taken.
    changed: Vec<usize>,
    /// Whether decided changes wait for [`Timetable::publish`].
    holds_back: bool,
}

/// What readers of the table do not have yet.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct News {
    /// Cells whose claims changed.
    pub claims: Vec<usize>,
    /// Words that changed: buffer and cell.
    pub words: Vec<(usize, usize)>,
}

/// What a change leaves to be told.
pub(crate) struct Change {
    pub(crate) index: usize,
    pub(crate) before: Option<Claim>,
    pub(crate) why: Option<Why>,
}

impl Timetable {
    /// An empty table and an empty bank.
    pub fn open(geometry: Geometry) -> Self {
        let rows = geometry.rows() as usize;
        Self {
            table: Table::new(geometry),
            bank: Bank::default(),
            staging: Staging::new(&geometry),
            reservations: vec![NONE; rows],
            online: vec![true; rows],
            generation: 0,
            claims_made: 0,
            now: 0,
            notices: Vec::new(),
            freed: Vec::new(),
            changed: Vec::new(),
            holds_back: false,
        }
    }

    /// Keeps what is decided from now on out of the words until [`Timetable::publish`], which gives
    /// the caller time to write it down.
    pub fn hold_back(&mut self) {
        self.holds_back = true;
    }

    /// Ends what [`Timetable::hold_back`] began: changes come into force at a boundary after `now`.
    pub fn publish(&mut self, now: Tick) {
        self.holds_back = false;
        self.pass(now);
    }

    /// Notes that a cell is not as its image has it.
    pub(crate) fn note_changed(&mut self, index: usize) {
        self.changed.push(index);
    }

    /// Cells whose claims changed since news were last taken, in no order.
    pub fn changed(&self) -> &[usize] {
        &self.changed
    }

    /// What changed since the last call. Each list names a cell at most some times.
    pub fn take_news(&mut self) -> News {
        News {
            claims: core::mem::take(&mut self.changed),
            words: self.staging.take_written(),
        }
    }

    /// The schedulee that words name by a number.
    pub fn schedulee(&self, number: u32) -> Option<Schedulee> {
        self.table.schedulees.get(number)
    }

    /// The number by which words name a schedulee, if any claim does.
    pub fn number_of(&self, schedulee: &Schedulee) -> Option<u32> {
        self.table.schedulees.number(schedulee)
    }

    /// The table's shape.
    pub fn geometry(&self) -> &Geometry {
        self.table.geometry()
    }

    /// The claims as decided; what is in force is [`Timetable::at`]'s.
    pub fn table(&self) -> &Table {
        &self.table
    }

    /// The bank.
    pub fn bank(&self) -> &Bank {
        &self.bank
    }

    /// The words that engines read.
    pub fn staging(&self) -> &Staging {
        &self.staging
    }

    /// The number of the last change.
    pub fn generation(&self) -> u64 {
        self.generation
    }

    /// The reservation of a row.
    pub fn reservation(&self, row: u32) -> Option<Reservation> {
        self.reservations.get(row as usize).copied()
    }

    /// Whether a row's CPU is there.
    pub fn is_online(&self, row: u32) -> bool {
        self.online.get(row as usize).copied().unwrap_or(false)
    }

    /// Notes that a row's CPU came or went. Claims of a row without CPU stay and are void.
    pub fn set_online(&mut self, row: u32, online: bool) -> Result<(), SlotError> {
        self.geometry().index(Cell { row, column: 0 })?;
        self.online[row as usize] = online;
        Ok(())
    }

    /// When to call [`Timetable::advance`] next, at the latest.
    pub fn wakes_at(&self) -> Option<Tick> {
        let staged = self.staging.from_tick();
        let expires = self.table.expiries.next();
        staged.into_iter().chain(expires).min()
    }

    /// Lets time pass: claims expire, and staged changes come into force.
    pub fn advance(&mut self, now: Tick) -> Outcome<()> {
        self.pass(now);
        self.outcome(())
    }

    /// As [`Timetable::advance`], the notices being kept for the next outcome.
    pub(crate) fn pass(&mut self, now: Tick) {
        self.now = self.now.max(now);
        self.step_staging();
        let mut changes = Vec::new();
        while let Some(index) = self.table.expiries.over(self.now) {
            changes.push(self.replace(index, None, Some(Why::Expired)));
        }
        self.commit(changes);
    }

    /// The present tick.
    pub fn now(&self) -> Tick {
        self.now
    }

    /// Puts a claim in place of another; tokens move with it.
    pub(crate) fn replace(&mut self, index: usize, new: Option<Claim>, why: Option<Why>) -> Change {
        let before = self.table.at_index(index);
        if let Some(old) = before {
            self.bank.refund(old.payer, old.level);
        }
        if let Some(new) = new {
            self.bank.spend(new.payer, new.level);
        }
        self.table.put(index, new);
        Change { index, before, why }
    }

    /// Undoes changes that nobody has seen.
    pub(crate) fn undo(&mut self, changes: Vec<Change>) {
        for change in changes.into_iter().rev() {
            self.replace(change.index, change.before, None);
        }
    }

    /// Makes changes known: to owners, to watchers and to the staged words.
    pub(crate) fn commit(&mut self, changes: Vec<Change>) {
        if changes.is_empty() {
            return;
        }
        self.generation += 1;
        for change in &changes {
            let cell = self.geometry().cell(change.index);
            if let (Some(claim), Some(why)) = (change.before, change.why) {
                self.notices.push(Notice { cell, claim, why });
            }
            if change.before.is_some() && self.table.at_index(change.index).is_none() {
                self.freed.push(cell);
            }
        }
        self.changed
            .extend(changes.iter().map(|change| change.index));
        let cells = self.geometry().cells();
        limit(&mut self.changed, cells);
        let cells = changes.iter().map(|change| change.index);
        self.staging.note(cells, self.now);
        self.step_staging();
    }

    fn step_staging(&mut self) {
        if self.staging.advance(self.now) {
            self.table.schedulees.in_force();
        }
        if !self.holds_back && self.staging.publish(&self.table, self.generation, self.now) {
            self.table.schedulees.published();
        }
    }

    pub(crate) fn outcome<T>(&mut self, value: T) -> Outcome<T> {
        Outcome {
            value,
            generation: self.generation,
            notices: core::mem::take(&mut self.notices),
            freed: core::mem::take(&mut self.freed),
        }
    }

    /// The account that pays for an owner's claims of a level: the client's if that has tokens, else
    /// the user's.
    pub(crate) fn payer(&self, owner: Owner, level: Level) -> Account {
        let client = owner.client.map(Account::Client);
        client
            .filter(|&client| self.bank.tokens(client, level).count > 0)
            .unwrap_or(Account::User(owner.user))
    }

    /// Recounts the bank from the claims; tests call it after each step. `false`: a token was lost
    /// or made.
    pub fn audit(&self) -> bool {
        let mut held: alloc::collections::BTreeMap<(Account, Level), u64> = Default::default();
        for (_, claim) in self.table.claims() {
            *held.entry((claim.payer, claim.level)).or_default() += 1;
        }
        let mut sums = [0; LEVELS];
        for (&account, tokens) in self.bank.accounts() {
            for level in Level::ALL {
                let tokens = tokens[level.index()];
                sums[level.index()] += tokens.count + tokens.spent;
                if tokens.spent != held.remove(&(account, level)).unwrap_or(0) {
                    return false;
                }
            }
        }
        held.is_empty()
            && Level::ALL
                .iter()
                .all(|&l| sums[l.index()] == self.bank.issued(l))
    }
}

/// The answer to a vector of claims.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Claimed {
    /// Requests that succeeded, in their order.
    pub claimed: Vec<SlotRequest>,
    /// Places of the others in the vector, and why they failed.
    pub refused: Vec<(usize, SlotError)>,
}
