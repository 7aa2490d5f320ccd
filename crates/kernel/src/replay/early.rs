//! On one CPU: early tasks, which run before all others (1999, 3.1 and 3.3).
//!
//! A pick of an early task is allowed while the leads of its client and of the task are within
//! the bound, if no other early task precedes it. A pick of any other task is allowed while no
//! early task waits. The kernel looks at the queue of early tasks when a turn ends, so a pick
//! that it made before an early task came is allowed, too. A task that wakes while no early task
//! waits may go to the CPU's own queue (`bpf/next.bpf.h`), whose tasks run without another look.

use std::collections::HashMap;

use prorata_core::hybrid::lead_bound_ns;

use super::Disallowed;
use crate::scheduler::{Decision, EARLY};

/// Early tasks that wait, by task.
#[derive(Default, Debug)]
pub struct EarlyTasks(HashMap<u32, Waiting>);

#[derive(Clone, Copy, Debug)]
struct Waiting {
    node: u32,
    rank: u64,
    /// Whether it waits in the CPU's own queue.
    is_next: bool,
    /// Whether the kernel has looked at the queue since.
    is_seen: bool,
}

impl EarlyTasks {
    /// An early task begins to wait.
    pub fn wait(&mut self, decision: &Decision) {
        let Some(rank) = decision.early else {
            return;
        };
        let waiting = Waiting {
            node: decision.node,
            rank,
            is_next: decision.queue != EARLY,
            is_seen: false,
        };
        self.0.insert(decision.tid, waiting);
    }

    /// A task runs, or is not early any more.
    pub fn end(&mut self, tid: u32) {
        self.0.remove(&tid);
    }

    /// The kernel looks at the queue.
    pub fn look(&mut self) {
        for waiting in self.0.values_mut() {
            waiting.is_seen = true;
        }
    }

    /// Tasks of a client that wait early.
    pub fn of(&self, node: u32) -> u32 {
        let waiting = self.0.values().filter(|waiting| waiting.node == node);
        waiting.count() as u32
    }

    /// Judges the `pick`-th pick, which begins a turn. The lead was within its bound when the
    /// kernel decided: at most a turn of another task before.
    pub fn pick(&mut self, pick: u64, decision: &Decision, tick_ns: u64) -> Result<(), Disallowed> {
        let node = decision.node;
        let taken = self.0.remove(&decision.tid);
        if decision.early.is_some() {
            let quantum_ns = decision.quantum_ns;
            let bound_ns = lead_bound_ns(quantum_ns) + quantum_ns + tick_ns;
            let lead_ns = decision.lead_ns.max(decision.own_lead_ns);
            if lead_ns > bound_ns {
                return Err(Disallowed::Lead {
                    pick,
                    node,
                    lead_ns,
                    bound_ns,
                });
            }
        }
        let is_next = taken.is_some_and(|taken| taken.is_next);
        let rank = taken.map(|taken| taken.rank).or(decision.early);
        let others = self.0.values();
        let others = others.filter(|other| other.is_seen && other.is_next >= is_next);
        let before = others.filter(|other| rank.is_none_or(|rank| other.rank < rank));
        match before.min_by_key(|other| other.rank) {
            None => Ok(()),
            Some(other) => Err(Disallowed::Early {
                pick,
                node,
                instead_of: other.node,
            }),
        }
    }
}
