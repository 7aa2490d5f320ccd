//! Distributions of times. Narrow distributions take little memory.

use std::collections::BTreeMap;

use serde::Serialize;

/// Significant bits of a time: precise to less than one part in a thousand, and exact below
/// 2048 ns.
const PRECISION_BITS: u32 = 11;
/// Significant bits of a time in a histogram.
const HISTOGRAM_BITS: u32 = 4;

/// Times in nanoseconds, counted in buckets of a relative width below 2^-10. Count, sum and
/// longest are exact. Mean and variance come from exact integers; only the last step rounds
/// (as long as the squares of all times sum to less than 2^128 ns^2).
#[derive(Clone, Default, Debug)]
pub struct Times {
    buckets: BTreeMap<u64, u64>,
    count: u64,
    sum: u128,
    squares: u128,
    largest_ns: u64,
}

/// The usual figures of a distribution; times in nanoseconds.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Summary {
    /// How many times.
    pub count: u64,
    /// Arithmetic mean.
    pub mean_ns: f64,
    /// Standard deviation of all times.
    pub deviation_ns: f64,
    /// Shortest, to the precision of a bucket: never too long.
    pub shortest_ns: u64,
    /// Half of them are at most this; see [`Times::percentile_ns`].
    pub median_ns: u64,
    /// Nine in ten are at most this.
    pub p90_ns: u64,
    /// Ninety-nine in a hundred are at most this.
    pub p99_ns: u64,
    /// Longest.
    pub longest_ns: u64,
}

/// Times that are counted together.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Bucket {
    /// Shortest time that counts here.
    pub from_ns: u64,
    /// Longest time that counts here.
    pub to_ns: u64,
    /// How many there were.
    pub count: u64,
}

impl Times {
    /// Counts one more time.
    pub fn record(&mut self, time_ns: u64) {
        *self
            .buckets
            .entry(bucket(time_ns, PRECISION_BITS))
            .or_default() += 1;
        self.count += 1;
        self.sum += u128::from(time_ns);
        self.squares = self
            .squares
            .saturating_add(u128::from(time_ns) * u128::from(time_ns));
        self.largest_ns = self.largest_ns.max(time_ns);
    }

    /// Adds all times of another distribution.
    pub fn merge(&mut self, other: &Times) {
        for (bucket, count) in &other.buckets {
            *self.buckets.entry(*bucket).or_default() += count;
        }
        self.count += other.count;
        self.sum += other.sum;
        self.squares = self.squares.saturating_add(other.squares);
        self.largest_ns = self.largest_ns.max(other.largest_ns);
    }

    /// How many times were counted.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Buckets in ascending order: the shortest time of each, and how many
    /// times fell into it.
    pub fn buckets(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        self.buckets
            .iter()
            .map(|(time_ns, count)| (*time_ns, *count))
    }

    /// Wider buckets, in ascending order: eight to a doubling of the time, and of a
    /// nanosecond each below 16 ns. Empty buckets are left out.
    pub fn histogram(&self) -> Vec<Bucket> {
        let mut histogram: Vec<Bucket> = Vec::new();
        for (&time_ns, &count) in &self.buckets {
            let (from_ns, to_ns) = (
                bucket(time_ns, HISTOGRAM_BITS),
                last_of_bucket(time_ns, HISTOGRAM_BITS),
            );
            match histogram.last_mut() {
                Some(last) if last.from_ns == from_ns => last.count += count,
                _ => histogram.push(Bucket {
                    from_ns,
                    to_ns,
                    count,
                }),
            }
        }
        histogram
    }

    /// Arithmetic mean; zero without times.
    pub fn mean_ns(&self) -> f64 {
        if self.count == 0 {
            return 0.0;
        }
        self.sum as f64 / self.count as f64
    }

