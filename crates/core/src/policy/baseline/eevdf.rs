//! Baseline: earliest eligible virtual deadline first (Stoica and
//! Abdel-Wahab, 1995), by which Linux shares out CPUs since 6.6.
//!
//! A client's *lag* is the service that it is due but did not get. A client
//! without negative lag is eligible. The eligible client with the earliest
//! virtual deadline runs: the virtual time at which it will have got a whole
//! quantum more. So no lag ever reaches a quantum, in either direction, as long
//! as no client joins, leaves or changes.
//!
//! With `S` the service of all since some moment, `W` all tickets, `w` a
//! client's own and `n` its own service less the lag it had at that moment:
//!
//! ```text
//!   virtual time      V = S / W          lag      = S w / W - n
//!   virtual runtime   v = n / w          eligible : n W <= S w
//!   virtual deadline    = (n at the request's start + 1 quantum) / w
//! ```
//!
//! All comparisons are of whole numbers, so nothing is rounded but lags, by
//! less than one unit of service, when tickets or participants change.
//!
//! As in Linux, a client that leaves keeps its lag and the rest of its request.
//! The others share the lag, so that lags always add up to zero.

use alloc::vec::Vec;
use core::cmp::Ordering;

use super::super::stride_ahead::Ahead;
use super::super::stride_service::{PartUnit, STRIDE1};
use super::super::{ClientIndex, MAX_CLIENTS, Policy, PolicyError};

/// The most that a client is due or owes: 2^18 quanta. The rest is forgotten.
const MAX_LAG: i128 = 1 << 62;

/// Service after which all counts begin afresh, so that products of service
/// and tickets (below 2^56) stay below 2^127.
const EPOCH: i128 = 1 << 68;

#[derive(Clone, Copy, Debug)]
struct Member {
    /// Service since the epoch began, less the lag at that moment; the negative
    /// lag alone while the client does not compete.
    n: i128,
    /// What `n` will be when the present request is fulfilled.
    deadline: i128,
    /// While joined; zero else.
    tickets: u32,
    joined: bool,
    taken: bool,
    part_unit: PartUnit,
}

impl Member {
    const UNKNOWN: Member = Member {
        n: 0,
        deadline: STRIDE1 as i128,
        tickets: 0,
        joined: false,
        taken: false,
        part_unit: PartUnit::NONE,
    };

    fn move_by(&mut self, service: i128) {
        self.n += service;
        self.deadline += service;
    }

    fn is_waiting(&self) -> bool {
        self.tickets > 0 && !self.taken
    }
}

/// Baseline: earliest eligible virtual deadline first.
///
/// `pick` and every change cost O(n), a charge O(1).
#[derive(Clone, Debug, Default)]
pub struct Eevdf {
    /// By client index. Those with tickets compete.
    members: Vec<Member>,
    /// Sum of the tickets of all competing clients.
    tickets: u64,
    /// Service of all competing clients since the epoch began.
    service: i128,
    ahead: Ahead,
    joined: usize,
}

impl Eevdf {
    /// A scheduler without clients.
    pub fn new() -> Self {
        Self::default()
    }

    fn joined(&mut self, client: ClientIndex) -> Result<&mut Member, PolicyError> {
        let member = self.members.get_mut(client.0 as usize);
        member
            .filter(|member| member.joined)
            .ok_or(PolicyError::NotJoined(client))
    }

    /// `n W <= S w`: its lag is not negative.
    fn is_eligible(&self, member: &Member) -> bool {
        member.n * i128::from(self.tickets) <= self.service * i128::from(member.tickets)
    }

    /// Begins a new epoch: each client's `n` becomes its negative lag.
    fn begin_epoch(&mut self) {
        for member in self.members.iter_mut().filter(|member| member.tickets > 0) {
            let due = self.service * i128::from(member.tickets) / i128::from(self.tickets);
            member.move_by(-due);
            let held = member.n.clamp(-MAX_LAG, MAX_LAG);
            member.move_by(held - member.n);
        }
        self.service = 0;
    }

    /// The competing clients are due so much service more.
    fn serve(&mut self, service: u64) {
        self.service += i128::from(service);
        if self.service >= EPOCH {
            self.begin_epoch();
        }
    }

    /// Gives the competing clients `lag` more to share, at the begin of an epoch.
    fn share_out(&mut self, lag: i128) {
        for member in self.members.iter_mut().filter(|member| member.tickets > 0) {
            member.move_by(-(lag * i128::from(member.tickets) / i128::from(self.tickets)));
        }
    }

