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
        principal: &Principal,
        from: ClientId,
        portion: Portion,
    ) -> Result<Self, LedgerError> {
        let outcome = ledger
            .borrow_mut()
            .execute(principal, Operation::Transfer { from, portion })?;
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

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use crate::ledger::{Limits, Mode, Target};
    use alloc::string::ToString;
    use std::panic::{AssertUnwindSafe, catch_unwind};

    const ROOT: Principal = Principal::ROOT;

    /// Active clients a, b and c with 1, 10 and 100 base tickets.
    fn three() -> (Rc<RefCell<Ledger>>, [ClientId; 3]) {
        let mut ledger = Ledger::new(Limits::default());
        let clients = [("a", 1), ("b", 10), ("c", 100)].map(|(name, amount)| {
            let create = Operation::CreateClient {
                name: Some(name.to_string()),
                owner: 0,
            };
            let Ok(Outcome::Client(client)) = ledger.execute(&ROOT, create) else {
                panic!()
            };
            let target = Some(Target::Client(client));
            ledger
                .execute(
                    &ROOT,
                    Operation::Issue {
                        currency: ledger.base(),
                        amount,
                        target,
                    },
                )
                .unwrap();
            ledger.activate(client);
            client
        });
        (Rc::new(RefCell::new(ledger)), clients)
    }

    fn lend(ledger: &Rc<RefCell<Ledger>>, from: ClientId, to: ClientId) -> TransferGuard {
        TransferGuard::new(
            ledger,
            &ROOT,
            from,
            Portion::Whole([Target::Client(to)].into()),
        )
        .unwrap()
    }

    fn values(ledger: &Rc<RefCell<Ledger>>, clients: [ClientId; 3]) -> [u128; 3] {
        clients.map(|client| ledger.borrow().value(client).0 >> 32)
    }

    #[test]
    fn a_transfer_ends_when_its_guard_is_dropped() {
        let (ledger, clients) = three();
        let [a, b, _] = clients;
        let guard = lend(&ledger, a, b);
        assert_eq!(values(&ledger, clients), [0, 11, 100]);
        assert!(ledger.borrow().transfer(guard.id()).is_some());
        drop(guard);
        assert_eq!(values(&ledger, clients), [1, 10, 100]);
    }

    #[test]
    fn guards_are_dropped_in_any_order() {
        for first in 0..3 {
            let (ledger, clients) = three();
            let [a, b, c] = clients;
            let mut guards = std::vec![
                lend(&ledger, a, b),
                lend(&ledger, b, c),
                lend(&ledger, c, a)
            ];
            assert_eq!(values(&ledger, clients), [111, 0, 0]);
            drop(guards.remove(first));
            guards.reverse();
            drop(guards);
            assert_eq!(values(&ledger, clients), [1, 10, 100]);
            assert_eq!(ledger.borrow().transfers().count(), 0);
        }
    }

    #[test]
    fn unwinding_ends_a_transfer() {
        let (ledger, clients) = three();
        let [a, b, c] = clients;
        let unwound = catch_unwind(AssertUnwindSafe(|| {
            let _first = lend(&ledger, a, b);
            let _second = lend(&ledger, b, c);
            assert_eq!(values(&ledger, clients), [0, 0, 111]);
            std::panic::resume_unwind(std::boxed::Box::new("the server fell over"));
        }));
        assert!(unwound.is_err());
        assert_eq!(values(&ledger, clients), [1, 10, 100]);
    }

    #[test]
    fn a_guard_outlives_its_transfer() {
        let (ledger, clients) = three();
        let [a, b, c] = clients;
        let guard = lend(&ledger, a, b);
        ledger
            .borrow_mut()
            .execute(&ROOT, Operation::DestroyClient { client: b })
            .unwrap();
        // Another transfer stands at the same index by now.
        let other = lend(&ledger, c, a);
        assert_eq!(other.id().index(), guard.id().index());
        drop(guard);
        assert_eq!(values(&ledger, clients), [101, 0, 0]);
    }

    #[test]
    fn a_refused_transfer_makes_no_guard() {
        let (ledger, [a, ..]) = three();
        let refused = TransferGuard::new(
            &ledger,
            &ROOT,
            a,
            Portion::Whole([Target::Client(a)].into()),
        );
        assert!(matches!(refused, Err(LedgerError::SelfTransfer { .. })));
        let currency = Operation::CreateCurrency {
            name: "x".to_string(),
            owner: 0,
            group: 0,
            mode: Mode::DEFAULT,
        };
        assert!(ledger.borrow_mut().execute(&ROOT, currency).is_ok());
    }
}
