//! Which client runs on this CPU now.
//!
//! A [`Chooser`] shares out the CPUs that it owns, among the clients that were
//! handed to it, over a [`Policy`]. It knows what a client deserves only as a
//! number of tickets, and it knows no clock: the engine says what time it is,
//! and what each client has used.
//!
//! ```text
//!   join, leave, set_threads, set_tickets, charge, end_turn --> policy
//!   next(cpu, now_ns) --> policy: pick, take --> Choice { client, until_ns, why }
//! ```
//!
//! A client that is chosen begins a turn. The turn lasts until the engine ends
//! it or the client leaves; `until_ns` says when it is over at the latest. The
//! CPUs of a chooser are alike: the engine may run the client on any of them
//! that is free.
//!
//! A client may have an affinity. Then clients with a turn can all be placed on
//! CPUs that they may use, but the engine may have to move some of them first.
//! A client that is not placeable is passed over, and keeps its place in the
//! policy.

mod affinity;
mod client;
mod early;
mod further;
mod pauses;
mod quanta;
mod slots;

use alloc::boxed::Box;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;
use core::mem;
use core::ops::Range;

use crate::hybrid::Nice;
use crate::ids::ClientIndex;
use crate::matching::Matching;
use crate::policy::{Policy, PolicyError};
use crate::prefetch::prefetch;

use client::Client;
pub use early::Early;
use early::EarlyClients;
use further::Further;

/// A client that is to run on a CPU.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Choice {
    /// The client.
    pub client: ClientIndex,
    /// When its turn is over.
    pub until_ns: u64,
    /// The reason.
    pub why: Reason,
}

/// Reason a client is to run on a CPU.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Reason {
    /// The policy picked it.
    Policy,
    /// It is early: it runs before the policy picks (1999, 3.1 and 3.3).
    Early,
    /// It runs already, on other CPUs; no other client can use this one.
    Spare,
}

/// A client's turn: it has CPUs.
#[derive(Clone, Copy, Debug)]
pub struct Turn {
    /// The client.
    pub client: ClientIndex,
    /// Its CPUs: at least 1, at most its runnable threads.
    pub cpus: u32,
    /// When the turn is over.
    pub until_ns: u64,
    /// Its runnable threads.
    threads: u32,
    /// CPU time to be charged at the end of the turn.
    used_ns: u64,
    /// Whether the policy did not pick it.
    early: bool,
}

/// Chooses which client runs on each of its CPUs.
pub struct Chooser {
    policy: Box<dyn Policy + Send>,
    /// Its own CPUs.
    cpus: Range<u32>,
    cpus_free: u32,
    /// CPUs that the timetable has.
    cpus_in_slots: u32,
    /// Length of a standard quantum, at least 1 ns.
    quantum_ns: u64,
    /// Of the clients whose turns have a length of their own.
    own_quanta_ns: BTreeMap<ClientIndex, u64>,
    clients: Vec<Client>,
    turns: Vec<Turn>,
    /// Sum of the runnable threads of the clients with a turn.
    turn_threads: u64,
    /// Sum of the CPU time that is to be charged when these turns end.
    uncharged_ns: u64,
    /// Of the client chosen last. None as soon as there are none.
    further: Option<Further>,
    /// CPU time used outside turns that is charged with the next turn.
    outside_ns: BTreeMap<ClientIndex, u64>,
    /// Clients that are not chosen, whether they compete or not.
    passed_over: BTreeSet<ClientIndex>,
    /// A way to place all turns, while some client has an affinity.
    matching: Option<Box<Matching>>,
    early: EarlyClients,
    /// Whether the policy has to know the time.
    keeps_time: bool,
}

