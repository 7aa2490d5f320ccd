//! `claim_slots` and `free_slots` (2005, Figure 2.3).

use alloc::vec::Vec;

use super::claim::{Account, Caller, Claim, Schedulee, SlotRequest, VECTOR};
use super::error::SlotError;
use super::geometry::{Cell, Tick};
use super::notice::{Outcome, Why};
use super::schedulees::SCHEDULEES;
use super::share::may_take;
use super::staging::STAGES;
use super::timetable::{Change, Claimed, Timetable};
use super::word::expiry_period;

/// What a vector does if one of its requests fails.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mode {
    /// The others succeed.
    BestEffort,
    /// All fail.
    AllOrNothing,
}

impl Timetable {
    /// Claims slots, or changes claims of the caller. With a `generation` the whole call is refused
    /// if the table has changed since.
    pub fn claim_slots(
        &mut self,
        caller: &Caller,
        requests: &[SlotRequest],
        mode: Mode,
        generation: Option<u64>,
        now: Tick,
    ) -> Result<Outcome<Claimed>, SlotError> {
        check_length(requests.len())?;
        self.pass(now);
        if let Some(expected) = generation.filter(|&expected| expected != self.generation()) {
            let now = self.generation();
            return Err(SlotError::Changed { expected, now });
        }
        let mut answer = Claimed::default();
        let mut changes = Vec::new();
        for (place, request) in requests.iter().enumerate() {
            match self.claim(caller, request) {
                Ok(change) => {
                    changes.push(change);
                    answer.claimed.push(*request);
                }
                Err(error) if mode == Mode::AllOrNothing => {
                    self.undo(changes);
                    return Err(error);
                }
                Err(error) => answer.refused.push((place, error)),
            }
        }
        self.commit(changes);
        Ok(self.outcome(answer))
    }

    /// Frees slots; others', unclaimed ones and cells outside the table are listed in the answer.
    pub fn free_slots(
        &mut self,
        caller: &Caller,
        cells: &[Cell],
        now: Tick,
    ) -> Result<Outcome<Vec<Cell>>, SlotError> {
        check_length(cells.len())?;
        self.pass(now);
        let mut refused = Vec::new();
        let mut changes = Vec::new();
        for &cell in cells {
            let claim = self.table().get(cell).copied();
            match (claim, self.geometry().index(cell)) {
                (Some(claim), Ok(index)) if caller.may_free(claim.owner) => {
                    let why = (claim.owner != caller.owner).then_some(Why::Freed(caller.owner));
                    changes.push(self.replace(index, None, why));
                }
                _ => refused.push(cell),
            }
        }
        self.commit(changes);
        Ok(self.outcome(refused))
    }

    /// Decides one request, then makes the change; an error leaves all as it was.
    fn claim(&mut self, caller: &Caller, request: &SlotRequest) -> Result<Change, SlotError> {
        let index = self.geometry().index(request.cell)?;
        self.check_expiry(request)?;
        let old = self.table().at_index(index);
        let own = old.filter(|old| old.owner == caller.owner);
        let payer = match own {
            // The token that comes back may be the one that is spent.
            Some(old) if old.level == request.level => old.payer,
            _ => self.payer(caller.owner, request.level),
        };
        let again = own.is_some_and(|old| (old.payer, old.level) == (payer, request.level));
        if !again && self.bank.tokens(payer, request.level).count == 0 {
            let (account, level) = (payer, request.level);
            return Err(SlotError::NoToken { account, level });
        }
        let why = match old {
            None => self.check_reserved(request.cell).map(|()| None)?,
            Some(_) if own.is_some() => None,
            Some(old) => Some(self.preempt(caller, request, &old, payer)?),
        };
        self.check_schedulee(request, old.as_ref())?;
        self.claims_made += 1;
        let new = Claim {
            owner: caller.owner,
            payer,
            schedulee: request.schedulee,
            level: request.level,
            expires: request.expires,
            number: self.claims_made,
        };
        Ok(self.replace(index, Some(new), why))
    }

    fn check_expiry(&self, request: &SlotRequest) -> Result<(), SlotError> {
        let Some(expires) = request.expires else {
            return Ok(());
        };
        let (cell, column) = (request.cell, request.cell.column);
        let columns = self.geometry().columns();
        let in_force = self.now().saturating_add(STAGES);
        let first = self.geometry().comes_up(column, in_force);
        let first = first.unwrap_or(Tick::MAX);
        if expires <= first {
            return Err(SlotError::Past {
                cell,
                expires,
                first,
            });
        }
        match expiry_period(expires, column, columns) {
            Some(_) => Ok(()),
            None => Err(SlotError::FarExpiry(expires)),
        }
    }

    /// Refuses an unclaimed cell that the row's reservation keeps.
    fn check_reserved(&self, cell: Cell) -> Result<(), SlotError> {
        let claimed = &self.table().rows[cell.row as usize];
        let (reservation, columns) = (
            &self.reservations[cell.row as usize],
            self.geometry().columns(),
        );
        if reservation.permits(cell.column, columns, |column| claimed.contains(column)) {
            return Ok(());
        }
        Err(SlotError::Reserved(cell))
    }

    /// Whether a request may take another owner's claim, and why that one ends (2005, 2.4.1).
    fn preempt(
        &self,
        caller: &Caller,
        request: &SlotRequest,
        old: &Claim,
        payer: Account,
    ) -> Result<Why, SlotError> {
        if request.level > old.level {
            return Ok(Why::Preempted(caller.owner));
        }
        let equal = request.level == old.level && payer != old.payer;
        let taker = self.bank.tokens(payer, request.level).share();
        let holder = self.bank.tokens(old.payer, old.level).share();
        if equal && old.level.permits_sharing() && may_take(taker, holder) {
            return Ok(Why::Shared(caller.owner));
        }
        Err(SlotError::Taken {
            cell: request.cell,
            level: old.level,
        })
    }

    fn check_schedulee(&self, request: &SlotRequest, old: Option<&Claim>) -> Result<(), SlotError> {
        let (schedulee, column) = (request.schedulee, request.cell.column);
        let here = old.is_some_and(|old| old.schedulee == schedulee);
        let thread = matches!(schedulee, Schedulee::Thread { .. });
        if thread && !here && self.table().thread_runs(schedulee, column) {
            return Err(SlotError::TwiceInColumn(column));
        }
        if !self.table().schedulees.has_room(&schedulee) {
            return Err(SlotError::ManySchedulees(SCHEDULEES));
        }
        Ok(())
    }
}

fn check_length(length: usize) -> Result<(), SlotError> {
    if length > VECTOR {
        return Err(SlotError::LongVector(length));
    }
    Ok(())
}
