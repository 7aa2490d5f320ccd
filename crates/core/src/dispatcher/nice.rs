//! Nice values of clients (1999, 3.4).

use super::Dispatcher;
use crate::hybrid::{Nice, NiceLaw};
use crate::ids::{ClientId, ClientIndex};

impl Dispatcher {
    /// As [`Entitlements::set_nice_law`](crate::entitlement::Entitlements::set_nice_law).
    pub fn set_nice_law(&mut self, law: NiceLaw) {
        self.entitlements.set_nice_law(law);
    }

    /// A client has another nice value. Its tickets in force change at once where values
    /// follow nice values. Clients that the ledger does not know are ignored.
    pub fn set_nice(&mut self, client: ClientId, nice: Nice) {
        let choosers = &mut self.choosers;
        let mut tell = |pool: usize, client, tickets| {
            if let Some(chooser) = choosers.get_mut(pool) {
                chooser.set_tickets(client, tickets);
            }
        };
        self.entitlements.set_nice(client, nice, &mut tell);
        if self.entitlements.knows(client)
            && let Some(chooser) = self.chooser_of(client)
        {
            chooser.set_nice(ClientIndex(client.index()), nice);
        }
    }

    /// Tells a new policy of a pool all nice values.
    pub(super) fn tell_nice_values(&mut self, pool: usize) {
        if let Some(chooser) = self.choosers.get_mut(pool) {
            for (client, nice) in self.entitlements.niced(pool) {
                chooser.set_nice(client, nice);
            }
        }
    }

    /// A client's nice value.
    pub fn nice(&self, client: ClientId) -> Nice {
        self.entitlements.nice(client)
    }
}
