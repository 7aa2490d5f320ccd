//! Lengths of turns.

use super::Chooser;
use crate::ids::ClientIndex;

impl Chooser {
    /// Changes the standard quantum, for what is charged and chosen from now
    /// on.
    pub fn set_quantum(&mut self, quantum_ns: u64) {
        self.quantum_ns = quantum_ns.max(1);
    }

    /// Turns of a client last so long from the next one on, or for the
    /// standard quantum. What it uses is charged as parts of the standard
    /// quantum all the same, so shares do not depend on the lengths of turns.
    pub fn set_client_quantum(&mut self, client: ClientIndex, quantum_ns: Option<u64>) {
        match quantum_ns {
            Some(quantum_ns) => {
                self.own_quanta_ns.insert(client, quantum_ns.max(1));
            }
            None if self.own_quanta_ns.is_empty() => {}
            None => {
                self.own_quanta_ns.remove(&client);
            }
        }
    }

    /// The length of a client's turns, where it is not the standard quantum.
    pub fn client_quantum(&self, client: ClientIndex) -> Option<u64> {
        self.own_quanta_ns.get(&client).copied()
    }

    /// How long an early turn may last.
    #[cold]
    pub(super) fn early_quantum_ns(&self, client: ClientIndex) -> u64 {
        let quantum_ns = self.quantum_ns(client);
        let remaining_ns = self.early.remaining_ns(client, self.quantum_ns);
        quantum_ns.min(remaining_ns.unwrap_or(quantum_ns))
    }

    #[inline]
    pub(super) fn quantum_ns(&self, client: ClientIndex) -> u64 {
        match self.own_quanta_ns.is_empty() {
            true => self.quantum_ns,
            false => self.client_quantum(client).unwrap_or(self.quantum_ns),
        }
    }
}
