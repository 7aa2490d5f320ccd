//! Quanta: that of all clients, and those that some have of their own.

use std::collections::BTreeMap;

use super::Scope;
use super::loaded::{Loaded, check_own, lock, possible_cpus};
use crate::KernelError;
use crate::prorata_skeleton::types;

/// A price is good for this part of a quantum, but not for longer than
/// [`LONGEST_PRICE_NS`].
const PRICES_A_QUANTUM: u64 = 8;
const LONGEST_PRICE_NS: u64 = 1_000_000;
const MOST_OWED_NS: u64 = 4_000_000_000;

/// All that are in force.
pub struct Quanta {
    /// Of those that have none of their own.
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

    /// Tells the kernel what depends on all of them.
    pub fn write(&self, data: &mut types::bss, scope: Scope) {
        let longest_ns = self.own_ns.values().fold(self.all_ns, |a, b| a.max(*b));
        data.quantum_ns = self.all_ns;
        data.longest_quantum_ns = longest_ns;
        data.price_lasts_ns = (self.all_ns / PRICES_A_QUANTUM).min(LONGEST_PRICE_NS);
        data.most_owed_ns = most_owed_ns(scope, longest_ns);
    }
}

impl Loaded {
    pub fn set_quantum_ns(&self, quantum_ns: u64) -> Result<(), KernelError> {
        let quanta = &mut lock(&self.rights).quanta;
        quanta.all_ns = quantum_ns;
        self.with_data(|data| quanta.write(data, self.scope))
    }

    pub fn set_client_quantum_ns(
        &self,
        node: u32,
        quantum_ns: Option<u64>,
    ) -> Result<(), KernelError> {
        let mut rights = lock(&self.rights);
        check_own(&rights.graph, node)?;
        let Some(quantum_ns) = quantum_ns else {
            return self.forget_quantum(&mut rights.quanta, node);
        };
        rights.quanta.own_ns.insert(node, quantum_ns);
        self.write_quantum(&rights.quanta, node)
    }

    /// The node has the quantum of all from now on.
    pub(super) fn forget_quantum(&self, quanta: &mut Quanta, node: u32) -> Result<(), KernelError> {
        match quanta.own_ns.remove(&node) {
            None => Ok(()),
            Some(_) => self.write_quantum(quanta, node),
        }
    }

    fn write_quantum(&self, quanta: &Quanta, node: u32) -> Result<(), KernelError> {
        let own_ns = quanta.own_ns.get(&node).copied();
        self.with_data(|data| {
            data.nodes[node as usize].quantum_ns = own_ns.unwrap_or(0);
            quanta.write(data, self.scope);
        })
    }
}

/// What those who sleep can be owed together. Among tasks that were given and share
/// one CPU, practically all, as in the core. In a whole system there are many that
/// want little and never take what they are owed. On several CPUs six
/// quanta of each: a client can be entitled to more than it takes, and who wins on one is
/// ahead of the present pass by no more.
fn most_owed_ns(scope: Scope, quantum_ns: u64) -> u64 {
    match (possible_cpus(), scope) {
        (1, Scope::Given) => MOST_OWED_NS,
        (1, Scope::All) => quantum_ns,
        (cpus, _) => 6 * quantum_ns * u64::from(cpus),
    }
}
