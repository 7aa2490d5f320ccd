//! First fit: a task takes the first open slots of each of its periods on the first CPU that has
//! them, and is left out if none has. Nothing is moved afterwards.

use prorata_core::rng::Rng;
use prorata_core::slots::geometry::Cell;
use prorata_core::slots::place::View;
use prorata_core::slots::place::cpu_choice::CpuChoice;
use prorata_core::slots::place::periodic::{Fit, Periodic};

use super::tasks::slots_of;

/// What became of a set.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Placed {
    /// Slots of the tasks that were placed.
    pub load: u32,
    /// Tasks that were left out.
    pub left_out: u32,
    /// CPUs without a task.
    pub empty_cpus: u32,
}

pub fn place_all(
    tasks: &[Periodic],
    mut view: View,
    choice: CpuChoice,
    rng: &mut impl Rng,
) -> Placed {
    let columns = view.columns();
    let mut placed = Placed::default();
    for &task in tasks {
        match place(task, &mut view, choice, rng) {
            Some(_) => placed.load += slots_of(task, columns),
            None => placed.left_out += 1,
        }
    }
    let rows = 0..view.rows();
    placed.empty_cpus = rows.filter(|&row| view.open_in(row) == columns).count() as u32;
    placed
}

/// Places a task and says on which CPU.
pub fn place(
    task: Periodic,
    view: &mut View,
    choice: CpuChoice,
    rng: &mut impl Rng,
) -> Option<u32> {
    let room = slots_of(task, view.columns());
    let mut fitting = choice.order(view, room, rng).filter_map(|row| {
        let columns = task.place(view, row, Fit::Harmonic)?;
        Some((row, columns))
    });
    let found = fitting.next();
    drop(fitting);
    let (row, columns) = found?;
    for column in columns {
        view.close(Cell { row, column });
    }
    Some(row)
}

#[cfg(test)]
mod tests {
    use prorata_core::rng::{SeedableRng, Xoshiro256PlusPlus, below};

    use super::*;

    fn empty(cpus: u32, columns: u32) -> View {
        View::new(cpus, columns, |_| true)
    }

    /// The CPU of each task, slot by slot; of random CPUs there may only be one.
    fn naive(
        tasks: &[Periodic],
        cpus: usize,
        columns: usize,
        choice: CpuChoice,
    ) -> Vec<Option<u32>> {
        let mut taken = vec![vec![false; columns]; cpus];
        let mut chosen = Vec::new();
        for task in tasks {
            let mut rows: Vec<usize> = (0..cpus).collect();
            let used = |row: &usize| taken[*row].iter().filter(|taken| **taken).count();
            match choice {
                CpuChoice::MostUtilised => rows.sort_by_key(|row| columns - used(row)),
                _ => rows.sort_by_key(used),
            }
            let tried = rows.into_iter().find_map(|row| {
                let mut cpu = taken[row].clone();
                for window in cpu.chunks_mut(task.period as usize) {
                    for _ in 0..task.slots {
                        *window.iter_mut().find(|taken| !**taken)? = true;
                    }
                }
                Some((row, cpu))
            });
            chosen.push(tried.map(|(row, cpu)| {
                taken[row] = cpu;
                row as u32
            }));
        }
        chosen
    }

    #[test]
    fn first_fit_places_as_a_naive_search_does() {
        let mut left_out = 0;
        for seed in 0..2_000 {
            let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
            let columns = [12u32, 24, 120][below(&mut rng, 3) as usize];
            let periods: Vec<u32> = (2..=columns)
                .filter(|period| columns.is_multiple_of(*period))
                .collect();
            let mut choice = [
                CpuChoice::LeastUtilised,
                CpuChoice::MostUtilised,
                CpuChoice::Random,
            ][below(&mut rng, 3) as usize];
            let mut cpus = 1 + below(&mut rng, 4) as u32;
            if choice == CpuChoice::Random {
                cpus = 1;
            }
            let tasks: Vec<Periodic> = (0..below(&mut rng, 20))
                .map(|_| {
                    let period = periods[below(&mut rng, periods.len() as u64) as usize];
                    let slots = 1 + below(&mut rng, u64::from(period) / 2) as u32;
                    Periodic::new(slots, period)
                })
                .collect();
            let mut view = empty(cpus, columns);
            let ours = tasks
                .iter()
                .map(|&task| place(task, &mut view, choice, &mut rng));
            let ours: Vec<_> = ours.collect();
            let naive = naive(&tasks, cpus as usize, columns as usize, choice);
            assert_eq!(ours, naive, "seed {seed}");
            let placed = place_all(&tasks, empty(cpus, columns), choice, &mut rng);
            let refused = ours.iter().filter(|row| row.is_none()).count() as u32;
            assert_eq!(placed.left_out, refused, "seed {seed}");
            let open: u32 = (0..cpus).map(|row| view.open_in(row)).sum();
            assert_eq!(placed.load + open, cpus * columns, "seed {seed}");
            left_out += refused;
            choice = CpuChoice::Random;
            let mut view = empty(cpus, columns);
            if let Some(row) = tasks
                .first()
                .and_then(|&t| place(t, &mut view, choice, &mut rng))
            {
                assert!(row < cpus);
            }
        }
        assert!(left_out > 1_000, "{left_out}");
    }
}
