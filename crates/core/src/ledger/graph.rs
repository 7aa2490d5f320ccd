//! The graph of currencies: an edge wherever a ticket of one backs another
//! (1994, 3.3). It stays acyclic and no deeper than [`super::Limits::depth`];
//! both are checked for an edge before it is made.
//!
//! "Above" is towards the base currency, "below" is away from it. Each check
//! visits a currency once, however many paths lead to it: it costs the tickets
//! that back the currencies above, and those that currencies below issue to
//! other currencies; tickets that fund clients are not looked at.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use super::Ledger;
use super::arena::Handle;
use super::error::LedgerError;
use super::list::Chain;
use super::objects::{Currency, Holder};

/// Chain lengths that are known already.
type Lengths = BTreeMap<Handle<Currency>, u32>;

impl Ledger {
    /// Whether a ticket of `currency` may back `target`.
    pub(super) fn check_edge(
        &self,
        currency: Handle<Currency>,
        target: Handle<Currency>,
    ) -> Result<(), LedgerError> {
        if target == self.base {
            return Err(LedgerError::BaseBacked {
                base: self.currency_name(target),
            });
        }
        let mut path = Vec::new();
        if self.path_up(currency, target, &mut BTreeSet::new(), &mut path) {
            path.push(target);
            let path = path
                .into_iter()
                .map(|currency| self.currency_name(currency))
                .collect();
            return Err(LedgerError::Cycle { path });
        }
        let depth = self.chain_above(currency, &mut Lengths::new())
            + self.chain_below(target, &mut Lengths::new());
        if depth > self.limits.depth {
            return Err(LedgerError::TooDeep {
                currency: self.currency_name(currency),
                target: self.currency_name(target),
                depth,
                limit: self.limits.depth,
            });
        }
        Ok(())
    }

    /// Looks for `sought` at `from` and above it. Where it is found, `path`
    /// leads down from it to `from`.
    fn path_up(
        &self,
        from: Handle<Currency>,
        sought: Handle<Currency>,
        seen: &mut BTreeSet<Handle<Currency>>,
        path: &mut Vec<Handle<Currency>>,
    ) -> bool {
        if !seen.insert(from) {
            return false;
        }
        let found = from == sought
            || self
                .backers(from)
                .any(|backer| self.path_up(backer, sought, seen, path));
        if found {
            path.push(from);
        }
        found
    }

    /// Currencies in the longest chain that ends with `currency`, the base
    /// not counted.
    fn chain_above(&self, currency: Handle<Currency>, known: &mut Lengths) -> u32 {
        if currency == self.base {
            return 0;
        }
        if let Some(length) = known.get(&currency) {
            return *length;
        }
        let above = self
            .backers(currency)
            .map(|backer| self.chain_above(backer, known))
            .max();
        let length = 1 + above.unwrap_or(0);
        known.insert(currency, length);
        length
    }

    /// Currencies in the longest chain that begins with `currency`.
    fn chain_below(&self, currency: Handle<Currency>, known: &mut Lengths) -> u32 {
        if let Some(length) = known.get(&currency) {
            return *length;
        }
        let below = self
            .backed(currency)
            .map(|backed| self.chain_below(backed, known))
            .max();
        let length = 1 + below.unwrap_or(0);
        known.insert(currency, length);
        length
    }

    /// The currencies whose tickets back `currency`, once a ticket.
    pub(super) fn backers(
        &self,
        currency: Handle<Currency>,
    ) -> impl Iterator<Item = Handle<Currency>> {
        let backing = self.currencies[currency]
            .backing
            .list
            .iter(&self.tickets, Chain::Holder);
        backing.map(|ticket| self.tickets[ticket].currency)
    }

    /// The currencies that tickets of `currency` back, once a ticket.
    pub(super) fn backed(
        &self,
        currency: Handle<Currency>,
    ) -> impl Iterator<Item = Handle<Currency>> {
        let backs = self.currencies[currency]
            .backs
            .iter(&self.tickets, Chain::Issued);
        backs.filter_map(|ticket| match self.tickets[ticket].holder {
            Some(Holder::Currency(backed)) => Some(backed),
            Some(Holder::Client(_)) | None => None,
        })
    }

    pub(super) fn currency_name(&self, currency: Handle<Currency>) -> String {
        self.currencies[currency].name.to_string()
    }
}
