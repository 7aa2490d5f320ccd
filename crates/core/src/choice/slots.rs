//! CPUs in slots of a timetable (2005, 2.5): the policy is the fallback and has the others.

use super::{Chooser, expect};
use crate::ids::ClientIndex;

impl Chooser {
    /// One of the free CPUs is in a slot from now on: it is not given away.
    pub(crate) fn lend_cpu(&mut self) {
        debug_assert!(self.cpus_free > 0);
        self.cpus_free -= 1;
        self.cpus_in_slots += 1;
    }

    /// A CPU is in no slot any more.
    pub(crate) fn take_cpu_back(&mut self) {
        debug_assert!(self.cpus_in_slots > 0);
        self.cpus_in_slots -= 1;
        self.cpus_free += 1;
    }

    /// As [`crate::policy::Policy::carries_debt`].
    pub(crate) fn carries_debt(&self) -> bool {
        self.policy.carries_debt()
    }

    /// A competing client used CPU time in a slot. A slot is no part of a turn: no compensation
    /// depends on it, so it is charged at once, or with the turn that the client has elsewhere.
    pub(crate) fn charge_slot(&mut self, client: ClientIndex, used_ns: u64) {
        match self.client(client).turn() {
            Some(place) => {
                self.turns[place].used_ns += used_ns;
                self.uncharged_ns += used_ns;
            }
            None => expect(self.policy.charge(client, used_ns, self.quantum_ns)),
        }
    }
}