    /// The only place where tickets change.
    fn change_tickets(&mut self, client: ClientIndex, tickets: u32) {
        let index = client.0 as usize;
        let before = self.members[index].tickets;
        if before == tickets {
            return;
        }
        self.begin_epoch();
        let lag = -self.members[index].n;
        self.members[index].tickets = 0;
        self.tickets -= u64::from(before);
        match (before, tickets) {
            // The others take over what it is due or owes,
            (_, 0) => self.share_out(lag),
            // or give it back. Alone, it is due all that there is.
            (0, _) if self.tickets == 0 => self.members[index].move_by(lag),
            (0, _) => self.share_out(-lag),
            _ => {}
        }
        self.members[index].tickets = tickets;
        self.tickets += u64::from(tickets);
    }
}

/// Earlier virtual deadline first.
fn by_deadline(a: &Member, b: &Member) -> Ordering {
    (a.deadline * i128::from(b.tickets)).cmp(&(b.deadline * i128::from(a.tickets)))
}

/// Smaller virtual runtime first.
fn by_runtime(a: &Member, b: &Member) -> Ordering {
    (a.n * i128::from(b.tickets)).cmp(&(b.n * i128::from(a.tickets)))
}

impl Policy for Eevdf {
    fn join(&mut self, client: ClientIndex, tickets: u32) -> Result<(), PolicyError> {
        if client.0 >= MAX_CLIENTS {
            return Err(PolicyError::TooManyClients(client));
        }
        let index = client.0 as usize;
        if index >= self.members.len() {
            self.members.resize(index + 1, Member::UNKNOWN);
        }
        if self.members[index].joined {
            return Err(PolicyError::AlreadyJoined(client));
        }
        self.members[index].joined = true;
        self.joined += 1;
        self.change_tickets(client, tickets);
        Ok(())
    }

    fn leave(&mut self, client: ClientIndex) -> Result<(), PolicyError> {
        let member = self.joined(client)?;
        member.joined = false;
        member.taken = false;
        self.joined -= 1;
        self.change_tickets(client, 0);
        Ok(())
    }

    fn forget(&mut self, client: ClientIndex) {
        // A refusal means that the client does not compete: nothing to leave.
        let _ = self.leave(client);
        if let Some(member) = self.members.get_mut(client.0 as usize) {
            *member = Member::UNKNOWN;
        }
    }

    fn set_tickets(&mut self, client: ClientIndex, tickets: u32) -> Result<(), PolicyError> {
        self.joined(client)?;
        self.change_tickets(client, tickets);
        Ok(())
    }

    /// The eligible client with the earliest deadline, among equals the one
    /// with the lowest index. Where all eligible clients are taken, the one that
    /// is nearest to eligibility.
    fn pick(&mut self) -> Option<ClientIndex> {
        let waiting = || {
            let members = self.members.iter().zip(0..);
            members.filter(|(member, _)| member.is_waiting())
        };
        let eligible = waiting().filter(|(member, _)| self.is_eligible(member));
        eligible
            .min_by(|(a, _), (b, _)| by_deadline(a, b))
            .or_else(|| waiting().min_by(|(a, _), (b, _)| by_runtime(a, b)))
            .map(|(_, index)| ClientIndex(index))
    }

    fn take(&mut self, client: ClientIndex) -> Result<(), PolicyError> {
        self.joined(client)?.taken = true;
        Ok(())
    }

    fn untake(&mut self, client: ClientIndex) -> Result<(), PolicyError> {
        self.joined(client)?.taken = false;
        Ok(())
    }

    fn charge(&mut self, client: ClientIndex, used: u64, quantum: u64) -> Result<(), PolicyError> {
        let member = self.joined(client)?;
        if quantum == 0 {
            return Err(PolicyError::ZeroQuantum(client));
        }
        member.taken = false;
        let service = member.part_unit.service(used, quantum);
        member.n += i128::from(service);
        let competes = member.tickets > 0;
        if !competes {
            member.n = member.n.min(MAX_LAG);
        } else if member.n >= member.deadline {
            member.deadline = member.n + i128::from(STRIDE1);
        }
        let passes = self.ahead.charge(service);
        if competes {
            self.serve(passes);
        }
        Ok(())
    }

    fn pass_time(&mut self, uncharged: u64, quantum: u64) {
        let passes = self.ahead.pass(uncharged, quantum);
        self.serve(passes);
    }

    fn run_off(&mut self, client: ClientIndex, lead: u64, quantum: u64) {
        let service = u128::from(lead) * u128::from(STRIDE1) / u128::from(quantum.max(1));
        if let Some(member) = self
            .members
            .get_mut(client.0 as usize)
            .filter(|m| !m.joined)
        {
            let beyond = member.n - service as i128;
            member.move_by(-beyond.max(0));
        }
    }

    fn total_tickets(&self) -> u64 {
        self.tickets
    }

    fn len(&self) -> usize {
        self.joined
    }
}
