//! Pools of CPUs: threads wait in the pool of their client and run on its CPUs
//! alone (2001, "CPU pooling"). A machine without pools is one.

use std::ops::Range;

use super::threads::NO_TURN;
use super::{Machine, Simulation};
use crate::observer::{Event, Observer};
use crate::plan::{PoolPlan, client_id};

/// CPUs, and how many threads wait for one of them.
#[derive(Clone, Debug)]
pub(super) struct Pool {
    name: String,
    pub(super) cpus: Range<u32>,
    /// Threads that can run but have no CPU.
    pub(super) waiting: u64,
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

impl<O: Observer> Simulation<O> {
    /// A client goes to another pool: its turn ends, and it competes there from
    /// now on.
    pub(super) fn move_client(&mut self, client: u32, pool: u8) {
        let state = &self.machine.clients[client as usize];
        if state.pool == pool {
            return;
        }
        if state.turn_end_ns != NO_TURN {
            self.end_turn(client);
        }
        let machine = &mut self.machine;
        let state = &mut machine.clients[client as usize];
        let before = std::mem::replace(&mut state.pool, pool);
        // None of its threads runs now.
        let waiting = u64::from(state.runnable);
        machine.pools[usize::from(before)].waiting -= waiting;
        machine.pools[usize::from(pool)].waiting += waiting;
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
    pub fn pool_of(&self, client: u32) -> u32 {
        self.clients[client as usize].pool.into()
    }

    /// Threads of a pool that can run but have no CPU.
    pub fn waiting_in(&self, pool: u32) -> u64 {
        self.pools[pool as usize].waiting
    }

    /// Threads that can run but have no CPU.
    pub fn waiting_threads(&self) -> u64 {
        self.pools.iter().map(|pool| pool.waiting).sum()
    }
}
