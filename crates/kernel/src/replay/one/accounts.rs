//! What a decision does to the clients of the core, and whether the kernel did the same to their passes.

use prorata_core::policy::Policy as _;

use super::{Disallowed, OnOne, QUANTUM_NS, SCALE, TOLERANCE_NS, WRAP, in_core, rescaled};
use crate::scheduler::Decision;

impl OnOne {
    /// A client owes no more than the kernel tells, where its use out of order is bounded by its lead.
    pub(super) fn come_back(
        &mut self,
        decision: &Decision,
        pass: f64,
        present: f64,
    ) -> Result<(), Disallowed> {
        let (worth, owed_ns) = (decision.tickets, decision.service_ns);
        let task = self.task(decision.node);
        if let Some((remain, before)) = task.remain
            && owed_ns > 0
        {
            let owed = owed_ns as f64 / QUANTUM_NS / (worth * SCALE);
            task.remain = Some((rescaled(remain, before, worth).min(owed), worth));
        }
        self.join(decision.node, worth, pass, present)
    }

    pub(super) fn join(
        &mut self,
        node: u32,
        worth: f64,
        pass: f64,
        present: f64,
    ) -> Result<(), Disallowed> {
        let given = pass - present;
        let is_next = self.is_next(pass);
        self.first = is_next.then_some(node).or(self.first);
        let task = self.task(node);
        let due = match task.remain {
            Some((remain, before)) => rescaled(remain, before, worth),
            // A new client waits a whole stride.
            None => 1.0 / (worth * SCALE),
        };
        let turn_ns = task.turn_ns;
        self.compete(node, worth)?;
        self.late.insert(node);
        // A new task may stand where its node does. That is up to a turn ahead of a new
        // client of the core.
        let early_ns = (due - given) * worth * SCALE * QUANTUM_NS;
        if early_ns > turn_ns as f64 + TOLERANCE_NS {
            return Err(Disallowed::Join {
                pick: self.picks,
                node,
                early_ns: early_ns as u64,
            });
        }
        Ok(())
    }

    pub(super) fn compete(&mut self, node: u32, worth: f64) -> Result<(), Disallowed> {
        let task = self.task(node);
        task.worth = worth;
        task.competes = true;
        let index = task.index;
        let joined = self.core.join(index, in_core(worth));
        joined.map_err(|error| Disallowed::NotWhole { node, error })
    }

    pub(super) fn leave(&mut self, node: u32, remain: f64) -> Result<(), Disallowed> {
        if let Some(turn) = &mut self.turn
            && turn.node == Some(node)
        {
            turn.node = None;
        }
        self.first = self.first.filter(|first| *first != node);
        self.late.clear();
        let task = self.task(node);
        task.competes = false;
        task.remain = Some((remain, task.worth));
        let index = task.index;
        let left = self.core.leave(index);
        left.map_err(|error| Disallowed::NotWhole { node, error })
    }

    pub(super) fn set_tickets(
        &mut self,
        node: u32,
        worth: f64,
        pass: f64,
        present: f64,
    ) -> Result<(), Disallowed> {
        let task = self.task(node);
        let from = std::mem::replace(&mut task.worth, worth);
        let due = present + rescaled(task.pass - present, from, worth);
        let index = task.index;
        let set = self.core.set_tickets(index, in_core(worth));
        set.map_err(|error| Disallowed::NotWhole { node, error })?;
        self.check_pass(node, pass, due, 0)
    }

    pub(super) fn charge(
        &mut self,
        decision: &Decision,
        pass: f64,
        present: f64,
    ) -> Result<(), Disallowed> {
        let (node, service_ns) = (decision.node, decision.service_ns);
        self.pauses.charge(self.picks, decision, self.tick_ns)?;
        // A running task leaves and joins if its node or its nice value changes. Its turn
        // continues.
        if let Some(turn) = &mut self.turn
            && (turn.tid == decision.tid || turn.node == Some(node))
        {
            turn.node = Some(node);
            turn.used_ns = service_ns + if turn.goes_on { 0 } else { turn.used_ns };
            turn.goes_on = false;
        }
        let index = self.task(node).index;
        let before = self.core.pass(index);
        let charged = self.core.charge(index, service_ns, QUANTUM_NS as u64);
        charged.map_err(|error| Disallowed::NotWhole { node, error })?;
        self.late.clear();
        let moved = self.core.pass(index).zip(before);
        let moved = moved.map_or(0.0, |(after, before)| (after - before).rem_euclid(WRAP));
        let due = self.task(node).pass + moved;
        // What others got beyond their due is forgiven (`bpf/entity.bpf.h`).
        let least = present - self.longest / 2.0;
        if due < least && self.check_pass(node, pass, least, 0).is_ok() {
            return Ok(());
        }
        self.check_pass(node, pass, due, service_ns)
    }

    /// So much service moved the pass in the core, which rounds to whole tickets.
    pub(super) fn check_pass(
        &mut self,
        node: u32,
        pass: f64,
        due: f64,
        service_ns: u64,
    ) -> Result<(), Disallowed> {
        let picks = self.picks;
        let worth = self.task(node).worth;
        let off_ns = (pass - due) * worth * SCALE * QUANTUM_NS;
        let rounding_ns = service_ns as f64 / f64::from(in_core(worth));
        if off_ns.abs() > TOLERANCE_NS + rounding_ns {
            return Err(Disallowed::Pass {
                pick: picks,
                node,
                off_ns: off_ns as i64,
            });
        }
        Ok(())
    }
}
