//! A program with slots: a library scheduler, what it holds, and its answers (2005, 2.3).

use std::collections::BTreeSet;
use std::os::fd::{AsFd, BorrowedFd};

use prorata_core::slots::claim::VECTOR;
use prorata_core::slots::geometry::Cell;
use prorata_core::slots::level::Level;
use prorata_protocol::SlotsWatch;
use prorata_protocol::slots::{Ended, Runs, SlotRequest, SlotsNews};

use crate::error::SlotsError;
use crate::scheduler::{Reply, Scheduler};
use crate::slots::Slots;

/// Claims slots by a scheduler, and answers when they are lost.
#[derive(Debug)]
pub struct Claimant<S> {
    slots: Slots,
    watch: SlotsWatch,
    scheduler: S,
    runs: Runs,
    level: Level,
    held: BTreeSet<Cell>,
}

impl<S: Scheduler> Claimant<S> {
    /// Claims what the scheduler plans, all or nothing.
    ///
    /// # Errors
    ///
    /// If there is no room, or if the daemon refuses.
    pub fn begin(slots: Slots, scheduler: S, runs: Runs, level: Level) -> Result<Self, SlotsError> {
        // Before the first claim, so that no loss goes untold.
        let watch = slots.watch(scheduler.wants_free())?;
        let mut claimant = Self {
            slots,
            watch,
            scheduler,
            runs,
            level,
            held: BTreeSet::new(),
        };
        claimant.claim_plan()?;
        Ok(claimant)
    }

    fn claim_plan(&mut self) -> Result<(), SlotsError> {
        let (scheduler, runs, level) = (&mut self.scheduler, &self.runs, self.level);
        let claimed = self.slots.claim_planned(level, |view| {
            let cells = scheduler.plan(view)?.into_iter();
            Some(cells.map(|cell| request(cell, runs, level)).collect())
        })?;
        let claimed = claimed.ok_or_else(|| SlotsError::NoRoom {
            wanted: self.scheduler.wish(),
            fix: "ask for less, or look who has the slots by `prorata slots show`",
        })?;
        self.held.extend(claimed);
        Ok(())
    }

    /// The slots that it has.
    pub fn held(&self) -> impl Iterator<Item = Cell> {
        self.held.iter().copied()
    }

    /// The table.
    pub fn slots(&self) -> &Slots {
        &self.slots
    }

    /// Waits for news and answers them, and those that came together with them.
    ///
    /// # Errors
    ///
    /// If the daemon has ended, or the table was closed.
    pub fn answer_next(&mut self) -> Result<(), SlotsError> {
        self.answer_one()?;
        while self.watch.has_news() {
            self.answer_one()?;
        }
        Ok(())
    }

    fn answer_one(&mut self) -> Result<(), SlotsError> {
        let news = self.watch.next_news()?;
        match news {
            SlotsNews::Ended { cell, why, .. } => {
                // News of the user's other claims are not ours.
                if !self.held.remove(&cell) {
                    return Ok(());
                }
                if why == Ended::ScheduleeEnded {
                    return Err(SlotsError::ScheduleeEnded);
                }
                self.reply(cell)?;
            }
            SlotsNews::Freed(_) => self.take_more()?,
            SlotsNews::Missed(_) => self.look_again()?,
            SlotsNews::Closed => return Err(SlotsError::Closed),
        }
        Ok(())
    }

    /// Finds the daemon again after its end, and answers what was lost meanwhile.
    ///
    /// # Errors
    ///
    /// As long as no daemon has a table.
    pub fn reconnect(&mut self) -> Result<(), SlotsError> {
        self.slots.reopen()?;
        self.watch = self.slots.watch(self.scheduler.wants_free())?;
        self.look_again()
    }

    fn reply(&mut self, lost: Cell) -> Result<(), SlotsError> {
        let held: Vec<Cell> = self.held().collect();
        // Nobody is preempted where there is room.
        let (view, _) = self.slots.view(Level::Background)?;
        let mut reply = self.scheduler.reply(lost, &held, &view);
        if reply.claim.is_empty() {
            let (view, _) = self.slots.view(self.level)?;
            reply = self.scheduler.reply(lost, &held, &view);
        }
        let Reply { free, claim } = reply;
        if !free.is_empty() {
            self.held.retain(|cell| !free.contains(cell));
            self.slots.free(free)?;
        }
        self.claim(claim)
    }

    fn take_more(&mut self) -> Result<(), SlotsError> {
        let held: Vec<Cell> = self.held().collect();
        // Nobody is preempted for more.
        let (view, _) = self.slots.view(Level::Background)?;
        let claim = self.scheduler.more(&held, &view);
        self.claim(claim)
    }

    /// After news were missed: what is still ours, by the table.
    fn look_again(&mut self) -> Result<(), SlotsError> {
        let snapshot = self.slots.table().snapshot().ok_or(SlotsError::Restless)?;
        let ours: BTreeSet<Cell> = snapshot
            .claims
            .iter()
            .filter(|claim| self.held.contains(&claim.cell) && claim.level == self.level)
            .map(|claim| claim.cell)
            .collect();
        let lost: Vec<Cell> = self.held.difference(&ours).copied().collect();
        self.held = ours;
        lost.into_iter().try_for_each(|cell| self.reply(cell))
    }

    /// Claims slots in vectors that the daemon takes; what others had first is left to them.
    fn claim(&mut self, cells: Vec<Cell>) -> Result<(), SlotsError> {
        for cells in cells.chunks(VECTOR) {
            let requests = cells
                .iter()
                .map(|&cell| request(cell, &self.runs, self.level));
            let claimed = self.slots.claim(requests.collect())?.claimed;
            self.held.extend(claimed);
        }
        Ok(())
    }
}

/// A claim without end.
fn request(cell: Cell, runs: &Runs, level: Level) -> SlotRequest {
    SlotRequest {
        cell,
        runs: runs.clone(),
        level,
        expires_ns: None,
    }
}

impl<S> AsFd for Claimant<S> {
    /// Readable when there may be news.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.watch.as_fd()
    }
}
