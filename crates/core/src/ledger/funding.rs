//! The primitive changes that every operation is made of: tickets come into
//! being, fund something, cease to, and go. Each keeps the lists, the amounts
//! and the activity of everything it touches right by itself.

use super::Ledger;
use super::arena::Handle;
use super::list::{Chain, List, Tickets};
use super::objects::{Currency, Funding, Holder};
use super::ticket::{Loan, Ticket};

impl Ledger {
    /// Makes a ticket that funds nothing and is not active.
    pub(super) fn issue(
        &mut self,
        currency: Handle<Currency>,
        amount: u32,
        loan: Option<Loan>,
    ) -> Handle<Ticket> {
        let ticket = self.tickets.insert(Ticket::new(currency, amount, loan));
        self.currencies[currency].issued_amount += u64::from(amount);
        self.link(ticket, None);
        ticket
    }

    /// Lets an idle ticket fund `holder`; it is active from now on if the
    /// holder is.
    pub(super) fn fund(&mut self, ticket: Handle<Ticket>, holder: Holder) {
        self.unlink(ticket);
        self.link(ticket, Some(holder));
        if self.is_active(ticket) {
            let Ticket {
                currency, amount, ..
            } = self.tickets[ticket];
            self.raise_active_amount(currency, amount);
            self.note_holder(holder);
        }
    }

    /// Takes a ticket away from what it funds, if anything.
    pub(super) fn unfund(&mut self, ticket: Handle<Ticket>) {
        if self.is_active(ticket) {
            let Ticket {
                currency,
                amount,
                holder,
                ..
            } = self.tickets[ticket];
            self.lower_active_amount(currency, amount);
            if let Some(holder) = holder {
                self.note_holder(holder);
            }
        }
        self.unlink(ticket);
        self.link(ticket, None);
    }

    /// Destroys a ticket of which nothing is lent and which no transfer keeps.
    pub(super) fn destroy_ticket(&mut self, ticket: Handle<Ticket>) {
        self.unfund(ticket);
        self.unlink(ticket);
        let Ticket {
            currency, amount, ..
        } = self.tickets.remove(ticket);
        self.currencies[currency].issued_amount -= u64::from(amount);
    }

    /// Changes the amount that a ticket holds itself.
    pub(super) fn set_own_amount(&mut self, ticket: Handle<Ticket>, amount: u32) {
        let changed = &mut self.tickets[ticket];
        let before = core::mem::replace(&mut changed.amount, amount);
        let (currency, holder) = (changed.currency, changed.holder);
        let issued_amount = &mut self.currencies[currency].issued_amount;
        *issued_amount = *issued_amount - u64::from(before) + u64::from(amount);
        if let Some(holder) = holder {
            self.renew_sole(holder);
        }
        if !self.is_active(ticket) {
            return;
        }
        if let Some(holder) = holder {
            self.note_holder(holder);
        }
        if amount > before {
            self.raise_active_amount(currency, amount - before);
        } else {
            self.lower_active_amount(currency, before - amount);
        }
    }

    /// Whether a ticket competes.
    pub(super) fn is_active(&self, ticket: Handle<Ticket>) -> bool {
        let holder = self.tickets[ticket].holder;
        holder.is_some_and(|holder| self.is_holder_active(holder))
    }

    /// Whether the tickets that fund `holder` compete.
    pub(super) fn is_holder_active(&self, holder: Holder) -> bool {
        match holder {
            Holder::Currency(currency) => self.currencies[currency].active_amount > 0,
            Holder::Client(client) => self.clients[client].active,
        }
    }

    /// Puts a ticket at the end of the lists where it belongs with `holder`.
    fn link(&mut self, ticket: Handle<Ticket>, holder: Option<Holder>) {
        self.tickets[ticket].holder = holder;
        self.change_lists(ticket, |list, tickets, chain| {
            list.push_back(tickets, chain, ticket)
        });
    }

    /// Takes a ticket out of the lists where its holder put it.
    fn unlink(&mut self, ticket: Handle<Ticket>) {
        self.change_lists(ticket, |list, tickets, chain| {
            list.remove(tickets, chain, ticket)
        });
    }

    fn change_lists(
        &mut self,
        ticket: Handle<Ticket>,
        change: impl Fn(&mut List, &mut Tickets, Chain),
    ) {
        let Ticket {
            currency, holder, ..
        } = self.tickets[ticket];
        let issuer = &mut self.currencies[currency];
        let issued = match holder {
            Some(Holder::Currency(_)) => &mut issuer.backs,
            Some(Holder::Client(_)) | None => &mut issuer.others,
        };
        change(issued, &mut self.tickets, Chain::Issued);
        let Some(holder) = holder else { return };
        let (funding, tickets) = self.funding_of(holder);
        change(&mut funding.list, tickets, Chain::Holder);
        self.renew_sole(holder);
    }

    /// Restores what `Funding::sole` says after a change among the tickets
    /// that fund `holder`, and notes that there was one.
    fn renew_sole(&mut self, holder: Holder) {
        let (funding, tickets) = self.funding_of(holder);
        funding.sole = funding.list.only().map(|ticket| {
            let Ticket {
                currency, amount, ..
            } = tickets[ticket];
            (currency, amount)
        });
        self.note_funding(holder);
    }

    fn funding_of(&mut self, holder: Holder) -> (&mut Funding, &mut Tickets) {
        let funding = match holder {
            Holder::Currency(currency) => &mut self.currencies[currency].backing,
            Holder::Client(client) => &mut self.clients[client].funding,
        };
        (funding, &mut self.tickets)
    }
}
