//! How a client stands among the clients of its pool.

use super::Entitlements;
use super::scale::Scale;
use crate::ids::ClientId;
use crate::ledger::Value;

/// What a client's due rate depends on. After a client ceased to compete it is that of the
/// moment before, but for the threads and the total.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Standing {
    /// Its pool.
    pub(crate) pool: usize,
    /// CPUs of the pool.
    pub(crate) cpus: u32,
    /// Its runnable threads.
    pub(crate) threads: u32,
    /// Tickets by its value.
    pub(crate) weight: u32,
    /// Its value, as far as the tickets tell it.
    pub(crate) value: Value,
    /// The most that it may be worth, if its nice value is above zero (1999, 3.4).
    pub(crate) most: Option<Value>,
    /// Tickets of all that compete in the pool.
    pub(super) total_weight: u64,
    pub(super) scale: Scale,
}

impl Standing {
    /// The tickets of all that compete in the pool, and of others of this value.
    pub(crate) fn total_with(&self, others: Value) -> u64 {
        self.total_weight + self.scale.sum(others)
    }
}

impl Entitlements {
    /// None for a client that never competed.
    pub(crate) fn standing(&self, client: ClientId) -> Option<Standing> {
        let competitor = self.competitors.get(client)?;
        let pool = &self.pools[usize::from(competitor.pool)];
        Some(pool.standing(competitor))
    }
}
