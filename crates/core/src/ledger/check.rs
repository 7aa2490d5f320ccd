//! Decoding: an operation is held against the ledger's present state and the
//! asker's permissions, and turned into a plan that cannot fail.
//!
//! What clients do in the meantime does not matter: activation and
//! deactivation decide no rule.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::sync::Arc;
use alloc::vec::Vec;

use super::Ledger;
use super::arena::Handle;
use super::error::LedgerError;
use super::list::Chain;
use super::objects::{Client, Currency, Holder, Loan, Ticket, Transfer};
use super::operation::{Operation, Target};
use super::permission::{Access, Mode, Principal};
use super::transfer::Piece;
use crate::ids::{ClientId, CurrencyId, TicketId, TransferId};

/// How many tickets a refusal to destroy a currency names.
const NAMED_DEPENDANTS: usize = 8;

/// How much of a name that is too long a refusal shows.
const NAMED_CHARACTERS: usize = 16;

/// An operation that has been checked against the ledger's present state.
#[derive(Debug)]
pub struct Checked {
    pub(super) operation: Operation,
    pub(super) plan: Plan,
    /// The ledger's count of applied operations; it may be applied in no other state.
    pub(super) version: u64,
}

impl Checked {
    /// The operation, for a journal.
    pub fn operation(&self) -> &Operation {
        &self.operation
    }
}

/// An operation whose identifiers are resolved and whose rules hold.
#[derive(Debug)]
pub(super) enum Plan {
    CreateCurrency {
        name: Arc<str>,
        owner: u32,
        group: u32,
        mode: Mode,
    },
    DestroyCurrency(Handle<Currency>),
    Protect {
        currency: Handle<Currency>,
        owner: u32,
        group: u32,
        mode: Mode,
    },
    Issue {
        currency: Handle<Currency>,
        amount: u32,
        holder: Option<Holder>,
    },
    DestroyTicket(Handle<Ticket>),
    SetOwnAmount {
        ticket: Handle<Ticket>,
        amount: u32,
    },
    Fund {
        ticket: Handle<Ticket>,
        holder: Holder,
    },
    Unfund(Handle<Ticket>),
    CreateClient {
        name: Arc<str>,
        owner: u32,
    },
    DestroyClient(Handle<Client>),
    Transfer {
        from: Handle<Client>,
        pieces: Vec<Piece>,
    },
    EndTransfer(Handle<Transfer>),
}

impl Ledger {
    /// Checks everything that `operation` demands, and changes nothing.
    ///
    /// Costs what is said at the part concerned; at worst the currencies
    /// connected with those named, and for a transfer the giver's tickets.
    ///
    /// # Errors
    ///
    /// The first rule that the operation breaks.
    pub fn check(&self, who: &Principal, operation: Operation) -> Result<Checked, LedgerError> {
        let plan = self.plan(who, &operation)?;
        Ok(Checked {
            operation,
            plan,
            version: self.version,
        })
    }

    fn plan(&self, who: &Principal, operation: &Operation) -> Result<Plan, LedgerError> {
        match *operation {
            Operation::CreateCurrency {
                ref name,
                owner,
                group,
                mode,
            } => {
                self.check_new_currency(who, name, owner)?;
                Ok(Plan::CreateCurrency {
                    name: name.as_str().into(),
                    owner,
                    group,
                    mode,
                })
            }
            Operation::DestroyCurrency { currency } => self.plan_destroy_currency(who, currency),
            Operation::Protect {
                currency,
                owner,
                group,
                mode,
            } => {
                let currency = self.known_currency(currency)?;
                self.check_currency_owner(who, currency)?;
                Ok(Plan::Protect {
                    currency,
                    owner,
                    group,
                    mode,
                })
            }
            Operation::Issue {
                currency,
                amount,
                target,
            } => {
                let currency = self.known_currency(currency)?;
                let holder = target.map(|target| self.known_target(target)).transpose()?;
                check_amount(amount)?;
                self.check_access(who, currency, Access::Issue)?;
                if let Some(holder) = holder {
                    self.check_funding(who, currency, holder)?;
                }
                self.check_ticket_limit(1)?;
                Ok(Plan::Issue {
                    currency,
                    amount,
                    holder,
                })
            }
            Operation::DestroyTicket { ticket } => {
                let ticket = self.own_ticket(who, ticket)?;
                self.check_not_lent(ticket)?;
                Ok(Plan::DestroyTicket(ticket))
            }
            Operation::SetAmount { ticket, amount } => self.plan_set_amount(who, ticket, amount),
            Operation::Fund { ticket, target } => {
                let ticket = self.movable_ticket(who, ticket)?;
                let holder = self.known_target(target)?;
                self.check_funding(who, self.tickets[ticket].currency, holder)?;
                Ok(Plan::Fund { ticket, holder })
            }
            Operation::Unfund { ticket: id } => {
                let ticket = self.movable_ticket(who, id)?;
                match self.tickets[ticket].holder {
                    Some(_) => Ok(Plan::Unfund(ticket)),
                    None => Err(LedgerError::Idle { ticket: id }),
                }
            }
            Operation::CreateClient { ref name, owner } => {
                self.check_new_client(who, name, owner)?;
                Ok(Plan::CreateClient {
                    name: name.as_str().into(),
                    owner,
                })
            }
            Operation::DestroyClient { client } => {
                let client = self.known_client(client)?;
                self.check_client_owner(who, client)?;
                Ok(Plan::DestroyClient(client))
            }
            Operation::Transfer { from, ref portion } => {
                let from = self.known_client(from)?;
                Ok(Plan::Transfer {
                    from,
                    pieces: self.plan_transfer(who, from, portion)?,
                })
            }
            Operation::EndTransfer { transfer } => {
                let transfer = self
                    .transfers
                    .find(transfer)
                    .ok_or(LedgerError::UnknownTransfer(transfer))?;
                self.check_client_owner(who, self.transfers[transfer].from)?;
                Ok(Plan::EndTransfer(transfer))
            }
        }
    }
}

