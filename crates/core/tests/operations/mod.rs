//! Operations that make currencies, clients and tickets, and what they make.
#![allow(dead_code, reason = "each test uses a part")]

use prorata_core::ids::{ClientId, CurrencyId};
use prorata_core::ledger::{Ledger, Mode, Operation, Outcome, Principal, Target};

/// Executes the super-user's operation, which must be legal.
pub fn execute(ledger: &mut Ledger, operation: Operation) -> Outcome {
    let executed = ledger.execute(&Principal::ROOT, operation);
    executed.expect("a legal operation")
}

pub fn create_currency(name: impl Into<String>) -> Operation {
    Operation::CreateCurrency {
        name: name.into(),
        owner: 0,
        group: 0,
        mode: Mode::DEFAULT,
    }
}

pub fn create_client(name: Option<String>) -> Operation {
    Operation::CreateClient { name, owner: 0 }
}

pub fn issue(currency: CurrencyId, amount: u32, target: Target) -> Operation {
    Operation::Issue {
        currency,
        amount,
        target: Some(target),
    }
}

pub fn currency(outcome: Outcome) -> CurrencyId {
    let Outcome::Currency(currency) = outcome else {
        panic!("{outcome:?}")
    };
    currency
}

pub fn client(outcome: Outcome) -> ClientId {
    let Outcome::Client(client) = outcome else {
        panic!("{outcome:?}")
    };
    client
}
