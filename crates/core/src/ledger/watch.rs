//! Changes of funding, for an engine that keeps a copy of it, as the one inside
//! the kernel does.
//!
//! A holder is noted when it comes into being or goes, and when it gains or
//! loses a ticket or one of its tickets gets another amount, whether it is
//! active or not. [`Ledger::take_changes`] names changes of *value* instead.

use alloc::vec::Vec;

use super::Ledger;
use super::objects::Holder;
use super::operation::Target;

/// Holders noted since the last [`Ledger::take_funding_changes`]. None until an
/// engine watches, so that notes do not gather where no engine takes them.
#[derive(Clone, Default, Debug)]
pub(super) struct FundingWatch {
    watched: bool,
    targets: Vec<Target>,
}

impl Ledger {
    /// From now on notes changes of funding; the caller must take the notes with
    /// [`Ledger::take_funding_changes`] now and then. A clone of the ledger
    /// notes for itself; a ledger that is read back does not.
    pub fn watch_funding(&mut self) {
        self.funding_watch.watched = true;
    }

    /// Holders whose funding changed since the last call, with those that came
    /// into being or went. A holder may be named more than once.
    pub fn take_funding_changes(&mut self) -> Vec<Target> {
        core::mem::take(&mut self.funding_watch.targets)
    }

    /// Notes a holder that lives. O(1).
    pub(super) fn note_funding(&mut self, holder: Holder) {
        if !self.funding_watch.watched {
            return;
        }
        let target = self.target(holder);
        // One operation often changes several tickets of the same holder.
        if self.funding_watch.targets.last() != Some(&target) {
            self.funding_watch.targets.push(target);
        }
    }
}
