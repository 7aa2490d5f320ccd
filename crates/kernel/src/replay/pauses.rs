//! On one CPU: clients that pause because they have exhausted the allowances of their limits.
//!
//! No client waits for a pausing one. The turn in progress is charged after the pause began. Then
//! the client uses hardly anything until its pause is over: a task of it that was about to run
//! is stopped at once. Tasks that end, or have waited too long, run all the same (`bpf/held.bpf.h`),
//! and their use is not judged.

use std::collections::{HashMap, HashSet};

use super::{Disallowed, TOLERANCE_NS};
use crate::scheduler::Decision;

/// The clients that pause.
#[derive(Default, Debug)]
pub struct Pauses {
    pauses: HashMap<u32, Pause>,
    /// Tasks that are about to run all the same.
    spared: HashSet<u32>,
}

#[derive(Clone, Copy, Default, Debug)]
struct Pause {
    /// Whether the turn in progress was charged.
    is_charged: bool,
    /// Use since then.
    used_ns: u64,
    /// Whether a task ran all the same.
    has_spared: bool,
}

impl Pauses {
    pub fn begin(&mut self, node: u32) {
        self.pauses.insert(node, Pause::default());
    }

    pub fn end(&mut self, node: u32) {
        self.pauses.remove(&node);
    }

    /// A task of a pausing client is about to run all the same.
    pub fn spare(&mut self, decision: &Decision) {
        self.spared.insert(decision.tid);
        if let Some(pause) = self.pauses.get_mut(&decision.node) {
            pause.has_spared = true;
        }
    }

    pub fn contain(&self, node: u32) -> bool {
        self.pauses.contains_key(&node)
    }

    /// Whether a pick is not judged: the task is stopped at once, or runs all the same.
    pub fn excuse(&mut self, decision: &Decision) -> bool {
        self.spared.remove(&decision.tid) || self.contain(decision.node)
    }

    /// Judges a charge after the `pick`-th pick.
    pub fn charge(
        &mut self,
        pick: u64,
        decision: &Decision,
        tick_ns: u64,
    ) -> Result<(), Disallowed> {
        let Some(pause) = self.pauses.get_mut(&decision.node) else {
            return Ok(());
        };
        if pause.is_charged && !pause.has_spared {
            pause.used_ns += decision.service_ns;
        }
        pause.is_charged = true;
        let bound_ns = tick_ns + TOLERANCE_NS as u64;
        match pause.used_ns > bound_ns {
            false => Ok(()),
            true => Err(Disallowed::Limit {
                pick,
                node: decision.node,
                used_ns: pause.used_ns,
                bound_ns,
            }),
        }
    }
}
