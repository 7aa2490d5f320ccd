//! What tickets, currencies and clients are worth in base units (1994, 4.4).
//!
//! A ticket of the base currency is worth its face value. A currency is worth
//! the sum of what its backing tickets are worth. An active ticket of another
//! currency is worth `currency's value * amount / active amount`.
//!
//! # Exactness
//!
//! [`Value`] counts units of 2^-32 base units, `u` for short. Sums are exact;
//! the one division rounds down, so it loses less than one `u` and never adds.
//!
//! *Conservation.* An active ticket of the base currency either funds an
//! active client or backs a currency that has an active amount, and so passes
//! on all it is worth to that currency's active tickets; likewise every active
//! ticket below. All value thus ends with active clients but for what the
//! divisions lose, one for each active ticket of another currency than the
//! base. With `n` such tickets
//!
//! ```text
//!   0 <= active base amount - sum of the active clients' values <= n * 2^-32
//! ```
//!
//! and `n = 0` is exact. In the same way a single client's value is below the
//! exact one by less than `2^-32` for each ticket on the paths to it.
//!
//! *Range.* Value flows through an acyclic graph, so no currency is worth more
//! than the active base amount `B < 2^64`. With fewer than 2^32 tickets of at
//! most `2^32 - 1`, `B <= (2^32 - 1)^2`, and `value * amount` is at most
//! `(2^32 - 1)^2 * 2^32 * (2^32 - 1) < 2^128`: nothing overflows.
//!
//! # Cost
//!
//! A currency remembers its value until an operation is applied or a currency
//! that backs others (the base apart) changes its active amount. So reading
//! all clients between two such changes visits each ticket once, even where
//! many paths lead to one currency, and a block or wake that travels no
//! further than a client's own currencies costs the next reader one division
//! a ticket. Recursion is as deep as the chain of currencies, see
//! [`super::Limits::depth`]. Nothing allocates.

use super::Ledger;
use super::arena::Handle;
use super::list::Chain;
use super::objects::{Client, Currency, Funding};
use crate::ids::ClientId;

/// An amount of base units, with 32 fractional bits.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Value(pub u128);

impl Value {
    /// Number of fractional bits.
    pub const FRACTION_BITS: u32 = 32;

    /// Whole base units and the fraction, for people.
    pub fn to_f64(self) -> f64 {
        self.0 as f64 / (1u64 << Self::FRACTION_BITS) as f64
    }

    /// Bits without leading zeros: it is below two to this power, in units of
    /// 2^-32.
    pub fn bits(self) -> u8 {
        (u128::BITS - self.0.leading_zeros()) as u8
    }

    fn from_base_units(units: u64) -> Self {
        Value(u128::from(units) << Self::FRACTION_BITS)
    }
}

/// What a currency is worth while it is active, and the
/// `Ledger::currency_epoch` for which that holds; stale in any other.
#[derive(Clone, Copy, Debug)]
pub(super) struct CachedValue {
    epoch: u64,
    value: Value,
}

impl Default for CachedValue {
    /// Stale in every epoch that a ledger reaches.
    fn default() -> Self {
        Self {
            epoch: u64::MAX,
            value: Value(0),
        }
    }
}

impl Ledger {
    /// Base units that an active client's tickets are worth; zero for any
    /// other client.
    pub fn value(&self, client: ClientId) -> Value {
        self.clients
            .find(client)
            .map_or(Value(0), |client| self.client_value(&self.clients[client]))
    }

    /// Changes whenever any value may have changed.
    pub fn epoch(&self) -> u64 {
        self.epoch
    }

    /// Sum of the active tickets of the base currency: what all active clients
    /// together are worth.
    pub fn active_base_amount(&self) -> u64 {
        self.currencies[self.base].active_amount
    }

    pub(super) fn client_value(&self, client: &Client) -> Value {
        if client.active {
            self.sum(&client.funding)
        } else {
            Value(0)
        }
    }

    pub(super) fn currency_value(&self, handle: Handle<Currency>) -> Value {
        let currency = &self.currencies[handle];
        if currency.active_amount == 0 {
            return Value(0);
        }
        if handle == self.base {
            return Value::from_base_units(currency.active_amount);
        }
        let cached = currency.cached.get();
        if cached.epoch == self.currency_epoch {
            return cached.value;
        }
        let value = self.sum(&currency.backing);
        currency.cached.set(CachedValue {
            epoch: self.currency_epoch,
            value,
        });
        value
    }

    /// What an active ticket is worth.
    pub(super) fn ticket_value(&self, handle: Handle<Currency>, amount: u32) -> Value {
        if amount == 0 {
            return Value(0);
        }
        if handle == self.base {
            return Value::from_base_units(u64::from(amount));
        }
        let Value(worth) = self.currency_value(handle);
        let active_amount = self.currencies[handle].active_amount;
        Value(worth * u128::from(amount) / u128::from(active_amount))
    }

    /// What all tickets of an active holder are worth.
    fn sum(&self, funding: &Funding) -> Value {
        if let Some((currency, amount)) = funding.sole {
            return self.ticket_value(currency, amount);
        }
        let tickets = funding.list.iter(&self.tickets, Chain::Holder);
        let values = tickets.map(|ticket| {
            let ticket = &self.tickets[ticket];
            self.ticket_value(ticket.currency, ticket.amount).0
        });
        Value(values.sum())
    }
}
