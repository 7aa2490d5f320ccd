//! What CPUs read without a lock: the best that each queue offers, and how
//! available each CPU is.
//!
//! A word is written under the lock of its queue, and may be out of date when
//! a decision uses it. So decisions verify it under the lock, and go on to the
//! next best if it has changed (2001, 4).
//!
//! A waiting task and an idle CPU must not miss each other. A decision that
//! inserts a task publishes it, then looks for idle CPUs. A CPU about to idle
//! publishes that, then looks for offers. So one of the two sees the other.

use super::goodness::{NOBODY, Rank};

/// How the best of many words is found.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Comparison {
    /// By looking at every word, as in the paper.
    Scan,
    /// By a tournament among the words, kept up to date.
    ///
    /// For each doubling of the number of words, a change costs at most one
    /// match and reading the best at most one look. Of equals the tournament
    /// names the nearest to the CPU that asks, so that CPUs that ask at the
    /// same time want different ones. Given up: CPUs write to the same words
    /// near the root, and a CPU that finds the lock of the best held keeps what
    /// it has.
    Tournament,
}

/// A place and its word.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Best {
    pub place: u32,
    pub value: Rank,
}

/// A published word for each of so many places, of which the highest is asked
/// for. Of equals, the lower place wins.
///
/// In a tournament, node `n` names the winner among the places below its
/// children `2n` and `2n + 1`. The root is node 1, the leaf of place `p` is node
/// `width + p`. Only leaves hold words.
///
/// Places above a *bar* are counted, so that a CPU that must not miss one looks
/// at all of them only if there is one.
#[derive(Debug)]
pub struct Offers {
    leaves: Vec<Rank>,
    /// Empty without a tournament. Node 0 is not used.
    nodes: Vec<u32>,
    bar: Rank,
    /// Places above the bar, counted in a tournament only.
    above: u32,
}

impl Offers {
    /// So many places that offer nothing, and the bar of what must not be
    /// missed.
    pub fn new(places: u32, comparison: Comparison, bar: Rank) -> Self {
        let width = match comparison {
            Comparison::Scan => 0,
            Comparison::Tournament => places.next_power_of_two(),
        };
        let leftmost_leaf = |node: u32| {
            let mut node = node.max(1);
            while node < width {
                node *= 2;
            }
            node.saturating_sub(width)
        };
        Self {
            leaves: vec![NOBODY; places as usize],
            nodes: (0..width).map(leftmost_leaf).collect(),
            bar,
            above: 0,
        }
    }

    pub fn places(&self) -> u32 {
        self.leaves.len() as u32
    }

    /// The word of a place, [`NOBODY`] beyond the last.
    pub fn get(&self, place: u32) -> Rank {
        self.leaves.get(place as usize).copied().unwrap_or(NOBODY)
    }

    /// Publishes the word of a place, under the lock of its queue. Returns the
    /// words that were written or compared.
    pub fn set(&mut self, place: u32, value: Rank) -> u32 {
        let before = std::mem::replace(&mut self.leaves[place as usize], value);
        if before == value || !self.is_tournament() {
            return 1;
        }
        let (was_above, is_above) = (before > self.bar, value > self.bar);
        self.above = self.above - u32::from(was_above) + u32::from(is_above);
        1 + u32::from(is_above != was_above) + self.climb(place)
    }

    /// Plays the matches above a place whose word has changed. Stops where the
    /// other side won before and wins again. Returns the number of matches.
    fn climb(&mut self, place: u32) -> u32 {
        let mut matches = 0;
        let mut child = self.nodes.len() as u32 + place;
        while child > 1 {
            let node = child / 2;
            matches += 1;
            let [left, right] = [2 * node, 2 * node + 1].map(|child| self.winner(child));
            let after = match self.get(right) > self.get(left) {
                true => right,
                false => left,
            };
            let before = std::mem::replace(&mut self.nodes[node as usize], after);
            if before == after && !self.is_below(after, child) {
                break;
            }
            child = node;
        }
        matches
    }