    /// Standard deviation of all times; zero without times.
    pub fn deviation_ns(&self) -> f64 {
        if self.count == 0 {
            return 0.0;
        }
        // With sum = whole * count + rest, the squares of the distances from the mean sum
        // to squares - whole * (sum + rest) - rest^2 / count. Floating point loses less
        // than the last bit of that: squared distances of integers from a fraction sum to
        // more than half of it.
        let count = u128::from(self.count);
        let (whole, rest) = (self.sum / count, self.sum % count);
        let at_whole = whole.saturating_mul(self.sum + rest);
        let integral = self.squares.saturating_sub(at_whole + rest * rest / count);
        let fraction = (rest * rest % count) as f64 / count as f64;
        ((integral as f64 - fraction) / count as f64).sqrt()
    }

    /// The percentile, rounded up to the end of its bucket, and at most the longest time.
    /// So it is never too short, and less than one part in a thousand too long. Nothing
    /// without times.
    pub fn percentile_ns(&self, percentile: f64) -> Option<u64> {
        if percentile >= 100.0 {
            return (self.count > 0).then_some(self.largest_ns);
        }
        let rank = ((percentile / 100.0 * self.count as f64).ceil() as u64).max(1);
        let mut below = 0;
        let reaches = |(_, count): &(&u64, &u64)| {
            below += **count;
            below >= rank
        };
        self.buckets
            .iter()
            .find(reaches)
            .map(|(time_ns, _)| last_of_bucket(*time_ns, PRECISION_BITS).min(self.largest_ns))
    }

    /// The usual figures; nothing without times.
    pub fn summary(&self) -> Option<Summary> {
        Some(Summary {
            count: self.count,
            mean_ns: self.mean_ns(),
            deviation_ns: self.deviation_ns(),
            shortest_ns: *self.buckets.first_key_value()?.0,
            median_ns: self.percentile_ns(50.0)?,
            p90_ns: self.percentile_ns(90.0)?,
            p99_ns: self.percentile_ns(99.0)?,
            longest_ns: self.largest_ns,
        })
    }
}

/// The shortest time of this one's bucket, at a precision of so many bits.
fn bucket(time_ns: u64, precision_bits: u32) -> u64 {
    let dropped = dropped_bits(time_ns, precision_bits);
    time_ns >> dropped << dropped
}

/// The longest time of this one's bucket.
fn last_of_bucket(time_ns: u64, precision_bits: u32) -> u64 {
    time_ns | ((1 << dropped_bits(time_ns, precision_bits)) - 1)
}

