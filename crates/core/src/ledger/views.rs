//! The ledger as readers see it. Permission to read is the reader's to check,
//! see [`Ledger::may_read`].

use alloc::vec::Vec;

use super::Ledger;
use super::arena::Handle;
use super::list::Chain;
use super::objects::{Client, Currency, Holder, Transfer};
use super::operation::Target;
use super::permission::{Access, Mode, Principal};
use super::ticket::Ticket;
use super::value::Value;
use crate::cpu_limit::CpuLimit;
use crate::ids::{ClientId, CurrencyId, TicketId, TransferId};

/// A currency as a reader sees it.
#[derive(Clone, PartialEq, Debug)]
pub struct CurrencyView<'a> {
    /// Its identifier.
    pub id: CurrencyId,
    /// Its name.
    pub name: &'a str,
    /// The user of the mode's first digit.
    pub owner: u32,
    /// The group of the mode's second digit.
    pub group: u32,
    /// The users that may read, fund and issue.
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
    /// Its name; empty if it has none.
    pub name: &'a str,
    /// User to whom it belongs.
    pub owner: u32,
    /// Whether it competes.
    pub active: bool,
    /// Base units its tickets are worth if active, else zero.
    pub value: Value,
    /// The most CPU time that it may get.
    pub max: Option<CpuLimit>,
}

/// A transfer as a reader sees it.
#[derive(Clone, PartialEq, Debug)]
pub struct TransferView {
    /// Its identifier.
    pub id: TransferId,
    /// Giver.
    pub from: ClientId,
    /// Receivers with currency and amount of what they hold through it now,
    /// what they have lent on left out.
    pub shares: Vec<(Target, CurrencyId, u32)>,
}

/// One object.
impl Ledger {
    /// The base currency (1994, 3.3).
    pub fn base(&self) -> CurrencyId {
        self.currencies.id(self.base)
    }

    /// The currency of this name. O(log n).
    pub fn find_currency(&self, name: &str) -> Option<CurrencyId> {
        self.currency_names
            .get(name)
            .map(|currency| self.currencies.id(*currency))
    }

    /// The client of this name. O(log n).
    pub fn find_client(&self, name: &str) -> Option<ClientId> {
        self.client_names
            .get(name)
            .map(|client| self.clients.id(*client))
    }

    /// Whether a principal may see a currency's tickets and what they are worth;
    /// not where there is no such currency.
    pub fn may_read(&self, principal: &Principal, currency: CurrencyId) -> bool {
        let currency = self
            .currencies
            .find(currency)
            .map(|currency| &self.currencies[currency]);
        currency.is_some_and(|currency| {
            currency
                .mode
                .allows(currency.owner, currency.group, principal, Access::Read)
        })
    }

    /// A currency, unless it was destroyed.
    pub fn currency(&self, id: CurrencyId) -> Option<CurrencyView<'_>> {
        self.currencies
            .find(id)
            .map(|currency| self.currency_view(currency, &self.currencies[currency]))
    }

    /// A ticket, unless it was destroyed.
    pub fn ticket(&self, id: TicketId) -> Option<TicketView> {
        self.tickets
            .find(id)
            .map(|ticket| self.ticket_view(ticket, &self.tickets[ticket]))
    }

    /// A client, unless it was destroyed.
    pub fn client(&self, id: ClientId) -> Option<ClientView<'_>> {
        self.clients
            .find(id)
            .map(|client| self.client_view(client, &self.clients[client]))
    }

    /// The most CPU time that a client may get, if it has a limit. O(log n) in
    /// the clients with limits.
    pub fn cpu_limit(&self, id: ClientId) -> Option<CpuLimit> {
        let client = self.clients.find(id)?;
        self.cpu_limits.get(&client).copied()
    }

    /// The clients with limits, in the order of their indices.
    pub fn limited_clients(&self) -> impl Iterator<Item = (ClientId, CpuLimit)> {
        let limits = self.cpu_limits.iter();
        limits.map(|(client, max)| (self.clients.id(*client), *max))
    }

    /// A transfer, unless it has ended.
    pub fn transfer(&self, id: TransferId) -> Option<TransferView> {
        self.transfers
            .find(id)
            .map(|transfer| self.transfer_view(transfer, &self.transfers[transfer]))
    }
}

