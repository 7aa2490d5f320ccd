//! A second opinion on activity and values: the definitions of 1994, 4.4,
//! followed to the letter, without sums kept, edges or remembered values.

use super::*;
use alloc::collections::{BTreeMap, BTreeSet};

/// A ledger's tickets, and which clients run.
pub(super) struct Model {
    base: CurrencyId,
    tickets: Vec<TicketView>,
    running: BTreeSet<ClientId>,
    /// Values of currencies worked out so far.
    worked_out: BTreeMap<CurrencyId, u128>,
}

impl Model {
    pub(super) fn new(ledger: &Ledger, running: &BTreeSet<ClientId>) -> Self {
        let tickets = ledger.tickets().collect();
        Self {
            base: ledger.base(),
            tickets,
            running: running.clone(),
            worked_out: BTreeMap::new(),
        }
    }

    /// "A ticket is active while it is being used by a thread to compete."
    fn is_active(&self, ticket: &TicketView) -> bool {
        match ticket.target {
            Some(Target::Client(client)) => self.running.contains(&client),
            Some(Target::Currency(currency)) => self.active_amount(currency) > 0,
            None => false,
        }
    }

    fn active_amount(&self, currency: CurrencyId) -> u64 {
        let issued = self
            .tickets
            .iter()
            .filter(|ticket| ticket.currency == currency);
        issued
            .filter(|ticket| self.is_active(ticket))
            .map(|ticket| u64::from(ticket.amount))
            .sum()
    }

    /// "A currency's value is computed by summing the value of its backing
    /// tickets." The base currency's is the sum of its own.
    fn currency_value(&mut self, currency: CurrencyId) -> u128 {
        if currency == self.base {
            return u128::from(self.active_amount(currency)) << 32;
        }
        if let Some(value) = self.worked_out.get(&currency) {
            return *value;
        }
        let value = self.sum(Target::Currency(currency));
        self.worked_out.insert(currency, value);
        value
    }

    /// "A ticket's value is computed by multiplying the value of the currency
    /// in which it is denominated by its share of the active amount issued in
    /// that currency. The value of a ticket denominated in the base currency
    /// is defined to be its face value amount."
    fn ticket_value(&mut self, ticket: &TicketView) -> u128 {
        if !self.is_active(ticket) {
            0
        } else if ticket.currency == self.base {
            u128::from(ticket.amount) << 32
        } else if ticket.amount == 0 {
            0
        } else {
            let active_amount = u128::from(self.active_amount(ticket.currency));
            self.currency_value(ticket.currency) * u128::from(ticket.amount) / active_amount
        }
    }

    fn sum(&mut self, target: Target) -> u128 {
        let tickets: Vec<TicketView> = self
            .tickets
            .iter()
            .filter(|ticket| ticket.target == Some(target))
            .cloned()
            .collect();
        tickets.iter().map(|ticket| self.ticket_value(ticket)).sum()
    }

    /// Holds everything that the ledger says about activity and values
    /// against this model, and value against its conservation.
    pub(super) fn compare(&mut self, ledger: &Ledger) {
        for ticket in self.tickets.clone() {
            assert_eq!(ticket.active, self.is_active(&ticket), "{ticket:?}");
            assert_eq!(ticket.value.0, self.ticket_value(&ticket), "{ticket:?}");
        }
        for currency in ledger.currencies() {
            assert_eq!(
                currency.active_amount,
                self.active_amount(currency.id),
                "{currency:?}"
            );
            let expected = if currency.active_amount > 0 {
                self.currency_value(currency.id)
            } else {
                0
            };
            assert_eq!(currency.value.0, expected, "{currency:?}");
        }
        let mut total = 0;
        for client in ledger.clients() {
            assert_eq!(client.active, self.running.contains(&client.id));
            assert_eq!(
                client.value.0,
                self.sum(Target::Client(client.id)),
                "{client:?}"
            );
            assert_eq!(client.value, ledger.value(client.id));
            total += client.value.0;
        }
        let base = u128::from(ledger.active_base_amount()) << 32;
        let divided = |ticket: &&TicketView| ticket.active && ticket.currency != self.base;
        let bound = self.tickets.iter().filter(divided).count() as u128;
        assert!(
            total <= base && base - total <= bound,
            "{total} of {base}, {bound} may be lost"
        );
    }
}
