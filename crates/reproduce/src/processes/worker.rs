//! What the processes of an experiment do: our own program, run again under another name,
//! computes and counts. It writes its progress over and over to the beginning of its
//! standard output, a file in memory.

use std::fs::File;
use std::hint::black_box;
use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::FileExt;

use prorata_core::rng::{Rng, SeedableRng, Xoshiro256PlusPlus};

use super::switches;

/// What a worker is called, by which it knows itself.
pub(super) const NAME: &str = "prorata-worker";

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Work {
    /// Integer arithmetic, as the benchmarks of both papers.
    Arithmetic,
    /// A Monte-Carlo integration (1994, 5.2).
    MonteCarlo,
    /// Readings of the clock: when the worker has had no CPU ([`super::switches`]).
    Clock,
}

impl Work {
    /// The worker's only argument.
    pub(super) fn argument(self) -> &'static str {
        match self {
            Work::Arithmetic => "arithmetic",
            Work::MonteCarlo => "monte-carlo",
            Work::Clock => "clock",
        }
    }
}

/// How far a worker has come; 16 bytes in its file.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Progress {
    /// Iterations or trials.
    pub done: u64,
    /// Relative error of an integration, infinite before the first trials;
    /// without meaning for arithmetic.
    pub relative_error: f64,
}

impl Progress {
    const NONE: Progress = Progress {
        done: 0,
        relative_error: f64::INFINITY,
    };

    /// What the file says; nothing before the worker begins.
    pub(super) fn read(file: &File) -> Option<Progress> {
        let mut words = [[0; 8]; 2];
        file.read_exact_at(words.as_flattened_mut(), 0).ok()?;
        let [done, relative_error] = words.map(u64::from_le_bytes);
        Some(Progress {
            done,
            relative_error: f64::from_bits(relative_error),
        })
    }

    fn write(self, file: &File) -> io::Result<()> {
        let words = [self.done, self.relative_error.to_bits()];
        file.write_all_at(words.map(u64::to_le_bytes).as_flattened(), 0)
    }
}

/// Iterations or trials between two writes: well below a millisecond.
const BETWEEN_WRITES: u32 = 20_000;

/// Becomes a worker if this process was started as one, and then never
/// returns. To be called first thing in `main`.
pub fn worker_entry() {
    let mut arguments = std::env::args();
    if arguments.next().as_deref() != Some(NAME) {
        return;
    }
    let work = arguments.next();
    // Nothing reads an error of a worker but its exit code.
    std::process::exit(i32::from(compute(work.as_deref()).is_err()));
}

fn compute(work: Option<&str>) -> io::Result<()> {
    let file = File::from(io::stdout().as_fd().try_clone_to_owned()?);
    Progress::NONE.write(&file)?;
    match work {
        Some("arithmetic") => arithmetic(&file),
        Some("monte-carlo") => monte_carlo(&file),
        Some("clock") => switches::read_clock(&file),
        _ => Err(io::ErrorKind::InvalidInput.into()),
    }
}

fn arithmetic(file: &File) -> io::Result<()> {
    let mut progress = Progress::NONE;
    let mut number = 1u64;
    loop {
        for _ in 0..BETWEEN_WRITES {
            number = black_box(number.wrapping_mul(3).wrapping_add(1));
        }
        progress.done += u64::from(BETWEEN_WRITES);
        progress.write(file)?;
    }
}

/// Integrates `sqrt(1 - x^2)` from 0 to 1: a quarter of a circle.
fn monte_carlo(file: &File) -> io::Result<()> {
    let mut lots = Xoshiro256PlusPlus::seed_from_u64(std::process::id().into());
    let mut trials = 0u64;
    let (mut sum, mut squares) = (0.0, 0.0);
    loop {
        for _ in 0..BETWEEN_WRITES / 10 {
            let x = unit(&mut lots);
            let height = (1.0 - x * x).sqrt();
            sum += height;
            squares += height * height;
        }
        trials += u64::from(BETWEEN_WRITES / 10);
        let (mean, square) = (sum / trials as f64, squares / trials as f64);
        let error = ((square - mean * mean) / trials as f64).sqrt();
        let progress = Progress {
            done: trials,
            relative_error: error / mean,
        };
        progress.write(file)?;
    }
}

/// Uniform from 0 to below 1.
fn unit(lots: &mut impl Rng) -> f64 {
    (lots.next_u64() >> 11) as f64 / (1u64 << 53) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn progress_survives_its_file() {
        let file = tempfile::tempfile().expect("there is room");
        assert_eq!(Progress::read(&file), None);
        let progress = Progress {
            done: 7,
            relative_error: 0.25,
        };
        progress.write(&file).expect("writable");
        assert_eq!(Progress::read(&file), Some(progress));
    }
}
