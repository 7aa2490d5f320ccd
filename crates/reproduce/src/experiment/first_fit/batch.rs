//! What became of the sets of a batch, or of several batches together.

use super::FirstFit;
use super::averages::Averages;

/// Sums over the sets of one or more batches, on machines of one size.
#[derive(Clone)]
pub struct Batch {
    pub cpus: u32,
    pub sets: u32,
    pub chosen: Averages,
    /// The same by what the sets' loads came to, below their targets.
    pub by_own_load: Averages,
    pub others: Vec<Averages>,
    pub optimum: Averages,
    /// Sets for which the search has not proved that its placement is the best.
    pub given_up: u32,
    /// By the tenth of its slots that a lone CPU has used: random tasks, and those with room.
    pub probes: [(u32, u32); 10],
}

impl Batch {
    pub fn new(of: &FirstFit, cpus: u32) -> Batch {
        let intervals = of.tens_of_intervals.get() as usize * 10;
        let averages = || Averages::new(cpus, intervals);
        let comparison = of.comparison.iter();
        let others = comparison.flat_map(|comparison| &comparison.choices);
        Batch {
            cpus,
            sets: 0,
            chosen: averages(),
            by_own_load: averages(),
            others: others.map(|_| averages()).collect(),
            optimum: averages(),
            given_up: 0,
            probes: [(0, 0); 10],
        }
    }

    /// Adds another batch on machines of the same size.
    pub fn add(&mut self, batch: &Batch) {
        self.sets += batch.sets;
        self.chosen.add_all(&batch.chosen);
        self.by_own_load.add_all(&batch.by_own_load);
        for (own, other) in self.others.iter_mut().zip(&batch.others) {
            own.add_all(other);
        }
        self.optimum.add_all(&batch.optimum);
        self.given_up += batch.given_up;
        for (own, other) in self.probes.iter_mut().zip(&batch.probes) {
            *own = (own.0 + other.0, own.1 + other.1);
        }
    }

    /// By how much more often a random task finds room in a tenth of a CPU's use than in the
    /// tenth before, at most, in percentage points.
    pub fn largest_rise_in_room(&self) -> f64 {
        let probes = self.probes.iter().filter(|(probes, _)| *probes > 0);
        let chance = |&(probes, fitting): &(u32, u32)| f64::from(fitting) / f64::from(probes);
        let chances: Vec<f64> = probes.map(chance).collect();
        let rises = chances.windows(2).map(|pair| pair[1] - pair[0]);
        100.0 * rises.fold(0.0, f64::max)
    }
}
