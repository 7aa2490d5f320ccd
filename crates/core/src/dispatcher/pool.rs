//! A pool: CPUs with a run queue of their own (2001, "CPU pooling").
//!
//! Decisions are made in a pool alone: its policy picks among the clients that
//! belong to it, their weights are readjusted to its CPUs, and what is due to
//! them is their share of what it dispenses. What clients are worth is the
//! ledger's business, and the same in all pools.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::ops::{Index, IndexMut};

use super::active::{Classes, Magnitudes};
use super::competitor::{Competitors, Service};
use super::scale::Scale;
use super::{Winner, expect};
use crate::ledger::Ledger;
use crate::policy::{ClientIndex, Policy};

/// CPUs, and who competes for them.
pub(super) struct Pool {
    /// That of its clients.
    pub(super) number: u8,
    pub(super) policy: Box<dyn Policy + Send>,
    pub(super) cpus: u32,
    /// The competitors of this pool with runnable threads. The ledger's
    /// clients of these, and no others, are active.
    pub(super) classes: Classes,
    pub(super) magnitudes: Magnitudes,
    /// Sum of the active clients' weights.
    pub(super) total_weight: u64,
    /// Sum of the active clients' tickets: what the policy counts, too.
    pub(super) total_tickets: u64,
    /// Those whose weight is infeasible, and so their tickets fewer.
    pub(super) infeasible: Vec<u32>,
    /// Indices of the winners whose turn has not ended, those with `cpus`
    /// above zero.
    pub(super) running: Vec<u32>,
    /// CPUs that nobody was given.
    pub(super) cpus_free: u32,
    /// Sum of the runnable threads of those whose turn lasts.
    pub(super) running_threads: u64,
    /// Sum of the runnable threads of all its clients.
    pub(super) threads: u64,
    pub(super) service: Service,
    pub(super) scale: Scale,
    /// Threads, CPUs or weights changed since feasibility was looked at.
    pub(super) stale: bool,
    pub(super) changes_since_rescale: usize,
    /// Work space, kept to spare the allocations.
    pub(super) spare: Vec<u32>,
}

impl Pool {
    pub(super) fn new(number: u8, cpus: u32, policy: Box<dyn Policy + Send>) -> Self {
        Self {
            number,
            policy,
            cpus,
            classes: Classes::new(),
            magnitudes: Magnitudes::new(),
            total_weight: 0,
            total_tickets: 0,
            infeasible: Vec::new(),
            running: Vec::new(),
            cpus_free: cpus,
            running_threads: 0,
            threads: 0,
            service: Service::default(),
            scale: Scale::INITIAL,
            stale: false,
            changes_since_rescale: 0,
            spare: Vec::new(),
        }
    }

    /// Gives free CPUs, of which there are some, to one client: who is to run
    /// next, or one whose turn lasts and who has threads that wait.
    #[inline]
    pub(super) fn next_winner(
        &mut self,
        ledger: &Ledger,
        competitors: &mut Competitors,
    ) -> Option<Winner> {
        self.refresh(ledger, competitors);
        let Some(ClientIndex(index)) = self.policy.pick() else {
            return self.widen(competitors);
        };
        expect(self.policy.take(ClientIndex(index)));
        let competitor = competitors.at_mut(index);
        let cpus = competitor.threads.min(self.cpus_free);
        competitor.cpus = cpus;
        competitor.turn_place = self.running.len() as u32;
        self.running.push(index);
        self.running_threads += u64::from(competitor.threads);
        self.cpus_free -= cpus;
        let client = competitor.client(index);
        Some(Winner { client, cpus })
    }

