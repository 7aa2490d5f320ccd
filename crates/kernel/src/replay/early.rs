//! Early tasks, which run before all others (1999, 3.1 and 3.3).
//!
//! A task is early if it received less than it deserved or holds a kernel priority, and while
//! the leads of its client and of the task are within the bound. The task with the least rank
//! runs first.
//!
//! On one CPU a pick of an early task is allowed if no other early task precedes it. A pick of
//! any other task is allowed while no early task waits. The kernel looks at the queue of early
//! tasks when a turn ends, so a pick that it made before an early task came is allowed, too. A
//! task that waits while no early task does may go to the CPU's own queue (`bpf/next.bpf.h`),
//! whose tasks run without another look.

use std::collections::HashMap;

use prorata_core::hybrid::{EarlyRank, FRACTION_ONE, WakeClass, fraction, lead_bound_ns};

use super::{Disallowed, TOLERANCE_NS};
use crate::scheduler::{Decision, EARLY};

/// Judges whether a task may be early that begins to wait or is taken, after so many picks. The
/// bound of its leads is larger by `slack_ns`.
pub fn judge(picks: u64, decision: &Decision, slack_ns: u64) -> Result<(), Disallowed> {
    judge_leads(picks, decision, slack_ns)?;
    match decision.early {
        Some(bits) => judge_fraction(picks, decision, EarlyRank::from_bits(bits)),
        None => Ok(()),
    }
}

/// Judges the leads alone.
pub fn judge_leads(pick: u64, decision: &Decision, slack_ns: u64) -> Result<(), Disallowed> {
    let bound_ns = lead_bound_ns(decision.quantum_ns) + slack_ns;
    let lead_ns = decision.lead_ns.max(decision.own_lead_ns);
    if decision.early.is_some() && lead_ns > bound_ns {
        return Err(Disallowed::Lead {
            pick,
            node: decision.node,
            lead_ns,
            bound_ns,
        });
    }
    Ok(())
}

/// The rank is to state the fraction that the core finds. A task that was judged at the end of its
/// turn may have been charged for a moment since.
fn judge_fraction(pick: u64, decision: &Decision, rank: EarlyRank) -> Result<(), Disallowed> {
    if rank.class() != WakeClass::User {
        return Ok(());
    }
    let moment_ns = TOLERANCE_NS as u64;
    let (received_ns, deserved_ns) = (decision.key, decision.service_ns);
    let least = fraction(received_ns.saturating_sub(moment_ns), deserved_ns);
    let most = fraction(received_ns, deserved_ns.saturating_sub(moment_ns));
    if least < FRACTION_ONE && (least..=most).contains(&rank.fraction()) {
        return Ok(());
    }
    Err(Disallowed::Fraction {
        pick,
        node: decision.node,
        received_ns,
        deserved_ns,
    })
}

/// Early tasks that wait for the only CPU, by task.
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
    /// An early task begins to wait, after so many picks.
    pub fn wait(&mut self, picks: u64, decision: &Decision) -> Result<(), Disallowed> {
        let Some(rank) = decision.early else {
            return Ok(());
        };
        let waiting = Waiting {
            node: decision.node,
            rank,
            is_next: decision.queue != EARLY,
            is_seen: false,
        };
        self.0.insert(decision.tid, waiting);
        judge(picks, decision, TOLERANCE_NS as u64)
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
        judge_leads(pick, decision, decision.quantum_ns + tick_ns)?;
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
