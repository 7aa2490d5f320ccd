//! Baseline: the decay-usage scheduler of 4.4BSD (McKusick, Bostic, Karels and Quarterman,
//! 1996, 4.4), beside which the paper of 1999 measures.
//!
//! A process has an estimate of its recent CPU use, in ticks of the clock. Its priority is
//!
//! ```text
//!   priority = 50 + estimate / 4 + 2 nice        at most 127; less is better
//!   estimate = estimate 2 load / (2 load + 1) + nice    each second
//!   load     = mean number of runnable processes in the last minute
//! ```
//!
//! There is a run queue for each four priorities. The first process of the first queue runs
//! for a quantum of ten ticks, and then goes to the end of its queue. Tickets decide nothing,
//! but a client without any is not picked.
//!
//! 4.4BSD works with ticks of 10 ms, so its quantum is 100 ms: give the machine that one.

use alloc::vec::Vec;

use super::super::{ClientIndex, MAX_CLIENTS, Policy, PolicyError};
use crate::hybrid::Nice;

/// Ticks of a quantum: `roundrobin()` runs each 100 ms at 100 Hz.
const QUANTUM_TICKS: u128 = 10;
/// Estimates are in units of a thousandth of a tick.
const TICK: u64 = 1_000;
/// An estimate fits a byte.
const MAX_ESTIMATE: u64 = 255 * TICK;
/// The priority of a process that used nothing (`PUSER`), and the last one (`MAXPRI`).
const USER_PRIORITY: i64 = 50;
const LAST_PRIORITY: i64 = 127;
/// Priorities of a run queue (`PPQ`).
const QUEUE_PRIORITIES: i64 = 4;
/// One runnable process, as a load (`FSCALE`).
const LOAD_ONE: u64 = 1 << 11;
/// What remains of a load after five seconds (`cexp`): e^(-1/12).
const LOAD_KEPT: u64 = 1_884;
/// The load is sampled each so many seconds.
const LOAD_SECONDS: u64 = 5;
const SECOND_NS: u64 = 1_000_000_000;
/// Of a longer time in which no client was picked, the last so many seconds count: then every
/// estimate has decayed.
const MOST_SECONDS: u64 = 600;

#[derive(Clone, Copy, Default, Debug)]
struct Member {
    estimate: u64,
    nice: Nice,
    /// While joined; zero else.
    tickets: u32,
    joined: bool,
    taken: bool,
    /// When it came to the end of its run queue.
    arrival: u64,
}

impl Member {
    fn is_waiting(&self) -> bool {
        self.tickets > 0 && !self.taken
    }

    /// Its priority, having used so much besides.
    fn priority(&self, used: u64) -> i64 {
        let estimate = (self.estimate + used).min(MAX_ESTIMATE);
        let used = (estimate / TICK / 4) as i64;
        (USER_PRIORITY + used + 2 * i64::from(self.nice.value())).min(LAST_PRIORITY)
    }

    fn run_queue(&self) -> i64 {
        self.priority(0).div_euclid(QUEUE_PRIORITIES)
    }
}

/// Baseline: the decay-usage scheduler of 4.4BSD.
///
/// `pick` costs O(n), each second O(n), other calls O(1).
#[derive(Clone, Debug, Default)]
pub struct DecayUsage {
    /// By client index.
    members: Vec<Member>,
    arrivals: u64,
    /// Seconds that have passed.
    second: u64,
    load: u64,
    tickets: u64,
    joined: usize,
}

impl DecayUsage {
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

    fn member_or_new(&mut self, client: ClientIndex) -> &mut Member {
        let index = client.0 as usize;
        if index >= self.members.len() {
            self.members.resize(index + 1, Member::default());
        }
        &mut self.members[index]
    }

    /// A client comes to the end of its run queue.
    fn queue_up(&mut self, client: ClientIndex) {
        let arrival = self.arrivals;
        self.arrivals += 1;
        self.members[client.0 as usize].arrival = arrival;
    }

