//! A trace of decisions replayed against the core: every step must be one that
//! stride scheduling (1995, 2) allows.
//!
//! The core is told who joins, leaves, is worth something else and uses what, and
//! says how far a pass moves for what was used. A pick is allowed if nobody who
//! competes has a lesser pass. What remains of a wait is kept over a sleep, and
//! rescaled with the tickets. The kernel has four rules more than the core:
//!
//! * Who joins may be put further back, behind others of its node, but not further
//!   in front.
//! * Who wakes an idle CPU has it.
//! * Who wakes while one runs and nobody waits is next, if it deserves to run at the
//!   latest when that one's quantum is over (`bpf/next.bpf.h`).
//! * Nobody waits longer than eight seconds.
//!
//! Holds for one CPU: on several, a CPU takes who waits first where it looks.

use std::collections::HashMap;

use prorata_core::policy::{ClientIndex, Policy as _, PolicyError, Stride};

use crate::scheduler::{Decision, DecisionKind};

/// Tickets of the core's, which are whole, for each base ticket.
const SCALE: f64 = 1000.0;

/// Units of [`Decision::pass`] that are a nanosecond for each base ticket.
const PASS_UNITS: f64 = (1 << 20) as f64;

/// Nobody waits longer because of having few tickets, or none; as in
/// `bpf/pass.bpf.h`.
const LONGEST_WAIT_NS: f64 = 8e9;

/// How much CPU time a decision may be off by: what rounding adds up to.
const TOLERANCE_NS: f64 = 100_000.0;

/// Why a trace is not one of stride scheduling.
#[derive(Clone, PartialEq, Debug, thiserror::Error)]
pub enum Disallowed {
    /// Somebody else deserved to run more.
    #[error(
        "pick {pick} is not allowed: client {node} comes {early_ns} ns of CPU time too early, before \
         task {instead_of}"
    )]
    Pick {
        /// How many picks there were, this one counted.
        pick: u64,
        /// Who was picked.
        node: u32,
        /// Who should have been.
        instead_of: u32,
        /// Until when, in CPU time of all together.
        early_ns: u64,
    },
    /// Somebody joins further in front than its last leave or its newness allows.
    #[error(
        "after pick {pick} client {node} joins with {early_ns} ns of CPU time more than is due"
    )]
    Join {
        /// Picks before.
        pick: u64,
        /// Who joined.
        node: u32,
        /// How much it gains.
        early_ns: u64,
    },
    /// A pass moved otherwise than by what was used, or by the change of tickets.
    #[error(
        "after pick {pick} the pass of client {node} is {off_ns} ns of CPU time from where the core \
         has it"
    )]
    Pass {
        /// Picks before.
        pick: u64,
        /// Whose pass.
        node: u32,
        /// How far; positive if it has more of a wait than is due.
        off_ns: i64,
    },
    /// The core refuses the decision: something is missing before it.
    #[error("the trace is not whole at client {node}: {error}")]
    NotWhole {
        /// Whose decision.
        node: u32,
        /// What the core says.
        error: PolicyError,
    },
}

/// Tasks as the core sees them. Passes are the core's: quanta for each of its
/// tickets.
#[derive(Debug)]
pub struct Replay {
    core: Stride,
    tasks: HashMap<u32, Task>,
    quantum_ns: u64,
    /// The longest turn: a quantum, and what the kernel looks too late.
    turn_ns: u64,
    /// Who was picked last, and what it has used since.
    turn: Option<(u32, u64)>,
    /// Who found the CPU idle, or nobody waiting for it, until the next pick.
    first: Option<u32>,
    picks: u64,
    /// The kernel's pass that is 0 here; its passes wrap around.
    origin: Option<u64>,
}

#[derive(Debug)]
struct Task {
    index: ClientIndex,
    tickets: u32,
    competes: bool,
    /// Its place, while it competes.
    pass: f64,
    /// Where it waits: there, unless that means too long a wait.
    key: f64,
    /// What remained of its wait when it left, and its tickets then.
    remain: Option<(f64, u32)>,
}

impl Replay {
    /// Of a trace from its beginning, of a scheduler with this quantum on a kernel
    /// that looks at the end of a turn once a tick.
    pub fn new(quantum_ns: u64, tick_ns: u64) -> Self {
        Self {
            core: Stride::new(),
            tasks: HashMap::new(),
            quantum_ns,
            turn_ns: quantum_ns + tick_ns,
            turn: None,
            first: None,
            picks: 0,
            origin: None,
        }
    }

    /// Picks so far.
    pub fn picks(&self) -> u64 {
        self.picks
    }

    /// The next decision. Cost: for a pick, one look at each task.
    ///
    /// # Errors
    ///
    /// If the policy does not allow it. What follows is not to be judged then.
    pub fn step(&mut self, decision: &Decision) -> Result<(), Disallowed> {
        let node = decision.node;
        let next = ClientIndex(self.tasks.len() as u32);
        // Out of range is the nearest in it.
        let tickets = ((decision.tickets * SCALE).round() as u32).max(1);
        self.tasks.entry(node).or_insert(Task {
            index: next,
            tickets,
            competes: false,
            pass: 0.0,
            key: 0.0,
            remain: None,
        });
        let origin = *self.origin.get_or_insert(decision.present);
        let present = self.passes(decision.present, origin);
        let pass = self.passes(decision.pass, origin);
        let told = match decision.kind {
            DecisionKind::Pick => return self.pick(node),
            DecisionKind::Join => self.join(node, tickets, pass, present),
            DecisionKind::Leave => self.leave(node, pass - present),
            DecisionKind::Tickets => self.set_tickets(node, tickets, pass, present),
            DecisionKind::Charge => self.charge(node, decision.service_ns, pass),
        };
        told?;
        let longest = LONGEST_WAIT_NS / self.quantum_ns as f64 / self.core.total_tickets() as f64;
        let task = self.task(node);
        task.pass = pass;
        task.key = pass.min(present + longest);
        Ok(())
    }

