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
        let ticket = self.tickets.insert(Ticket {
            currency,
            amount,
            lent: 0,
            holder: None,
            active: false,
            loan,
            pieces: List::default(),
            links: Default::default(),
        });
        self.currencies[currency].issued_amount += u64::from(amount);
        self.issued_list(ticket, |list, tickets| {
            list.push_back(tickets, Chain::Issued, ticket)
        });
        ticket
    }

    /// Lets an idle ticket fund `holder`; it is active from now on if the
    /// holder is.
    pub(super) fn fund(&mut self, ticket: Handle<Ticket>, holder: Holder) {
        self.tickets[ticket].holder = Some(holder);
        self.holder_list(holder, |list, tickets| {
            list.push_back(tickets, Chain::Holder, ticket)
        });
        if let Holder::Currency(_) = holder {
            self.issued_list(ticket, |list, tickets| {
                list.remove(tickets, Chain::Issued, ticket);
                list.push_front(tickets, Chain::Issued, ticket);
            });
        }
        if self.is_active(holder) {
            self.activate_ticket(ticket);
            self.note_holder(holder);
        }
    }

    /// Takes a ticket away from what it funds, if anything.
    pub(super) fn unfund(&mut self, ticket: Handle<Ticket>) {
        let Some(holder) = self.tickets[ticket].holder else {
            return;
        };
        if self.tickets[ticket].active {
            self.deactivate_ticket(ticket);
            self.note_holder(holder);
        }
        if let Holder::Currency(_) = holder {
            self.issued_list(ticket, |list, tickets| {
                list.remove(tickets, Chain::Issued, ticket);
                list.push_back(tickets, Chain::Issued, ticket);
            });
        }
        self.holder_list(holder, |list, tickets| {
            list.remove(tickets, Chain::Holder, ticket)
        });
        self.tickets[ticket].holder = None;
    }

    /// Destroys a ticket that is neither lent nor borrowed.
    pub(super) fn destroy_ticket(&mut self, ticket: Handle<Ticket>) {
        self.unfund(ticket);
        let Ticket {
            currency, amount, ..
        } = self.tickets[ticket];
        self.currencies[currency].issued_amount -= u64::from(amount);
        self.issued_list(ticket, |list, tickets| {
            list.remove(tickets, Chain::Issued, ticket)
        });
        self.tickets.remove(ticket);
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

    /// Changes the list of the tickets that fund `holder`.
    fn holder_list(&mut self, holder: Holder, change: impl FnOnce(&mut List, &mut Tickets)) {
        let list = match holder {
            Holder::Currency(currency) => &mut self.currencies[currency].backing,
            Holder::Client(client) => &mut self.clients[client].funding,
        };
        change(list, &mut self.tickets);
    }

    /// Changes the list of the tickets issued in the currency of `ticket`.
    fn issued_list(
        &mut self,
        ticket: Handle<Ticket>,
        change: impl FnOnce(&mut List, &mut Tickets),
    ) {
        let currency = self.tickets[ticket].currency;
        change(&mut self.currencies[currency].issued, &mut self.tickets);
    }
}
