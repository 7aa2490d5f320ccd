//! Applying: a plan is carried out. Nothing here can fail.

use super::Ledger;
use super::arena::Handle;
use super::check::{Checked, Plan};
use super::list::Chain;
use super::objects::{Client, Currency, Holder};
use super::operation::Outcome;

impl Ledger {
    /// Carries out what [`Ledger::check`] found right. May allocate.
    ///
    /// # Panics
    ///
    /// If another operation was applied since the check: check and apply with
    /// the ledger locked, or check again. Activation and deactivation in
    /// between are fine.
    pub fn apply(&mut self, checked: Checked) -> Outcome {
        assert_eq!(
            checked.version, self.version,
            "the ledger has changed since the operation was checked"
        );
        self.begin_change();
        match checked.plan {
            Plan::CreateCurrency {
                name,
                owner,
                group,
                mode,
            } => {
                let currency = Currency::new(name.clone(), owner, group, mode);
                let currency = self.currencies.insert(currency);
                self.currency_names.insert(name, currency);
                self.changes.reserve(self.currencies.len());
                self.note_funding(Holder::Currency(currency));
                return Outcome::Currency(self.currencies.id(currency));
            }
            Plan::Issue {
                currency,
                amount,
                holder,
            } => {
                let ticket = self.issue(currency, amount, None);
                if let Some(holder) = holder {
                    self.fund(ticket, holder);
                }
                return Outcome::Ticket(self.tickets.id(ticket));
            }
            Plan::CreateClient { name, owner } => {
                let client = self.clients.insert(Client::new(name.clone(), owner));
                if let Some(name) = name {
                    self.client_names.insert(name, client);
                }
                self.note_funding(Holder::Client(client));
                return Outcome::Client(self.clients.id(client));
            }
            Plan::Transfer { from, pieces } => {
                let transfer = self.start_transfer(from, pieces);
                return Outcome::Transfer(self.transfers.id(transfer));
            }
            Plan::Protect {
                currency,
                owner,
                group,
                mode,
            } => {
                let currency = &mut self.currencies[currency];
                (currency.owner, currency.group, currency.mode) = (owner, group, mode);
            }
            Plan::Fund { ticket, holder } => {
                self.unfund(ticket);
                self.fund(ticket, holder);
            }
            Plan::SetOwnAmount { ticket, amount } => self.set_own_amount(ticket, amount),
            Plan::Unfund(ticket) => self.unfund(ticket),
            Plan::LimitClient { client, max } => drop(match max {
                Some(max) => self.cpu_limits.insert(client, max),
                None => self.cpu_limits.remove(&client),
            }),
            Plan::DestroyTicket(ticket) => self.destroy_ticket(ticket),
            Plan::DestroyCurrency(currency) => self.destroy_currency(currency),
            Plan::DestroyClient(client) => self.destroy_client(client),
            Plan::EndTransfer(transfer) => self.end_transfer(transfer),
        }
        Outcome::Done
    }

    /// Whatever was checked or remembered before an operation is void after it.
    pub(super) fn begin_change(&mut self) {
        self.version += 1;
        self.currency_epoch += 1;
    }

    /// A currency without issued tickets goes: its backing tickets become
    /// idle, those that were transferred to it go back to their givers.
    fn destroy_currency(&mut self, currency: Handle<Currency>) {
        while let Some(ticket) = self.currencies[currency].backing.list.first() {
            match self.tickets[ticket].lending().loan {
                Some(_) => self.reclaim(ticket),
                None => self.unfund(ticket),
            }
        }
        self.note_funding(Holder::Currency(currency));
        self.changes.forget_currency(currency);
        let Currency { name, .. } = self.currencies.remove(currency);
        self.currency_names.remove(&name);
    }

    /// A client goes: what it gave comes back to it, what it was given goes
    /// back, and its own tickets are destroyed.
    fn destroy_client(&mut self, client: Handle<Client>) {
        // Ending a transfer destroys pieces carved out of the giver's tickets,
        // never the lender at hand; so reading its successor afterwards is safe.
        let mut ticket = self.clients[client].funding.list.first();
        while let Some(lender) = ticket {
            while let Some(loan) = self.tickets[lender]
                .lending()
                .pieces
                .first()
                .and_then(|piece| self.tickets[piece].lending().loan)
            {
                self.end_transfer(loan.transfer);
            }
            ticket = self.tickets[lender].next(Chain::Holder);
        }
        while let Some(ticket) = self.clients[client].funding.list.first() {
            match self.tickets[ticket].lending().loan {
                Some(_) => self.reclaim(ticket),
                None => self.destroy_ticket(ticket),
            }
        }
        self.note_funding(Holder::Client(client));
        self.changes.forget_client(client);
        self.cpu_limits.remove(&client);
        let Client { name, .. } = self.clients.remove(client);
        if let Some(name) = name {
            self.client_names.remove(&*name);
        }
    }
}
