//! Counts of durations, by their logarithms.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};

/// Parts of each power of two: a percentile is at most an eighth too high.
const PARTS: usize = 8;
/// Up to 2^32 ns; the last place counts all longer ones.
const PLACES: usize = PARTS * 30;

/// One thread adds, and others read.
#[derive(Debug)]
pub(crate) struct Histogram {
    counts: [AtomicU32; PLACES],
    max_ns: AtomicU64,
}

impl Histogram {
    pub(crate) fn new() -> Self {
        Self {
            counts: [const { AtomicU32::new(0) }; PLACES],
            max_ns: AtomicU64::new(0),
        }
    }

    pub(crate) fn add(&self, ns: u64) {
        self.counts[place(ns)].fetch_add(1, Relaxed);
        self.max_ns.fetch_max(ns, Relaxed);
    }

    pub(crate) fn max_ns(&self) -> u64 {
        self.max_ns.load(Relaxed)
    }

    /// What so many of a hundred do not exceed; zero if there is nothing.
    pub(crate) fn percentile(&self, percent: u64) -> u64 {
        let counts = || self.counts.iter().map(|count| count.load(Relaxed));
        let all: u64 = counts().map(u64::from).sum();
        let enough = (all * percent).div_ceil(100);
        let mut sum = 0;
        let found = counts().position(|count| {
            sum += u64::from(count);
            sum >= enough && sum > 0
        });
        found.map_or(0, |place| end_ns(place).min(self.max_ns()))
    }
}

/// The place of a duration: below eight one each, then eight a power of two.
fn place(ns: u64) -> usize {
    let power = ns.max(1).ilog2() as usize;
    let place = match power {
        0..3 => ns as usize,
        _ => (power - 2) * PARTS + ((ns >> (power - 3)) as usize & (PARTS - 1)),
    };
    place.min(PLACES - 1)
}

/// The longest duration of a place.
fn end_ns(place: usize) -> u64 {
    let (power, part) = (place / PARTS, (place % PARTS) as u64);
    match power {
        0 => part,
        _ => ((PARTS as u64 + part + 1) << (power - 1)) - 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_duration_is_within_an_eighth_of_its_place() {
        for ns in (0..100_000).chain((17..32).map(|power| (1 << power) + 12_345)) {
            let end = end_ns(place(ns));
            assert!(end >= ns && end - ns <= ns / 8, "{ns}: {end}");
        }
        assert_eq!(place(u64::MAX), PLACES - 1);
    }

    #[test]
    fn percentiles_are_those_of_the_sorted_durations() {
        let histogram = Histogram::new();
        assert_eq!(histogram.percentile(50), 0);
        (1..=1000).for_each(|us| histogram.add(us * 1000));
        for percent in [1, 50, 99, 100] {
            let (exact, found) = (percent * 10_000, histogram.percentile(percent));
            assert!(
                found >= exact && found - exact <= exact / 8,
                "{percent}: {found}"
            );
        }
        assert_eq!(histogram.max_ns(), 1_000_000);
    }
}
