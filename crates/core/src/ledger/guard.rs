//! A transfer that lasts as long as a handle to it.

use alloc::rc::Rc;
use core::cell::RefCell;

use super::operation::{Operation, Outcome, Portion};
use super::permission::Principal;
use super::{Ledger, LedgerError};
use crate::ids::{ClientId, TransferId};

/// A transfer that ends exactly when this is dropped, also by unwinding.
///
/// It may have ended before, with the client that gave it or received it, or
/// with the transfer that it was lent on from; dropping this then does nothing.
#[derive(Debug)]
pub struct TransferGuard {
    ledger: Rc<RefCell<Ledger>>,
    transfer: TransferId,
}

impl TransferGuard {
    /// Starts a transfer from client `from`.
    ///
    /// # Errors
    ///
    /// As [`Ledger::check`] of [`Operation::Transfer`].
    ///
    /// # Panics
    ///
    /// If the ledger is borrowed, now or when the guard is dropped.
    pub fn new(
        ledger: &Rc<RefCell<Ledger>>,
        who: &Principal,
        from: ClientId,
        portion: Portion,
    ) -> Result<Self, LedgerError> {
        let outcome = ledger
            .borrow_mut()
            .execute(who, Operation::Transfer { from, portion })?;
        let Outcome::Transfer(transfer) = outcome else {
            unreachable!("a transfer was asked for")
        };
        Ok(Self {
            ledger: Rc::clone(ledger),
            transfer,
        })
    }

    /// The transfer.
    pub fn id(&self) -> TransferId {
        self.transfer
    }
}

impl Drop for TransferGuard {
    fn drop(&mut self) {
        self.ledger.borrow_mut().end_if_under_way(self.transfer);
    }
}