impl Chooser {
    /// A chooser that owns these CPUs. No client competes in the policy yet.
    pub fn new(policy: Box<dyn Policy + Send>, cpus: Range<u32>, quantum_ns: u64) -> Self {
        debug_assert!(policy.is_empty());
        Self {
            keeps_time: policy.keeps_time(),
            policy,
            cpus_free: cpus.len() as u32,
            cpus_in_slots: 0,
            cpus,
            quantum_ns: quantum_ns.max(1),
            own_quanta_ns: BTreeMap::new(),
            clients: Vec::new(),
            turns: Vec::new(),
            turn_threads: 0,
            uncharged_ns: 0,
            further: None,
            outside_ns: BTreeMap::new(),
            passed_over: BTreeSet::new(),
            matching: None,
            early: EarlyClients::default(),
        }
    }

    /// Makes room for clients with indices below `clients`.
    pub fn reserve(&mut self, clients: usize) {
        self.policy.reserve(clients);
        let more = clients.saturating_sub(self.clients.len());
        self.clients.reserve_exact(more);
    }

    /// The CPUs that it owns.
    pub fn cpus(&self) -> Range<u32> {
        self.cpus.clone()
    }

    /// The turns that last, in no order.
    pub fn turns(&self) -> &[Turn] {
        &self.turns
    }

    /// Whether a client has a turn.
    pub fn runs(&self, client: ClientIndex) -> bool {
        self.client(client).turn().is_some()
    }

    /// A client competes from now on, with so many runnable threads, at least
    /// one. If it competed before, it takes up its place in the policy.
    #[inline]
    pub fn join(&mut self, client: ClientIndex, threads: u32, tickets: u32) {
        let index = client.0 as usize;
        if index >= self.clients.len() {
            self.clients.resize(index + 1, Client::ABSENT);
        }
        self.clients[index] = Client::waiting(threads);
        self.pass_time(0);
        expect(self.policy.join(client, tickets));
    }

    /// Time passes for the clients that compete now, by what turns have used and by
    /// `more_ns`, of which the chooser has not been told.
    #[inline]
    pub(crate) fn pass_time(&mut self, more_ns: u64) {
        let used_ns = self.uncharged_ns.saturating_add(more_ns);
        if used_ns > 0 {
            self.policy.pass_time(used_ns, self.quantum_ns);
        }
    }

    /// A competing client blocks; its turn ends. What it used is charged
    /// before, its place in the policy is kept (1995, 2.2).
    #[inline]
    pub fn leave(&mut self, client: ClientIndex) {
        let turn = self.client(client).turn();
        if turn.is_none() || self.turns.len() > 1 {
            self.pass_time(0);
        }
        let used_ns = match turn {
            Some(place) => Some(self.close_turn(client, place)),
            None if self.outside_ns.is_empty() => None,
            None => self
                .outside_ns
                .remove(&client)
                .map(|used_ns| (used_ns, false)),
        };
        self.clients[client.0 as usize] = Client::ABSENT;
        if self.early.is_used() {
            self.leave_early(client, used_ns);
            return;
        }
        let used_ns = used_ns.map(|(used_ns, _)| used_ns);
        expect(match used_ns {
            Some(used_ns) => self
                .policy
                .charge_and_leave(client, used_ns, self.quantum_ns),
            None => self.policy.leave(client),
        });
    }

    /// Forgets a client that does not compete, for good.
    pub fn forget(&mut self, client: ClientIndex) {
        debug_assert_eq!(self.client(client), Client::ABSENT);
        self.policy.forget(client);
        self.early.forget(client);
        self.own_quanta_ns.remove(&client);
        self.passed_over.remove(&client);
        self.set_affinity(client, None);
    }

    /// A competing client has another number of runnable threads, not zero.
    pub fn set_threads(&mut self, client: ClientIndex, threads: u32) {
        let state = &mut self.clients[client.0 as usize];
        let Some(place) = state.turn() else {
            *state = Client::waiting(threads);
            return;
        };
        let turn = &mut self.turns[place];
        let before = mem::replace(&mut turn.threads, threads);
        let cpus = turn.cpus.min(threads);
        let freed = mem::replace(&mut turn.cpus, cpus) - cpus;
        self.cpus_free += freed;
        self.turn_threads = self.turn_threads - u64::from(before) + u64::from(threads);
        self.unseat(client, freed);
    }

