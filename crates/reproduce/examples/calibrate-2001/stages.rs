//! The stages of the calibration. Each reads what the one before has written.

use std::fs::{File, read_to_string};
use std::io::Write as _;
use std::path::Path;

use prorata_scenario::file::Time;
use prorata_smp::{LayoutName, SchedulerCosts};

use crate::candidate::{Candidate, LAYOUTS, Load, Measured, Setup, distance};
use crate::{Outcome, in_parallel};

/// An optimum's distance from the targets is at most so much of the least.
const WITHIN: f64 = 1.1;

/// Runs of each candidate under each scheduler. Lengths of run queues, and holds with them,
/// differ by half from run to run.
const SEEDS_OF_GRID: u64 = 3;

/// So many candidates of the grid, the nearest to the targets, are measured anew, as chance
/// decides in part which of them look best.
const NEAREST: usize = 20;

/// Runs of each of these.
const SEEDS: u64 = 8;

/// Runs behind each number that is held against the paper.
pub const SEEDS_OF_RUNS: u64 = 3;

/// Runs behind each speedup of MQ that the slowdown is fitted to.
const SEEDS_OF_FIT: u64 = 4;

/// Rooms and messages of the paper's configurations.
const CONFIGURATIONS: [(u32, u32); 3] = [(10, 100), (20, 200), (30, 300)];

/// MQ's speedups over two CPUs (2001, Table 5): configuration, CPUs, speedup.
const MQ_SPEEDUPS: [(usize, u32, f64); 4] =
    [(0, 6, 2.31), (0, 8, 2.21), (1, 8, 2.29), (2, 8, 2.22)];

/// Every candidate on two CPUs.
pub fn grid(directory: &Path) -> Outcome<()> {
    let mut file = File::create(directory.join("grid.csv"))?;
    writeln!(file, "{},{ON_TWO}", Candidate::COLUMNS)?;
    let candidates = Candidate::grid();
    let all = in_parallel(&candidates, |candidate| OnTwo::of(candidate, SEEDS_OF_GRID))?;
    for (candidate, measured) in candidates.iter().zip(all) {
        writeln!(file, "{},{}", candidate.row(), measured.row())?;
    }
    Ok(())
}

/// Columns of what a candidate comes to on two CPUs, those of DSS first.
const ON_TWO: &str = "messages_per_s,contention,hold_us,wait_us,requests_per_message,length,\
    PLS_messages_per_s,PLS_contention,PLS_hold_us,PLS_wait_us,PLS_requests_per_message,PLS_length,\
    MQ_messages_per_s,MQ_contention,MQ_hold_us,MQ_wait_us,MQ_requests_per_message,MQ_length,\
    distance";

/// What a candidate comes to on two CPUs, under each scheduler.
struct OnTwo([Measured; LAYOUTS.len()]);

impl OnTwo {
    fn of(candidate: &Candidate, seeds: u64) -> Outcome<OnTwo> {
        let setup = candidate.setup();
        let of = |place: usize| setup.measure(((20, 200), LAYOUTS[place]), 2, seeds);
        Ok(OnTwo([of(0)?, of(1)?, of(2)?]))
    }

    fn distance(&self) -> f64 {
        distance(&self.0)
    }

    fn row(&self) -> String {
        let mut row = String::new();
        for of in &self.0 {
            row += &format!(
                "{:.0},{:.2},{:.2},{:.2},{:.3},{:.1},",
                of.messages_per_s, of.contention, of.hold_us, of.wait_us, of.requests, of.length
            );
        }
        format!("{row}{:.4}", self.distance())
    }
}

/// The same with the slowdown f(n) = 1 + s (n - 2) of all that goes over the memory bus.
fn slowed(candidate: &Candidate, thousandths: u32, cpus: u32) -> Setup {
    let mut setup = candidate.setup();
    setup.costs = setup.costs.slowed_down(thousandths, cpus);
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
        near.push((candidate, OnTwo::of(candidate, SEEDS)?));
    }
    let distances = near.iter().map(|(_, measured)| measured.distance());
    let best = distances.fold(f64::INFINITY, f64::min);
    near.retain(|(_, measured)| measured.distance() <= WITHIN * best);
    near.sort_by(|(_, one), (_, other)| one.distance().total_cmp(&other.distance()));
    let mut file = File::create(directory.join("optima.csv"))?;
    writeln!(file, "{},slowdown,{ON_TWO}", Candidate::COLUMNS)?;
    for (candidate, measured) in near {
        let thousandths = fitted_slowdown(candidate)?;
        writeln!(file, "{},{thousandths},{}", candidate.row(), measured.row())?;
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
        for (file, seeds) in [("grid.csv", SEEDS_OF_GRID), ("optima.csv", SEEDS)] {
            let measured = OnTwo::of(&best, seeds).expect("it runs");
            let end = format!(",{}", measured.row());
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
}