/// All objects of a kind, in the order of their indexes.
impl Ledger {
    /// All currencies, the base currency first.
    pub fn currencies(&self) -> impl Iterator<Item = CurrencyView<'_>> {
        self.currencies
            .iter()
            .map(|(handle, currency)| self.currency_view(handle, currency))
    }

    /// All tickets.
    pub fn tickets(&self) -> impl Iterator<Item = TicketView> {
        self.tickets
            .iter()
            .map(|(handle, ticket)| self.ticket_view(handle, ticket))
    }

    /// All clients.
    pub fn clients(&self) -> impl Iterator<Item = ClientView<'_>> {
        self.clients
            .iter()
            .map(|(handle, client)| self.client_view(handle, client))
    }

    /// All transfers under way.
    pub fn transfers(&self) -> impl Iterator<Item = TransferView> {
        self.transfers
            .iter()
            .map(|(handle, transfer)| self.transfer_view(handle, transfer))
    }
}

/// The tickets at an object, none if there is no such object.
impl Ledger {
    /// Tickets that back a currency, in the order in which they came to.
    pub fn backing(&self, currency: CurrencyId) -> impl Iterator<Item = TicketId> {
        let backing = self
            .currencies
            .find(currency)
            .map(|currency| self.currencies[currency].backing.list);
        self.ids(
            backing
                .unwrap_or_default()
                .iter(&self.tickets, Chain::Holder),
        )
    }

    /// Tickets issued in a currency, those that back another one first.
    pub fn issued(&self, currency: CurrencyId) -> impl Iterator<Item = TicketId> {
        let currency = self.currencies.find(currency);
        self.ids(
            currency
                .into_iter()
                .flat_map(|currency| self.issued_tickets(currency)),
        )
    }

    /// Tickets that fund a client, in the order in which they came to.
    pub fn funding(&self, client: ClientId) -> impl Iterator<Item = TicketId> {
        let funding = self
            .clients
            .find(client)
            .map(|client| self.clients[client].funding.list);
        self.ids(
            funding
                .unwrap_or_default()
                .iter(&self.tickets, Chain::Holder),
        )
    }

    pub(super) fn issued_tickets(
        &self,
        currency: Handle<Currency>,
    ) -> impl Iterator<Item = Handle<Ticket>> {
        let Currency { backs, others, .. } = self.currencies[currency];
        let backs = backs.iter(&self.tickets, Chain::Issued);
        backs.chain(others.iter(&self.tickets, Chain::Issued))
    }

    fn ids(&self, tickets: impl Iterator<Item = Handle<Ticket>>) -> impl Iterator<Item = TicketId> {
        tickets.map(|ticket| self.tickets.id(ticket))
    }
}

impl Ledger {
    fn currency_view<'a>(
        &'a self,
        handle: Handle<Currency>,
        currency: &'a Currency,
    ) -> CurrencyView<'a> {
        CurrencyView {
            id: self.currencies.id(handle),
            name: &currency.name,
            owner: currency.owner,
            group: currency.group,
            mode: currency.mode,
            issued_amount: currency.issued_amount,
            active_amount: currency.active_amount,
            value: self.currency_value(handle),
        }
    }

    fn ticket_view(&self, handle: Handle<Ticket>, ticket: &Ticket) -> TicketView {
        let active = self.is_active(handle);
        let value = if active {
            self.ticket_value(ticket.currency, ticket.amount)
        } else {
            Value(0)
        };
        let lending = ticket.lending();
        TicketView {
            id: self.tickets.id(handle),
            currency: self.currencies.id(ticket.currency),
            amount: ticket.amount,
            lent: lending.lent,
            target: ticket.holder.map(|holder| self.target(holder)),
            active,
            value,
            transfer: lending.loan.map(|loan| {
                (
                    self.transfers.id(loan.transfer),
                    self.tickets.id(loan.lender),
                )
            }),
        }
    }

    fn client_view<'a>(&'a self, handle: Handle<Client>, client: &'a Client) -> ClientView<'a> {
        ClientView {
            id: self.clients.id(handle),
            name: client.name.as_ref().map_or("", |name| name),
            owner: client.owner,
            active: client.active,
            value: self.client_value(client),
            max: self.cpu_limits.get(&handle).copied(),
        }
    }

    fn transfer_view(&self, handle: Handle<Transfer>, transfer: &Transfer) -> TransferView {
        let pieces = transfer
            .pieces
            .iter(&self.tickets, Chain::Transfer)
            .map(|piece| &self.tickets[piece]);
        let shares = pieces.map(|piece| {
            let receiver = self.target(piece.holder.expect("a piece funds its receiver"));
            (receiver, self.currencies.id(piece.currency), piece.amount)
        });
        TransferView {
            id: self.transfers.id(handle),
            from: self.clients.id(transfer.from),
            shares: shares.collect(),
        }
    }

    pub(super) fn target(&self, holder: Holder) -> Target {
        match holder {
            Holder::Currency(currency) => Target::Currency(self.currencies.id(currency)),
            Holder::Client(client) => Target::Client(self.clients.id(client)),
        }
    }
}
