//! The ledger: the rights of each client, and what they are worth now.
//!
//! Tickets are amounts in currencies; a ticket funds a currency or a client
//! (1994, 3.3 and 4.3). Currencies form any acyclic graph below the base
//! currency. A ticket is active while it competes; a currency whose active
//! amount leaves or reaches zero activates or deactivates its backing tickets
//! (1994, 4.4), and nothing else travels through the graph.
//!
//! Every change asked for from outside is an [`Operation`]. [`Ledger::check`]
//! holds it against all rules and changes nothing; [`Ledger::apply`] carries it
//! out and cannot fail. A client that wakes or blocks is reported by
//! [`Ledger::activate`] and [`Ledger::deactivate`].

mod activation;
mod apply;
mod arena;
mod changes;
mod check;
mod error;
mod funding;
mod graph;
mod limits;
mod list;
mod objects;
mod operation;
mod permission;
mod rules;
mod ticket;
mod transfer;
mod value;
mod views;
mod watch;

use alloc::collections::BTreeMap;
use alloc::sync::Arc;

pub use check::Checked;
pub use error::LedgerError;
pub use limits::Limits;
pub use operation::{Operation, Outcome, Portion, Target};
pub use permission::{Access, BadMode, Mode, Principal};
pub use value::Value;
pub use views::{ClientView, CurrencyView, TicketView, TransferView};

use crate::cpu_limit::CpuLimit;
use crate::ids::{ClientId, CurrencyId, TicketId, TransferId};
use arena::{Arena, Handle};
use changes::Changes;
use objects::{Client, Currency, Transfer};
use ticket::Ticket;
use watch::FundingWatch;

/// Tickets, currencies, clients and transfers.
///
/// It can be sent between threads but not read by several at once: reading a
/// value remembers it.
///
/// A clone, and a ledger read back from its serialised form, behave like the
/// original: the same operations get the same identifiers. Reading back trusts
/// the text; guard it with a checksum.
#[derive(Clone, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Ledger {
    limits: Limits,
    currencies: Arena<Currency, CurrencyId>,
    tickets: Arena<Ticket, TicketId>,
    clients: Arena<Client, ClientId>,
    transfers: Arena<Transfer, TransferId>,
    /// The currency in which all values are expressed; never destroyed.
    base: Handle<Currency>,
    /// Every currency by its name.
    currency_names: BTreeMap<Arc<str>, Handle<Currency>>,
    /// Every client that has a name, by it.
    client_names: BTreeMap<Arc<str>, Handle<Client>>,
    /// The limits of the clients that have one: few do, and a client is small.
    #[cfg_attr(
        feature = "serde",
        serde(default, skip_serializing_if = "BTreeMap::is_empty")
    )]
    cpu_limits: BTreeMap<Handle<Client>, CpuLimit>,
    /// Changes with every active amount, and so with every value.
    epoch: u64,
    /// Changes whenever the value of a currency may have changed, other than
    /// to or from zero with its own active amount.
    currency_epoch: u64,
    /// Number of operations applied; a [`Checked`] of another version is stale.
    version: u64,
    /// Clients whose value changed since an engine last asked.
    #[cfg_attr(feature = "serde", serde(skip))]
    changes: Changes,
    /// Holders whose funding changed since an engine with a copy last asked.
    #[cfg_attr(feature = "serde", serde(skip))]
    funding_watch: FundingWatch,
}

impl Ledger {
    /// The name of the base currency.
    pub const BASE: &'static str = "base";

    /// An empty ledger whose base currency belongs to the super-user.
    pub fn new(limits: Limits) -> Self {
        Self::with_base_owner(limits, 0, 0)
    }

    /// An empty ledger whose base currency belongs to `owner` and `group`,
    /// with [`Mode::DEFAULT`].
    pub fn with_base_owner(limits: Limits, owner: u32, group: u32) -> Self {
        let mut currencies = Arena::new();
        let name: Arc<str> = Self::BASE.into();
        let base = currencies.insert(Currency::new(name.clone(), owner, group, Mode::DEFAULT));
        let depth = limits.depth.clamp(1, Limits::MAX_DEPTH);
        Self {
            limits: Limits { depth, ..limits },
            currencies,
            tickets: Arena::new(),
            clients: Arena::new(),
            transfers: Arena::new(),
            base,
            currency_names: BTreeMap::from([(name, base)]),
            client_names: BTreeMap::new(),
            cpu_limits: BTreeMap::new(),
            epoch: 0,
            currency_epoch: 0,
            version: 0,
            changes: Changes::default(),
            funding_watch: FundingWatch::default(),
        }
    }

    /// Checks and applies in one step.
    ///
    /// # Errors
    ///
    /// As [`Ledger::check`]; the ledger is then unchanged.
    pub fn execute(
        &mut self,
        principal: &Principal,
        operation: Operation,
    ) -> Result<Outcome, LedgerError> {
        let checked = self.check(principal, operation)?;
        Ok(self.apply(checked))
    }

    /// Makes room for so many more clients and tickets, and for no more, where
    /// it is known how many will come. Without this the room doubles as needed.
    pub fn reserve(&mut self, clients: usize, tickets: usize) {
        self.clients.reserve(clients);
        self.tickets.reserve(tickets);
    }

    /// The indices of all clients are below this.
    pub fn client_indices(&self) -> usize {
        self.clients.indices()
    }

    /// The limits within which it stays.
    pub fn limits(&self) -> &Limits {
        &self.limits
    }
}

#[cfg(test)]
mod tests;