    /// CPUs that nobody else can use go to a client whose turn lasts.
    fn widen(&mut self, competitors: &mut Competitors) -> Option<Winner> {
        let given = u64::from(self.cpus - self.cpus_free);
        if self.running_threads == given {
            return None;
        }
        let waits = |index: &&u32| {
            let competitor = competitors.at(**index);
            competitor.threads > competitor.cpus
        };
        let index = *self.running.iter().find(waits)?;
        let competitor = competitors.at_mut(index);
        let cpus = (competitor.threads - competitor.cpus).min(self.cpus_free);
        competitor.cpus += cpus;
        self.cpus_free -= cpus;
        let client = competitor.client(index);
        Some(Winner { client, cpus })
    }

    pub(super) fn end_turns(&mut self, competitors: &mut Competitors, quantum_ns: u64) {
        while let Some(&index) = self.running.last() {
            self.charge_policy(competitors, index, quantum_ns);
        }
    }

    /// Ends a turn, or accounts for time outside one: the policy learns of all
    /// time used since it was last told.
    pub(super) fn charge_policy(
        &mut self,
        competitors: &mut Competitors,
        index: u32,
        quantum_ns: u64,
    ) {
        if let Some(used_ns) = self.close_turn(competitors, index) {
            expect(self.policy.charge(ClientIndex(index), used_ns, quantum_ns));
        }
    }

    /// Ends a turn if there is one. Returns what the policy is to be told that
    /// was used, if it is to be told of a turn or of time outside one.
    pub(super) fn close_turn(&mut self, competitors: &mut Competitors, index: u32) -> Option<u64> {
        let competitor = competitors.at_mut(index);
        let cpus = core::mem::take(&mut competitor.cpus);
        let used_ns = core::mem::take(&mut competitor.uncharged_ns);
        let (turn_place, threads) = (competitor.turn_place, competitor.threads);
        if cpus > 0 {
            self.cpus_free += cpus;
            self.running_threads -= u64::from(threads);
            self.running.swap_remove(turn_place as usize);
            if let Some(&moved) = self.running.get(turn_place as usize) {
                competitors.at_mut(moved).turn_place = turn_place;
            }
        }
        (cpus > 0 || used_ns > 0).then_some(used_ns)
    }

    /// Goes on under another policy; everyone competes afresh in it. No turn
    /// lasts.
    pub(super) fn set_policy(
        &mut self,
        competitors: &mut Competitors,
        mut policy: Box<dyn Policy + Send>,
    ) {
        for index in self.classes.iter() {
            let competitor = competitors.at_mut(index);
            competitor.uncharged_ns = 0;
            expect(policy.join(ClientIndex(index), competitor.tickets));
        }
        self.policy = policy;
    }
}

/// The pools of a machine, by number.
///
/// Most machines are one pool: it stands apart, so that finding it costs next
/// to nothing.
pub(super) struct Pools {
    first: Pool,
    others: Vec<Pool>,
}

impl Pools {
    /// At least one.
    pub(super) fn new(mut pools: Vec<Pool>) -> Self {
        Self {
            others: pools.split_off(1),
            first: pools.remove(0),
        }
    }

    pub(super) fn len(&self) -> usize {
        1 + self.others.len()
    }

    /// The only pool, if there is but one.
    pub(super) fn only(&self) -> Option<&Pool> {
        self.others.is_empty().then_some(&self.first)
    }

    /// The only pool, if there is but one.
    pub(super) fn only_mut(&mut self) -> Option<&mut Pool> {
        self.others.is_empty().then_some(&mut self.first)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Pool> {
        core::iter::once(&self.first).chain(&self.others)
    }

    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Pool> {
        core::iter::once(&mut self.first).chain(&mut self.others)
    }
}

impl Index<u8> for Pools {
    type Output = Pool;

    #[inline]
    fn index(&self, number: u8) -> &Pool {
        match number {
            0 => &self.first,
            _ => &self.others[usize::from(number) - 1],
        }
    }
}

impl IndexMut<u8> for Pools {
    #[inline]
    fn index_mut(&mut self, number: u8) -> &mut Pool {
        match number {
            0 => &mut self.first,
            _ => &mut self.others[usize::from(number) - 1],
        }
    }
}
