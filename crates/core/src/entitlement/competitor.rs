//! What is known about one client, and its account of service.

use alloc::vec::Vec;

use super::service::{Reading, SERVICE_BITS};
use crate::cpu_limit::{CPU_THOUSANDTHS, CpuLimit};
use crate::feasible::Demand;
use crate::hybrid::{FACTOR_ONE, Nice};
use crate::ids::ClientId;
use crate::prefetch::prefetch;

/// A client that competes or has competed: a cache line, as among a million
/// clients nearly every look at one misses all caches.
#[derive(Debug)]
#[repr(align(64))]
pub(super) struct Competitor {
    /// Of its identifier, to tell it from an earlier client at its index.
    generation: u32,
    /// Runnable threads; zero exactly while it is not active.
    pub(super) threads: u32,
    /// Its index in its density class, while active.
    pub(super) class_place: u32,
    /// Its density class, that of its demand, while active.
    pub(super) class: u8,
    /// Bits of its value, while active.
    pub(super) magnitude: u8,
    /// Whether it is in its pool's list of infeasible clients; only while
    /// active.
    pub(super) infeasible: bool,
    /// In which pool it competes.
    pub(super) pool: u8,
    /// Its affinity class there; zero if it may use all CPUs.
    pub(super) affinity: u8,
    /// Its nice value.
    pub(super) nice: Nice,
    /// The factor of its value that its nice value is, or those of its tasks are together.
    pub(super) nice_factor: u32,
    /// Tickets by its value, while active.
    pub(super) weight: u32,
    /// Tickets in force: the weight, readjusted if it was infeasible.
    pub(super) tickets: u32,
    /// The most CPU time that it may get.
    pub(super) max: Option<CpuLimit>,
    received_ns: u64,
    /// CPU time due to it, in the units of a [`Reading`], less what its tickets
    /// (none, unless it is active) are due at the reading: so it stays the same
    /// until they change. Modulo 2^128. Its words, lower first: a `u128` would
    /// be aligned to 16 bytes.
    account: [u64; 2],
}

impl Competitor {
    fn new(client: ClientId) -> Self {
        Self {
            generation: client.generation(),
            pool: 0,
            affinity: 0,
            nice: Nice::default(),
            nice_factor: FACTOR_ONE,
            threads: 0,
            class_place: 0,
            class: 0,
            magnitude: 0,
            infeasible: false,
            weight: 0,
            tickets: 0,
            max: None,
            received_ns: 0,
            account: [0; 2],
        }
    }

    /// The client's identifier, where it is the competitor at `index`.
    pub(super) fn client(&self, index: u32) -> ClientId {
        ClientId::from_parts(index, self.generation)
    }

    /// Whether it is this client, which has its index.
    fn is(&self, client: ClientId) -> bool {
        self.generation == client.generation()
    }

    /// What it asks of its pool, while active. In thousandths of a CPU.
    pub(super) fn demand(&self) -> Demand {
        let threads = self.threads.saturating_mul(CPU_THOUSANDTHS);
        Demand {
            weight: self.weight,
            cpus: self
                .max
                .map_or(threads, |max| threads.min(max.thousandths())),
        }
    }

    /// The same without its limit, in CPUs.
    pub(super) fn threads_demand(&self) -> Demand {
        Demand {
            weight: self.weight,
            cpus: self.threads,
        }
    }

    /// Has other tickets from now on, or becomes active or ceases to be. Less
    /// than a nanosecond of what is due to it is lost.
    pub(super) fn change(&mut self, reading: Reading, threads: u32, tickets: u32) {
        let due_ns = self.due_ns(reading);
        self.threads = threads;
        self.tickets = tickets;
        let account =
            (u128::from(due_ns) << SERVICE_BITS).wrapping_sub(self.due_to_tickets(reading));
        self.account = [account as u64, (account >> 64) as u64];
    }

    pub(super) fn receive(&mut self, used_ns: u64) {
        self.received_ns += used_ns;
    }

    /// CPU time received and due.
    pub(super) fn account(&self, reading: Reading) -> (u64, u64) {
        (self.received_ns, self.due_ns(reading))
    }

    fn due_ns(&self, reading: Reading) -> u64 {
        let account = u128::from(self.account[1]) << 64 | u128::from(self.account[0]);
        (account.wrapping_add(self.due_to_tickets(reading)) >> SERVICE_BITS) as u64
    }

    /// What its present tickets would be due, had it had them from the start.
    fn due_to_tickets(&self, reading: Reading) -> u128 {
        if self.threads == 0 {
            return 0;
        }
        reading.0.wrapping_mul(self.tickets.into())
    }
}

/// The clients that compete or have competed, by index. A competitor stays
/// until its client is destroyed, so that its account survives a block.
#[derive(Debug)]
pub(super) struct Competitors(Vec<Option<Competitor>>);

const ACTIVE: &str = "an active client has a competitor";

impl Competitors {
    /// With room for so many.
    pub(super) fn with_capacity(clients: usize) -> Self {
        Self(Vec::with_capacity(clients))
    }

    /// Nothing for a client that has never competed.
    #[inline]
    pub(super) fn get(&self, client: ClientId) -> Option<&Competitor> {
        let competitor = self.0.get(client.index() as usize)?.as_ref();
        competitor.filter(|c| c.is(client))
    }

    /// Nothing for a client that has never competed.
    #[inline]
    pub(super) fn get_mut(&mut self, client: ClientId) -> Option<&mut Competitor> {
        let competitor = self.0.get_mut(client.index() as usize)?.as_mut();
        competitor.filter(|c| c.is(client))
    }

    /// All, with their indices.
    pub(super) fn iter(&self) -> impl Iterator<Item = (u32, &Competitor)> {
        let known = self.0.iter().zip(0..);
        known.filter_map(|(competitor, index)| Some((index, competitor.as_ref()?)))
    }

    /// A client that has competed, by index.
    pub(super) fn at(&self, index: u32) -> &Competitor {
        self.0[index as usize].as_ref().expect(ACTIVE)
    }

    /// A client that has competed, by index.
    pub(super) fn at_mut(&mut self, index: u32) -> &mut Competitor {
        self.0[index as usize].as_mut().expect(ACTIVE)
    }

    /// A client that has competed, by index, unless it was destroyed.
    pub(super) fn find_mut(&mut self, index: u32) -> Option<&mut Competitor> {
        self.0[index as usize].as_mut()
    }

    /// A client competes for the first time.
    pub(super) fn add(&mut self, client: ClientId, max: Option<CpuLimit>) {
        let index = client.index() as usize;
        if index >= self.0.len() {
            self.0.resize_with(index + 1, || None);
        }
        let competitor = Competitor::new(client);
        self.0[index] = Some(Competitor { max, ..competitor });
    }

    pub(super) fn remove(&mut self, client: ClientId) {
        self.0[client.index() as usize] = None;
    }

    /// Has the memory of one fetched, without waiting for it.
    #[inline]
    pub(super) fn prefetch(&self, index: u32) {
        prefetch(&self.0, index as usize);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_competitor_fits_a_cache_line() {
        assert_eq!(size_of::<Option<Competitor>>(), 64);
    }
}
