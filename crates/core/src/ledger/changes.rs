//! Changes of value, so that an engine looks only at the clients concerned.
//!
//! A client's value changes with its own funding, or with the value of a unit
//! of a currency that it is funded in, directly or through others. A unit of
//! the base currency is always worth the same. So it is enough to note
//!
//! * the clients whose funding was changed while they were active, and
//! * the currencies, the base currency left out, whose active amount changed
//!   or whose backing was changed while they were active,
//!
//! and to walk down from these currencies when an engine asks (1995, 3.3: the
//! scope of a change is exactly those clients which are affected). Activation
//! and deactivation of a client note its currencies but not the client: the
//! engine caused them. Noting is O(1); each object is noted once until taken.

use alloc::vec::Vec;

use super::Ledger;
use super::arena::Handle;
use super::list::Chain;
use super::objects::{Client, Currency, Holder};
use crate::ids::ClientId;

/// What was noted since the last [`Ledger::take_changes`]: living objects, each
/// once, which know of it.
#[derive(Clone, Default, Debug)]
pub(super) struct Changes {
    /// There is room for all currencies, so that noting one when a client
    /// blocks or wakes does not allocate.
    currencies: Vec<Handle<Currency>>,
    clients: Vec<Handle<Client>>,
}

impl Changes {
    /// Makes room for so many currencies.
    pub(super) fn reserve(&mut self, currencies: u32) {
        let more = (currencies as usize).saturating_sub(self.currencies.len());
        self.currencies.reserve(more);
    }

    /// A currency is about to be destroyed. O(currencies noted).
    pub(super) fn forget_currency(&mut self, currency: Handle<Currency>) {
        self.currencies.retain(|noted| *noted != currency);
    }

    /// A client is about to be destroyed. O(clients noted).
    pub(super) fn forget_client(&mut self, client: Handle<Client>) {
        self.clients.retain(|noted| *noted != client);
    }
}

impl Ledger {
    /// Whether there is anything to take.
    pub fn has_changes(&self) -> bool {
        !self.changes.currencies.is_empty() || !self.changes.clients.is_empty()
    }

    /// Appends to `clients` all active clients whose value may have changed
    /// since the last call, other than by their own [`Ledger::activate`].
    /// Looks at no more than `limit` tickets; returns whether that was enough.
    /// If not, any client's value may have changed.
    ///
    /// A client may be named more than once. Allocates only as `clients` or
    /// the notes grow beyond what they ever held.
    pub fn take_changes(&mut self, clients: &mut Vec<ClientId>, limit: usize) -> bool {
        for client in self.changes.clients.drain(..) {
            self.clients[client].noted = false;
            clients.push(self.clients.id(client));
        }
        let mut budget = limit;
        let mut place = 0;
        // Currencies below those noted are noted on the way.
        while let Some(&currency) = self.changes.currencies.get(place) {
            place += 1;
            if !self.walk(currency, clients, &mut budget) {
                break;
            }
        }
        let complete = place == self.changes.currencies.len() && budget > 0;
        for currency in self.changes.currencies.drain(..) {
            self.currencies[currency].noted = false;
        }
        complete
    }

    /// Notes a change of what an active holder is funded with.
    pub(super) fn note_holder(&mut self, holder: Holder) {
        match holder {
            Holder::Currency(currency) => self.note_currency(currency),
            Holder::Client(client) => {
                if !core::mem::replace(&mut self.clients[client].noted, true) {
                    self.changes.clients.push(client);
                }
            }
        }
    }

    /// Notes a change of what a unit of a currency is worth.
    pub(super) fn note_currency(&mut self, currency: Handle<Currency>) {
        if currency != self.base && !core::mem::replace(&mut self.currencies[currency].noted, true)
        {
            self.changes.currencies.push(currency);
        }
    }

    /// Visits the tickets issued in a currency. Returns whether the budget
    /// lasted.
    fn walk(
        &mut self,
        currency: Handle<Currency>,
        clients: &mut Vec<ClientId>,
        budget: &mut usize,
    ) -> bool {
        let Currency { backs, others, .. } = &self.currencies[currency];
        let heads = [backs.first(), others.first()];
        for mut next in heads {
            while let Some(ticket) = next {
                if *budget == 0 {
                    return false;
                }
                *budget -= 1;
                let ticket = &self.tickets[ticket];
                next = ticket.next(Chain::Issued);
                let holder = ticket.holder;
                match holder.filter(|holder| self.is_holder_active(*holder)) {
                    Some(Holder::Client(client)) => clients.push(self.clients.id(client)),
                    Some(Holder::Currency(below)) => self.note_currency(below),
                    None => {}
                }
            }
        }
        true
    }
}
