//! Activation and deactivation (1994, 4.4): what happens at every block and
//! wake.
//!
//! A ticket is active while its client is, or while the currency that it backs
//! has an active amount. A currency's active amount is the sum of its active
//! tickets' amounts; only where that sum leaves or reaches zero does anything
//! travel on, to the tickets that back the currency.
//!
//! ```text
//!   client wakes -> its tickets -> their currencies' active amounts
//!                                     | from zero only
//!                                     v
//!                    their backing tickets -> ...         (towards the base)
//! ```
//!
//! Each currency changes between zero and non-zero at most once a call, so a
//! call costs at most the tickets of the client and those that back the
//! currencies above it, however many paths lead to one. Recursion is as deep
//! as the chain of currencies, see [`super::Limits::depth`]. Nothing here
//! allocates.

use super::Ledger;
use super::arena::Handle;
use super::list::Chain;
use super::objects::{Currency, Funding};
use super::ticket::Ticket;
use crate::ids::ClientId;

impl Ledger {
    /// A client is about to be activated or deactivated: has it fetched from
    /// memory, without waiting for that.
    #[inline]
    pub fn prefetch(&self, client: ClientId) {
        self.clients.prefetch(client);
    }

    /// A client starts to compete. An active or an unknown one is left alone:
    /// it may have been destroyed since it woke.
    pub fn activate(&mut self, client: ClientId) {
        let Some(client) = self.clients.find(client) else {
            return;
        };
        let client = &mut self.clients[client];
        if !core::mem::replace(&mut client.active, true) {
            let funding = client.funding;
            self.activate_funding(funding);
        }
    }

    /// A client ceases to compete. One that does not, or an unknown one, is
    /// left alone.
    pub fn deactivate(&mut self, client: ClientId) {
        let Some(client) = self.clients.find(client) else {
            return;
        };
        let client = &mut self.clients[client];
        if core::mem::replace(&mut client.active, false) {
            let funding = client.funding;
            self.deactivate_funding(funding);
        }
    }

    /// All tickets that fund a holder become active, as the holder has.
    fn activate_funding(&mut self, funding: Funding) {
        if let Some((currency, amount)) = funding.sole {
            return self.raise_active_amount(currency, amount);
        }
        let mut ticket = funding.list.first();
        while let Some(handle) = ticket {
            let Ticket {
                currency, amount, ..
            } = self.tickets[handle];
            self.raise_active_amount(currency, amount);
            ticket = self.tickets[handle].next(Chain::Holder);
        }
    }

    /// All tickets that fund a holder become inactive, as the holder has.
    fn deactivate_funding(&mut self, funding: Funding) {
        if let Some((currency, amount)) = funding.sole {
            return self.lower_active_amount(currency, amount);
        }
        let mut ticket = funding.list.first();
        while let Some(handle) = ticket {
            let Ticket {
                currency, amount, ..
            } = self.tickets[handle];
            self.lower_active_amount(currency, amount);
            ticket = self.tickets[handle].next(Chain::Holder);
        }
    }

    /// Every value follows from active amounts, so the epochs change with
    /// them, here and in [`Ledger::lower_active_amount`].
    pub(super) fn raise_active_amount(&mut self, handle: Handle<Currency>, amount: u32) {
        if amount == 0 {
            return;
        }
        self.active_amount_changes(handle);
        let currency = &mut self.currencies[handle];
        let was_inactive = currency.active_amount == 0;
        currency.active_amount += u64::from(amount);
        if was_inactive {
            let funding = currency.backing;
            self.activate_funding(funding);
        }
    }

    /// The counterpart of [`Ledger::raise_active_amount`].
    pub(super) fn lower_active_amount(&mut self, handle: Handle<Currency>, amount: u32) {
        if amount == 0 {
            return;
        }
        self.active_amount_changes(handle);
        let currency = &mut self.currencies[handle];
        currency.active_amount -= u64::from(amount);
        if currency.active_amount == 0 {
            let funding = currency.backing;
            self.deactivate_funding(funding);
        }
    }

    /// What an active currency is worth depends on the active amounts of the
    /// currencies that back it, but not on that of the base currency, whose
    /// tickets are worth their face value (compare 1995, 3.3, note 6), and not
    /// on its own. So a change in a currency that backs no other leaves all
    /// currencies' values as they are; that is what most blocks and wakes are.
    fn active_amount_changes(&mut self, handle: Handle<Currency>) {
        self.epoch += 1;
        self.note_currency(handle);
        if handle != self.base && !self.currencies[handle].backs.is_empty() {
            self.currency_epoch += 1;
        }
    }
}
