//! Several operations, all or none of them.

use prorata_core::ids::ClientId;
use prorata_core::ledger::{Ledger, Operation, Outcome, Principal};

use crate::process::ProcessId;
use crate::refusal::Refusal;
use crate::state::Change;

/// Changes, each checked in the state that the changes before it lead to. The
/// ledger itself stays as it is.
///
/// Applying them to that ledger cannot fail: the draft has already applied them
/// to a clone. A single operation needs no clone, see [`Draft::check_last`].
#[derive(Debug)]
pub(super) struct Draft<'a> {
    start: &'a Ledger,
    /// `start` after the operations in `changes`; none without any operation,
    /// or once the last one was added.
    scratch: Option<Ledger>,
    changes: Vec<Change>,
}

impl<'a> Draft<'a> {
    pub fn new(start: &'a Ledger) -> Self {
        Self {
            start,
            scratch: None,
            changes: Vec::new(),
        }
    }

    /// The ledger as it would be now.
    pub fn ledger(&self) -> &Ledger {
        self.scratch.as_ref().unwrap_or(self.start)
    }

    /// Adds an operation after which others may follow. The first one costs a
    /// clone of the ledger.
    pub fn execute(&mut self, who: &Principal, operation: Operation) -> Result<Outcome, Refusal> {
        let scratch = self.scratch.get_or_insert_with(|| self.start.clone());
        let outcome = scratch.execute(who, operation.clone())?;
        self.changes.push(Change::Ledger(operation));
        Ok(outcome)
    }

    /// Adds the last operation.
    pub fn check_last(&mut self, who: &Principal, operation: Operation) -> Result<(), Refusal> {
        self.ledger().check(who, operation.clone())?;
        self.changes.push(Change::Ledger(operation));
        Ok(())
    }

    /// Adds a change outside of the ledger, which needs no check.
    pub fn push(&mut self, change: Change) {
        self.changes.push(change);
    }

    /// The roots that a change gives to a client.
    pub fn roots_of(&self, client: ClientId) -> Option<&Vec<ProcessId>> {
        self.changes.iter().find_map(|change| match change {
            Change::Roots { client: of, roots } if *of == client => Some(roots),
            _ => None,
        })
    }

    pub fn into_changes(self) -> Vec<Change> {
        self.changes
    }
}
