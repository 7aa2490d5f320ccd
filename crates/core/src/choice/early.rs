//! Early clients: they run before the policy chooses (1999, 3.1 and 3.3).
//!
//! The chooser is told which clients are early, and in which order. An early client keeps
//! its place in the policy, and what it uses is charged there as ever.
//!
//! *Between two selections by the policy* a client may have several early turns. Where a
//! charge counts as a turn, they count as one turn with the selected one (1999, 3.1).

use alloc::collections::{BTreeMap, BTreeSet};

use super::{Chooser, expect};
use crate::hybrid::EarlyRank;
use crate::ids::ClientIndex;

/// The order of an early client.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Early {
    /// Until its next turn ends.
    pub rank: EarlyRank,
    /// After that turn; none if the client is then no longer early.
    pub afterwards: Option<EarlyRank>,
}

/// The early clients of a chooser. Each change costs O(log early clients) and may allocate.
#[derive(Default, Debug)]
pub(super) struct EarlyClients {
    ranks: BTreeMap<ClientIndex, Early>,
    /// Those without a turn.
    waiting: BTreeSet<(EarlyRank, ClientIndex)>,
    /// By client, where a charge counts as a turn: use charged since the policy selected
    /// the client.
    since_selection_ns: BTreeMap<ClientIndex, u64>,
    /// Whether clients can be early at all.
    used: bool,
    /// Whether use is added up between two selections.
    counts: bool,
    /// Whether an early turn ends as soon as the use since the selection is a quantum, and
    /// each wake preempts (1999, 3.1 and 3.2).
    as_printed: bool,
}

impl EarlyClients {
    #[inline]
    pub(super) fn is_used(&self) -> bool {
        self.used
    }

    /// Another policy begins, in which no client has a turn.
    pub(super) fn begin_anew(&mut self, charges_add_up: bool) {
        self.since_selection_ns.clear();
        self.counts = self.used && !charges_add_up;
    }

    pub(super) fn rank(&self, client: ClientIndex) -> Option<EarlyRank> {
        self.ranks.get(&client).map(|early| early.rank)
    }

    /// CPU time that an early turn may last, where there is a bound.
    pub(super) fn remaining_ns(&self, client: ClientIndex, quantum_ns: u64) -> Option<u64> {
        let since_ns = self.since_selection_ns.get(&client);
        let since_ns = since_ns.copied().unwrap_or(0);
        self.as_printed.then(|| quantum_ns.saturating_sub(since_ns))
    }

    fn set(&mut self, client: ClientIndex, early: Option<Early>, waits: bool) {
        let before = match early {
            Some(early) => self.ranks.insert(client, early),
            None => self.ranks.remove(&client),
        };
        if let Some(before) = before {
            self.waiting.remove(&(before.rank, client));
        }
        if let Some(early) = early.filter(|_| waits) {
            self.waiting.insert((early.rank, client));
        }
    }

    /// A client's turn begins.
    pub(super) fn begin_turn(&mut self, client: ClientIndex) {
        if let Some(rank) = self.rank(client) {
            self.waiting.remove(&(rank, client));
        }
    }

    /// A client's turn ends; it waits from now on.
    pub(super) fn end_turn(&mut self, client: ClientIndex) {
        if let Some(early) = self.ranks.get(&client) {
            let then = early.afterwards;
            let then = then.map(|rank| Early {
                rank,
                afterwards: then,
            });
            self.set(client, then, true);
        }
    }

    pub(super) fn forget(&mut self, client: ClientIndex) {
        self.set(client, None, false);
        self.since_selection_ns.remove(&client);
    }
}

impl Chooser {
    /// From now on a competing client is early, or no longer. A turn that it has goes on.
    pub(crate) fn set_early(&mut self, client: ClientIndex, early: Option<Early>) {
        let waits = self.client(client).turn().is_none();
        // A client that used its quantum gives way at user level, instead of a large negative
        // compensation (1999, 3.1).
        let remaining_ns = self.early.remaining_ns(client, self.quantum_ns);
        let early = early.filter(|_| remaining_ns != Some(0));
        self.early.set(client, early, waits);
    }

    /// The mechanisms are those that the paper prints.
    pub(crate) fn set_as_printed(&mut self) {
        self.early.as_printed = true;
    }

    /// As [`crate::policy::Policy::set_boost`].
    pub(crate) fn set_boost(&mut self, client: ClientIndex, boost: Option<u32>) {
        self.policy.set_boost(client, boost);
    }

