//! On several CPUs: each pick against the queue that the task was taken from.
//!
//! A CPU takes the task with the smallest pass of a queue. An operation and its record are not
//! one step, and the other CPUs work meanwhile. But the ring orders the records of all CPUs,
//! and on one CPU nothing happens between an operation and its record. So
//!
//! * a task is in its place in a queue by the next record of the CPU that put it there;
//! * it stays there unless the *next* record of another CPU tells that it was taken or went;
//! * a pass is the one recorded last, or the one in the next record of some CPU.
//!
//! A pick is not allowed if another task was in that queue during the whole look and had a
//! smaller pass than the task taken, for all passes that the two can have had. This is certain
//! when every other CPU has written another record, or has been silent for so long that it
//! cannot be in the middle of an operation. The kernel's rules:
//!
//! * A task stands where its pass was when it was queued, until it comes first. A smaller pass
//!   since then may go unnoticed. With a larger pass the task moves back.
//! * No task waits longer than some time: such a task has a key before its pass.
//! * A bound task waits elsewhere, with a pass of its own. Picks among the tasks of several
//!   CPUs, but not all, are not judged: the first task may not run on this CPU.
//! * A task that wakes an idle CPU gets it without a queue.
//!
//! A task that waits when the trace begins is known from its first record on. CPUs choose
//! among queues by hints, and that choice is not judged.

mod early;

use std::collections::{HashMap, HashSet, VecDeque};

use self::early::EarlyOnSeveral;
use super::slots::Slots;
use super::{Disallowed, PASS_UNITS, TOLERANCE_NS};
use crate::scheduler::{Decision, DecisionKind, EARLY, ROAMERS};

/// A CPU that wrote no record for this long is not in the middle of an operation.
const SILENCE_NS: u64 = 1_000_000_000;

/// Records kept about the pass of a node: more than come during one look.
const WORDS: usize = 1024;

/// What the records tell of queues, CPUs and passes.
#[derive(Default, Debug)]
pub struct OnSeveral {
    /// The number of records so far. Each record is known by its number.
    words: u64,
    cpus: HashMap<u32, Cpu>,
    /// By node.
    passes: HashMap<u32, VecDeque<Word>>,
    /// By task.
    waiting: HashMap<u32, Waiting>,
    suspicions: Vec<Suspicion>,
    early: EarlyOnSeveral,
    slots: Slots,
    picks: u64,
    /// The pass that counts as 0 here, as the kernel's passes wrap around.
    origin: Option<u64>,
}

#[derive(Default, Debug)]
struct Cpu {
    last: u64,
    look: u64,
    /// Tasks that are recorded to wait and may not be in the queue yet.
    unsure: Vec<u32>,
}

/// A pass, as a record told it.
#[derive(Clone, Copy, Debug)]
struct Word {
    at: u64,
    /// The record before, of the same CPU: the pass was read after that.
    after: u64,
    pass: i64,
}

#[derive(Clone, Copy, Debug)]
struct Waiting {
    node: u32,
    is_bound: bool,
    queue: u32,
    cpu: u32,
    tickets: f64,
    pass: i64,
    key: i64,
    /// The record since which the task is certainly there.
    sure: Option<u64>,
}

impl Waiting {
    /// Whether the place does not depend on the node's pass.
    fn is_fixed(&self) -> bool {
        self.is_bound || self.key < self.pass
    }
}

/// A pick that is not allowed, unless a later record explains it.
#[derive(Debug)]
struct Suspicion {
    pick: u64,
    time_ns: u64,
    /// The client that was taken, and the least that its place can have been.
    node: u32,
    least: i64,
    /// Whether later records cannot lower that.
    is_fixed: bool,
    /// The same of the task that was passed over.
    task: u32,
    instead_of: u32,
    most: i64,
    is_most_fixed: bool,
    tickets: f64,
    /// CPUs whose next record matters.
    awaited: HashSet<u32>,
}

impl Suspicion {
    /// The CPU time by which the task passed over precedes the task taken.
    fn early_ns(&self) -> f64 {
        (self.least - self.most) as f64 / PASS_UNITS * self.tickets
    }

    /// Whether the suspicion remains after this record.
    fn stands(&mut self, word: &Decision, pass: i64) -> bool {
        if !self.awaited.remove(&word.cpu) {
            return true;
        }
        use DecisionKind::{Go, Pick, Take, Wait};
        if matches!(word.kind, Go | Pick | Take | Wait) && word.tid == self.task {
            return false;
        }
        if tells_pass(word) {
            if word.node == self.node && !self.is_fixed {
                self.least = self.least.min(pass);
            }
            if word.node == self.instead_of && !self.is_most_fixed {
                self.most = self.most.max(pass);
            }
        }
        self.early_ns() > TOLERANCE_NS
    }
}

/// Whether no later record can explain what was found at this time: none of the CPUs whose record
/// matters is still to be heard.
fn is_certain(awaited: &HashSet<u32>, found_ns: u64, word: &Decision) -> bool {
    awaited.is_empty() || word.time_ns > found_ns + SILENCE_NS
}

/// Whether a record tells the pass of its node.
fn tells_pass(word: &Decision) -> bool {
    word.kind != DecisionKind::Look && !word.is_bound
}

impl OnSeveral {
    pub fn picks(&self) -> u64 {
        self.picks
    }

    pub fn step(&mut self, word: &Decision) -> Result<(), Disallowed> {
        match word.kind {
            DecisionKind::LookAtSlot => {
                self.slots.begin(word);
                Ok(())
            }
            DecisionKind::FallBack => Ok(()),
            // It is out of its queue, in whatever order.
            DecisionKind::TakeInSlot => {
                self.slots.give(word);
                self.judge(&Decision {
                    kind: DecisionKind::Go,
                    ..*word
                })
            }
            _ => self.judge(word),
        }
    }