/// Low bits of a time that its bucket ignores.
fn dropped_bits(time_ns: u64, precision_bits: u32) -> u32 {
    let bits = u64::BITS - time_ns.leading_zeros();
    bits.saturating_sub(precision_bits)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bucket(time_ns: u64) -> u64 {
        super::bucket(time_ns, PRECISION_BITS)
    }

    fn last_of_bucket(time_ns: u64) -> u64 {
        super::last_of_bucket(time_ns, PRECISION_BITS)
    }

    #[test]
    fn buckets_are_exact_below_2048_and_narrow_above() {
        for time in [0, 1, 2, 1000, 2047] {
            assert_eq!(bucket(time), time);
        }
        for time in [2049, 1_000_001, u64::MAX] {
            assert!(bucket(time) <= time);
            assert!((time - bucket(time)) as f64 / (time as f64) < 1.0 / 1024.0);
        }
        assert_eq!(bucket(2048), 2048);
        assert_eq!(bucket(2049), 2048);
        assert_eq!(last_of_bucket(2047), 2047);
        assert_eq!(last_of_bucket(2048), 2049);
        for time in [2048, 2049, 1_000_001, u64::MAX - 1, u64::MAX] {
            let last = last_of_bucket(time);
            assert_eq!(bucket(last), bucket(time));
            assert!(last == u64::MAX || bucket(last + 1) > last);
        }
    }

    #[test]
    fn a_percentile_is_never_too_short() {
        let mut times = Times::default();
        for time in [3_000_001, 3_000_002, 3_000_003, 9_000_000] {
            times.record(time);
        }
        let median = times.percentile_ns(50.0).expect("there are times");
        assert_eq!(median, last_of_bucket(3_000_002));
        assert!((3_000_002..=3_002_931).contains(&median));
        // No percentile is longer than the longest time.
        assert_eq!(times.percentile_ns(99.0), Some(9_000_000));
        assert_eq!(times.percentile_ns(100.0), Some(9_000_000));
    }

    #[test]
    fn a_small_deviation_of_long_times_is_not_lost() {
        const DAY_NS: u64 = 86_400_000_000_000;
        let mut times = Times::default();
        for _ in 0..1000 {
            times.record(DAY_NS);
        }
        assert_eq!(times.deviation_ns().to_bits(), 0.0f64.to_bits());
        for _ in 0..1000 {
            times.record(DAY_NS + 2);
        }
        assert_eq!(times.deviation_ns().to_bits(), 1.0f64.to_bits());
        // The mean is no integer: a variance of 1 * 2000 / 2001^2 * 4, as
        // 2000 times without the day and the last one make it.
        let mut times = Times::default();
        for _ in 0..2000 {
            times.record(DAY_NS);
        }
        times.record(DAY_NS + 2);
        let variance = 4.0 * 2000.0 / (2001.0 * 2001.0);
        assert!((times.deviation_ns() / f64::sqrt(variance) - 1.0).abs() < 1e-15);
    }

    #[test]
    fn figures_of_a_small_distribution() {
        let mut times = Times::default();
        assert_eq!(times.summary(), None);
        assert_eq!(times.percentile_ns(100.0), None);
        for time in [1, 2, 2, 3, 100] {
            times.record(time);
        }
        let summary = times.summary().expect("there are times");
        assert_eq!(summary.count, 5);
        assert!((summary.mean_ns - 21.6).abs() < 1e-9);
        // Variance: (4 + 1 + ... ) computed by hand: 10018 / 5 - 21.6^2.
        assert!((summary.deviation_ns - (10018.0f64 / 5.0 - 21.6 * 21.6).sqrt()).abs() < 1e-9);
        assert_eq!((summary.shortest_ns, summary.median_ns), (1, 2));
        assert_eq!((summary.p90_ns, summary.longest_ns), (100, 100));
        assert_eq!(times.percentile_ns(0.0), Some(1));
        assert_eq!(times.percentile_ns(80.0), Some(3));
    }

    #[test]
    fn a_histogram_has_eight_buckets_to_a_doubling_and_counts_every_time() {
        let mut times = Times::default();
        (0..100_000).for_each(|time| times.record(time));
        let histogram = times.histogram();
        assert_eq!(
            histogram.iter().map(|bucket| bucket.count).sum::<u64>(),
            100_000
        );
        assert_eq!(histogram[0].from_ns, 0);
        for pair in histogram.windows(2) {
            assert_eq!(pair[0].to_ns + 1, pair[1].from_ns);
            assert_eq!(pair[0].count, pair[0].to_ns + 1 - pair[0].from_ns);
        }
        let doubling = histogram
            .iter()
            .filter(|b| (1024..2048).contains(&b.from_ns));
        assert_eq!(doubling.count(), 8);
        assert!(histogram[..16].iter().all(|bucket| bucket.count == 1));
        assert_eq!(Times::default().histogram(), []);
    }

    #[test]
    fn merging_is_as_good_as_recording() {
        let (mut all, mut even, mut odd) = (Times::default(), Times::default(), Times::default());
        for time in 0..10_000u64 {
            let time = time * time;
            all.record(time);
            if time % 2 == 0 { &mut even } else { &mut odd }.record(time);
        }
        even.merge(&odd);
        assert_eq!(even.summary(), all.summary());
        assert!(even.buckets().eq(all.buckets()));
    }
}
