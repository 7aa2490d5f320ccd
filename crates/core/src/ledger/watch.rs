//! Whose funding changed: for an engine that keeps a copy of who is funded with
//! what, as one inside the kernel does.
//!
//! Noted are holders that came into being or went, and holders to whose tickets
//! one was added or taken away or got another amount, whether they are active or
//! not. (Who wants to know whose *value* changed asks for
//! [`Ledger::take_changes`].)

use alloc::vec::Vec;

use super::Ledger;
use super::objects::Holder;
use super::operation::Target;

/// What was noted since the last [`Ledger::take_funding_changes`]. Nothing until
/// somebody watches, so that nothing gathers where nobody takes it.
#[derive(Clone, Default, Debug)]
pub(super) struct FundingWatch {
    watched: bool,
    targets: Vec<Target>,
}

impl Ledger {
    /// From now on notes whose funding changes; whoever calls this takes the
    /// notes with [`Ledger::take_funding_changes`] by and by. A clone of the
    /// ledger notes for itself, one that is read back does not.
    pub fn watch_funding(&mut self) {
        self.funding_watch.watched = true;
    }

    /// Whose funding has changed since the last call, objects that have come
    /// into being or gone included. One may be named more than once.
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