    /// The best of all places but those in `except`, and the words looked at.
    pub fn best_except(&self, except: &[u32]) -> (Option<Best>, u32) {
        match self.is_tournament() {
            true => {
                let mut examined = 0;
                let best = self.best_below(1, except, &mut examined);
                (best, examined)
            }
            false => {
                let others = (0..self.places()).filter(|place| !except.contains(place));
                (self.scan(others), self.places())
            }
        }
    }

    /// The same for a CPU at `place`, if the best is above `bar`. Of equals, a
    /// tournament names one that won the lowest match above that place.
    pub fn best_near(&self, place: u32, bar: Rank, except: &[u32]) -> (Option<Best>, u32) {
        let (best, mut examined) = self.best_except(except);
        let Some(mut best) = best.filter(|best| best.value > bar) else {
            return (None, examined);
        };
        // From the root to the place, as long as an equal is below.
        for node in self.matches_above(place).rev().skip(1) {
            examined += 1;
            match self.offer(self.winner(node)) {
                Some(offer) if offer.value < best.value => break,
                Some(offer) if offer.value > best.value || except.contains(&offer.place) => {}
                Some(offer) => best = offer,
                None => break,
            }
        }
        (Some(best), examined)
    }

    /// For a CPU at `place` that was refused the best of a tournament: the
    /// winner of the lowest match above that place that another place won, not
    /// in `except` and above `bar`. A better candidate can lose to an excluded
    /// one and be missed.
    pub fn nearest_above(&self, place: u32, bar: Rank, except: &[u32]) -> (Option<Best>, u32) {
        let mut examined = 0;
        let nearest = self.matches_above(place).find_map(|node| {
            examined += 1;
            let offer = self.offer(self.winner(node))?;
            let fits = offer.place != place && !except.contains(&offer.place);
            (fits && offer.value > bar).then_some(offer)
        });
        (nearest, examined)
    }

    /// The matches that a place takes part in. The last is the root.
    fn matches_above(&self, place: u32) -> impl DoubleEndedIterator<Item = u32> {
        let width = self.nodes.len() as u32;
        let levels = width.checked_ilog2().unwrap_or(0);
        (1..=levels).map(move |level| (width + place) >> level)
    }

    /// Whether the best is found by a tournament.
    pub fn is_tournament(&self) -> bool {
        !self.nodes.is_empty()
    }

    /// Whether a tournament counts a place above the bar.
    pub fn may_miss(&self) -> bool {
        self.above > 0
    }

    /// The best place above the bar that fits, and the words looked at.
    pub fn best_above_bar(&self, fits: impl Fn(u32) -> bool) -> (Option<Best>, u32) {
        let mut examined = 0;
        if self.is_tournament() {
            examined = 2;
            let winner = self.winner(1);
            let best = self.offer(winner).filter(|best| best.value > self.bar);
            if best.is_some() && fits(winner) {
                return (best, 1);
            }
            if !self.may_miss() {
                return (None, examined);
            }
        }
        let best = self.scan((0..self.places()).filter(|&place| fits(place)));
        let best = best.filter(|best| best.value > self.bar);
        (best, examined + self.places())
    }

    fn scan(&self, places: impl Iterator<Item = u32>) -> Option<Best> {
        places.fold(None, |best, place| better(best, self.offer(place)))
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

    /// The place that won at a node; at a leaf its own.
    fn winner(&self, node: u32) -> u32 {
        let width = self.nodes.len() as u32;
        match self.nodes.get(node as usize) {
            Some(&winner) => winner,
            None => node - width,
        }
    }

    /// Whether a place is `node` or below it.
    fn is_below(&self, place: u32, node: u32) -> bool {
        let leaf = self.nodes.len() as u32 + place;
        leaf >> (leaf.ilog2() - node.ilog2()) == node
    }
}

/// The higher; the first of equals.
fn better(first: Option<Best>, second: Option<Best>) -> Option<Best> {
    match (first, second) {
        (Some(a), Some(b)) if b.value > a.value => second,
        (None, _) => second,
        _ => first,
    }
}
