//! The stages of the calibration. Each reads what the one before has written.

use std::fs::{File, read_to_string};
use std::io::Write as _;
use std::path::Path;

use prorata_scenario::file::Time;
use prorata_smp::{LayoutName, SchedulerCosts};

use crate::candidate::{Candidate, Load, Measured, Setup};
use crate::{Outcome, in_parallel};

/// An optimum's distance from the targets is at most so much of the least.
const WITHIN: f64 = 1.1;

/// So many candidates of the grid, the nearest to the targets, are measured anew: the grid
/// has one run of each, and chance decides which of them look best.
const NEAREST: usize = 40;

/// Runs of each of these, and runs behind each number that is held against the paper.
const SEEDS: u64 = 4;
pub const SEEDS_OF_RUNS: u64 = 4;

/// Runs behind each speedup of MQ that the slowdown is fitted to.
const SEEDS_OF_FIT: u64 = 4;

pub const LAYOUTS: [LayoutName; 3] = [
    LayoutName::GlobalList,
    LayoutName::PriorityLevels,
    LayoutName::MultiQueue,
];

/// Rooms and messages of the paper's configurations.
const CONFIGURATIONS: [(u32, u32); 3] = [(10, 100), (20, 200), (30, 300)];

/// MQ's speedups over two CPUs (2001, Table 5): configuration, CPUs, speedup.
const MQ_SPEEDUPS: [(usize, u32, f64); 4] =
    [(0, 6, 2.31), (0, 8, 2.21), (1, 8, 2.29), (2, 8, 2.22)];

/// The slowdown f(n) = 1 + s (n - 2) of what is outside the scheduler, in per cent; s in
/// thousandths.
fn slowdown(thousandths: u32, cpus: u32) -> u32 {
    100 + thousandths * cpus.saturating_sub(2) / 10
}

/// Every candidate on two CPUs.
pub fn grid(directory: &Path) -> Outcome<()> {
    let mut file = File::create(directory.join("grid.csv"))?;
    writeln!(
        file,
        "{},{},distance",
        Candidate::COLUMNS,
        Measured::COLUMNS
    )?;
    let candidates = Candidate::grid();
    let all = in_parallel(&candidates, |candidate| on_two_cpus(candidate, 1))?;
    for (candidate, measured) in candidates.iter().zip(all) {
        let distance = measured.distance();
        writeln!(file, "{},{},{distance:.4}", candidate.row(), measured.row())?;
    }
    Ok(())
}

fn on_two_cpus(candidate: &Candidate, seeds: u64) -> Outcome<Measured> {
    let load = ((20, 200), LayoutName::GlobalList);
    candidate.setup().measure(load, 2, seeds)
}

/// The same with all that is outside the scheduler slowed down.
fn slowed(candidate: &Candidate, thousandths: u32, cpus: u32) -> Setup {
    let mut setup = candidate.setup();
    setup.costs.outside_percent = slowdown(thousandths, cpus);
    setup
}

/// The rows of a file, without its first.
pub fn rows(path: &Path) -> Outcome<Vec<String>> {
    let text = read_to_string(path)?;
    Ok(text.lines().skip(1).map(str::to_owned).collect())
}

/// All candidates whose distance is near the least, and MQ's slowdown for each.
pub fn optima(directory: &Path) -> Outcome<()> {
    let mut candidates = Vec::new();
    for row in rows(&directory.join("grid.csv"))? {
        let distance: f64 = row.rsplit(',').next().unwrap_or_default().parse()?;
        candidates.push((Candidate::parse(&row)?, distance));
    }
    candidates.sort_by(|(_, one), (_, other)| one.total_cmp(other));
    let mut near = Vec::new();
    for (candidate, _) in candidates.iter().take(NEAREST) {
        near.push((candidate, on_two_cpus(candidate, SEEDS)?));
    }
    let distances = near.iter().map(|(_, measured)| measured.distance());
    let best = distances.fold(f64::INFINITY, f64::min);
    near.retain(|(_, measured)| measured.distance() <= WITHIN * best);
    near.sort_by(|(_, one), (_, other)| one.distance().total_cmp(&other.distance()));
    let mut file = File::create(directory.join("optima.csv"))?;
    writeln!(
        file,
        "{},slowdown,{},distance",
        Candidate::COLUMNS,
        Measured::COLUMNS
    )?;
    for (candidate, measured) in near {
        let thousandths = fitted_slowdown(candidate)?;
        let (row, distance) = (measured.row(), measured.distance());
        writeln!(
            file,
            "{},{thousandths},{row},{distance:.4}",
            candidate.row()
        )?;
    }
    Ok(())
}

