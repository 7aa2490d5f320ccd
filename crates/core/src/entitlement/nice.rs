//! Nice values of clients (1999, 3.4).

use super::Entitlements;
use super::competitor::Competitor;
use super::pool::Pool;
use crate::hybrid::{Nice, NiceLaw};
use crate::ids::{ClientId, ClientIndex};
use crate::ledger::{Ledger, Value};

impl Entitlements {
    /// From now on a client's value in base units follows its nice value by this law; without
    /// a law it does not. Call it before any client competes.
    pub fn set_nice_law(&mut self, law: NiceLaw) {
        debug_assert!(self.pools.iter().all(|pool| pool.len() == 0));
        for pool in &mut self.pools {
            pool.nice_law = Some(law);
        }
    }

    /// A client has another nice value. Clients that the ledger does not know are ignored.
    ///
    /// Cost: O(1).
    pub fn set_nice(
        &mut self,
        client: ClientId,
        nice: Nice,
        tell: &mut impl FnMut(usize, ClientIndex, u32),
    ) {
        let Some(competitor) = self.competitor_or_new(client) else {
            return;
        };
        competitor.nice = nice;
        let (competes, pool) = (competitor.threads > 0, usize::from(competitor.pool));
        if competes {
            let (ledger, competitors) = (&self.ledger, &mut self.competitors);
            self.pools[pool].reprice(ledger, competitors, client.index(), tell);
        }
    }

    /// The clients of a pool that are niced up or down.
    pub(crate) fn niced(&self, pool: usize) -> impl Iterator<Item = (ClientIndex, Nice)> {
        let known = self.competitors.iter();
        let known = known.filter(move |(_, known)| usize::from(known.pool) == pool);
        let niced = known.filter(|(_, known)| known.nice != Nice::default());
        niced.map(|(index, known)| (ClientIndex(index), known.nice))
    }

    /// A client's nice value.
    pub fn nice(&self, client: ClientId) -> Nice {
        let competitor = self.competitors.get(client);
        competitor.map_or(Nice::default(), |competitor| competitor.nice)
    }
}

impl Pool {
    /// The most that a client with this nice value may be worth, if it is bounded.
    pub(super) fn most(&self, nice: Nice) -> Option<Value> {
        let law = self.nice_law.filter(|_| nice > Nice::default())?;
        Some(law.threshold(nice))
    }

    /// What a client is worth: the ledger's value, as its nice value changes it. The ledger
    /// knows no nice values, so what a niced client gives up goes to all clients.
    #[inline]
    pub(super) fn value(&self, ledger: &Ledger, competitor: &Competitor, index: u32) -> Value {
        let value = ledger.value(competitor.client(index));
        match self.nice_law {
            Some(law) => law.value(value, competitor.nice),
            None => value,
        }
    }
}
