//! Sets of periodic tasks (2005, 4.4). How they are drawn is not printed: a task's period is one
//! of those that divide the table, each as likely, and so are the slots that it wants of each
//! period, from 5 to 50 % of a CPU. Tasks join a set until the next would pass the target.

use prorata_core::rng::{Rng, below};
use prorata_core::slots::place::periodic::Periodic;

/// Periods, each with the fewest and the most slots that are 5 to 50 % of it.
pub struct Kinds {
    columns: u32,
    kinds: Vec<(u32, u32, u32)>,
}

/// A set and the load that it was to have.
pub struct TaskSet {
    /// From 0 to 1, of all CPUs.
    pub target: f64,
    pub tasks: Vec<Periodic>,
    /// Slots of the table that the tasks take together.
    pub load: u32,
}

/// Steps in which targets are drawn.
const TARGETS: u64 = 1 << 32;

impl Kinds {
    pub fn of(columns: u32) -> Kinds {
        let periods = (1..=columns).filter(|period| columns.is_multiple_of(*period));
        let kinds = periods.map(|period| (period, period.div_ceil(20), period / 2));
        Kinds {
            columns,
            kinds: kinds.filter(|(_, fewest, most)| fewest <= most).collect(),
        }
    }

    /// A random task.
    pub fn draw(&self, rng: &mut impl Rng) -> Periodic {
        let (period, fewest, most) = self.kinds[below(rng, self.kinds.len() as u64) as usize];
        let slots = fewest + below(rng, u64::from(most - fewest) + 1) as u32;
        Periodic::new(slots, period)
    }

    /// A random set, of a random target.
    pub fn draw_set(&self, cpus: u32, rng: &mut impl Rng) -> TaskSet {
        let target = (below(rng, TARGETS) + 1) as f64 / TARGETS as f64;
        let most = target * f64::from(cpus * self.columns);
        let mut set = TaskSet {
            target,
            tasks: Vec::new(),
            load: 0,
        };
        loop {
            let task = self.draw(rng);
            let load = set.load + slots_of(task, self.columns);
            if f64::from(load) > most {
                return set;
            }
            set.tasks.push(task);
            set.load = load;
        }
    }
}

/// The slots that a task takes of a table that its period divides.
pub fn slots_of(task: Periodic, columns: u32) -> u32 {
    columns / task.period * task.slots
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use prorata_core::rng::{SeedableRng, Xoshiro256PlusPlus};

    use super::*;

    #[test]
    fn the_example_of_the_thesis_has_a_load_of_65_percent() {
        let task = |slots, period| Periodic::new(slots, period);
        let slots = slots_of(task(10, 40), 120) + slots_of(task(2, 5), 120);
        assert_eq!(f64::from(slots) / 120.0, 0.65);
    }

    #[test]
    fn tasks_are_of_every_kind_and_5_to_50_percent_of_a_cpu() {
        let kinds = Kinds::of(120);
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(1);
        let mut seen = BTreeSet::new();
        for _ in 0..20_000 {
            let task = kinds.draw(&mut rng);
            assert!(120_u32.is_multiple_of(task.period), "{task:?}");
            assert!((6..=60).contains(&slots_of(task, 120)), "{task:?}");
            seen.insert((task.period, task.slots));
        }
        let all = (1..=120_u32).flat_map(|period| (1..=period).map(move |slots| (period, slots)));
        let all = all.filter(|(period, slots)| {
            120_u32.is_multiple_of(*period) && (*period..=10 * period).contains(&(20 * slots))
        });
        assert_eq!(seen, all.collect());
    }

    #[test]
    fn a_set_stays_below_its_target_by_less_than_a_task() {
        let kinds = Kinds::of(120);
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(2);
        let mut low = 0;
        for round in 0..4_000 {
            let cpus = 1 << (round % 7);
            let set = kinds.draw_set(cpus, &mut rng);
            let most = set.target * f64::from(120 * cpus);
            let load: u32 = set.tasks.iter().map(|&task| slots_of(task, 120)).sum();
            assert_eq!(set.load, load);
            assert!(f64::from(load) <= most && most < f64::from(load + 60));
            low += u32::from(set.target <= 0.5);
        }
        // Three standard deviations of a fair coin.
        assert!(low.abs_diff(2_000) < 95, "{low}");
    }
}
