//! Chi-square tests, and a generator that is no generator: a sweep.

use std::convert::Infallible;

use prorata_core::rng::Rng;
use rand_core::TryRng;

/// Pearson's statistic with its degrees of freedom.
#[derive(Clone, Copy, Debug)]
pub struct ChiSquare {
    pub statistic: f64,
    pub freedom: usize,
}

impl ChiSquare {
    /// Counts against the weights they should be in proportion to. A count
    /// where there is no weight makes the statistic infinite.
    pub fn of(counts: &[u64], weights: &[f64]) -> ChiSquare {
        assert_eq!(counts.len(), weights.len());
        let draws: u64 = counts.iter().sum();
        let total: f64 = weights.iter().sum();
        let mut statistic = 0.0;
        let mut cells = 0;
        for (&count, &weight) in counts.iter().zip(weights) {
            if weight > 0.0 {
                let expected = draws as f64 * weight / total;
                statistic += (count as f64 - expected).powi(2) / expected;
                cells += 1;
            } else if count > 0 {
                statistic = f64::INFINITY;
            }
        }
        ChiSquare {
            statistic,
            freedom: cells - 1,
        }
    }

    /// Two sets of equally many draws against each other. Cells with fewer than
    /// ten draws in all are too small for the test and go together.
    pub fn between(left: &[u64], right: &[u64]) -> ChiSquare {
        assert_eq!(left.iter().sum::<u64>(), right.iter().sum::<u64>());
        let mut statistic = 0.0;
        let mut cells = 0;
        let mut small = (0, 0);
        let mut add = |left: u64, right: u64| {
            if left + right > 0 {
                statistic += (left as f64 - right as f64).powi(2) / (left + right) as f64;
                cells += 1;
            }
        };
        for (&left, &right) in left.iter().zip(right) {
            if left + right < 10 {
                small = (small.0 + left, small.1 + right);
            } else {
                add(left, right);
            }
        }
        add(small.0, small.1);
        ChiSquare {
            statistic,
            freedom: cells.max(1) - 1,
        }
    }

    /// Whether a true hypothesis would do so badly less than once in a million
    /// times (Wilson and Hilferty's approximation of the quantile).
    pub fn refuses(self) -> bool {
        /// The normal quantile at 1 - 1e-6.
        const QUANTILE: f64 = 4.753;
        let freedom = self.freedom as f64;
        if self.freedom == 0 {
            // One cell takes all draws, but for rounding, or cannot be right.
            return self.statistic > 1e-9;
        }
        let spread = 2.0 / (9.0 * freedom);
        let critical = freedom * (1.0 - spread + QUANTILE * spread.sqrt()).powi(3);
        self.statistic > critical
    }
}

/// Yields words that make successive calls of `below` with these bounds, over
/// and over, return every combination of values once, in order.
pub struct Sweep {
    bounds: Vec<u64>,
    values: Vec<u64>,
    next: usize,
}

impl Sweep {
    pub fn new(bounds: &[u64]) -> Self {
        Sweep::starting_at(bounds, &vec![0; bounds.len()])
    }

    pub fn starting_at(bounds: &[u64], values: &[u64]) -> Self {
        Sweep {
            bounds: bounds.to_vec(),
            values: values.to_vec(),
            next: 0,
        }
    }

    /// The last value counts fastest.
    fn advance(&mut self) {
        for (value, bound) in self.values.iter_mut().zip(&self.bounds).rev() {
            *value += 1;
            if *value < *bound {
                return;
            }
            *value = 0;
        }
    }
}

impl TryRng for Sweep {
    type Error = Infallible;

    fn try_next_u32(&mut self) -> Result<u32, Infallible> {
        unreachable!("lotteries draw 64 bits")
    }

    fn try_next_u64(&mut self) -> Result<u64, Infallible> {
        let (value, bound) = (self.values[self.next], self.bounds[self.next]);
        self.next += 1;
        if self.next == self.bounds.len() {
            self.next = 0;
            self.advance();
        }
        // The middle of the words that stand for `value`.
        let middle = (u128::from(value) << 64 | 1 << 63).div_ceil(u128::from(bound));
        Ok(middle as u64)
    }

    fn try_fill_bytes(&mut self, _: &mut [u8]) -> Result<(), Infallible> {
        unreachable!("lotteries draw 64 bits")
    }
}

#[test]
fn a_sweep_makes_below_count() {
    let mut sweep = Sweep::new(&[2, 3]);
    let mut seen = Vec::new();
    for _ in 0..7 {
        let high = prorata_core::rng::below(&mut sweep, 2);
        seen.push((high, prorata_core::rng::below(&mut sweep, 3)));
    }
    assert_eq!(
        seen,
        [(0, 0), (0, 1), (0, 2), (1, 0), (1, 1), (1, 2), (0, 0)]
    );
}

#[test]
fn the_quantile_is_that_of_the_tables() {
    // Chi-square at 1 - 1e-6. The approximation is never below, and 15 % above
    // where it is worst, at one degree of freedom.
    for (freedom, critical) in [(1, 23.93), (9, 44.81), (15, 56.49), (100, 182.13)] {
        let at = |factor: f64| ChiSquare {
            statistic: critical * factor,
            freedom,
        };
        assert!(!at(0.99).refuses(), "{freedom}");
        assert!(at(1.16).refuses(), "{freedom}");
    }
}

/// Draws `draws` values below `bound` and counts them.
pub fn tally<R: Rng>(rng: &mut R, draws: u64, bound: u64) -> Vec<u64> {
    let mut counts = vec![0; bound as usize];
    for _ in 0..draws {
        counts[prorata_core::rng::below(rng, bound) as usize] += 1;
    }
    counts
}
