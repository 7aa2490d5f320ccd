//! Quanta: the common one, and those of single clients.

use std::collections::BTreeMap;

use super::loaded::{Scheduler, check_own, lock, possible_cpus};
use super::{QUANTA_NS, Scope};
use crate::KernelError;
use crate::prorata_skeleton::types;

/// A price is valid for this fraction of a quantum, at most [`LONGEST_PRICE_NS`].
const PRICES_A_QUANTUM: u64 = 8;
const LONGEST_PRICE_NS: u64 = 1_000_000;
const MOST_OWED_NS: u64 = 4_000_000_000;

pub struct Quanta {
    /// The quantum of the nodes that have none of their own.
    all_ns: u64,
    /// By node.
    own_ns: BTreeMap<u32, u64>,
}

impl Quanta {
    pub fn new(all_ns: u64) -> Self {
        Self {
            all_ns,
            own_ns: BTreeMap::new(),
        }
    }

    /// Writes what depends on all quanta into the scheduler's variables.
    pub fn write(&self, data: &mut types::bss, scope: Scope) {
        let longest_ns = self.own_ns.values().fold(self.all_ns, |a, b| a.max(*b));
        data.quantum_ns = self.all_ns;
        data.longest_quantum_ns = longest_ns;
        data.price_lasts_ns = (self.all_ns / PRICES_A_QUANTUM).min(LONGEST_PRICE_NS);
        data.most_owed_ns = most_owed_ns(scope, longest_ns);
    }
}

impl Scheduler {
    /// Changes the quantum, from the next turn of each task on.
    pub fn set_quantum_ns(&self, quantum_ns: u64) -> Result<(), KernelError> {
        check_quantum(quantum_ns)?;
        let quanta = &mut lock(&self.rights).quanta;
        quanta.all_ns = quantum_ns;
        self.with_data(|data, _| quanta.write(data, self.scope))
    }

    /// Gives the tasks of a node a quantum of their own, or the common one again, from their
    /// next turns on. Shares do not change, because tasks are charged for what they use. A
    /// removed node loses its quantum.
    pub fn set_client_quantum_ns(
        &self,
        node: u32,
        quantum_ns: Option<u64>,
    ) -> Result<(), KernelError> {
        quantum_ns.map_or(Ok(()), check_quantum)?;
        let mut rights = lock(&self.rights);
        check_own(&rights.graph, node)?;
        let Some(quantum_ns) = quantum_ns else {
            return self.forget_quantum(&mut rights.quanta, node);
        };
        rights.quanta.own_ns.insert(node, quantum_ns);
        self.write_quantum(&rights.quanta, node)
    }

    /// The node has the common quantum from now on.
    pub(super) fn forget_quantum(&self, quanta: &mut Quanta, node: u32) -> Result<(), KernelError> {
        match quanta.own_ns.remove(&node) {
            None => Ok(()),
            Some(_) => self.write_quantum(quanta, node),
        }
    }

    fn write_quantum(&self, quanta: &Quanta, node: u32) -> Result<(), KernelError> {
        let own_ns = quanta.own_ns.get(&node).copied();
        self.with_data(|data, tables| {
            tables.nodes[node as usize].quantum_ns = own_ns.unwrap_or(0);
            quanta.write(data, self.scope);
        })
    }
}

pub(super) fn check_quantum(quantum_ns: u64) -> Result<(), KernelError> {
    if QUANTA_NS.contains(&quantum_ns) {
        return Ok(());
    }
    Err(KernelError::Quantum { quantum_ns })
}

/// The service that sleepers can be owed together (`most_owed_ns` in `bpf/pass.h`). Given tasks
/// on one CPU are owed practically all that they miss, as in the core. In a whole system many
/// tasks want little and never take what they are owed. On several CPUs the bound is six
/// quanta of each CPU: a client can be entitled to more than it takes, and winners are ahead
/// of the present pass by no more.
fn most_owed_ns(scope: Scope, quantum_ns: u64) -> u64 {
    match (possible_cpus(), scope) {
        (1, Scope::Given) => MOST_OWED_NS,
        (1, Scope::All) => quantum_ns,
        (cpus, _) => 6 * quantum_ns * u64::from(cpus),
    }
}
