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
//! the other, if it looks by [`Offers::best_above_bar`].

use alloc::boxed::Box;

use super::atomic::{AtomicI64, AtomicU64, Ordering};
use super::place_set::PlaceSet;
use super::ranking::{NOBODY, Rank};

/// How the best of many entries is found.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Comparison {
    /// By looking at every entry, as in the paper.
    Scan,
    /// By a tournament among them, which is kept up to date. For each doubling
    /// of their number changing an entry is at most one match, and reading the
    /// best at most one look: one look in all tells the best, but of equals it
    /// names the nearest to who asks, so that CPUs that ask at the same time do
    /// not all want the same; who passes some over looks around each of these.
    /// What is given up:
    /// CPUs write to the same words near the root, while an entry changes the
    /// best may be another than the tournament says, and who finds the best
    /// one's lock held is content with what it has.
    Tournament,
}

/// On a cache line of its own (two, as they are fetched in pairs).
#[repr(align(128))]
#[derive(Debug)]
struct Line<T>(T);

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
/// is node `width + p`. Values stand in the leaves alone.
///
/// When all changes are over, each node names the best below it. For that,
/// whatever changes what a node stands for (which place it names, or the value
/// of that place) is followed by a match at the node above, by who made it:
///
/// * A node is a place and a number of the change, so a match that was played
///   with an older state of the children never overwrites a newer one. Whoever
///   comes tries each match twice: if both attempts fail, another CPU has
///   begun and ended its own in between, with the present state in sight.
/// * It stops climbing only where the match stood before as it stands after,
///   won by the other side: then nothing above is of its side. If that node
///   names its side later on, whoever made it so climbs on.
///
/// While changes go on, the root may name a place that offers nothing any more
/// although another does. So places with a value above a *bar* are counted,
/// from before it is published until after it is withdrawn, and
/// [`Offers::best_above_bar`] looks at all of them if the root does not know
/// what the count does.
#[derive(Debug)]
pub struct Offers {
    leaves: Box<[Line<AtomicI64>]>,
    /// Without a tournament there are none. Node 0 is not used.
    nodes: Box<[AtomicU64]>,
    bar: Rank,
    /// Places above the bar, at least so many: kept where there is a
    /// tournament.
    above: Line<AtomicU64>,
}

