//! The primitive changes that every operation is made of: tickets come into
//! being, fund something, cease to, and go. Each keeps the lists, the amounts
//! and the activity of everything it touches right by itself.

use super::Ledger;
use super::arena::Handle;
use super::list::{Chain, List, Tickets};
use super::objects::{Currency, Holder, Loan, Ticket};

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
        if self.is_active(holder) {
            self.activate_ticket(ticket);
            self.note_holder(holder);
        }
    }

    /// Takes a ticket away from what it funds, if anything.
    pub(super) fn unfund(&mut self, ticket: Handle<Ticket>) {
        if self.tickets[ticket].active {
            self.deactivate_ticket(ticket);
            if let Some(holder) = self.tickets[ticket].holder {
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
        let (active, currency, holder) = (changed.active, changed.currency, changed.holder);
        let issued_amount = &mut self.currencies[currency].issued_amount;
        *issued_amount = *issued_amount - u64::from(before) + u64::from(amount);
        if !active {
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

    fn is_active(&self, holder: Holder) -> bool {
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
        let funds = match holder {
            Some(Holder::Currency(currency)) => &mut self.currencies[currency].backing,
            Some(Holder::Client(client)) => &mut self.clients[client].funding,
            None => return,
        };
        change(funds, &mut self.tickets, Chain::Holder);
    }
}
