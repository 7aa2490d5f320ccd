//! What a dispatcher knows about one client, and its account of service.

use super::Usage;
use crate::ids::ClientId;

/// Fractional bits of the service that one ticket is due.
const SERVICE_BITS: u32 = 32;

/// CPU time due to each ticket of those who compete, since the start, in
/// nanoseconds with [`SERVICE_BITS`] fractional bits.
///
/// Like the global pass (1995, 2.2) it advances with every charge by what was
/// used over the sum of all tickets, so that a client's ideal share is found
/// from two readings, without a visit to any other client.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct Service(u128);

impl Service {
    /// Accounts for `used_ns` dispensed among `total_tickets`. Rounding costs
    /// each ticket less than 2^-32 ns a call.
    pub(super) fn dispense(&mut self, used_ns: u64, total_tickets: u64) {
        if total_tickets > 0 {
            self.0 += (u128::from(used_ns) << SERVICE_BITS) / u128::from(total_tickets);
        }
    }
}

/// A client that competes or has competed.
#[derive(Debug)]
pub(super) struct Competitor {
    /// Full identifier, to tell it from an earlier client at its index.
    pub(super) client: ClientId,
    /// Runnable threads; zero exactly while it is not in the active list.
    pub(super) threads: u32,
    /// Where it stands in the active list, meaningful while `threads > 0`.
    pub(super) place: u32,
    /// CPUs that it has been given; zero unless it is a winner that still
    /// runs. Never above `threads`.
    pub(super) cpus: u32,
    /// Tickets that the policy has been told of, readjusted to be feasible.
    pub(super) tickets: u32,
    /// CPU time used but not yet charged to the policy.
    pub(super) uncharged_ns: u64,
    received_ns: u64,
    /// Due since the start, with [`SERVICE_BITS`] fractional bits; right up to
    /// the reading `seen`.
    specified: u128,
    seen: Service,
}

impl Competitor {
    pub(super) fn new(client: ClientId, service: Service) -> Self {
        Self {
            client,
            threads: 0,
            place: 0,
            cpus: 0,
            tickets: 0,
            uncharged_ns: 0,
            received_ns: 0,
            specified: 0,
            seen: service,
        }
    }

    /// Brings the specified time up to date; to be called before `tickets` or
    /// `threads` change.
    pub(super) fn settle(&mut self, service: Service) {
        self.specified = self.due(service);
        self.seen = service;
    }

    pub(super) fn receive(&mut self, used_ns: u64) {
        self.received_ns += used_ns;
        self.uncharged_ns += used_ns;
    }

    pub(super) fn usage(&self, service: Service) -> Usage {
        Usage {
            received_ns: self.received_ns,
            specified_ns: (self.due(service) >> SERVICE_BITS) as u64,
            share: 0.0,
        }
    }

    fn due(&self, service: Service) -> u128 {
        if self.threads == 0 {
            return self.specified;
        }
        self.specified + (service.0 - self.seen.0) * u128::from(self.tickets)
    }
}
