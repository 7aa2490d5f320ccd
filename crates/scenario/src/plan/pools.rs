//! Pools of CPUs and the clients that belong to each.

use std::ops::Range;

use prorata_core::ledger::Ledger;

use super::names::Names;
use super::{Group, check_name, client_id, limits};
use crate::file::{Client, KeyPath, MachineSpec, Problem, ScenarioError};

/// CPUs with a run queue of their own.
#[derive(Clone, PartialEq, Debug)]
pub struct PoolPlan {
    /// Empty for the only pool of a scenario that names none.
    pub name: String,
    /// Their numbers.
    pub cpus: Range<u32>,
}

/// The pools of a machine, in the order of the file.
pub(super) fn pools(machine: &MachineSpec) -> Result<Vec<PoolPlan>, ScenarioError> {
    if machine.pools.is_empty() {
        return Ok(vec![PoolPlan {
            name: String::new(),
            cpus: 0..machine.cpus,
        }]);
    }
    let place = KeyPath::default().key("machine").key("pools");
    limits::at_most(
        "the number of pools",
        machine.pools.len(),
        limits::POOLS,
        &place,
    )?;
    let mut pools: Vec<PoolPlan> = Vec::new();
    for (i, pool) in machine.pools.iter().enumerate() {
        let place = place.index(i);
        let (name, cpus) = (place.key("name"), place.key("cpus"));
        check_name(&pool.name, &name)?;
        if pools.iter().any(|other| other.name == pool.name) {
            return Err(name.problem(Problem::Duplicate(pool.name.clone())));
        }
        limits::within("cpus", pool.cpus, 1, limits::CPUS, &cpus)?;
        let start = pools.last().map_or(0, |before| before.cpus.end);
        pools.push(PoolPlan {
            name: pool.name.clone(),
            cpus: start..start + pool.cpus,
        });
    }
    let together = pools.last().map_or(0, |last| last.cpus.end);
    if together != machine.cpus {
        return Err(place.problem(Problem::Pools {
            pools: together.into(),
            cpus: machine.cpus,
        }));
    }
    Ok(pools)
}

pub(super) fn names(machine: &MachineSpec) -> Names {
    let mut names = Names::new("pool", "write it into machine.pools");
    for pool in &machine.pools {
        names.number(&pool.name);
    }
    names
}

/// The pool of each client: the one in the file, or else the pool with the least value a
/// CPU so far. Among equal pools, the fewest clients a CPU decide, then the order of the
/// file. Values are those while all clients compete. Clients with a pool in the file are
/// placed first. Empty if there is one pool.
pub(super) fn homes(
    clients: &[Client],
    groups: &[Group],
    ledger: &Ledger,
    pools: &[PoolPlan],
    names: &Names,
) -> Result<Vec<u8>, ScenarioError> {
    let count = groups.last().map_or(0, |group| group.clients.end);
    let named = clients.iter().enumerate().map(|(i, client)| {
        let place = KeyPath::default().key("client").index(i).key("pool");
        let name = client.pool.as_ref();
        name.map(|name| names.find(name, &place)).transpose()
    });
    let named = named.collect::<Result<Vec<_>, _>>()?;
    if pools.len() == 1 {
        return Ok(Vec::new());
    }
    let mut homes = vec![0; count as usize];
    let mut all = ledger.clone();
    (0..count).for_each(|client| all.activate(client_id(client)));
    let mut loads = vec![Load::default(); pools.len()];
    for (group, pool) in groups.iter().zip(&named) {
        for client in group.clients.clone().filter(|_| pool.is_some()) {
            let pool = pool.unwrap_or_default();
            homes[client as usize] = pool as u8;
            loads[pool as usize].add(all.value(client_id(client)).0);
        }
    }
    for (group, _) in groups.iter().zip(&named).filter(|(_, pool)| pool.is_none()) {
        for client in group.clients.clone() {
            let lightest = (0..pools.len()).min_by(|&a, &b| {
                let cpus = |pool: usize| pools[pool].cpus.len() as u128;
                let (one, other) = (&loads[a], &loads[b]);
                let value = (one.value * cpus(b)).cmp(&(other.value * cpus(a)));
                value.then_with(|| (one.clients * cpus(b)).cmp(&(other.clients * cpus(a))))
            });
            let pool = lightest.expect("a machine has pools");
            homes[client as usize] = pool as u8;
            loads[pool].add(all.value(client_id(client)).0);
        }
    }
    Ok(homes)
}

/// The clients of a pool so far.
#[derive(Clone, Copy, Default)]
struct Load {
    value: u128,
    clients: u128,
}

impl Load {
    fn add(&mut self, value: u128) {
        self.value += value;
        self.clients += 1;
    }
}
