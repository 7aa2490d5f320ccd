//! What became of many sets, by their loads.

use std::ops::AddAssign;

use super::placing::Placed;
use super::tasks::TaskSet;

/// The sets whose loads are in one interval.
#[derive(Clone, Copy, Default)]
struct Interval {
    /// Of sets that have a task at all.
    sets: f64,
    /// Sum over sets of the part of its load that each achieved.
    achieved: f64,
    /// Sets of which all tasks were placed.
    whole: f64,
    tasks: f64,
    left_out: f64,
    /// Sum over sets of the part of CPUs without a task.
    empty_cpus: f64,
}

impl AddAssign for Interval {
    fn add_assign(&mut self, other: Interval) {
        self.sets += other.sets;
        self.achieved += other.achieved;
        self.whole += other.whole;
        self.tasks += other.tasks;
        self.left_out += other.left_out;
        self.empty_cpus += other.empty_cpus;
    }
}

/// Averages over intervals of the load, of one number of CPUs.
#[derive(Clone)]
pub struct Averages {
    cpus: u32,
    intervals: Vec<Interval>,
}

/// The interval of a load from 0 to 1.
pub fn interval_of(load: f64, intervals: usize) -> usize {
    ((load * intervals as f64) as usize).min(intervals - 1)
}

impl Averages {
    pub fn new(cpus: u32, intervals: usize) -> Averages {
        let intervals = vec![Interval::default(); intervals];
        Averages { cpus, intervals }
    }

    /// Adds what became of a set of a load. One without tasks achieves nothing, nor fails to.
    pub fn add(&mut self, load: f64, set: &TaskSet, placed: Placed) {
        if set.tasks.is_empty() {
            return;
        }
        let place = interval_of(load, self.intervals.len());
        let interval = &mut self.intervals[place];
        interval.sets += 1.0;
        interval.achieved += f64::from(placed.load) / f64::from(set.load);
        interval.whole += f64::from(u8::from(placed.left_out == 0));
        interval.tasks += set.tasks.len() as f64;
        interval.left_out += f64::from(placed.left_out);
        interval.empty_cpus += f64::from(placed.empty_cpus) / f64::from(self.cpus);
    }

    /// Adds what became of other sets, on as many CPUs.
    pub fn add_all(&mut self, others: &Averages) {
        for (own, other) in self.intervals.iter_mut().zip(&others.intervals) {
            *own += *other;
        }
    }

    /// Middles of intervals, and the percentage of load achieved there; none where no set has a
    /// task.
    pub fn curve(&self) -> impl Iterator<Item = (f64, f64)> {
        let width = 1.0 / self.intervals.len() as f64;
        let points = self.intervals.iter().enumerate();
        let points = points.filter(|(_, interval)| interval.sets > 0.0);
        points.map(move |(place, interval)| {
            let middle = (place as f64 + 0.5) * width;
            (middle, 100.0 * interval.achieved / interval.sets)
        })
    }

    /// Percentage of load achieved in a tenth of the loads, the mean over sets.
    pub fn achieved(&self, tenth: usize) -> f64 {
        self.percent(Some(tenth), |i| i.achieved, |i| i.sets)
    }

    /// Percentage of sets of which all tasks were placed.
    pub fn whole(&self) -> f64 {
        self.percent(None, |i| i.whole, |i| i.sets)
    }

    /// Percentage of load achieved at all loads.
    pub fn achieved_overall(&self) -> f64 {
        self.percent(None, |i| i.achieved, |i| i.sets)
    }

    /// Percentage of tasks left out in a tenth.
    pub fn left_out(&self, tenth: usize) -> f64 {
        self.percent(Some(tenth), |i| i.left_out, |i| i.tasks)
    }

    /// Percentage of CPUs without a task in a tenth.
    pub fn empty_cpus(&self, tenth: usize) -> f64 {
        self.percent(Some(tenth), |i| i.empty_cpus, |i| i.sets)
    }

    fn percent(
        &self,
        tenth: Option<usize>,
        part: impl Fn(&Interval) -> f64,
        all: impl Fn(&Interval) -> f64,
    ) -> f64 {
        let width = self.intervals.len() / 10;
        let places = tenth.map_or(0..self.intervals.len(), |t| t * width..(t + 1) * width);
        let intervals = &self.intervals[places];
        100.0 * intervals.iter().map(part).sum::<f64>() / intervals.iter().map(all).sum::<f64>()
    }
}
