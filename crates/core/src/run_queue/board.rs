//! What all CPUs may read without a lock: the best that each queue offers, and
//! how available each CPU is.
//!
//! Each entry has a cache line of its own and is written under its queue's
//! lock. What is read may be out of date by the time it is used: decisions
//! verify it under the lock, and go on to the next best if it is not so
//! (2001, 4).
//!
//! A task that waits and a CPU that idles must not miss each other. So who
//! puts a task into a queue first publishes it and then looks for idle CPUs,
//! and who is to idle first publishes that and then looks for offers. All
//! these reads and writes are in one order (`SeqCst`), so one of the two sees
//! the other.

use alloc::boxed::Box;
use core::sync::atomic::{AtomicI64, AtomicU64, Ordering};

use super::ranking::{NOBODY, Rank};

/// How the best of many entries is found.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Comparison {
    /// By looking at every entry, as in the paper.
    Scan,
    /// By a tournament among them, which is kept up to date: reading the best
    /// is one look, changing an entry at most one match for each doubling of
    /// their number. What is given up: CPUs write to the same words near the
    /// root.
    Tournament,
}

/// On a cache line of its own (two, as they are fetched in pairs).
#[repr(align(128))]
#[derive(Debug)]
struct Line(AtomicI64);

/// An entry by its place, and how good it is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Best {
    /// Which entry.
    pub place: u32,
    /// Its value.
    pub value: Rank,
}

/// A published number for each of so many places, of which the highest is
/// asked for. Equals: the lower place first.
///
/// In a tournament, node `n` names the winner among the places below its
/// children `2n` and `2n + 1`; the root is node 1, and the leaf of place `p`
/// is node `width + p`. Values stand in the leaves alone. A node is a place
/// and a number of the change, so that a comparison with an older state of the
/// children never overwrites a newer one: after a leaf has changed, whoever
/// changed it tries each node above twice. If both attempts fail, another CPU
/// has begun and ended its own in between, with the new value in sight.
#[derive(Debug)]
pub struct Offers {
    leaves: Box<[Line]>,
    /// Without a tournament there are none. Node 0 is not used.
    nodes: Box<[AtomicU64]>,
}

impl Offers {
    /// So many places without anybody.
    pub fn new(places: u32, comparison: Comparison) -> Self {
        let width = match comparison {
            Comparison::Scan => 0,
            Comparison::Tournament => places.next_power_of_two(),
        };
        let depth_first = |node: u32| {
            // The leftmost leaf below.
            let mut node = node.max(1);
            while node < width {
                node *= 2;
            }
            AtomicU64::new(u64::from(node.saturating_sub(width)))
        };
        Self {
            leaves: (0..places).map(|_| Line(AtomicI64::new(NOBODY))).collect(),
            nodes: (0..width).map(depth_first).collect(),
        }
    }

    /// Number of places.
    pub fn places(&self) -> u32 {
        self.leaves.len() as u32
    }

    /// What a place offers, [`NOBODY`] beyond the last.
    #[inline]
    pub fn get(&self, place: u32) -> Rank {
        let line = self.leaves.get(place as usize);
        line.map_or(NOBODY, |line| line.0.load(Ordering::SeqCst))
    }

    /// Publishes what a place offers; to be called under its lock. Returns the
    /// words that were written or compared.
    pub fn set(&self, place: u32, value: Rank) -> u32 {
        let line = &self.leaves[place as usize].0;
        if line.load(Ordering::Relaxed) == value {
            return 1;
        }
        line.store(value, Ordering::SeqCst);
        let mut examined = 1;
        let mut node = match self.nodes.len() as u32 {
            0 => 0,
            width => (width + place) / 2,
        };
        while node > 0 {
            examined += 1;
            let before = self.winner(node);
            let renewed = self.renew(node) || self.renew(node);
            // Who does not win here, and did not, changes nothing above.
            if renewed && before != place && self.winner(node) != place {
                break;
            }
            node /= 2;
        }
        examined
    }

    /// The best of all but those in `except`, if any offers something, and the
    /// entries looked at.
    pub fn best_except(&self, except: &[u32]) -> (Option<Best>, u32) {
        let mut examined = 0;
        let best = if self.nodes.is_empty() {
            examined = self.places();
            let others = (0..self.places()).filter(|place| !except.contains(place));
            others.fold(None, |best, place| better(best, self.offer(place)))
        } else {
            self.best_below(1, except, &mut examined)
        };
        (best, examined)
    }

    fn best_below(&self, node: u32, except: &[u32], examined: &mut u32) -> Option<Best> {
        let width = self.nodes.len() as u32;
        *examined += 1;
        let winner = self.winner(node);
        if !except.contains(&winner) {
            return self.offer(winner);
        }
        if node >= width {
            return None;
        }
        let left = self.best_below(2 * node, except, examined);
        let right = self.best_below(2 * node + 1, except, examined);
        better(left, right)
    }

    fn offer(&self, place: u32) -> Option<Best> {
        let value = self.get(place);
        (value != NOBODY).then_some(Best { place, value })
    }

    /// Who won at a node; at a leaf its own place.
    fn winner(&self, node: u32) -> u32 {
        let width = self.nodes.len() as u32;
        match self.nodes.get(node as usize) {
            Some(word) => word.load(Ordering::SeqCst) as u32,
            None => node - width,
        }
    }

    /// Plays one match anew. Whether its outcome stands.
    fn renew(&self, node: u32) -> bool {
        let word = &self.nodes[node as usize];
        let before = word.load(Ordering::SeqCst);
        let [left, right] = [2 * node, 2 * node + 1].map(|child| self.winner(child));
        let winner = match self.get(right) > self.get(left) {
            true => right,
            false => left,
        };
        let changes = (before >> 32).wrapping_add(1);
        let after = changes << 32 | u64::from(winner);
        word.compare_exchange(before, after, Ordering::SeqCst, Ordering::SeqCst)
            .is_ok()
    }
}

/// The higher; the first among equals.
fn better(first: Option<Best>, second: Option<Best>) -> Option<Best> {
    match (first, second) {
        (Some(a), Some(b)) if b.value > a.value => second,
        (None, _) => second,
        _ => first,
    }
}