    /// A competing client has other tickets.
    pub fn set_tickets(&mut self, client: ClientIndex, tickets: u32) {
        self.pass_time(0);
        expect(self.policy.set_tickets(client, tickets));
    }

    /// As [`Policy::set_nice`].
    pub(crate) fn set_nice(&mut self, client: ClientIndex, nice: Nice) {
        self.policy.set_nice(client, nice);
    }

    /// A competing client used CPU time, whether it has a turn or not.
    ///
    /// A turn is charged whole when it ends, because compensation depends on
    /// it (1994, 3.4). Time outside a turn moves the client back at once, if
    /// the policy can tell it from a turn that was cut short.
    #[inline]
    pub fn charge(&mut self, client: ClientIndex, used_ns: u64) {
        match self.client(client).turn() {
            Some(place) => {
                self.turns[place].used_ns += used_ns;
                self.uncharged_ns += used_ns;
            }
            None if self.policy.charges_add_up() => {
                expect(self.policy.charge(client, used_ns, self.quantum_ns));
            }
            None => *self.outside_ns.entry(client).or_default() += used_ns,
        }
    }

    /// Ends a client's turn, if it has one, and charges it.
    ///
    /// Cost: a charge of the policy.
    #[inline]
    pub fn end_turn(&mut self, client: ClientIndex) {
        if let Some(place) = self.client(client).turn() {
            let (used_ns, early) = self.close_turn(client, place);
            self.charge_turn(client, used_ns, early);
        }
    }

    /// Ends all turns.
    pub fn end_turns(&mut self) {
        while let Some(turn) = self.turns.last() {
            self.end_turn(turn.client);
        }
    }

    /// Chooses the client that runs on `cpu` from now on. None if the CPU is
    /// another chooser's, no CPU is free or no client can use one.
    ///
    /// A client with several threads is chosen for so many CPUs at once: the
    /// next calls give it the further ones, up to its threads and the CPUs
    /// that are free. A turn lasts for the client's quantum.
    ///
    /// Cost: a pick and a take of the policy for each turn that begins.
    /// O(CPUs) for a CPU that only clients with a turn can use. With affinities
    /// also a pick and a take for each client that is passed over, and a search
    /// for a way to place it.
    #[inline]
    pub fn next(&mut self, cpu: u32, now_ns: u64) -> Option<Choice> {
        match self.can_give(cpu) {
            true => self.give(now_ns),
            false => None,
        }
    }

    /// Whether a CPU is one of its own, and one of these is free.
    #[inline]
    pub(crate) fn can_give(&self, cpu: u32) -> bool {
        self.cpus_free > 0 && self.cpus.contains(&cpu)
    }

    /// As [`Self::next`], for a CPU that it can give.
    #[inline]
    pub(crate) fn give(&mut self, now_ns: u64) -> Option<Choice> {
        if self.further.is_some()
            && let choice @ Some(_) = self.next_further()
        {
            return choice;
        }
        if self.keeps_time {
            self.policy.advance(now_ns);
        }
        let Some((client, why)) = self.pick() else {
            return self.widen();
        };
        let state = &mut self.clients[client.0 as usize];
        let threads = state.waiting_threads();
        *state = Client::with_turn(self.turns.len());
        let quantum_ns = match why == Reason::Early {
            true => self.early_quantum_ns(client),
            false => self.quantum_ns(client),
        };
        let until_ns = now_ns.saturating_add(quantum_ns);
        let used_ns = match self.outside_ns.is_empty() {
            true => 0,
            false => self.take_outside_ns(client),
        };
        self.turns.push(Turn {
            client,
            cpus: 1,
            until_ns,
            threads,
            used_ns,
            early: why == Reason::Early,
        });
        self.turn_threads += u64::from(threads);
        if threads > 1 && self.cpus_free > 1 {
            self.keep_further(client, threads.min(self.cpus_free) - 1, why);
        }
        self.cpus_free -= 1;
        Some(Choice {
            client,
            until_ns,
            why,
        })
    }

