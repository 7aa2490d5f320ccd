//! Throughput and response time of a lottery (1994, 2.2): wins are binomial,
//! the wait for the first win is geometric.

use crate::every_lottery::{every_lottery, join_all};

/// A client with 3 of 10 tickets.
const TICKETS: [u32; 3] = [3, 5, 2];
const P: f64 = 0.3;

/// Mean and variance of a sample, and the standard error of its mean.
fn moments(sample: &[f64]) -> (f64, f64, f64) {
    let n = sample.len() as f64;
    let mean = sample.iter().sum::<f64>() / n;
    let variance = sample.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / (n - 1.0);
    (mean, variance, (variance / n).sqrt())
}

#[test]
fn wins_are_binomial() {
    const LOTTERIES: u32 = 100;
    const RUNS: usize = 5_000;
    for (name, mut lottery) in every_lottery(31) {
        join_all(&mut *lottery, &TICKETS);
        let mut run = || {
            let won = (0..LOTTERIES).filter(|_| lottery.pick().unwrap().0 == 0);
            won.count() as f64
        };
        let sample: Vec<f64> = (0..RUNS).map(|_| run()).collect();
        let (mean, variance, error) = moments(&sample);
        let n = f64::from(LOTTERIES);
        assert!((mean - n * P).abs() < 5.0 * error, "{name}: mean {mean}");
        // The relative error of a variance is about sqrt(2 / RUNS), 2 %.
        let ratio = variance / (n * P * (1.0 - P));
        assert!((ratio - 1.0).abs() < 0.1, "{name}: variance {variance}");
    }
}

#[test]
fn response_times_are_geometric() {
    const RUNS: usize = 20_000;
    for (name, mut lottery) in every_lottery(32) {
        join_all(&mut *lottery, &TICKETS);
        let mut wait = || {
            let lost = (0..).take_while(|_| lottery.pick().unwrap().0 != 0);
            lost.count() as f64 + 1.0
        };
        let sample: Vec<f64> = (0..RUNS).map(|_| wait()).collect();
        let (mean, variance, error) = moments(&sample);
        assert!((mean - 1.0 / P).abs() < 5.0 * error, "{name}: mean {mean}");
        // Kurtosis near 9: a relative error of about sqrt(8 / RUNS), 2 %.
        let ratio = variance / ((1.0 - P) / (P * P));
        assert!((ratio - 1.0).abs() < 0.1, "{name}: variance {variance}");
    }
}
