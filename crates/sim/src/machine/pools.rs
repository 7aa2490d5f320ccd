//! Pools of CPUs: threads wait in the pool of their client and run on its CPUs
//! alone (2001, "CPU pooling"). A machine without pools is one.

use std::ops::Range;

use prorata_core::choice::Choice;
use prorata_core::dispatcher::Dispatcher;
use prorata_core::hybrid::NiceLaw;
use prorata_core::ledger::Ledger;
use prorata_scenario::event::Event;
use prorata_scenario::file::MachineSpec;
use prorata_scenario::plan::{PoolPlan, client_id};
use prorata_scenario::policy;

use super::cpus::Cpus;
use super::{Machine, NONE, Simulation};
use crate::observer::Observer;

/// CPUs, and how many threads wait for one of them.
#[derive(Clone, Debug)]
pub(super) struct Pool {
    name: String,
    pub(super) cpus: Range<u32>,
    /// Threads that can run but have no CPU; counted only where there are
    /// several pools.
    waiting: u64,
}

impl Pool {
    pub(super) fn new(plan: PoolPlan) -> Pool {
        Pool {
            name: plan.name,
            cpus: plan.cpus,
            waiting: 0,
        }
    }
}

/// CPU time that threads of a pool have used and that is not accounted for.
fn unaccounted_ns(pools: &[Pool], pool: usize, cpus: &Cpus, now_ns: u64) -> u64 {
    let used_ns = match pools {
        [_] => cpus.unaccounted_ns(now_ns),
        _ => cpus.unaccounted_ns_on(pools[pool].cpus.clone(), now_ns),
    };
    used_ns.max(0).cast_unsigned()
}

/// A dispatcher with a policy for each pool.
pub(super) fn dispatcher(
    ledger: Ledger,
    pools: &[PoolPlan],
    machine: &MachineSpec,
    seed: u64,
) -> Dispatcher {
    let pools = pools.iter().zip(0..).map(|(pool, number)| {
        let cpus = pool.cpus.len() as u32;
        (cpus, policy(machine.policy, seed, number))
    });
    let mut dispatcher = Dispatcher::pooled(ledger, pools.collect(), machine.quantum.0);
    dispatcher.set_mechanisms(machine.hybrid.mechanisms());
    if machine.hybrid.as_printed {
        dispatcher.set_as_printed();
    }
    if machine.hybrid.nice {
        dispatcher.set_nice_law(Some(NiceLaw::Paper));
    }
    dispatcher
}

impl<O: Observer> Simulation<O> {
    /// A client goes to another pool: its turn ends, and it competes there from
    /// now on.
    pub(super) fn move_client(&mut self, client: u32, pool: u8) {
        let before = self.machine.pool_of(client);
        if before == u32::from(pool) {
            return;
        }
        let state = &self.machine.clients[client as usize];
        if state.turn != NONE {
            self.end_turn(client);
        }
        let machine = &mut self.machine;
        // None of its threads runs now.
        let waiting = u64::from(machine.clients[client as usize].runnable);
        machine.pools[before as usize].waiting -= waiting;
        machine.pools[usize::from(pool)].waiting += waiting;
        machine.pass_time(before);
        machine.pass_time(pool.into());
        let dispatcher = &mut machine.dispatcher;
        dispatcher.move_to_pool(client_id(client), pool.into());
        let pool = pool.into();
        self.tell(Event::Moved { client, pool });
    }
}

impl Machine {
    /// How many pools the CPUs are divided into; one where the scenario names
    /// none.
    pub fn pool_count(&self) -> u32 {
        self.pools.len() as u32
    }

    /// A pool's name; that of the only pool is empty unless the scenario names
    /// it.
    pub fn pool_name(&self, pool: u32) -> &str {
        &self.pools[pool as usize].name
    }

    /// The numbers of a pool's CPUs.
    pub fn pool_cpus(&self, pool: u32) -> Range<u32> {
        self.pools[pool as usize].cpus.clone()
    }

    /// The pool that a client belongs to now.
    #[inline]
    pub fn pool_of(&self, client: u32) -> u32 {
        match self.pools.as_slice() {
            [_] => 0,
            _ => self.dispatcher.pool_of(client_id(client)),
        }
    }

    /// Threads of a pool that can run but have no CPU.
    pub fn waiting_in(&self, pool: u32) -> u64 {
        match self.pools.as_slice() {
            [_] => self.waiting,
            pools => pools[pool as usize].waiting,
        }
    }

    /// Threads that can run but have no CPU.
    pub fn waiting_threads(&self) -> u64 {
        self.waiting
    }

    /// A thread of a client begins to wait for a CPU.
    #[inline]
    pub(super) fn begin_waiting(&mut self, client: u32) {
        self.waiting += 1;
        if self.pools.len() > 1 {
            let pool = self.pool_of(client);
            self.pools[pool as usize].waiting += 1;
        }
    }

    /// A thread of a client waits no longer for a CPU.
    #[inline]
    pub(super) fn end_waiting(&mut self, client: u32) {
        self.waiting -= 1;
        if self.pools.len() > 1 {
            let pool = self.pool_of(client);
            self.pools[pool as usize].waiting -= 1;
        }
    }

    /// The client that is to run next on an idle CPU. The first pools come
    /// first, after the pool of a client that is due further CPUs.
    #[inline]
    pub(super) fn next_choice(&mut self) -> Option<Choice> {
        // Most calls end here: one more is made than there are choices.
        if !self.cpus.any_idle() {
            return None;
        }
        match self.pools.as_slice() {
            [_] => self.next_choice_in(0),
            _ => self.next_choice_of_pools(),
        }
    }

    fn next_choice_of_pools(&mut self) -> Option<Choice> {
        let pools = 0..self.pools.len();
        let has_further = |pool: &usize| self.dispatcher.has_further(*pool as u32);
        if let Some(pool) = pools.clone().find(has_further) {
            return self.next_choice_in(pool);
        }
        for pool in pools {
            if let choice @ Some(_) = self.next_choice_in(pool) {
                return choice;
            }
        }
        None
    }

    #[inline]
    fn next_choice_in(&mut self, pool: usize) -> Option<Choice> {
        let cpu = self.cpus.first_idle(self.pools[pool].cpus.clone())?;
        let (pools, cpus, now_ns) = (&self.pools, &self.cpus, self.now_ns);
        self.dispatcher
            .next_after(cpu, now_ns, || unaccounted_ns(pools, pool, cpus, now_ns))
    }

    /// A client of a pool is about to wake or to block: what running threads have used up to now is
    /// due to the clients that competed before.
    pub(super) fn pass_time(&mut self, pool: u32) {
        let used_ns = unaccounted_ns(&self.pools, pool as usize, &self.cpus, self.now_ns);
        self.dispatcher.pass_time(pool, used_ns);
    }

    /// Takes an idle CPU of a client's pool: `wanted` if it is one, else the
    /// first.
    #[inline(always)]
    pub(super) fn take_idle_cpu(&mut self, wanted: u32, client: u32) -> u32 {
        if let [_] = self.pools.as_slice() {
            return self.cpus.take_idle(wanted, 0..self.machine.cpus);
        }
        let cpus = self.pool_cpus(self.pool_of(client));
        // A client that moved may want a CPU of its old pool.
        let wanted = if cpus.contains(&wanted) { wanted } else { NONE };
        self.cpus.take_idle(wanted, cpus)
    }
}
