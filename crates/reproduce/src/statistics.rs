//! Means and their errors, standard deviations and medians.

use prorata_core::rng::ParkMiller;
use serde::Serialize;

/// Mean of some numbers; zero of none.
pub fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len().max(1) as f64
}

/// Standard deviation of what some numbers are a sample of; zero of fewer than two.
pub fn deviation(values: &[f64]) -> f64 {
    let mean = mean(values);
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    (squares / values.len().saturating_sub(1).max(1) as f64).sqrt()
}

/// Several runs, of which a number is the mean.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Sample {
    /// Runs, each with a seed of its own.
    pub runs: usize,
    /// Standard deviation of a run.
    pub deviation: f64,
    /// Standard error of the number.
    pub error: f64,
}

impl Sample {
    /// Of one number for each run; none of fewer than two runs.
    pub fn of(values: &[f64]) -> Option<Sample> {
        let deviation = deviation(values);
        let sample = Sample {
            runs: values.len(),
            deviation,
            error: deviation / (values.len() as f64).sqrt(),
        };
        (values.len() > 1 && deviation.is_finite()).then_some(sample)
    }

    /// Of a standard deviation that several runs show, each with a normally distributed number.
    pub fn of_deviation(deviation: f64, runs: usize) -> Sample {
        let freedom = runs.saturating_sub(1).max(1) as f64;
        Sample {
            runs,
            deviation,
            error: deviation / (2.0 * freedom).sqrt(),
        }
    }

    /// Of a number that several runs give together, by what they give without each in turn.
    pub fn of_jackknife(values: &[f64]) -> Option<Sample> {
        let runs = values.len();
        let spread = deviation(values) * runs.saturating_sub(1) as f64;
        let sample = Sample {
            runs,
            deviation: spread,
            error: spread / (runs as f64).sqrt(),
        };
        (runs > 1 && spread.is_finite()).then_some(sample)
    }

    /// Of a number that several runs give together, by what halves of them give. Of a mean
    /// this is the usual standard error. It is of use, too, for numbers that jump, such as the
    /// place of a peak, where the jackknife often shows no error at all.
    pub fn of_halves(values: &[f64], runs: usize) -> Option<Sample> {
        let kept = runs / 2;
        let weight = kept as f64 / (runs - kept).max(1) as f64;
        let error = deviation(values) * weight.sqrt();
        let sample = Sample {
            runs,
            deviation: error * (runs as f64).sqrt(),
            error,
        };
        (values.len() > 1 && error.is_finite()).then_some(sample)
    }

    /// How far the expectation is from the number, at most, in 95 % of cases.
    pub fn margin(self) -> f64 {
        student(self.runs.saturating_sub(1), Z_95) * self.error
    }

    /// The same in 99.9 % of cases: of fifty numbers that are right, one is further off in 5 %.
    pub fn wide_margin(self) -> f64 {
        student(self.runs.saturating_sub(1), Z_999) * self.error
    }
}

/// Halves of the runs by which an error is judged. The error itself is uncertain by a twentieth
/// then: by one over the root of twice as many.
const HALVES: usize = 200;

/// Sets of half of so many runs, drawn at random, the same at each call; none of fewer than two
/// runs.
pub fn halves(runs: usize) -> Vec<Vec<usize>> {
    let mut random = ParkMiller::new(1).expect("1 is a seed");
    let mut half = || {
        let mut all: Vec<usize> = (0..runs).collect();
        for place in 0..runs / 2 {
            let rest = runs - place;
            all.swap(place, place + random.step() as usize % rest);
        }
        all.truncate(runs / 2);
        // Sums go by the order of runs.
        all.sort_unstable();
        all
    };
    let count = if runs < 2 { 0 } else { HALVES };
    (0..count).map(|_| half()).collect()
}

/// Quantiles of the normal distribution that leave 2.5 % and 0.05 % above them.
const Z_95: f64 = 1.959_964;
const Z_999: f64 = 3.290_527;

/// A sum over runs divided by another sum, with the sample of that quotient. Unlike the mean of
/// the runs' quotients, it has no bias where single runs deviate much.
pub fn ratio(above: &[f64], below: &[f64]) -> (f64, Option<Sample>) {
    let (ratio, divisor) = (mean(above) / mean(below), mean(below));
    let residuals = above.iter().zip(below);
    let residuals = residuals.map(|(above, below)| (above - ratio * below) / divisor);
    (ratio, Sample::of(&residuals.collect::<Vec<_>>()))
}

