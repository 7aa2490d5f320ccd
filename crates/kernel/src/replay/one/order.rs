//! The order in which clients stand, as far as the kernel may have it.

use prorata_core::policy::Policy as _;

use super::{OnOne, QUANTUM_NS, SCALE, TOLERANCE_NS, Task};

impl OnOne {
    /// The last place of a client with so many tasks.
    pub(super) fn latest(&self, present: f64, tasks: u32) -> f64 {
        present + self.longest / f64::from(tasks.max(1))
    }

    /// The clients that compete and do not pause.
    pub(super) fn competing(&self) -> impl Iterator<Item = (&u32, &Task)> {
        let competing = self.tasks.iter().filter(|(_, task)| task.competes);
        competing.filter(|(node, _)| !self.pauses.contain(**node))
    }

    /// Whether a client that wakes with this pass is next: no client waits, and a running one
    /// has at least that pass by the end of its quantum.
    pub(super) fn is_next(&self, pass: f64) -> bool {
        let mut competing = self.competing();
        let Some((node, runs)) = competing.next() else {
            return true;
        };
        let quantum_ns = (runs.turn_ns - self.tick_ns) as f64;
        let quantum = (quantum_ns + TOLERANCE_NS) / QUANTUM_NS;
        competing.next().is_none()
            && self.turn.is_some_and(|turn| turn.node == Some(*node))
            && pass <= runs.key + quantum / (runs.worth * SCALE)
    }

    /// The competing client that precedes this one most, whose task has this latest place, and by
    /// how much CPU time of all clients together. Late clients only precede other late clients.
    pub(super) fn earlier_than(&self, node: u32, latest: f64, present: f64) -> Option<(u32, u64)> {
        let is_late = self.late.contains(&node);
        let competing = self.competing();
        let competing = competing.filter(|(other, _)| is_late || !self.late.contains(other));
        // Other tasks do not wait for their turns.
        let competing = competing.filter(|(node, task)| task.competing > self.early.of(**node));
        let keys = competing.map(|(node, task)| (self.last_place(task, present), *node));
        let (first, instead_of) = keys.min_by(|a, b| a.0.total_cmp(&b.0))?;
        let all = self.core.total_tickets() as f64;
        let least = self.tasks[&node].least.min(latest);
        let early_ns = (least - first) * all * QUANTUM_NS;
        (early_ns > TOLERANCE_NS).then_some((instead_of, early_ns as u64))
    }

    /// The last place that the kernel may have given a waiting client.
    pub(super) fn last_place(&self, task: &Task, present: f64) -> f64 {
        match task.is_outdated {
            true => task.pass.min(self.latest(present, task.competing)),
            false => task.key,
        }
    }
}
