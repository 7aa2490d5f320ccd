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
use super::objects::{Client, Currency, Holder, Transfer};
use super::operation::{Operation, Target};
use super::permission::{Access, Mode, Principal};
use super::rules::{check_amount, check_new_owner};
use super::ticket::Ticket;
use super::transfer::Piece;
use crate::cpu_limit::CpuLimit;
use crate::ids::{CurrencyId, TicketId};

/// How many tickets a refusal to destroy a currency names.
const NAMED_DEPENDANTS: usize = 8;

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
        name: Option<Arc<str>>,
        owner: u32,
    },
    LimitClient {
        client: Handle<Client>,
        max: Option<CpuLimit>,
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
    pub fn check(
        &self,
        principal: &Principal,
        operation: Operation,
    ) -> Result<Checked, LedgerError> {
        let plan = self.plan(principal, &operation)?;
        Ok(Checked {
            operation,
            plan,
            version: self.version,
        })
    }

    fn plan(&self, principal: &Principal, operation: &Operation) -> Result<Plan, LedgerError> {
        match *operation {
            Operation::CreateCurrency {
                ref name,
                owner,
                group,
                mode,
            } => {
                let name = self.new_currency_name(principal, name, owner)?;
                Ok(Plan::CreateCurrency {
                    name,
                    owner,
                    group,
                    mode,
                })
            }
            Operation::DestroyCurrency { currency } => {
                self.plan_destroy_currency(principal, currency)
            }
            Operation::Protect {
                currency,
                owner,
                group,
                mode,
            } => {
                let currency = self.own_currency(principal, currency)?;
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
            } => self.plan_issue(principal, currency, amount, target),
            Operation::DestroyTicket { ticket } => {
                let ticket = self.own_ticket(principal, ticket)?;
                self.check_not_lent(ticket)?;
                Ok(Plan::DestroyTicket(ticket))
            }
            Operation::SetAmount { ticket, amount } => {
                self.plan_set_amount(principal, ticket, amount)
            }
            Operation::Fund { ticket, target } => {
                let ticket = self.movable_ticket(principal, ticket)?;
                let holder = self.known_target(target)?;
                self.check_funding(principal, self.tickets[ticket].currency, holder)?;
                Ok(Plan::Fund { ticket, holder })
            }
            Operation::Unfund { ticket } => self.plan_unfund(principal, ticket),
            Operation::CreateClient { ref name, owner } => Ok(Plan::CreateClient {
                name: self.new_client_name(principal, name.as_deref(), owner)?,
                owner,
            }),
            Operation::LimitClient { client, max } => Ok(Plan::LimitClient {
                client: self.own_client(principal, client)?,
                max,
            }),
            Operation::DestroyClient { client } => {
                Ok(Plan::DestroyClient(self.own_client(principal, client)?))
            }
            Operation::Transfer { from, ref portion } => {
                let from = self.own_client(principal, from)?;
                Ok(Plan::Transfer {
                    from,
                    pieces: self.plan_transfer(principal, from, portion)?,
                })
            }
            Operation::EndTransfer { transfer } => self.plan_end_transfer(principal, transfer),
        }
    }
}

/// Rules of single operations.
impl Ledger {
    fn new_currency_name(
        &self,
        principal: &Principal,
        name: &str,
        owner: u32,
    ) -> Result<Arc<str>, LedgerError> {
        self.check_name(name)?;
        if let Some(id) = self.find_currency(name) {
            return Err(LedgerError::CurrencyExists {
                name: name.to_string(),
                id,
            });
        }
        check_new_owner(principal, name, owner)?;
        if self.currencies.len() >= self.limits.currencies {
            return Err(LedgerError::CurrencyLimit {
                limit: self.limits.currencies,
            });
        }
        Ok(name.into())
    }

    fn new_client_name(
        &self,
        principal: &Principal,
        name: Option<&str>,
        owner: u32,
    ) -> Result<Option<Arc<str>>, LedgerError> {
        if let Some(name) = name {
            self.check_name(name)?;
            if let Some(id) = self.find_client(name) {
                return Err(LedgerError::ClientExists {
                    name: name.to_string(),
                    id,
                });
            }
        }
        check_new_owner(principal, name.unwrap_or_default(), owner)?;
        if self.clients.len() >= self.limits.clients {
            return Err(LedgerError::ClientLimit {
                limit: self.limits.clients,
            });
        }
        Ok(name.map(Arc::from))
    }

    fn plan_issue(
        &self,
        principal: &Principal,
        currency: CurrencyId,
        amount: u32,
        target: Option<Target>,
    ) -> Result<Plan, LedgerError> {
        let currency = self.known_currency(currency)?;
        let holder = target.map(|target| self.known_target(target)).transpose()?;
        check_amount(amount)?;
        self.check_access(principal, currency, Access::Issue)?;
        if let Some(holder) = holder {
            self.check_funding(principal, currency, holder)?;
        }
        self.check_ticket_limit(1)?;
        Ok(Plan::Issue {
            currency,
            amount,
            holder,
        })
    }

    fn plan_unfund(&self, principal: &Principal, id: TicketId) -> Result<Plan, LedgerError> {
        let ticket = self.movable_ticket(principal, id)?;
        match self.tickets[ticket].holder {
            Some(_) => Ok(Plan::Unfund(ticket)),
            None => Err(LedgerError::Idle { ticket: id }),
        }
    }

    fn plan_destroy_currency(
        &self,
        principal: &Principal,
        id: CurrencyId,
    ) -> Result<Plan, LedgerError> {
        let currency = self.own_currency(principal, id)?;
        if currency == self.base {
            return Err(LedgerError::BaseDestroyed {
                base: self.currency_name(currency),
            });
        }
        let mut tickets = self.issued_tickets(currency);
        let named = tickets.by_ref().take(NAMED_DEPENDANTS);
        let dependants: Vec<String> = named.map(|ticket| self.describe(ticket)).collect();
        if dependants.is_empty() {
            return Ok(Plan::DestroyCurrency(currency));
        }
        Err(LedgerError::HasIssued {
            currency: self.currency_name(currency),
            dependants,
            others: tickets.next().is_some(),
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
                format!("{id} (client '{}')", self.client_name(client))
            }
            None => format!("{id} (idle)"),
        }
    }

    fn plan_set_amount(
        &self,
        principal: &Principal,
        id: TicketId,
        amount: u32,
    ) -> Result<Plan, LedgerError> {
        let ticket = self.own_ticket(principal, id)?;
        check_amount(amount)?;
        let lent = self.tickets[ticket].lending().lent;
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
