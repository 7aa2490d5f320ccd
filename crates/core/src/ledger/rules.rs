//! Rules that several operations share. Nothing here changes the ledger.

use alloc::string::{String, ToString};

use super::Ledger;
use super::arena::Handle;
use super::error::LedgerError;
use super::objects::{Client, Currency, Holder};
use super::operation::Target;
use super::permission::{Access, Principal};
use super::ticket::{Loan, Ticket};
use crate::ids::{ClientId, CurrencyId, TicketId, TransferId};

/// How much of a name that is too long a refusal shows.
const NAMED_CHARACTERS: usize = 16;

impl Ledger {
    pub(super) fn known_currency(&self, id: CurrencyId) -> Result<Handle<Currency>, LedgerError> {
        self.currencies
            .find(id)
            .ok_or(LedgerError::UnknownCurrency(id))
    }

    fn known_client(&self, id: ClientId) -> Result<Handle<Client>, LedgerError> {
        self.clients.find(id).ok_or(LedgerError::UnknownClient(id))
    }

    /// A currency that is the asker's.
    pub(super) fn own_currency(
        &self,
        principal: &Principal,
        id: CurrencyId,
    ) -> Result<Handle<Currency>, LedgerError> {
        let currency = self.known_currency(id)?;
        let owner = self.currencies[currency].owner;
        if principal.acts_for(owner) {
            return Ok(currency);
        }
        Err(LedgerError::NotCurrencyOwner {
            uid: principal.uid,
            currency: self.currency_name(currency),
            owner,
        })
    }

    /// A client that is the asker's.
    pub(super) fn own_client(
        &self,
        principal: &Principal,
        id: ClientId,
    ) -> Result<Handle<Client>, LedgerError> {
        let client = self.known_client(id)?;
        self.check_client_owner(principal, client)?;
        Ok(client)
    }

    pub(super) fn known_target(&self, target: Target) -> Result<Holder, LedgerError> {
        match target {
            Target::Currency(id) => self.known_currency(id).map(Holder::Currency),
            Target::Client(id) => self.known_client(id).map(Holder::Client),
        }
    }

    /// A ticket that no transfer made, of a currency that the asker may issue.
    pub(super) fn own_ticket(
        &self,
        principal: &Principal,
        id: TicketId,
    ) -> Result<Handle<Ticket>, LedgerError> {
        let ticket = self
            .tickets
            .find(id)
            .ok_or(LedgerError::UnknownTicket(id))?;
        self.check_access(principal, self.tickets[ticket].currency, Access::Issue)?;
        match self.tickets[ticket].lending().loan {
            None => Ok(ticket),
            Some(Loan { transfer, lender }) => Err(LedgerError::Borrowed {
                ticket: id,
                transfer: self.transfers.id(transfer),
                lender: self.tickets.id(lender),
            }),
        }
    }

    /// A ticket as before that is not lent either and that the asker may take
    /// away from what it funds.
    pub(super) fn movable_ticket(
        &self,
        principal: &Principal,
        id: TicketId,
    ) -> Result<Handle<Ticket>, LedgerError> {
        let ticket = self.own_ticket(principal, id)?;
        self.check_not_lent(ticket)?;
        if let Some(holder) = self.tickets[ticket].holder {
            self.check_holder_access(principal, holder)?;
        }
        Ok(ticket)
    }

    pub(super) fn check_not_lent(&self, ticket: Handle<Ticket>) -> Result<(), LedgerError> {
        match self.tickets[ticket].lending().lent {
            0 => Ok(()),
            lent => Err(LedgerError::Lent {
                ticket: self.tickets.id(ticket),
                lent,
                transfer: self.borrower(ticket),
            }),
        }
    }

    /// One of the transfers that took something from a lent ticket.
    pub(super) fn borrower(&self, ticket: Handle<Ticket>) -> TransferId {
        let piece = self.tickets[ticket]
            .lending()
            .pieces
            .first()
            .and_then(|piece| self.tickets[piece].lending().loan);
        self.transfers
            .id(piece.expect("a lent ticket has pieces").transfer)
    }

    /// Whether a ticket of `currency` may fund `holder`.
    pub(super) fn check_funding(
        &self,
        principal: &Principal,
        currency: Handle<Currency>,
        holder: Holder,
    ) -> Result<(), LedgerError> {
        self.check_holder_access(principal, holder)?;
        match holder {
            Holder::Currency(target) => self.check_edge(currency, target),
            Holder::Client(_) => Ok(()),
        }
    }

    fn check_holder_access(
        &self,
        principal: &Principal,
        holder: Holder,
    ) -> Result<(), LedgerError> {
        match holder {
            Holder::Currency(currency) => self.check_access(principal, currency, Access::Fund),
            Holder::Client(client) => self.check_client_owner(principal, client),
        }
    }

    pub(super) fn check_access(
        &self,
        principal: &Principal,
        currency: Handle<Currency>,
        access: Access,
    ) -> Result<(), LedgerError> {
        let Currency {
            owner, group, mode, ..
        } = self.currencies[currency];
        if mode.allows(owner, group, principal, access) {
            return Ok(());
        }
        Err(LedgerError::Denied {
            uid: principal.uid,
            access,
            currency: self.currency_name(currency),
            owner,
            mode,
        })
    }

    pub(super) fn check_client_owner(
        &self,
        principal: &Principal,
        client: Handle<Client>,
    ) -> Result<(), LedgerError> {
        let owner = self.clients[client].owner;
        if principal.acts_for(owner) {
            return Ok(());
        }
        Err(LedgerError::NotClientOwner {
            uid: principal.uid,
            client: self.client_name(client),
            owner,
        })
    }

    pub(super) fn check_ticket_limit(&self, wanted: usize) -> Result<(), LedgerError> {
        let (used, limit) = (self.tickets.len(), self.limits.tickets);
        if wanted > limit.saturating_sub(used) as usize {
            return Err(LedgerError::TicketLimit {
                wanted,
                used,
                limit,
            });
        }
        Ok(())
    }

    pub(super) fn check_name(&self, name: &str) -> Result<(), LedgerError> {
        if name.is_empty() {
            return Err(LedgerError::EmptyName);
        }
        if name.len() > self.limits.name_bytes as usize {
            let start = name.chars().take(NAMED_CHARACTERS).collect();
            return Err(LedgerError::LongName {
                start,
                bytes: name.len(),
                limit: self.limits.name_bytes,
            });
        }
        match name.chars().find(|character| character.is_control()) {
            Some(control) => Err(LedgerError::ControlInName {
                name: name.to_string(),
                control,
            }),
            None => Ok(()),
        }
    }

    /// A client's name, or its identifier if it has none.
    pub(super) fn client_name(&self, client: Handle<Client>) -> String {
        match &self.clients[client].name {
            Some(name) => name.to_string(),
            None => self.clients.id(client).to_string(),
        }
    }
}

pub(super) fn check_amount(amount: u32) -> Result<(), LedgerError> {
    if amount == 0 {
        Err(LedgerError::ZeroAmount)
    } else {
        Ok(())
    }
}

pub(super) fn check_new_owner(
    principal: &Principal,
    name: &str,
    owner: u32,
) -> Result<(), LedgerError> {
    if principal.acts_for(owner) {
        return Ok(());
    }
    Err(LedgerError::ForeignOwner {
        uid: principal.uid,
        name: name.to_string(),
        owner,
    })
}