impl Offers {
    /// So many places without anybody, and the bar of what must not be missed.
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
            AtomicU64::new(u64::from(node.saturating_sub(width)))
        };
        Self {
            leaves: (0..places).map(|_| Line(AtomicI64::new(NOBODY))).collect(),
            nodes: (0..width).map(leftmost_leaf).collect(),
            bar,
            above: Line(AtomicU64::new(0)),
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
        let before = line.load(Ordering::Relaxed);
        if before == value {
            return 1;
        }
        if self.nodes.is_empty() {
            line.store(value, Ordering::SeqCst);
            return 1;
        }
        let (was_above, is_above) = (before > self.bar, value > self.bar);
        let Line(above) = &self.above;
        if is_above && !was_above {
            above.fetch_add(1, Ordering::SeqCst);
        }
        line.store(value, Ordering::SeqCst);
        if was_above && !is_above {
            above.fetch_sub(1, Ordering::SeqCst);
        }
        1 + u32::from(is_above != was_above) + self.climb(place)
    }

    /// Plays the matches above a place whose value has changed. Returns their
    /// number.
    fn climb(&self, place: u32) -> u32 {
        let mut matches = 0;
        let mut child = self.nodes.len() as u32 + place;
        while child > 1 {
            let node = child / 2;
            matches += 1;
            let played = self.play(node).or_else(|| self.play(node));
            if let Some([before, after]) = played
                && before == after
                && !self.is_below(after, child)
            {
                break;
            }
            child = node;
        }
        matches
    }

    /// The best of all but those in `except`, if any offers something, and the
    /// entries looked at. While others publish, a tournament may miss some.
    pub fn best_except(&self, except: &[u32]) -> (Option<Best>, u32) {
        let mut examined = 0;
        let best = if self.nodes.is_empty() {
            examined = self.places();
            self.scan((0..self.places()).filter(|place| !except.contains(place)))
        } else {
            self.best_below(1, except, &mut examined)
        };
        (best, examined)
    }

    /// The best of some, if any of these offers something, and the entries looked
    /// at: each of them, or, by a tournament, less than twice as many, and where
    /// they are neighbours four at most for each doubling of their number. While
    /// others publish, a tournament may miss some.
    pub fn best_of(&self, places: &PlaceSet) -> (Option<Best>, u32) {
        let mut examined = 0;
        let best = if self.nodes.is_empty() {
            let each = places.iter().inspect(|_| examined += 1);
            self.scan(each)
        } else {
            self.best_between(0, self.nodes.len() as u32, places, &mut examined)
        };
        (best, examined)
    }

    /// The same for who asks from a place, if it is above `bar`: of equals, a
    /// tournament names one below the lowest match above that place which one of
    /// them won.
    pub fn best_near(&self, place: u32, bar: Rank, except: &[u32]) -> (Option<Best>, u32) {
        let (best, mut examined) = self.best_except(except);
        let Some(mut best) = best.filter(|best| best.value > bar) else {
            return (None, examined);
        };
        // From the root to the place, as long as somebody as good is below.
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

    /// For who asks from a place and may not have the best of a tournament: who
    /// won the lowest match above that place of which the winner is another one,
    /// not in `except` and above `bar`. Who is better may lose to who is passed
    /// over, and be missed.
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

    /// The matches that a place takes part in, the last of which is the root.
    fn matches_above(&self, place: u32) -> impl DoubleEndedIterator<Item = u32> {
        let width = self.nodes.len() as u32;
        let levels = width.checked_ilog2().unwrap_or(0);
        (1..=levels).map(move |level| (width + place) >> level)
    }

    /// Whether the best is found by a tournament.
    pub fn is_tournament(&self) -> bool {
        !self.nodes.is_empty()
    }

    /// Whether a look by tournament may miss somebody above the bar, as long as
    /// others publish.
    pub fn may_miss(&self) -> bool {
        self.above.0.load(Ordering::SeqCst) > 0
    }

    /// The best above the bar among the places that fit, and the entries looked
    /// at. Whoever was published before is not missed, whatever others publish
    /// meanwhile.
    pub fn best_above_bar(&self, fits: impl Fn(u32) -> bool) -> (Option<Best>, u32) {
        self.above_bar(&fits, 0..self.places())
    }

    /// The same among some places only, which is all that is looked at.
    pub fn best_of_above_bar(&self, places: &PlaceSet) -> (Option<Best>, u32) {
        self.above_bar(&|place| places.contains(place), places.iter())
    }

    /// The best above the bar of those in `among` that fit, as do none beside
    /// these.
    fn above_bar(
        &self,
        fits: &impl Fn(u32) -> bool,
        among: impl Iterator<Item = u32>,
    ) -> (Option<Best>, u32) {
        let mut examined = 0;
        if !self.nodes.is_empty() {
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
        let each = among.inspect(|_| examined += 1);
        let best = self.scan(each.filter(|&place| fits(place)));
        (best.filter(|best| best.value > self.bar), examined)
    }

    fn scan(&self, places: impl Iterator<Item = u32>) -> Option<Best> {
        places.fold(None, |best, place| better(best, self.offer(place)))
    }

    /// The best of some places from `start` up and below `end`, which are the
    /// leaves below a node. Looks at the lowest match that all of them are below,
    /// and if its winner is none of them at each side of it.
    fn best_between(
        &self,
        start: u32,
        end: u32,
        places: &PlaceSet,
        examined: &mut u32,
    ) -> Option<Best> {
        let (first, last) = places.ends(start, end)?;
        *examined += 1;
        if first == last {
            return self.offer(first);
        }
        let levels = u32::BITS - (first ^ last).leading_zeros();
        let node = (self.nodes.len() as u32 + first) >> levels;
        let winner = self.winner(node);
        if places.contains(winner) {
            return self.offer(winner);
        }
        let middle = last >> (levels - 1) << (levels - 1);
        let left = self.best_between(first, middle, places, examined);
        let right = self.best_between(middle, last + 1, places, examined);
        better(left, right)
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

    /// Whether a place is `node` or below it.
    fn is_below(&self, place: u32, node: u32) -> bool {
        let leaf = self.nodes.len() as u32 + place;
        leaf >> (leaf.ilog2() - node.ilog2()) == node
    }

    /// Plays one match anew: who won before and after, or nothing if another
    /// CPU came first.
    fn play(&self, node: u32) -> Option<[u32; 2]> {
        let word = &self.nodes[node as usize];
        let before = word.load(Ordering::SeqCst);
        let [left, right] = [2 * node, 2 * node + 1].map(|child| self.winner(child));
        let winner = match self.get(right) > self.get(left) {
            true => right,
            false => left,
        };
        let changes = (before >> 32).wrapping_add(1);
        let after = changes << 32 | u64::from(winner);
        let played = word.compare_exchange(before, after, Ordering::SeqCst, Ordering::SeqCst);
        played.ok().map(|_| [before as u32, winner])
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
