//! The ledger: who holds which rights, and what they are worth now.
//!
//! Tickets are amounts in currencies; a ticket funds a currency or a client
//! (1994, 3.3 and 4.3). Currencies form any acyclic graph below the base
//! currency. A ticket is active while it competes; a currency whose active
//! amount leaves or reaches zero activates or deactivates its backing tickets
//! (1994, 4.4), and nothing else travels through the graph.

mod operation;
mod permission;

use alloc::string::String;

pub use operation::{Operation, Outcome, Portion, Target};
pub use permission::{Access, BadMode, Mode, Principal};

use crate::ids::{ClientId, CurrencyId, TicketId, TransferId};

/// How much of everything a ledger holds at most.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// Currencies, the base currency included.
    pub currencies: u32,
    /// Tickets, funding or idle, those made by transfers included.
    pub tickets: u32,
    /// Clients.
    pub clients: u32,
    /// Transfers under way.
    pub transfers: u32,
    /// Longest chain of currencies below the base currency.
    pub depth: u32,
    /// Longest chain of transfers through which one ticket is lent on.
    pub lending_depth: u32,
    /// Receivers of one transfer.
    pub receivers: u32,
    /// Bytes in a name.
    pub name_bytes: u32,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            currencies: 1 << 16,
            tickets: 1 << 20,
            clients: 1 << 20,
            transfers: 1 << 16,
            depth: 16,
            lending_depth: 16,
            receivers: 64,
            name_bytes: 64,
        }
    }
}

/// An amount of base units, with 32 fractional bits.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Debug)]
pub struct Value(pub u128);

impl Value {
    /// Whole base units and the fraction, for people.
    pub fn to_f64(self) -> f64 {
        self.0 as f64 / (1u64 << 32) as f64
    }
}

/// Why an operation is refused; the ledger is unchanged.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum LedgerError {
    /// To be filled with one variant a rule, each naming input, rule and fix.
    #[error("{0}")]
    Placeholder(String),
}

/// An operation that has been checked against the ledger's present state.
#[derive(Debug)]
pub struct Checked(Operation);

impl Checked {
    /// What was checked.
    pub fn operation(&self) -> &Operation {
        &self.0
    }
}

/// Tickets, currencies, clients and transfers.
#[derive(Debug)]
pub struct Ledger {
    _private: (),
}

/// A currency as a reader sees it.
#[derive(Clone, PartialEq, Debug)]
pub struct CurrencyView<'a> {
    /// Its identifier.
    pub id: CurrencyId,
    /// Its name.
    pub name: &'a str,
    /// Owner, group and mode.
    pub owner: u32,
    /// Group whom the mode's second digit speaks of.
    pub group: u32,
    /// Who may read, fund and issue.
    pub mode: Mode,
    /// Sum of all tickets issued in it.
    pub issued_amount: u64,
    /// Sum of those that are active.
    pub active_amount: u64,
    /// Base units that all its active tickets together are worth.
    pub value: Value,
}

/// A ticket as a reader sees it.
#[derive(Clone, PartialEq, Debug)]
pub struct TicketView {
    /// Its identifier.
    pub id: TicketId,
    /// Denomination.
    pub currency: CurrencyId,
    /// Face value that it holds itself, what it has lent left out.
    pub amount: u32,
    /// Face value lent by transfers.
    pub lent: u32,
    /// What it funds.
    pub target: Option<Target>,
    /// Whether it competes.
    pub active: bool,
    /// Base units it is worth if active, else zero.
    pub value: Value,
    /// The transfer that made it and the ticket it was taken from.
    pub transfer: Option<(TransferId, TicketId)>,
}

/// A client as a reader sees it.
#[derive(Clone, PartialEq, Debug)]
pub struct ClientView<'a> {
    /// Its identifier.
    pub id: ClientId,
    /// Its name.
    pub name: &'a str,
    /// User to whom it belongs.
    pub owner: u32,
    /// Whether it competes.
    pub active: bool,
    /// Base units its tickets are worth if active, else zero.
    pub value: Value,
}

/// A transfer as a reader sees it.
#[derive(Clone, PartialEq, Debug)]
pub struct TransferView {
    /// Its identifier.
    pub id: TransferId,
    /// Giver.
    pub from: ClientId,
    /// Receivers with currency and amount of what they hold through it now.
    pub shares: alloc::vec::Vec<(Target, CurrencyId, u32)>,
}

#[allow(unused_variables, missing_docs)]
impl Ledger {
    pub fn new(limits: Limits) -> Self {
        todo!()
    }
    pub fn check(&self, who: &Principal, operation: Operation) -> Result<Checked, LedgerError> {
        todo!()
    }
    pub fn apply(&mut self, operation: Checked) -> Outcome {
        todo!()
    }
    pub fn execute(
        &mut self,
        who: &Principal,
        operation: Operation,
    ) -> Result<Outcome, LedgerError> {
        let checked = self.check(who, operation)?;
        Ok(self.apply(checked))
    }
    pub fn activate(&mut self, client: ClientId) {
        todo!()
    }
    pub fn deactivate(&mut self, client: ClientId) {
        todo!()
    }
    /// Changes whenever any value may have changed.
    pub fn epoch(&self) -> u64 {
        todo!()
    }
    pub fn base(&self) -> CurrencyId {
        todo!()
    }
    /// Base units of an active client, zero of any other.
    pub fn value(&self, client: ClientId) -> Value {
        todo!()
    }
    pub fn active_base_amount(&self) -> u64 {
        todo!()
    }
    pub fn find_currency(&self, name: &str) -> Option<CurrencyId> {
        todo!()
    }
    pub fn find_client(&self, name: &str) -> Option<ClientId> {
        todo!()
    }
    pub fn currency(&self, id: CurrencyId) -> Option<CurrencyView<'_>> {
        todo!()
    }
    pub fn ticket(&self, id: TicketId) -> Option<TicketView> {
        todo!()
    }
    pub fn client(&self, id: ClientId) -> Option<ClientView<'_>> {
        todo!()
    }
    pub fn transfer(&self, id: TransferId) -> Option<TransferView> {
        todo!()
    }
    pub fn currencies(&self) -> impl Iterator<Item = CurrencyView<'_>> {
        todo!() as core::iter::Empty<_>
    }
    pub fn tickets(&self) -> impl Iterator<Item = TicketView> {
        todo!() as core::iter::Empty<_>
    }
    pub fn clients(&self) -> impl Iterator<Item = ClientView<'_>> {
        todo!() as core::iter::Empty<_>
    }
    pub fn transfers(&self) -> impl Iterator<Item = TransferView> {
        todo!() as core::iter::Empty<_>
    }
    pub fn backing(&self, currency: CurrencyId) -> impl Iterator<Item = TicketId> {
        todo!() as core::iter::Empty<_>
    }
    pub fn issued(&self, currency: CurrencyId) -> impl Iterator<Item = TicketId> {
        todo!() as core::iter::Empty<_>
    }
    pub fn funding(&self, client: ClientId) -> impl Iterator<Item = TicketId> {
        todo!() as core::iter::Empty<_>
    }
}
