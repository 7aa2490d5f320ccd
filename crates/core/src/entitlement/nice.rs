//! Nice values of clients (1999, 3.4).

use core::mem;

use super::Entitlements;
use super::competitor::Competitor;
use super::pool::Pool;
use crate::hybrid::{FACTOR_ONE, Nice, NiceLaw, nice};
use crate::ids::{ClientId, ClientIndex};
use crate::ledger::{Ledger, Value};

impl Entitlements {
    /// From now on a client's value in base units follows its nice value by this law, or without
    /// a law does not.
    ///
    /// Cost: a look at each competing client if that is a change.
    pub fn set_nice_law(
        &mut self,
        law: Option<NiceLaw>,
        tell: &mut impl FnMut(usize, ClientIndex, u32),
    ) {
        let (ledger, competitors) = (&self.ledger, &mut self.competitors);
        for pool in &mut self.pools {
            if mem::replace(&mut pool.nice_law, law) != law {
                pool.reprice_all(ledger, competitors, tell);
            }
        }
    }

    /// The law by which values follow nice values, if they do.
    pub fn nice_law(&self) -> Option<NiceLaw> {
        self.pools[0].nice_law
    }

    /// A client has another nice value, whose factor is that of the present law. Clients that the
    /// ledger does not know are ignored.
    ///
    /// Cost: O(1).
    pub fn set_nice(
        &mut self,
        client: ClientId,
        nice: Nice,
        tell: &mut impl FnMut(usize, ClientIndex, u32),
    ) {
        if let Some(competitor) = self.competitor_or_new(client) {
            competitor.nice = nice;
        }
        let factor = self.nice_law().map_or(FACTOR_ONE, |law| law.factor(nice));
        self.set_nice_factor(client, factor, tell);
    }

    /// The nice values of a client's tasks have another factor together
    /// ([`NiceMean`](crate::hybrid::NiceMean)), at least 1. It counts while there is a law. Clients
    /// that the ledger does not know are ignored.
    ///
    /// Cost: O(1), and a comparison if it is no other.
    pub fn set_nice_factor(
        &mut self,
        client: ClientId,
        factor: u32,
        tell: &mut impl FnMut(usize, ClientIndex, u32),
    ) {
        let Some(competitor) = self.competitor_or_new(client) else {
            return;
        };
        let factor = factor.max(1);
        if mem::replace(&mut competitor.nice_factor, factor) == factor {
            return;
        }
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
    /// The most that a client may be worth, if that is bounded.
    pub(super) fn most(&self, competitor: &Competitor) -> Option<Value> {
        let factor = competitor.nice_factor;
        (self.nice_law.is_some() && factor < FACTOR_ONE).then(|| nice::threshold(factor))
    }

    /// What a client is worth: the ledger's value, as its nice value changes it. The ledger
    /// knows no nice values, so what a niced client gives up goes to all clients.
    #[inline]
    pub(super) fn value(&self, ledger: &Ledger, competitor: &Competitor, index: u32) -> Value {
        let value = ledger.value(competitor.client(index));
        match self.nice_law {
            Some(_) => nice::niced(value, competitor.nice_factor),
            None => value,
        }
    }
}