/// Rules of single operations.
impl Ledger {
    fn check_new_currency(
        &self,
        who: &Principal,
        name: &str,
        owner: u32,
    ) -> Result<(), LedgerError> {
        self.check_name(name)?;
        if let Some(id) = self.find_currency(name) {
            return Err(LedgerError::CurrencyExists {
                name: name.to_string(),
                id,
            });
        }
        check_new_owner(who, name, owner)?;
        if self.currencies.len() >= self.limits.currencies {
            return Err(LedgerError::CurrencyLimit {
                limit: self.limits.currencies,
            });
        }
        Ok(())
    }

    fn check_new_client(&self, who: &Principal, name: &str, owner: u32) -> Result<(), LedgerError> {
        self.check_name(name)?;
        if let Some(id) = self.find_client(name) {
            return Err(LedgerError::ClientExists {
                name: name.to_string(),
                id,
            });
        }
        check_new_owner(who, name, owner)?;
        if self.clients.len() >= self.limits.clients {
            return Err(LedgerError::ClientLimit {
                limit: self.limits.clients,
            });
        }
        Ok(())
    }

    fn plan_destroy_currency(&self, who: &Principal, id: CurrencyId) -> Result<Plan, LedgerError> {
        let currency = self.known_currency(id)?;
        self.check_currency_owner(who, currency)?;
        if currency == self.base {
            return Err(LedgerError::BaseDestroyed {
                base: self.currency_name(currency),
            });
        }
        let issued = self.currencies[currency].issued;
        if issued.is_empty() {
            return Ok(Plan::DestroyCurrency(currency));
        }
        let mut tickets = issued.iter(&self.tickets, Chain::Issued);
        let dependants = tickets
            .by_ref()
            .take(NAMED_DEPENDANTS)
            .map(|ticket| self.describe(ticket))
            .collect();
        let others = tickets.next().is_some();
        Err(LedgerError::HasIssued {
            currency: self.currency_name(currency),
            dependants,
            others,
        })
    }

    /// A ticket and what it funds.
    fn describe(&self, ticket: Handle<Ticket>) -> String {
        let id = self.tickets.id(ticket);
        match self.tickets[ticket].holder {
            Some(Holder::Currency(currency)) => {
                format!("{id} (currency '{}')", self.currencies[currency].name)
            }
            Some(Holder::Client(client)) => {
                format!("{id} (client '{}')", self.clients[client].name)
            }
            None => format!("{id} (idle)"),
        }
    }

    fn plan_set_amount(
        &self,
        who: &Principal,
        id: TicketId,
        amount: u32,
    ) -> Result<Plan, LedgerError> {
        let ticket = self.own_ticket(who, id)?;
        check_amount(amount)?;
        let lent = self.tickets[ticket].lent;
        match amount.checked_sub(lent) {
            Some(own) => Ok(Plan::SetOwnAmount {
                ticket,
                amount: own,
            }),
            None => Err(LedgerError::BelowLent {
                ticket: id,
                amount,
                lent,
                transfer: self.borrower(ticket),
            }),
        }
    }
}

/// Rules that several operations share.
impl Ledger {
    pub(super) fn known_currency(&self, id: CurrencyId) -> Result<Handle<Currency>, LedgerError> {
        self.currencies
            .find(id)
            .ok_or(LedgerError::UnknownCurrency(id))
    }

