//! Tests of the whole ledger.

extern crate std;

mod audit;
mod figures;
mod histories;
mod history;
mod limits;
mod model;
mod permissions;
mod refusals;
mod steps;
mod transfers;

use super::*;
use crate::ids::{ClientId, CurrencyId, TicketId, TransferId};
use alloc::string::ToString;
use alloc::vec::Vec;

/// A ledger and short ways of asking the super-user's operations of it, which
/// must not be refused.
pub(super) struct Fixture {
    pub(super) ledger: Ledger,
}

impl Fixture {
    pub(super) fn new() -> Self {
        Self::with_limits(Limits::default())
    }

    pub(super) fn with_limits(limits: Limits) -> Self {
        Self {
            ledger: Ledger::new(limits),
        }
    }

    pub(super) fn run(&mut self, operation: Operation) -> Outcome {
        match self.ledger.execute(&Principal::ROOT, operation) {
            Ok(outcome) => outcome,
            Err(refused) => panic!("{refused}"),
        }
    }

    pub(super) fn refusal(&self, operation: Operation) -> LedgerError {
        self.ledger
            .check(&Principal::ROOT, operation)
            .expect_err("to be refused")
    }

    pub(super) fn currency(&mut self, name: &str) -> CurrencyId {
        let outcome = self.run(create_currency(name));
        let Outcome::Currency(id) = outcome else {
            panic!("{outcome:?}")
        };
        id
    }

    /// A currency backed by `amount` tickets of another.
    pub(super) fn backed(&mut self, name: &str, by: CurrencyId, amount: u32) -> CurrencyId {
        let currency = self.currency(name);
        self.issue(by, amount, Target::Currency(currency));
        currency
    }

    pub(super) fn client(&mut self, name: &str) -> ClientId {
        let outcome = self.run(create_client(name, 0));
        let Outcome::Client(id) = outcome else {
            panic!("{outcome:?}")
        };
        id
    }

    /// A client with `amount` tickets of a currency.
    pub(super) fn funded(&mut self, name: &str, by: CurrencyId, amount: u32) -> ClientId {
        let client = self.client(name);
        self.issue(by, amount, Target::Client(client));
        client
    }

    pub(super) fn issue(&mut self, currency: CurrencyId, amount: u32, target: Target) -> TicketId {
        self.ticket(issue(currency, amount, target))
    }

    /// A ticket that funds nothing.
    pub(super) fn idle(&mut self, currency: CurrencyId, amount: u32) -> TicketId {
        self.ticket(issue(currency, amount, None))
    }

    fn ticket(&mut self, issue: Operation) -> TicketId {
        let outcome = self.run(issue);
        let Outcome::Ticket(id) = outcome else {
            panic!("{outcome:?}")
        };
        id
    }

    pub(super) fn transfer(&mut self, from: ClientId, portion: Portion) -> TransferId {
        let outcome = self.run(Operation::Transfer { from, portion });
        let Outcome::Transfer(id) = outcome else {
            panic!("{outcome:?}")
        };
        id
    }

    pub(super) fn whole(&mut self, from: ClientId, to: ClientId) -> TransferId {
        self.transfer(from, Portion::Whole([Target::Client(to)].into()))
    }

    pub(super) fn part(&mut self, from: ClientId, to: Target, amount: u32) -> TransferId {
        self.transfer(
            from,
            Portion::Part {
                currency: None,
                shares: [(to, amount)].into(),
            },
        )
    }

    pub(super) fn end(&mut self, transfer: TransferId) {
        self.run(Operation::EndTransfer { transfer });
    }

    pub(super) fn activate(&mut self, clients: &[ClientId]) {
        clients
            .iter()
            .for_each(|client| self.ledger.activate(*client));
    }

    /// What clients are worth, in whole base units and nothing over.
    pub(super) fn values(&self, clients: &[ClientId]) -> Vec<u64> {
        let whole = |client: &ClientId| {
            let Value(value) = self.ledger.value(*client);
            assert_eq!(
                value & u128::from(u32::MAX),
                0,
                "{client} is worth {}",
                Value(value).to_f64()
            );
            (value >> Value::FRACTION_BITS) as u64
        };
        clients.iter().map(whole).collect()
    }
}

pub(super) fn create_currency(name: &str) -> Operation {
    Operation::CreateCurrency {
        name: name.to_string(),
        owner: 0,
        group: 0,
        mode: Mode::DEFAULT,
    }
}

pub(super) fn create_client(name: &str, owner: u32) -> Operation {
    Operation::CreateClient {
        name: Some(name.to_string()),
        owner,
    }
}

pub(super) fn issue(
    currency: CurrencyId,
    amount: u32,
    target: impl Into<Option<Target>>,
) -> Operation {
    Operation::Issue {
        currency,
        amount,
        target: target.into(),
    }
}

pub(super) fn set_amount(ticket: TicketId, amount: u32) -> Operation {
    Operation::SetAmount { ticket, amount }
}

pub(super) fn fund(ticket: TicketId, target: Target) -> Operation {
    Operation::Fund { ticket, target }
}

pub(super) fn whole(from: ClientId, targets: &[Target]) -> Operation {
    Operation::Transfer {
        from,
        portion: Portion::Whole(targets.into()),
    }
}

pub(super) fn part(
    from: ClientId,
    currency: Option<CurrencyId>,
    shares: &[(Target, u32)],
) -> Operation {
    Operation::Transfer {
        from,
        portion: Portion::Part {
            currency,
            shares: shares.into(),
        },
    }
}
