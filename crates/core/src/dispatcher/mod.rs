//! From rights to decisions: the part of an engine that is the same in every
//! world.
//!
//! A [`Dispatcher`] joins a ledger and a policy. The engine tells it what
//! happened (a client woke, blocked, used CPU time) and asks who is to run;
//! how that is found out and enforced is the engine's business. Nothing here
//! knows a clock: time passes as the time that clients are charged for.

use alloc::boxed::Box;
use alloc::vec::Vec;

use crate::ids::ClientId;
use crate::ledger::{Checked, Ledger, Outcome};
use crate::policy::Policy;

/// What a dispatcher decides about.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Machine {
    /// CPUs that are shared out, at least 1.
    pub cpus: u32,
    /// Length of a standard quantum.
    pub quantum_ns: u64,
}

/// A client that is to run, on so many CPUs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Winner {
    /// Who.
    pub client: ClientId,
    /// CPUs that it is given: at least 1, at most its runnable threads.
    pub cpus: u32,
}

/// What a client got and should have got, since it was created.
#[derive(Clone, Copy, PartialEq, Default, Debug)]
pub struct Usage {
    /// CPU time that it was charged for.
    pub received_ns: u64,
    /// Its share of all CPU time that was charged to anybody while it was
    /// runnable.
    pub specified_ns: u64,
    /// Part of the machine that it should get now, 0 to 1.
    pub share: f64,
}

/// A ledger and a policy that share out a machine.
pub struct Dispatcher {
    ledger: Ledger,
    policy: Box<dyn Policy + Send>,
    machine: Machine,
}

#[allow(unused_variables, missing_docs)]
impl Dispatcher {
    pub fn new(ledger: Ledger, policy: Box<dyn Policy + Send>, machine: Machine) -> Self {
        Self { ledger, policy, machine }
    }
    pub fn ledger(&self) -> &Ledger {
        &self.ledger
    }
    pub fn machine(&self) -> Machine {
        self.machine
    }
    /// Applies a checked operation to the ledger; takes effect with the next decision.
    pub fn apply(&mut self, operation: Checked) -> Outcome {
        todo!()
    }
    /// How many threads of the client could run now; 0 is blocked.
    pub fn set_runnable(&mut self, client: ClientId, threads: u32) {
        todo!()
    }
    /// Accounts for CPU time of a runnable client, whether it had won or not.
    pub fn charge(&mut self, client: ClientId, used_ns: u64) {
        todo!()
    }
    /// Fills `winners` (cleared first) until all CPUs are given away or nobody is left.
    /// Earlier winners count as preempted unless they win again.
    pub fn decide(&mut self, winners: &mut Vec<Winner>) {
        todo!()
    }
    pub fn usage(&self, client: ClientId) -> Usage {
        todo!()
    }
    pub fn set_policy(&mut self, policy: Box<dyn Policy + Send>) {
        todo!()
    }
    pub fn set_quantum(&mut self, quantum_ns: u64) {
        todo!()
    }
    pub fn set_cpus(&mut self, cpus: u32) {
        todo!()
    }
}