    /// CPU time used outside turns, to be charged with the turn that begins.
    #[cold]
    fn take_outside_ns(&mut self, client: ClientIndex) -> u64 {
        let used_ns = self.outside_ns.remove(&client).unwrap_or(0);
        self.uncharged_ns += used_ns;
        used_ns
    }

    /// The client whose turn is next, taken from the policy.
    #[inline]
    fn pick(&mut self) -> Option<(ClientIndex, Reason)> {
        if self.early.is_used()
            && let Some(client) = self.pick_early()
        {
            return Some((client, Reason::Early));
        }
        let client = match self.matching.is_some() || !self.passed_over.is_empty() {
            true => self.pick_placeable()?,
            false => {
                let client = self.policy.pick()?;
                expect(self.policy.take(client));
                client
            }
        };
        if self.early.is_used() {
            self.early.begin_turn(client);
        }
        Some((client, Reason::Policy))
    }

    /// Ends the client's turn, which is at `place`. Returns the CPU time to be
    /// charged, and whether the turn was an early one.
    #[inline]
    fn close_turn(&mut self, client: ClientIndex, place: usize) -> (u64, bool) {
        let turn = self.turns.swap_remove(place);
        self.cpus_free += turn.cpus;
        self.unseat(client, turn.cpus);
        self.turn_threads -= u64::from(turn.threads);
        self.uncharged_ns -= turn.used_ns;
        self.clients[client.0 as usize] = Client::waiting(turn.threads);
        if let Some(moved) = self.turns.get(place) {
            self.clients[moved.client.0 as usize] = Client::with_turn(place);
        }
        if self.further.is_some_and(|further| further.client == client) {
            self.further = None;
        }
        if self.early.is_used() {
            self.early.end_turn(client);
        }
        (turn.used_ns, turn.early)
    }

    /// Goes on under another policy, in which all `competing` clients start
    /// afresh with these tickets. All turns end.
    pub fn set_policy(
        &mut self,
        mut policy: Box<dyn Policy + Send>,
        competing: impl Iterator<Item = (ClientIndex, u32)>,
    ) {
        self.end_turns();
        self.outside_ns.clear();
        for (client, tickets) in competing {
            expect(policy.join(client, tickets));
        }
        self.keeps_time = policy.keeps_time();
        self.policy = policy;
        self.early.begin_anew(self.policy.charges_add_up());
    }

    /// Owns these CPUs from now on; all turns end.
    pub fn set_cpus(&mut self, cpus: Range<u32>) {
        self.end_turns();
        self.cpus_free = (cpus.len() as u32).saturating_sub(self.cpus_in_slots);
        self.cpus = cpus;
        self.rematch();
    }

    /// The client that is likely to be chosen after so many others. Often
    /// wrong: for fetching memory ahead of its use. O(1).
    #[inline]
    pub fn likely_after(&self, others: usize) -> Option<ClientIndex> {
        self.policy.likely_after(others)
    }

    /// A client is about to join, leave or be chosen: has its memory fetched.
    #[inline]
    pub fn prefetch(&self, client: ClientIndex) {
        prefetch(&self.clients, client.0 as usize);
        self.policy.prefetch(client);
    }

    #[inline]
    fn client(&self, client: ClientIndex) -> Client {
        let state = self.clients.get(client.0 as usize);
        state.copied().unwrap_or_default()
    }

    fn turn_of(&self, client: ClientIndex) -> Option<&Turn> {
        self.turns.get(self.client(client).turn()?)
    }
}

/// A chooser keeps to the policy's rules; a refusal is a bug here.
fn expect(result: Result<(), PolicyError>) {
    if let Err(error) = result {
        unreachable!("the chooser broke a policy's rule: {error}");
    }
}
