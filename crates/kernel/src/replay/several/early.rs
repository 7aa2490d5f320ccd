//! Early tasks on several CPUs: they wait in one queue, and a CPU takes the first one.
//!
//! Such a take is not allowed if another task was in the queue during the whole look and
//! precedes the task taken. [`super`] has the rules of certainty; here the place of a task does
//! not change while it waits. A task that is not early any more when a CPU looks leaves the
//! queue, and the record of that precedes the take. Tasks that some CPUs may not run are taken
//! in their turn, but other tasks may go ahead of them.

use std::collections::{HashMap, HashSet};

use super::super::{Disallowed, TOLERANCE_NS, early};
use super::is_certain;
use crate::scheduler::{Decision, DecisionKind, EARLY};

#[derive(Default, Debug)]
pub struct EarlyOnSeveral {
    /// By task.
    waiting: HashMap<u32, Waiting>,
    suspicions: Vec<Suspicion>,
}

#[derive(Clone, Copy, Debug)]
struct Waiting {
    node: u32,
    rank: u64,
    is_bound: bool,
    cpu: u32,
    /// The record since which the task is certainly in the queue.
    sure: Option<u64>,
}

/// A take that is not allowed, unless a later record explains it.
#[derive(Debug)]
struct Suspicion {
    pick: u64,
    time_ns: u64,
    node: u32,
    /// The task that was passed over, and its client.
    task: u32,
    instead_of: u32,
    /// CPUs whose next record matters.
    awaited: HashSet<u32>,
}

impl EarlyOnSeveral {
    /// The `at`-th record. `look` is the last record of its CPU before a look, `cpus` are all
    /// that have written records.
    pub fn step(
        &mut self,
        word: &Decision,
        (at, look): (u64, u64),
        picks: u64,
        cpus: impl Iterator<Item = u32>,
    ) -> Result<(), Disallowed> {
        self.weigh(word)?;
        for waiting in self.waiting.values_mut() {
            if waiting.cpu == word.cpu {
                waiting.sure.get_or_insert(at);
            }
        }
        match word.kind {
            DecisionKind::WaitEarly => self.wait(word, picks, cpus.count()),
            DecisionKind::Take if word.queue == EARLY => self.take(word, look, picks, cpus),
            kind if tells_place(kind) => {
                self.waiting.remove(&word.tid);
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn weigh(&mut self, word: &Decision) -> Result<(), Disallowed> {
        self.suspicions.retain_mut(|suspicion| {
            let is_next = suspicion.awaited.remove(&word.cpu);
            !(is_next && word.tid == suspicion.task && tells_place(word.kind))
        });
        let mut suspicions = self.suspicions.iter();
        let certain = suspicions.find(|found| is_certain(&found.awaited, found.time_ns, word));
        match certain {
            None => Ok(()),
            Some(suspicion) => Err(Disallowed::Early {
                pick: suspicion.pick,
                node: suspicion.node,
                instead_of: suspicion.instead_of,
            }),
        }
    }

    fn wait(&mut self, word: &Decision, picks: u64, cpus: usize) -> Result<(), Disallowed> {
        let Some(rank) = word.early else {
            return Ok(());
        };
        let waiting = Waiting {
            node: word.node,
            rank,
            is_bound: word.is_bound,
            cpu: word.cpu,
            sure: None,
        };
        self.waiting.insert(word.tid, waiting);
        early::judge(picks, word, slack_ns(word, cpus))
    }

    fn take(
        &mut self,
        word: &Decision,
        look: u64,
        picks: u64,
        cpus: impl Iterator<Item = u32>,
    ) -> Result<(), Disallowed> {
        let others: HashSet<u32> = cpus.filter(|cpu| *cpu != word.cpu).collect();
        early::judge_leads(picks, word, slack_ns(word, others.len() + 1))?;
        let Some(taken) = self.waiting.remove(&word.tid) else {
            return Ok(());
        };
        let before = self.waiting.iter().filter(|(_, other)| {
            !other.is_bound
                && other.rank < taken.rank
                && other.sure.is_some_and(|sure| sure <= look)
        });
        let found = before.map(|(task, other)| Suspicion {
            pick: picks + 1,
            time_ns: word.time_ns,
            node: taken.node,
            task: *task,
            instead_of: other.node,
            awaited: others.clone(),
        });
        self.suspicions.extend(found);
        Ok(())
    }
}

/// Whether a record tells where its task is.
fn tells_place(kind: DecisionKind) -> bool {
    use DecisionKind::{EndEarly, Go, Pick, Take, Wait, WaitEarly};
    matches!(kind, EndEarly | Go | Pick | Take | Wait | WaitEarly)
}

/// Turns that run on several CPUs are charged one after the other (`bpf/lead.bpf.h`).
fn slack_ns(word: &Decision, cpus: usize) -> u64 {
    (cpus as u64 - 1) * word.quantum_ns + TOLERANCE_NS as u64
}
