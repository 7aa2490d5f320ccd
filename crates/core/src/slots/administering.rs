//! Tokens, reservations and deaths (2005, Figures 2.4 and 2.5).

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use super::account::Tokens;
use super::bank::Amount;
use super::claim::{Account, Caller, Claim, Schedulee};
use super::error::SlotError;
use super::geometry::{Cell, Tick};
use super::level::{LEVELS, Level};
use super::notice::{Outcome, Why};
use super::reservation::{Onset, Reservation};
use super::timetable::Timetable;
use crate::ids::ClientId;

/// The answer to a donation. The thesis moves all tokens there are and returns an error if they are
/// too few: then `moved` is less than `asked`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Donated {
    /// Tokens that were asked for.
    pub asked: u32,
    /// Tokens that moved.
    pub moved: u64,
}

impl Timetable {
    /// What an account has of each level, in the order of [`Level::ALL`].
    pub fn get_tokens(&mut self, account: Account, now: Tick) -> Outcome<[Tokens; LEVELS]> {
        self.pass(now);
        let tokens = Level::ALL.map(|level| self.bank.tokens(account, level));
        self.outcome(tokens)
    }

    /// Sets the tokens that are free to spend, and the weight if one is named. Claims stay.
    pub fn set_tokens(
        &mut self,
        caller: &Caller,
        account: Account,
        level: Level,
        amount: Amount,
        weight: Option<u32>,
        now: Tick,
    ) -> Result<Outcome<Tokens>, SlotError> {
        check_privilege(caller)?;
        self.pass(now);
        self.bank.set(account, level, amount, weight)?;
        let tokens = self.bank.tokens(account, level);
        Ok(self.outcome(tokens))
    }

    /// Moves the caller's tokens to another account, until that one ends. The caller checks that the
    /// recipient lives: what goes to one that has ended never comes back.
    pub fn donate_tokens(
        &mut self,
        caller: &Caller,
        recipient: Account,
        level: Level,
        count: u32,
        now: Tick,
    ) -> Result<Outcome<Donated>, SlotError> {
        self.pass(now);
        let donor = self.payer(caller.owner, level);
        let moved = self.bank.donate(donor, recipient, level, count)?;
        let asked = count;
        Ok(self.outcome(Donated { asked, moved }))
    }

    /// Reserves slots of a row; a numerator of zero ends a reservation. Returns how many claims were
    /// revoked.
    pub fn reserve_slots(
        &mut self,
        caller: &Caller,
        row: u32,
        reservation: Reservation,
        onset: Onset,
        now: Tick,
    ) -> Result<Outcome<usize>, SlotError> {
        check_privilege(caller)?;
        let columns = self.geometry().columns();
        self.geometry().index(Cell { row, column: 0 })?;
        let Reservation {
            numerator,
            denominator,
        } = reservation;
        if denominator == 0 || denominator > columns || numerator > denominator {
            return Err(SlotError::Fraction {
                numerator,
                denominator,
                columns,
            });
        }
        self.pass(now);
        let victims = match onset {
            Onset::Lazy => Vec::new(),
            Onset::Immediate => self.in_the_way(row, reservation)?,
        };
        let mut changes = Vec::new();
        for &column in &victims {
            let index = self.geometry().index(Cell { row, column })?;
            changes.push(self.replace(index, None, Some(Why::Reserved)));
        }
        self.reservations[row as usize] = reservation;
        self.commit(changes);
        Ok(self.outcome(victims.len()))
    }

    /// The claims to revoke: the lowest level first, then the account that is furthest ahead after
    /// what it has lost so far, then the latest; claims of level system stay.
    fn in_the_way(&self, row: u32, reservation: Reservation) -> Result<Vec<u32>, SlotError> {
        let columns = self.geometry().columns();
        let claim = |column| self.table().get(Cell { row, column });
        let claimed: Vec<bool> = (0..columns).map(|column| claim(column).is_some()).collect();
        let may_go = |column| claim(column).is_some_and(|claim| claim.level != Level::System);
        let mut lost: BTreeMap<(Account, Level), u64> = BTreeMap::new();
        let choose = |columns: &[u32]| {
            let claims = columns.iter().filter_map(|&column| claim(column).copied());
            let share = |claim: &Claim| {
                let (payer, level) = (claim.payer, claim.level);
                let share = self.bank.tokens(payer, level).share();
                share.after_losing(lost.get(&(payer, level)).copied().unwrap_or(0))
            };
            let order = |a: &(u32, Claim), b: &(u32, Claim)| {
                let ahead = |a, b| share(b).ahead_of(share(a));
                let level = a.1.level.cmp(&b.1.level);
                let level = level.then_with(|| ahead(&a.1, &b.1));
                level.then_with(|| b.1.number.cmp(&a.1.number))
            };
            let (column, claim) = columns.iter().copied().zip(claims).min_by(order)?;
            *lost.entry((claim.payer, claim.level)).or_default() += 1;
            Some(column)
        };
        let cells = |columns: Vec<u32>| {
            let cells = columns.into_iter().map(|column| Cell { row, column });
            SlotError::SystemClaims(cells.collect())
        };
        reservation.victims(&claimed, may_go, choose).map_err(cells)
    }

    /// A client has ended: its claims under all users, its account, and claims in which it was to run.
    pub fn end_client(&mut self, client: ClientId, now: Tick) -> Outcome<()> {
        self.pass(now);
        let mut changes = Vec::new();
        while let Some(index) = self.table().of_client(client) {
            changes.push(self.replace(index, None, None));
        }
        self.commit(changes);
        self.end_runs(Schedulee::Client(client));
        self.bank.close(Account::Client(client));
        self.outcome(())
    }

    /// A schedulee has ended: claims in which it was to run end.
    pub fn end_schedulee(&mut self, schedulee: Schedulee, now: Tick) -> Outcome<()> {
        self.pass(now);
        self.end_runs(schedulee);
        self.outcome(())
    }

    fn end_runs(&mut self, schedulee: Schedulee) {
        let mut changes = Vec::new();
        while let Some(index) = self.table().of_schedulee(schedulee) {
            changes.push(self.replace(index, None, Some(Why::ScheduleeEnded)));
        }
        self.commit(changes);
    }
}

fn check_privilege(caller: &Caller) -> Result<(), SlotError> {
    if caller.privileged {
        return Ok(());
    }
    Err(SlotError::NotPrivileged)
}
