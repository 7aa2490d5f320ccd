//! On several CPUs: each pick against the queue that it was taken from.
//!
//! A CPU takes who has the least pass in a queue. What it does and what it tells are not one
//! step, and the others go on meanwhile; but the ring has one order for all, and on a single
//! CPU nothing comes between what is done and what is told. So
//!
//! * a task that is told to wait is in the queue, and in its new place there, when its CPU
//!   tells anything else;
//! * it is there still as long as no other CPU's *next* word is that it was taken or went;
//! * a pass is what was told of it last, or what some CPU's next word says.
//!
//! A pick is not allowed if another task was in that queue from before the CPU began to look
//! until after it took one, and had a lesser pass than who was taken, whichever of these
//! values the two had. That is known when every other CPU has told something else, or has
//! been silent for so long that it is not in the middle of anything. The kernel's rules:
//!
//! * A place in a queue is that of the pass when it was queued, until it is first: whose pass
//!   is less since then may not be found. Whose is greater is put behind.
//! * Nobody waits longer than some time: then its place is a key before its pass.
//! * Who is bound to some of the CPUs waits elsewhere, where its pass is its own. Among those
//!   who may run on several, but not on all, nobody is judged: the first may not run here.
//! * Who wakes an idle CPU has it, without a queue.
//!
//! Tasks that wait when the trace begins are known as soon as anything is told of them. Among
//! queues the CPUs go by hints, which is not judged.

use std::collections::{HashMap, HashSet, VecDeque};

use super::{Disallowed, PASS_UNITS, TOLERANCE_NS};
use crate::scheduler::{Decision, DecisionKind};

/// The queue of those that may run on several CPUs, but not on all (`bpf/resident.bpf.h`).
const ROAMERS: u32 = 1024;

/// A CPU that has told nothing for so long is not in the middle of a decision.
const SILENCE_NS: u64 = 1_000_000_000;

/// Words about the pass of a node that are kept: more than come during a look.
const WORDS: usize = 1024;

/// What is known of queues, CPUs and passes.
#[derive(Default, Debug)]
pub struct OnSeveral {
    /// Words so far; the number of each is its place in the order of all.
    words: u64,
    cpus: HashMap<u32, Cpu>,
    /// By node.
    passes: HashMap<u32, VecDeque<Word>>,
    /// By task.
    waiting: HashMap<u32, Waiting>,
    suspicions: Vec<Suspicion>,
    picks: u64,
    /// The pass that is 0 here; the kernel's wrap around.
    origin: Option<u64>,
}

#[derive(Default, Debug)]
struct Cpu {
    last: u64,
    look: u64,
    /// Who was told to wait, and may not be there yet.
    unsure: Vec<u32>,
}

/// A pass, as it was told.
#[derive(Clone, Copy, Debug)]
struct Word {
    at: u64,
    /// The word before of the same CPU: the pass was read after that.
    after: u64,
    pass: i64,
}

#[derive(Clone, Copy, Debug)]
struct Waiting {
    node: u32,
    is_alone: bool,
    queue: u32,
    cpu: u32,
    tickets: f64,
    pass: i64,
    key: i64,
    /// The word since when it is there for certain.
    sure: Option<u64>,
}

impl Waiting {
    /// Whether its place is its own, whatever happens to the node's pass.
    fn is_fixed(&self) -> bool {
        self.is_alone || self.key < self.pass
    }
}

/// A pick that is not allowed unless a word is missing.
#[derive(Debug)]
struct Suspicion {
    pick: u64,
    time_ns: u64,
    /// Who was taken, and the least that its place can have been.
    node: u32,
    least: i64,
    /// Whether that can be less by what is told next.
    is_fixed: bool,
    /// The same of who was passed over.
    task: u32,
    instead_of: u32,
    most: i64,
    is_most_fixed: bool,
    tickets: f64,
    /// CPUs whose next word matters.
    awaited: HashSet<u32>,
}

impl Suspicion {
    /// CPU time by which who was passed over comes before who was taken.
    fn early_ns(&self) -> f64 {
        (self.least - self.most) as f64 / PASS_UNITS * self.tickets
    }

    /// Whether it stands after this word.
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

/// Whether it tells the pass of its node.
fn tells_pass(word: &Decision) -> bool {
    word.kind != DecisionKind::Look && !word.is_alone
}

impl OnSeveral {
    pub fn picks(&self) -> u64 {
        self.picks
    }

    pub fn step(&mut self, word: &Decision) -> Result<(), Disallowed> {
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
        match word.kind {
            DecisionKind::Wait => self.wait(word, pass, key),
            DecisionKind::Look => self.cpu(word.cpu).look = self.words,
            DecisionKind::Take => self.take(word),
            DecisionKind::Pick => {
                self.picks += 1;
                self.waiting.remove(&word.tid);
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

    /// What the word says about suspicions.
    fn weigh(&mut self, word: &Decision, pass: i64) -> Result<(), Disallowed> {
        self.suspicions
            .retain_mut(|suspicion| suspicion.stands(word, pass));
        let certain = self.suspicions.iter().find(|suspicion| {
            suspicion.awaited.is_empty() || word.time_ns > suspicion.time_ns + SILENCE_NS
        });
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

    /// What the word says about its CPU and its node.
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
            is_alone: word.is_alone,
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
        // It was where its pass was, unless that is not its place: another CPU may not have
        // put it in its new one yet.
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
                is_fixed: taken.is_alone,
                task: *task,
                instead_of: other.node,
                // Where it was queued is where it is looked for.
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

    /// The first and the last place that it can have had since that word, as far as is told;
    /// none if that is not known.
    fn places(&self, waiting: &Waiting, since: u64) -> Option<(i64, i64)> {
        if waiting.is_alone {
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