    /// Whether no client competes.
    pub(crate) fn is_empty(&self) -> bool {
        self.policy.is_empty()
    }

    /// As [`crate::policy::Policy::run_off`].
    pub(crate) fn run_off(&mut self, client: ClientIndex, lead_ns: u64) {
        if let Some(since_ns) = self.early.since_selection_ns.get_mut(&client) {
            *since_ns = lead_ns.min(*since_ns);
        }
        self.policy.run_off(client, lead_ns, self.quantum_ns);
    }

    /// Whether a client is early.
    pub fn is_early(&self, client: ClientIndex) -> bool {
        self.early.rank(client).is_some()
    }

    /// Whether clients can be early.
    #[inline]
    pub(crate) fn allows_early(&self) -> bool {
        self.early.is_used()
    }

    /// From now on clients can be early.
    pub(crate) fn allow_early(&mut self) {
        self.early.used = true;
        self.early.counts = !self.policy.charges_add_up();
    }

    /// A client leaves that has used CPU time, perhaps in an early turn.
    #[cold]
    pub(super) fn leave_early(&mut self, client: ClientIndex, used_ns: Option<(u64, bool)>) {
        self.early.set(client, None, false);
        if let Some((used_ns, early)) = used_ns {
            self.charge_turn(client, used_ns, early);
        }
        expect(self.policy.leave(client));
    }

    /// The first early client that may be chosen and is placeable, taken from the policy.
    #[cold]
    pub(super) fn pick_early(&mut self) -> Option<ClientIndex> {
        let (passed_over, matching) = (&self.passed_over, &mut self.matching);
        let mut waiting = self.early.waiting.iter().map(|(_, client)| *client);
        let client = waiting.find(|client| {
            let matching = matching.as_mut();
            !passed_over.contains(client) && matching.is_none_or(|m| m.seat(client.0))
        })?;
        self.early.begin_turn(client);
        expect(self.policy.take(client));
        Some(client)
    }

    /// Charges a turn that is over.
    #[inline]
    pub(super) fn charge_turn(&mut self, client: ClientIndex, used_ns: u64, early: bool) {
        if !self.early.counts {
            return expect(self.policy.charge(client, used_ns, self.quantum_ns));
        }
        self.charge_counted_turn(client, used_ns, early);
    }

    #[cold]
    fn charge_counted_turn(&mut self, client: ClientIndex, used_ns: u64, early: bool) {
        let since_ns = self.early.since_selection_ns.entry(client).or_default();
        let before_ns = if early { *since_ns } else { 0 };
        *since_ns = before_ns.saturating_add(used_ns);
        let quantum_ns = self.quantum_ns;
        expect(
            self.policy
                .charge_more(client, before_ns, used_ns, quantum_ns),
        );
    }

    /// The client with a turn that a waiting client preempts: the least deserving of at
    /// most [`MOST_COMPARED`], if it deserves less.
    pub(crate) fn preempted_by(&self, client: ClientIndex) -> Option<ClientIndex> {
        if self.passed_over.contains(&client) {
            return None;
        }
        let waker = self.early.rank(client);
        let mut turns = self.turns.iter().take(MOST_COMPARED);
        let mut least = turns.next()?;
        for turn in turns {
            let (one, other) = (self.early.rank(least.client), self.early.rank(turn.client));
            let is_less = match (one, other) {
                (Some(_), None) => true,
                (None, Some(_)) => false,
                (Some(one), Some(other)) => one < other,
                (None, None) => {
                    let (one, other) = ((least.client, least.used_ns), (turn.client, turn.used_ns));
                    self.policy.precedes(one, other, 0, self.quantum_ns)
                }
            };
            if is_less {
                least = turn;
            }
        }
        if self.early.as_printed {
            return Some(least.client);
        }
        let preempts = match (waker, self.early.rank(least.client)) {
            (Some(_), None) => true,
            (None, Some(_)) => false,
            (Some(waker), Some(runner)) => waker.importance() < runner.importance(),
            (None, None) => {
                let (waker, runner) = ((client, 0), (least.client, least.used_ns));
                self.policy
                    .precedes(waker, runner, LEAST_GAIN_NS, self.quantum_ns)
            }
        };
        preempts.then_some(least.client)
    }
}

/// So many turns are compared to find the one that a waking client preempts.
const MOST_COMPARED: usize = 8;
/// A client that is not early preempts only if it deserves so much more: a switch costs.
const LEAST_GAIN_NS: u64 = 1_000_000;
