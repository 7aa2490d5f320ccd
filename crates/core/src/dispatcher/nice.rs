//! Nice values of clients (1999, 3.4).

use super::Dispatcher;
use crate::choice::Chooser;
use crate::hybrid::{Nice, NiceLaw};
use crate::ids::{ClientId, ClientIndex};

impl Dispatcher {
    /// As [`Entitlements::set_nice_law`](crate::entitlement::Entitlements::set_nice_law).
    pub fn set_nice_law(&mut self, law: Option<NiceLaw>) {
        let mut tell = tell(&mut self.choosers);
        self.entitlements.set_nice_law(law, &mut tell);
    }

    /// A client has another nice value. Its tickets in force change at once where values
    /// follow nice values. Clients that the ledger does not know are ignored.
    pub fn set_nice(&mut self, client: ClientId, nice: Nice) {
        self.entitlements
            .set_nice(client, nice, &mut tell(&mut self.choosers));
        if self.entitlements.knows(client)
            && let Some(chooser) = self.chooser_of(client)
        {
            chooser.set_nice(ClientIndex(client.index()), nice);
        }
    }

    /// As [`Entitlements::set_nice_factor`](crate::entitlement::Entitlements::set_nice_factor).
    pub fn set_nice_factor(&mut self, client: ClientId, factor: u32) {
        let mut tell = tell(&mut self.choosers);
        self.entitlements.set_nice_factor(client, factor, &mut tell);
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

/// Tells a pool's chooser of a client's tickets.
fn tell(choosers: &mut [Chooser]) -> impl FnMut(usize, ClientIndex, u32) {
    |pool, client, tickets| {
        if let Some(chooser) = choosers.get_mut(pool) {
            chooser.set_tickets(client, tickets);
        }
    }
}