    /// A pass of the kernel's as one of the core's.
    fn passes(&self, pass: u64, origin: u64) -> f64 {
        let units = pass.wrapping_sub(origin).cast_signed() as f64;
        units / PASS_UNITS / self.quantum_ns as f64 / SCALE
    }

    fn task(&mut self, node: u32) -> &mut Task {
        self.tasks.get_mut(&node).expect("it was entered")
    }

    fn join(&mut self, node: u32, tickets: u32, pass: f64, present: f64) -> Result<(), Disallowed> {
        let given = pass - present;
        let is_next = self.is_next(pass);
        self.first = is_next.then_some(node).or(self.first);
        let task = self.task(node);
        let due = match task.remain {
            Some((remain, before)) => remain * f64::from(before) / f64::from(tickets),
            // Who is new waits a whole stride.
            None => 1.0 / f64::from(tickets),
        };
        let index = task.index;
        task.tickets = tickets;
        task.competes = true;
        let joined = self.core.join(index, tickets);
        joined.map_err(|error| Disallowed::NotWhole { node, error })?;
        // A node's new task may stand where its node does, which is up to a turn
        // in front of where a new client of the core's would.
        let early_ns = (due - given) * f64::from(tickets) * self.quantum_ns as f64;
        if early_ns > self.turn_ns as f64 + TOLERANCE_NS {
            return Err(Disallowed::Join {
                pick: self.picks,
                node,
                early_ns: early_ns as u64,
            });
        }
        Ok(())
    }

    /// Whether who wakes with this pass is next: nobody waits, and who runs, if anybody
    /// does, will have at least that pass when its quantum is over.
    fn is_next(&self, pass: f64) -> bool {
        let mut competing = self.tasks.iter().filter(|(_, task)| task.competes);
        let Some((node, runs)) = competing.next() else {
            return true;
        };
        let quantum = 1.0 + TOLERANCE_NS / self.quantum_ns as f64;
        competing.next().is_none()
            && self.turn.is_some_and(|turn| turn.0 == *node)
            && pass <= runs.key + quantum / f64::from(runs.tickets)
    }

    fn leave(&mut self, node: u32, remain: f64) -> Result<(), Disallowed> {
        self.turn = self.turn.filter(|turn| turn.0 != node);
        self.first = self.first.filter(|first| *first != node);
        let task = self.task(node);
        task.competes = false;
        task.remain = Some((remain, task.tickets));
        let index = task.index;
        let left = self.core.leave(index);
        left.map_err(|error| Disallowed::NotWhole { node, error })
    }

    fn set_tickets(
        &mut self,
        node: u32,
        tickets: u32,
        pass: f64,
        present: f64,
    ) -> Result<(), Disallowed> {
        let task = self.task(node);
        let from = std::mem::replace(&mut task.tickets, tickets);
        let due = present + (task.pass - present) * f64::from(from) / f64::from(tickets);
        let index = task.index;
        let set = self.core.set_tickets(index, tickets);
        set.map_err(|error| Disallowed::NotWhole { node, error })?;
        self.check_pass(node, pass, due)
    }

    fn charge(&mut self, node: u32, service_ns: u64, pass: f64) -> Result<(), Disallowed> {
        if let Some((running, used_ns)) = &mut self.turn
            && *running == node
        {
            *used_ns += service_ns;
        }
        let index = self.task(node).index;
        let before = self.core.pass(index);
        let charged = self.core.charge(index, service_ns, self.quantum_ns);
        charged.map_err(|error| Disallowed::NotWhole { node, error })?;
        let moved = self.core.pass(index).zip(before);
        let due = self.task(node).pass + moved.map_or(0.0, |(after, before)| after - before);
        self.check_pass(node, pass, due)
    }

    fn check_pass(&mut self, node: u32, pass: f64, due: f64) -> Result<(), Disallowed> {
        let quantum_ns = self.quantum_ns as f64;
        let picks = self.picks;
        let tickets = f64::from(self.task(node).tickets);
        let off_ns = (pass - due) * tickets * quantum_ns;
        // The core's tickets are whole.
        let rounding_ns = self.turn_ns as f64 / tickets;
        if off_ns.abs() > TOLERANCE_NS + rounding_ns {
            return Err(Disallowed::Pass {
                pick: picks,
                node,
                off_ns: off_ns as i64,
            });
        }
        Ok(())
    }

    fn pick(&mut self, node: u32) -> Result<(), Disallowed> {
        self.picks += 1;
        let resumes = self.turn.is_some_and(|(turn, used_ns)| {
            // Tasks outside the scheduler came in between.
            turn == node && used_ns < self.turn_ns
        });
        if resumes {
            return Ok(());
        }
        self.turn = Some((node, 0));
        if self.first.take() == Some(node) {
            return Ok(());
        }
        let picked = self.task(node).key;
        let competing = self.tasks.iter().filter(|(_, task)| task.competes);
        let keys = competing.map(|(node, task)| (task.key, *node));
        let Some((first, instead_of)) = keys.min_by(|a, b| a.0.total_cmp(&b.0)) else {
            return Ok(());
        };
        let all = self.core.total_tickets() as f64;
        let early_ns = (picked - first) * all * self.quantum_ns as f64;
        if early_ns > TOLERANCE_NS {
            return Err(Disallowed::Pick {
                pick: self.picks,
                node,
                instead_of,
                early_ns: early_ns as u64,
            });
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
