//! The random sets of one size of the machine, placed one by one.

use prorata_core::rng::{SeedableRng, Xoshiro256PlusPlus};
use prorata_core::slots::place::View;
use prorata_core::slots::place::cpu_choice::CpuChoice;
use prorata_core::slots::place::packing::pack;

use super::averages::interval_of;
use super::batch::Batch;
use super::placing::{self, Placed};
use super::tasks::{Kinds, TaskSet, slots_of};
use super::{Choice, FirstFit, MIDDLE, TOP};

/// Batches that sets are dealt to, one by one. Errors are those of the jackknife over batches.
pub const BATCHES: usize = 50;

/// What became of the sets on machines of one size.
pub struct Size {
    pub cpus: u32,
    columns: u32,
    empty: View,
    seed: u64,
    kinds: Kinds,
    lots: Xoshiro256PlusPlus,
    sets: u32,
    batches: Vec<Batch>,
}

impl Size {
    pub fn new(of: &FirstFit, cpus: u32, seed: u64) -> Size {
        Size {
            cpus,
            columns: of.slots.get(),
            empty: View::new(cpus, of.slots.get(), |_| true),
            seed,
            kinds: Kinds::of(of.slots.get()),
            lots: Xoshiro256PlusPlus::seed_from_u64(seed),
            sets: 0,
            batches: vec![Batch::new(of, cpus); BATCHES],
        }
    }

    /// What became of all sets, or of those outside a batch.
    pub fn together(&self, of: &FirstFit, left_out: Option<usize>) -> Batch {
        let mut together = Batch::new(of, self.cpus);
        for (place, batch) in self.batches.iter().enumerate() {
            if Some(place) != left_out {
                together.add(batch);
            }
        }
        together
    }

    /// Draws one more set and places it.
    pub fn add_set(&mut self, of: &FirstFit) {
        let set = self.kinds.draw_set(self.cpus, &mut self.lots);
        let batch = self.sets as usize % BATCHES;
        self.batches[batch].sets += 1;
        let placed = self.place(&set, of.choice);
        self.batches[batch].chosen.add(set.target, &set, placed);
        let own = f64::from(set.load) / f64::from(self.cpus * self.columns);
        self.batches[batch].by_own_load.add(own, &set, placed);
        if let Some(comparison) = &of.comparison {
            let tenth = interval_of(set.target, 10);
            for (place, &other) in comparison.choices.iter().enumerate() {
                if tenth == MIDDLE || tenth == TOP {
                    let placed = self.place(&set, other);
                    self.batches[batch].others[place].add(set.target, &set, placed);
                }
            }
            self.add_optimum(&set, comparison.steps, batch);
            if self.cpus == 1 {
                self.add_probes(&set, batch);
            }
        }
        self.sets += 1;
    }

    /// Lots of a set's own to choose CPUs by, the same in all figures.
    fn lots_of_set(&self) -> Xoshiro256PlusPlus {
        Xoshiro256PlusPlus::seed_from_u64(!(self.seed ^ u64::from(self.sets) << 43))
    }

    fn place(&self, set: &TaskSet, choice: Choice) -> Placed {
        let mut lots = self.lots_of_set();
        placing::place_all(&set.tasks, self.empty.clone(), choice.into(), &mut lots)
    }

    fn add_optimum(&mut self, set: &TaskSet, steps: u32, batch: usize) {
        let tasks = set.tasks.iter();
        let loads: Vec<u32> = tasks.map(|&task| slots_of(task, self.columns)).collect();
        let packing = pack(&loads, self.cpus, self.columns, steps);
        let placed = Placed {
            load: packing.load,
            left_out: u32::from(packing.load < set.load),
            empty_cpus: 0,
        };
        let batch = &mut self.batches[batch];
        batch.optimum.add(set.target, set, placed);
        batch.given_up += u32::from(!packing.is_exact);
    }

    /// Whether a random task would find room on a lone CPU, after each task of a set.
    fn add_probes(&mut self, set: &TaskSet, batch: usize) {
        let mut table = self.empty.clone();
        let mut lots = self.lots_of_set();
        for &task in &set.tasks {
            placing::place(task, &mut table, CpuChoice::MostUtilised, &mut lots);
            let used = f64::from(self.columns - table.open_in(0)) / f64::from(self.columns);
            let probe = self.kinds.draw(&mut lots);
            let mut trial = table.clone();
            let fits = placing::place(probe, &mut trial, CpuChoice::MostUtilised, &mut lots);
            let (probes, fitting) = &mut self.batches[batch].probes[interval_of(used, 10)];
            *probes += 1;
            *fitting += u32::from(fits.is_some());
        }
    }
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroU32;

    use super::*;
    use crate::finding::Findings;
    use crate::statistics::{deviation, mean};

    fn first_fit(choice: Choice) -> FirstFit {
        FirstFit {
            choice,
            slots: NonZeroU32::new(120).expect("not zero"),
            sizes: Vec::new(),
            tens_of_intervals: NonZeroU32::MIN,
            comparison: None,
        }
    }

    /// Forty seeds show how far a number of 2,000 sets is off.
    #[test]
    fn the_jackknife_over_batches_shows_how_seeds_spread() {
        let of = first_fit(Choice::LeastUtilised);
        let metric = "2 over 1 CPUs, loads 0.9 to 1: achieved";
        let (mut values, mut errors) = (Vec::new(), Vec::new());
        for seed in 0..40 {
            let mut sizes = [1, 2].map(|cpus| Size::new(&of, cpus, 2 * seed + u64::from(cpus)));
            for size in &mut sizes {
                (0..2_000).for_each(|_| size.add_set(&of));
            }
            let claims = |left_out| of.claims(&sizes.each_ref().map(|s| s.together(&of, left_out)));
            let without: Vec<Findings> = (0..BATCHES).map(|batch| claims(Some(batch))).collect();
            let mut all = claims(None);
            all.set_errors_of_jackknife(&without);
            let found = all.measured.iter().find(|found| found.metric == metric);
            let found = found.expect("it is measured");
            values.push(found.value);
            errors.push(found.sample.expect("there are batches").error);
        }
        // A deviation of forty seeds is itself off by 11 %.
        let shown = mean(&errors) / deviation(&values);
        assert!((0.7..1.4).contains(&shown), "{shown}");
    }

    #[test]
    fn each_set_is_in_one_batch() {
        let of = first_fit(Choice::Random);
        let mut size = Size::new(&of, 2, 7);
        (0..BATCHES + 3).for_each(|_| size.add_set(&of));
        assert_eq!(size.together(&of, None).sets as usize, BATCHES + 3);
        let without = |batch| size.together(&of, Some(batch)).sets as usize;
        assert_eq!((without(0), without(3)), (BATCHES + 1, BATCHES + 2));
    }
}