/// The quantile of Student's distribution where the normal distribution has `z`: an expansion
/// (Abramowitz and Stegun, 26.7.5). From nine degrees of freedom on it is off by less than 1 %.
/// With one or two it would be far too small, so these are from tables.
fn student(freedom: usize, z: f64) -> f64 {
    let f = match freedom {
        0 | 1 => return if z > 2.0 { 636.6 } else { 12.706 },
        2 => return if z > 2.0 { 31.60 } else { 4.303 },
        more => more as f64,
    };
    let first = (z.powi(3) + z) / 4.0;
    let second = (5.0 * z.powi(5) + 16.0 * z.powi(3) + 3.0 * z) / 96.0;
    let third = (3.0 * z.powi(7) + 19.0 * z.powi(5) + 17.0 * z.powi(3) - 15.0 * z) / 384.0;
    z + first / f + second / f.powi(2) + third / f.powi(3)
}

/// Median of some numbers, the upper one of two in the middle; not a number of none.
pub fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted.get(sorted.len() / 2).copied().unwrap_or(f64::NAN)
}

/// Largest of some numbers, zero of none.
pub fn largest(values: impl IntoIterator<Item = f64>) -> f64 {
    values.into_iter().fold(0.0, f64::max)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_a_few_numbers() {
        assert_eq!((mean(&[1.0, 2.0, 6.0]), mean(&[])), (3.0, 0.0));
        assert_eq!(deviation(&[1.0, 3.0, 5.0, 7.0, 9.0]), 10.0f64.sqrt());
        assert_eq!((deviation(&[4.0]), deviation(&[])), (0.0, 0.0));
        assert_eq!((median(&[3.0, 1.0, 2.0]), median(&[4.0, 1.0])), (2.0, 4.0));
        assert!(median(&[]).is_nan());
        assert_eq!(largest([1.0, 3.0, 2.0]), 3.0);
    }

    /// The mean of seven numbers, and the place of the larger of two that are as large.
    #[test]
    fn halves_give_the_error_of_a_mean_and_of_a_place() {
        let values = [3.0, 1.0, 4.0, 1.0, 5.0, 9.0, 2.0];
        let of = |half: &Vec<usize>| mean(&half.iter().map(|&run| values[run]).collect::<Vec<_>>());
        let halves_of_seven = halves(values.len());
        assert!(halves_of_seven.iter().all(|half| half.len() == 3));
        let means: Vec<f64> = halves_of_seven.iter().map(of).collect();
        let found = Sample::of_halves(&means, values.len()).expect("seven runs");
        let wanted = Sample::of(&values).expect("seven runs");
        assert_eq!(found.runs, 7);
        assert!((found.error / wanted.error - 1.0).abs() < 0.15, "{found:?}");

        let other = [1.0, 3.0, 2.0, 5.0, 4.0, 2.0, 8.0];
        let place = |half: &Vec<usize>| {
            let sum = |of: &[f64]| half.iter().map(|&run| of[run]).sum::<f64>();
            f64::from(u8::from(sum(&values) > sum(&other)))
        };
        let places: Vec<f64> = halves_of_seven.iter().map(place).collect();
        let found = Sample::of_halves(&places, values.len()).expect("seven runs");
        assert!((0.3..0.6).contains(&found.error), "{found:?}");
        assert_eq!((halves(1), halves(0)), (vec![], vec![]));
        assert_eq!(Sample::of_halves(&[], 1), None);
    }

    /// Tables of Student's distribution.
    #[test]
    fn a_margin_is_that_of_students_distribution() {
        for (freedom, z, wanted) in [
            (2, Z_95, 4.303),
            (3, Z_95, 3.182),
            (9, Z_95, 2.262),
            (29, Z_95, 2.045),
            (999, Z_95, 1.962),
            (2, Z_999, 31.60),
            (9, Z_999, 4.781),
            (29, Z_999, 3.659),
        ] {
            let found = student(freedom, z);
            assert!((found / wanted - 1.0).abs() < 0.01, "{freedom}: {found}");
        }
        let sample = Sample::of(&[1.0, 2.0, 3.0]).expect("three runs");
        assert_eq!((sample.runs, sample.deviation), (3, 1.0));
        assert!((sample.margin() - 4.303 / 3.0f64.sqrt()).abs() < 1e-9);
        assert_eq!(Sample::of(&[1.0]), None);
    }

    /// One run of 1:1 and one of 9:1 are 10:2 together, not 5:1 in the mean.
    #[test]
    fn a_ratio_is_that_of_the_sums() {
        let (found, sample) = ratio(&[1.0, 9.0], &[1.0, 1.0]);
        assert_eq!((found, sample.expect("two runs").runs), (5.0, 2));
        let (found, sample) = ratio(&[1.0, 9.0, 5.0], &[1.0, 3.0, 2.0]);
        assert_eq!(found, 2.5);
        // Residuals of -0.75, 0.75 and 0.
        assert_eq!(sample.expect("three runs").deviation, 0.75);
    }
}