    /// `schedcpu()`, and each fifth time `loadav()`.
    fn pass_second(&mut self) {
        for index in 0..self.members.len() {
            let member = &mut self.members[index];
            let before = member.run_queue();
            let factor = 2 * self.load;
            let decayed = member.estimate * factor / (factor + LOAD_ONE);
            // A sleeping process is decayed alone, when it wakes (`updatepri()`).
            let nice = match member.joined {
                true => i64::from(member.nice.value()) * TICK as i64,
                false => 0,
            };
            let estimate = decayed.saturating_add_signed(nice);
            member.estimate = estimate.min(MAX_ESTIMATE);
            if member.joined && member.run_queue() != before {
                self.queue_up(ClientIndex(index as u32));
            }
        }
        self.second += 1;
        if self.second.is_multiple_of(LOAD_SECONDS) {
            let runnable = self.joined as u64 * LOAD_ONE;
            self.load = (LOAD_KEPT * self.load + (LOAD_ONE - LOAD_KEPT) * runnable) / LOAD_ONE;
        }
    }
}

/// What was used of a quantum, in the units of an estimate.
fn ticks(used: u64, quantum: u64) -> u64 {
    let ticks = u128::from(used) * QUANTUM_TICKS * u128::from(TICK) / u128::from(quantum.max(1));
    ticks.min(MAX_ESTIMATE.into()) as u64
}

impl Policy for DecayUsage {
    fn join(&mut self, client: ClientIndex, tickets: u32) -> Result<(), PolicyError> {
        if client.0 >= MAX_CLIENTS {
            return Err(PolicyError::TooManyClients(client));
        }
        let member = self.member_or_new(client);
        if member.joined {
            return Err(PolicyError::AlreadyJoined(client));
        }
        member.joined = true;
        member.tickets = tickets;
        self.joined += 1;
        self.tickets += u64::from(tickets);
        self.queue_up(client);
        Ok(())
    }

    fn leave(&mut self, client: ClientIndex) -> Result<(), PolicyError> {
        let member = self.joined(client)?;
        let tickets = core::mem::take(&mut member.tickets);
        member.joined = false;
        member.taken = false;
        self.joined -= 1;
        self.tickets -= u64::from(tickets);
        Ok(())
    }

    fn forget(&mut self, client: ClientIndex) {
        // A refusal means that the client does not compete: nothing to leave.
        let _ = self.leave(client);
        if let Some(member) = self.members.get_mut(client.0 as usize) {
            *member = Member::default();
        }
    }

    fn set_tickets(&mut self, client: ClientIndex, tickets: u32) -> Result<(), PolicyError> {
        let before = core::mem::replace(&mut self.joined(client)?.tickets, tickets);
        self.tickets = self.tickets - u64::from(before) + u64::from(tickets);
        Ok(())
    }

    fn set_nice(&mut self, client: ClientIndex, nice: Nice) {
        if client.0 < MAX_CLIENTS {
            self.member_or_new(client).nice = nice;
        }
    }

    /// The first client of the first run queue.
    fn pick(&mut self) -> Option<ClientIndex> {
        let members = self.members.iter().zip(0..);
        let waiting = members.filter(|(member, _)| member.is_waiting());
        let first = waiting.min_by_key(|(member, _)| (member.run_queue(), member.arrival));
        first.map(|(_, index)| ClientIndex(index))
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
        member.estimate = (member.estimate + ticks(used, quantum)).min(MAX_ESTIMATE);
        self.queue_up(client);
        Ok(())
    }

    /// A process that wakes preempts one of a worse priority (`need_resched()`).
    fn precedes(
        &self,
        (client, used): (ClientIndex, u64),
        (other, other_used): (ClientIndex, u64),
        _gain: u64,
        quantum: u64,
    ) -> bool {
        let priority = |client: ClientIndex, used| {
            let member = self.members.get(client.0 as usize)?;
            Some(member.priority(ticks(used, quantum)))
        };
        match (priority(client, used), priority(other, other_used)) {
            (Some(one), Some(other)) => one < other,
            _ => false,
        }
    }

    fn keeps_time(&self) -> bool {
        true
    }

    fn advance(&mut self, now_ns: u64) {
        let second = now_ns / SECOND_NS;
        self.second = self.second.max(second.saturating_sub(MOST_SECONDS));
        while self.second < second {
            self.pass_second();
        }
    }

    fn total_tickets(&self) -> u64 {
        self.tickets
    }

    fn len(&self) -> usize {
        self.joined
    }
}