/// The slowdown at which MQ's speedups are those of the paper in the geometric mean. No
/// other scheduler is looked at.
fn fitted_slowdown(candidate: &Candidate) -> Outcome<u32> {
    let rate = |(configuration, cpus): (usize, u32), thousandths| {
        let load = (CONFIGURATIONS[configuration], LayoutName::MultiQueue);
        let measured = slowed(candidate, thousandths, cpus).measure(load, cpus, SEEDS_OF_FIT)?;
        Outcome::Ok(measured.messages_per_s)
    };
    let bases: Vec<f64> = (0..CONFIGURATIONS.len())
        .map(|configuration| rate((configuration, 2), 0))
        .collect::<Outcome<_>>()?;
    let (mut low, mut high) = (0, 512);
    while high - low > 2 {
        let middle = (low + high) / 2;
        let mut sum = 0.0;
        for (configuration, cpus, printed) in MQ_SPEEDUPS {
            let speedup = rate((configuration, cpus), middle)? / bases[configuration];
            sum += (speedup / printed).ln();
        }
        match sum > 0.0 {
            true => low = middle,
            false => high = middle,
        }
    }
    Ok((low + high) / 2)
}

/// All schedulers on two to eight CPUs, without the slowdown and with it.
pub fn runs(directory: &Path) -> Outcome<()> {
    let mut file = File::create(directory.join("runs.csv"))?;
    writeln!(
        file,
        "optimum,slowdown,rooms,scheduler,cpus,{}",
        Measured::COLUMNS
    )?;
    for (optimum, row) in rows(&directory.join("optima.csv"))?.iter().enumerate() {
        let candidate = Candidate::parse(row)?;
        for thousandths in [0, slowdown_of(row)?] {
            for load in all_loads() {
                for cpus in 2..=8 {
                    let setup = slowed(&candidate, thousandths, cpus);
                    let measured = setup.measure(load, cpus, SEEDS_OF_RUNS)?.row();
                    let ((rooms, _), layout) = load;
                    let of = format!("{optimum},{thousandths},{rooms},{}", layout.title());
                    writeln!(file, "{of},{cpus},{measured}")?;
                }
            }
        }
    }
    Ok(())
}

/// Whether PLS comes to be behind DSS under (10,100), as in the paper: as it is, and if its
/// levels cost more.
pub fn order(directory: &Path) -> Outcome<()> {
    let mut file = File::create(directory.join("order.csv"))?;
    let columns = "optimum,levels_ns,scheduler,cpus";
    writeln!(file, "{columns},{}", Measured::COLUMNS)?;
    let usual = SchedulerCosts::default().levels;
    for (optimum, row) in rows(&directory.join("optima.csv"))?.iter().enumerate() {
        let candidate = Candidate::parse(row)?;
        for levels in [usual, Time(5_000), Time(10_000)] {
            for layout in [LayoutName::GlobalList, LayoutName::PriorityLevels] {
                for cpus in 2..=8 {
                    let mut setup = slowed(&candidate, slowdown_of(row)?, cpus);
                    setup.costs.levels = levels;
                    let measured = setup.measure(((10, 100), layout), cpus, SEEDS_OF_RUNS)?;
                    let of = format!("{optimum},{},{}", levels.0, layout.title());
                    writeln!(file, "{of},{cpus},{}", measured.row())?;
                }
            }
        }
    }
    Ok(())
}

/// The slowdown in a row of the optima.
fn slowdown_of(row: &str) -> Outcome<u32> {
    Ok(row
        .split(',')
        .nth(Candidate::WIDTH)
        .unwrap_or_default()
        .parse()?)
}

fn all_loads() -> impl Iterator<Item = Load> {
    let loads = |configuration| LAYOUTS.map(|layout| (configuration, layout));
    CONFIGURATIONS.into_iter().flat_map(loads)
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;

    fn archive() -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("data/2001")
    }

    /// The row of a candidate in a file of the archive.
    fn archived(file: &str, candidate: &Candidate) -> String {
        let rows = rows(&archive().join(file)).expect("the archive is there");
        let start = format!("{},", candidate.row());
        let found = rows.into_iter().find(|row| row.starts_with(&start));
        found.unwrap_or_else(|| panic!("{file} lacks {start}"))
    }

    #[test]
    fn the_archive_holds_what_the_best_optimum_comes_to_now() {
        let optima = rows(&archive().join("optima.csv")).expect("the archive is there");
        let best = Candidate::parse(&optima[0]).expect("a candidate");
        for (file, seeds) in [("grid.csv", 1), ("optima.csv", SEEDS)] {
            let measured = on_two_cpus(&best, seeds).expect("it runs");
            let end = format!(",{},{:.4}", measured.row(), measured.distance());
            let row = archived(file, &best);
            assert!(row.ends_with(&end), "{file}: {row} against {end}");
        }
    }

    #[test]
    fn every_candidate_is_in_the_archive_once() {
        let rows = rows(&archive().join("grid.csv")).expect("the archive is there");
        let parse = |row: &String| Candidate::parse(row).expect("a candidate");
        let archived: Vec<Candidate> = rows.iter().map(parse).collect();
        assert_eq!(archived, Candidate::grid());
    }

    #[test]
    fn the_slowdown_grows_with_each_cpu_beyond_two() {
        assert_eq!(
            [1, 2, 3, 8].map(|cpus| slowdown(90, cpus)),
            [100, 100, 109, 154]
        );
    }
}