    fn known_client(&self, id: ClientId) -> Result<Handle<Client>, LedgerError> {
        self.clients.find(id).ok_or(LedgerError::UnknownClient(id))
    }

    pub(super) fn known_target(&self, target: Target) -> Result<Holder, LedgerError> {
        match target {
            Target::Currency(id) => self.known_currency(id).map(Holder::Currency),
            Target::Client(id) => self.known_client(id).map(Holder::Client),
        }
    }

    /// A ticket that no transfer made, of a currency that the asker may issue.
    fn own_ticket(&self, who: &Principal, id: TicketId) -> Result<Handle<Ticket>, LedgerError> {
        let ticket = self
            .tickets
            .find(id)
            .ok_or(LedgerError::UnknownTicket(id))?;
        self.check_access(who, self.tickets[ticket].currency, Access::Issue)?;
        match self.tickets[ticket].loan {
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
    fn movable_ticket(&self, who: &Principal, id: TicketId) -> Result<Handle<Ticket>, LedgerError> {
        let ticket = self.own_ticket(who, id)?;
        self.check_not_lent(ticket)?;
        if let Some(holder) = self.tickets[ticket].holder {
            self.check_holder_access(who, holder)?;
        }
        Ok(ticket)
    }

    fn check_not_lent(&self, ticket: Handle<Ticket>) -> Result<(), LedgerError> {
        match self.tickets[ticket].lent {
            0 => Ok(()),
            lent => Err(LedgerError::Lent {
                ticket: self.tickets.id(ticket),
                lent,
                transfer: self.borrower(ticket),
            }),
        }
    }

    /// One of the transfers that took something from a lent ticket.
    fn borrower(&self, ticket: Handle<Ticket>) -> TransferId {
        let piece = self.tickets[ticket]
            .pieces
            .first()
            .and_then(|piece| self.tickets[piece].loan);
        self.transfers
            .id(piece.expect("a lent ticket has pieces").transfer)
    }

    /// Whether a ticket of `currency` may fund `holder`.
    fn check_funding(
        &self,
        who: &Principal,
        currency: Handle<Currency>,
        holder: Holder,
    ) -> Result<(), LedgerError> {
        self.check_holder_access(who, holder)?;
        match holder {
            Holder::Currency(target) => self.check_edge(currency, target),
            Holder::Client(_) => Ok(()),
        }
    }

    fn check_holder_access(&self, who: &Principal, holder: Holder) -> Result<(), LedgerError> {
        match holder {
            Holder::Currency(currency) => self.check_access(who, currency, Access::Fund),
            Holder::Client(client) => self.check_client_owner(who, client),
        }
    }

    pub(super) fn check_access(
        &self,
        who: &Principal,
        currency: Handle<Currency>,
        access: Access,
    ) -> Result<(), LedgerError> {
        let Currency {
            owner, group, mode, ..
        } = self.currencies[currency];
        if mode.allows(owner, group, who, access) {
            return Ok(());
        }
        Err(LedgerError::Denied {
            uid: who.uid,
            access,
            currency: self.currency_name(currency),
            owner,
            mode,
        })
    }

    fn check_currency_owner(
        &self,
        who: &Principal,
        currency: Handle<Currency>,
    ) -> Result<(), LedgerError> {
        let owner = self.currencies[currency].owner;
        if who.acts_for(owner) {
            return Ok(());
        }
        Err(LedgerError::NotCurrencyOwner {
            uid: who.uid,
            currency: self.currency_name(currency),
            owner,
        })
    }

    pub(super) fn check_client_owner(
        &self,
        who: &Principal,
        client: Handle<Client>,
    ) -> Result<(), LedgerError> {
        let owner = self.clients[client].owner;
        if who.acts_for(owner) {
            return Ok(());
        }
        Err(LedgerError::NotClientOwner {
            uid: who.uid,
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

    fn check_name(&self, name: &str) -> Result<(), LedgerError> {
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

    pub(super) fn client_name(&self, client: Handle<Client>) -> String {
        self.clients[client].name.to_string()
    }
}

fn check_amount(amount: u32) -> Result<(), LedgerError> {
    if amount == 0 {
        Err(LedgerError::ZeroAmount)
    } else {
        Ok(())
    }
}

fn check_new_owner(who: &Principal, name: &str, owner: u32) -> Result<(), LedgerError> {
    if who.acts_for(owner) {
        return Ok(());
    }
    Err(LedgerError::ForeignOwner {
        uid: who.uid,
        name: name.to_string(),
        owner,
    })
}