    fn judge(&mut self, word: &Decision) -> Result<(), Disallowed> {
        if word.kind == DecisionKind::Begin {
            *self = Self {
                picks: self.picks,
                ..Self::default()
            };
        }
        if word.drawn {
            return Err(Disallowed::Drawn { pick: self.picks });
        }
        let origin = *self.origin.get_or_insert(word.pass);
        let of = |pass: u64| pass.wrapping_sub(origin).cast_signed();
        let (pass, key) = (of(word.pass), of(word.key));
        self.weigh(word, pass)?;
        self.note(word, pass);
        let (at, look) = (self.words, self.cpu(word.cpu).look);
        let cpus = self.cpus.keys().copied();
        self.early.step(word, (at, look), self.picks, cpus)?;
        match word.kind {
            DecisionKind::Wait => self.wait(word, pass, key),
            DecisionKind::Look => self.cpu(word.cpu).look = self.words,
            DecisionKind::Take if word.queue == EARLY => {}
            DecisionKind::Take => self.take(word),
            DecisionKind::Pick => {
                self.picks += 1;
                self.waiting.remove(&word.tid);
                self.slots.pick(self.picks, word)?;
            }
            DecisionKind::Go => {
                self.waiting.remove(&word.tid);
            }
            _ => {}
        }
        Ok(())
    }

    fn cpu(&mut self, cpu: u32) -> &mut Cpu {
        self.cpus.entry(cpu).or_default()
    }

    /// Weighs the suspicions against a record.
    fn weigh(&mut self, word: &Decision, pass: i64) -> Result<(), Disallowed> {
        self.suspicions
            .retain_mut(|suspicion| suspicion.stands(word, pass));
        let mut suspicions = self.suspicions.iter();
        let certain = suspicions.find(|found| is_certain(&found.awaited, found.time_ns, word));
        match certain {
            None => Ok(()),
            Some(suspicion) => Err(Disallowed::Pick {
                pick: suspicion.pick,
                node: suspicion.node,
                instead_of: suspicion.instead_of,
                early_ns: suspicion.early_ns() as u64,
            }),
        }
    }

    /// Notes what a record tells of its CPU and its node.
    fn note(&mut self, word: &Decision, pass: i64) {
        self.words += 1;
        let at = self.words;
        let cpu = self.cpu(word.cpu);
        let after = std::mem::replace(&mut cpu.last, at);
        for tid in std::mem::take(&mut cpu.unsure) {
            if let Some(waiting) = self.waiting.get_mut(&tid)
                && waiting.cpu == word.cpu
            {
                waiting.sure.get_or_insert(at);
            }
        }
        if !tells_pass(word) {
            return;
        }
        let words = self.passes.entry(word.node).or_default();
        if words.len() == WORDS {
            words.pop_front();
        }
        words.push_back(Word { at, after, pass });
    }

    fn wait(&mut self, word: &Decision, pass: i64, key: i64) {
        let waiting = Waiting {
            node: word.node,
            is_bound: word.is_bound,
            queue: word.queue,
            cpu: word.cpu,
            tickets: word.tickets,
            pass,
            key,
            sure: None,
        };
        self.waiting.insert(word.tid, waiting);
        self.cpu(word.cpu).unsure.push(word.tid);
    }

    fn take(&mut self, word: &Decision) {
        let look = self.cpu(word.cpu).look;
        let Some(taken) = self.waiting.remove(&word.tid) else {
            return;
        };
        // A place that does not follow the pass may be outdated: another CPU may not have
        // moved the task yet.
        let is_placed = !taken.is_fixed() || taken.cpu == word.cpu || taken.sure.is_some();
        if taken.queue == ROAMERS || !is_placed {
            return;
        }
        let Some((least, _)) = self.places(&taken, look) else {
            return;
        };
        let others = self.waiting.iter().filter(|(_, other)| {
            other.queue == taken.queue && other.sure.is_some_and(|sure| sure <= look)
        });
        let mut found = Vec::new();
        for (task, other) in others {
            let Some((_, most)) = self.places(other, look) else {
                continue;
            };
            let suspicion = Suspicion {
                pick: self.picks + 1,
                time_ns: word.time_ns,
                node: taken.node,
                least,
                is_fixed: taken.is_bound,
                task: *task,
                instead_of: other.node,
                // The kernel looks for the task where it was queued.
                most: if other.is_fixed() {
                    most
                } else {
                    most.max(other.key)
                },
                is_most_fixed: other.is_fixed(),
                tickets: taken.tickets.max(other.tickets),
                awaited: HashSet::new(),
            };
            if suspicion.early_ns() > TOLERANCE_NS {
                let others = self.cpus.keys().copied();
                found.push(Suspicion {
                    awaited: others.filter(|cpu| *cpu != word.cpu).collect(),
                    ..suspicion
                });
            }
        }
        self.suspicions.extend(found);
    }

    /// The first and the last place that a task can have had since a record; `None` if no
    /// record tells.
    fn places(&self, waiting: &Waiting, since: u64) -> Option<(i64, i64)> {
        if waiting.is_bound {
            return Some((waiting.key, waiting.key));
        }
        let words = self.passes.get(&waiting.node)?;
        let standing = words.iter().rev().find(|word| word.at <= since)?;
        let from = standing.after.min(since);
        let passes = words.iter().filter(|word| word.at > from);
        let (least, most) = passes.fold((standing.pass, standing.pass), |(least, most), word| {
            (least.min(word.pass), most.max(word.pass))
        });
        match waiting.is_fixed() {
            true => Some((least.min(waiting.key), waiting.key)),
            false => Some((least, most)),
        }
    }
}

#[cfg(test)]
mod tests;
