//! Clients with limited CPU time: they pause when they have exhausted their allowance.
//!
//! Its chooser passes a paused client over, so that the client wins no CPU, not even one that would
//! idle. It keeps its place, and gets its due once it may run again. Without limited clients none
//! of this is asked.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;
use core::mem;

use super::Dispatcher;
use crate::allowance::Allowance;
use crate::choice::Choice;
use crate::cpu_limit::CpuLimit;
use crate::ids::{ClientId, ClientIndex};
use crate::ledger::Ledger;

/// A client with a limit.
#[derive(Clone, Copy, Debug)]
struct Limited {
    client: ClientId,
    max: CpuLimit,
    /// None until the client is first looked at.
    allowance: Option<Allowance>,
    /// When it may run again, while it pauses.
    resumes_ns: Option<u64>,
}

/// The clients with limits, by index.
#[derive(Default, Debug)]
pub(super) struct Allowances {
    limited: BTreeMap<u32, Limited>,
    /// Those that were charged or limited since they were last looked at, and those that had a
    /// turn then although they had exhausted their allowances. Some may be named twice.
    touched: Vec<u32>,
    /// Those that pause, by the time when they may run again.
    paused: BTreeSet<(u64, u32)>,
}

impl Allowances {
    /// Those of a ledger's clients.
    pub(super) fn of(ledger: &Ledger) -> Self {
        let mut allowances = Self::default();
        for (client, max) in ledger.limited_clients() {
            allowances.limit(client, max);
        }
        allowances
    }

    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.limited.is_empty()
    }

    /// The client used CPU time.
    pub(super) fn charge(&mut self, client: ClientIndex, used_ns: u64) {
        let Some(limited) = self.limited.get_mut(&client.0) else {
            return;
        };
        if let Some(allowance) = &mut limited.allowance {
            allowance.charge(used_ns);
        }
        self.touched.push(client.0);
    }

    /// The end of a turn that lasts until `until_ns` at most, on so many CPUs.
    pub(super) fn end_of_turn(
        &mut self,
        client: ClientIndex,
        cpus: u32,
        until_ns: u64,
        now_ns: u64,
    ) -> u64 {
        let limited = self.limited.get_mut(&client.0);
        match limited.and_then(|limited| limited.allowance.as_mut()) {
            Some(allowance) => {
                allowance.advance(now_ns);
                until_ns.min(now_ns.saturating_add(allowance.lasts_ns(cpus)))
            }
            None => until_ns,
        }
    }

    fn limit(&mut self, client: ClientId, max: CpuLimit) {
        let limited = self.limited.entry(client.index()).or_insert(Limited {
            client,
            max,
            allowance: None,
            resumes_ns: None,
        });
        limited.max = max;
        if let Some(allowance) = &mut limited.allowance {
            allowance.set_max(max);
        }
        self.touched.push(client.index());
    }

    /// A client has no limit any more, or was destroyed.
    pub(super) fn forget(&mut self, client: ClientIndex) {
        let limited = self.limited.remove(&client.0);
        if let Some(resumes_ns) = limited.and_then(|limited| limited.resumes_ns) {
            self.paused.remove(&(resumes_ns, client.0));
        }
    }
}

impl Dispatcher {
    /// Whether a client's CPU time is limited.
    #[inline]
    pub fn is_limited(&self, client: ClientId) -> bool {
        let limited = self.allowances.limited.get(&client.index());
        limited.is_some_and(|limited| limited.client == client)
    }

    /// Whether a client pauses because it has exhausted the allowance of its limit.
    pub fn is_paused(&self, client: ClientId) -> bool {
        let limited = self.allowances.limited.get(&client.index());
        limited.is_some_and(|limited| limited.client == client && limited.resumes_ns.is_some())
    }

    /// When the first of the paused clients may run again. An engine gives its CPUs away then.
    pub fn next_resumption_ns(&self) -> Option<u64> {
        self.allowances.paused.first().map(|first| first.0)
    }

    /// The ledger has another limit for a client, or none any more.
    pub(super) fn set_limit(&mut self, client: ClientId, max: Option<CpuLimit>) {
        match max {
            Some(max) => self.allowances.limit(client, max),
            None => {
                self.allowances.forget(ClientIndex(client.index()));
                self.pass_over(client, false);
            }
        }
    }

    /// A turn that has just begun, or that got a further CPU, ends when the client's allowance is
    /// exhausted.
    pub(super) fn limit_turn(&mut self, choice: &mut Choice, pool: usize, now_ns: u64) {
        let cpus = self.choosers[pool].cpus_of_turn(choice.client);
        let until_ns = choice.until_ns;
        choice.until_ns = self
            .allowances
            .end_of_turn(choice.client, cpus, until_ns, now_ns);
    }

    /// Has clients pause that have exhausted their allowances, once their turns are over, and has
    /// those compete again whose pauses are over.
    ///
    /// Cost: O(log n) in limited clients for each that was charged, pauses or resumes.
    pub(super) fn review_limits(&mut self, now_ns: u64) {
        while let Some(&(resumes_ns, index)) = self.allowances.paused.first()
            && resumes_ns <= now_ns
        {
            self.allowances.paused.pop_first();
            self.review_limit(index, now_ns);
        }
        let mut touched = mem::take(&mut self.allowances.touched);
        touched.retain(|index| self.review_limit(*index, now_ns));
        self.allowances.touched = touched;
    }

    /// Ends the turns of clients that have exhausted their allowances. They pause.
    pub(super) fn end_exhausted_turns(&mut self, now_ns: u64) {
        self.review_limits(now_ns);
        for place in 0..self.allowances.touched.len() {
            let index = self.allowances.touched[place];
            let client = limited_at(&mut self.allowances, index).client;
            self.end_turn(client);
        }
        self.review_limits(now_ns);
    }

    /// Returns whether to look at the client again at the next review.
    fn review_limit(&mut self, index: u32, now_ns: u64) -> bool {
        let Some(limited) = self.allowances.limited.get_mut(&index) else {
            return false;
        };
        let (client, max) = (limited.client, limited.max);
        let allowance = limited
            .allowance
            .get_or_insert_with(|| Allowance::new(max, now_ns));
        allowance.advance(now_ns);
        let (before, after) = (limited.resumes_ns, allowance.resumes_ns());
        if before.is_none() && after.is_some() && self.runs(client) {
            return true;
        }
        limited_at(&mut self.allowances, index).resumes_ns = after;
        if let Some(before_ns) = before {
            self.allowances.paused.remove(&(before_ns, index));
        }
        if let Some(after_ns) = after {
            self.allowances.paused.insert((after_ns, index));
        }
        if before.is_some() != after.is_some() {
            self.pass_over(client, after.is_some());
        }
        false
    }

    /// A client's chooser passes it over from now on, or no longer. The client has no turn.
    pub(super) fn pass_over(&mut self, client: ClientId, pauses: bool) {
        if let Some(chooser) = self.chooser_of(client) {
            chooser.pass_over(ClientIndex(client.index()), pauses);
        }
    }
}

fn limited_at(allowances: &mut Allowances, index: u32) -> &mut Limited {
    let limited = allowances.limited.get_mut(&index);
    limited.expect("a limited client stays until its limit ends")
}
