//! Weighted max-min fair rates worked out as plainly as possible: all rates rise together until
//! some client has the most CPUs that it can use, or some clients fill all CPUs that they may use. Those
//! are found among all sets of affinities.
#![allow(dead_code, reason = "each test uses a part")]

use std::ops::{Add, Div, Mul, Sub};

/// A client: its weight, the most CPUs that it can use at once, and a bit for each CPU that it
/// may use.
#[derive(Clone, Copy, Debug)]
pub struct Claimant<N> {
    pub weight: N,
    pub most: N,
    pub affinity: u32,
}

pub trait Number:
    Copy
    + PartialOrd
    + From<u32>
    + Add<Output = Self>
    + Sub<Output = Self>
    + Mul<Output = Self>
    + Div<Output = Self>
{
}

impl Number for f64 {}
impl Number for Fraction {}

/// CPUs that each client is due.
pub fn rates<N: Number>(claimants: &[Claimant<N>]) -> Vec<N> {
    let zero = N::from(0);
    let mut rates: Vec<Option<N>> = vec![None; claimants.len()];
    let mut affinities: Vec<u32> = claimants.iter().map(|claimant| claimant.affinity).collect();
    affinities.sort_unstable();
    affinities.dedup();
    for (rate, claimant) in rates.iter_mut().zip(claimants) {
        *rate = (claimant.weight == zero).then_some(zero);
    }
    loop {
        let rising = |client: &usize| rates[*client].is_none();
        // The lowest level at which clients stop, and these clients.
        let mut first: Option<(N, Vec<usize>)> = None;
        let mut consider = |level: N, clients: Vec<usize>| {
            if first.as_ref().is_none_or(|(lowest, _)| level < *lowest) {
                first = Some((level, clients));
            }
        };
        for client in (0..claimants.len()).filter(rising) {
            let claimant = &claimants[client];
            consider(claimant.most / claimant.weight, vec![client]);
        }
        for set in 1u32..1 << affinities.len() {
            let of_set = |client: &usize| {
                let affinity = claimants[*client].affinity;
                let place = affinities
                    .binary_search(&affinity)
                    .expect("it is one of them");
                set >> place & 1 == 1
            };
            let own: Vec<usize> = (0..claimants.len()).filter(of_set).collect();
            let cpus = own
                .iter()
                .fold(0, |cpus, client| cpus | claimants[*client].affinity);
            let stopped = own.iter().filter_map(|client| rates[*client]);
            let room = stopped.fold(N::from(cpus.count_ones()), |room, rate| room - rate);
            let rise: Vec<usize> = own.into_iter().filter(rising).collect();
            let weights = rise.iter().map(|client| claimants[*client].weight);
            if !rise.is_empty() {
                consider(room / weights.fold(zero, N::add), rise);
            }
        }
        let Some((level, clients)) = first else {
            return rates.into_iter().flatten().collect();
        };
        for client in clients {
            rates[client] = Some(claimants[client].weight * level);
        }
    }
}

/// An exact number.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Fraction {
    pub numerator: i128,
    /// Above zero, without a common divisor with the numerator.
    pub denominator: i128,
}

impl Fraction {
    pub fn new(numerator: i128, denominator: i128) -> Fraction {
        let (mut a, mut b) = (numerator.abs(), denominator);
        while b != 0 {
            (a, b) = (b, a % b);
        }
        Fraction {
            numerator: numerator / a,
            denominator: denominator / a,
        }
    }
}

impl From<u32> for Fraction {
    fn from(number: u32) -> Fraction {
        Fraction::new(number.into(), 1)
    }
}

impl PartialOrd for Fraction {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        (self.numerator * other.denominator).partial_cmp(&(other.numerator * self.denominator))
    }
}

impl Add for Fraction {
    type Output = Fraction;
    fn add(self, other: Fraction) -> Fraction {
        let numerator = self.numerator * other.denominator + other.numerator * self.denominator;
        Fraction::new(numerator, self.denominator * other.denominator)
    }
}

impl Sub for Fraction {
    type Output = Fraction;
    fn sub(self, other: Fraction) -> Fraction {
        let numerator = self.numerator * other.denominator - other.numerator * self.denominator;
        Fraction::new(numerator, self.denominator * other.denominator)
    }
}

impl Mul for Fraction {
    type Output = Fraction;
    fn mul(self, other: Fraction) -> Fraction {
        Fraction::new(
            self.numerator * other.numerator,
            self.denominator * other.denominator,
        )
    }
}

impl Div for Fraction {
    type Output = Fraction;
    fn div(self, other: Fraction) -> Fraction {
        assert!(other.numerator > 0, "rates are divided by weights alone");
        Fraction::new(
            self.numerator * other.denominator,
            self.denominator * other.numerator,
        )
    }
}
