//! What the processes of an experiment do: our own program, run again under
//! another name, computes and says how far it has come.
//!
//! Once it is ready it waits for a byte on its standard input, so that all
//! begin together. It writes its state over and over to the beginning of its standard output, a file
//! in memory.

use std::fs::File;
use std::hint::black_box;
use std::io::{self, Read};
use std::os::fd::AsFd;
use std::os::unix::fs::FileExt;

use prorata_core::rng::{Rng, SeedableRng, Xoshiro256PlusPlus};
use rustix::process::{Signal, set_parent_process_death_signal};
use rustix::time::{ClockId, clock_gettime};

/// What a worker is called, by which it knows itself.
pub(super) const NAME: &str = "prorata-worker";

/// What a worker does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Work {
    /// Integer arithmetic, as the benchmarks of both papers.
    Arithmetic,
    /// A Monte-Carlo integration (1994, 5.2).
    MonteCarlo,
}

impl Work {
    /// The worker's only argument.
    pub(super) fn argument(self) -> &'static str {
        match self {
            Work::Arithmetic => "arithmetic",
            Work::MonteCarlo => "monte-carlo",
        }
    }
}

/// How far a worker has come; 24 bytes in its file.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct State {
    /// Iterations or trials.
    pub done: u64,
    /// CPU time since it began, by the kernel's clock for the process.
    pub cpu_ns: u64,
    /// Relative error of an integration, infinite before the first trials;
    /// without meaning for arithmetic.
    pub relative_error: f64,
}

impl State {
    /// Of one that has not begun.
    pub(super) const BEFORE: State = State {
        done: 0,
        cpu_ns: 0,
        relative_error: f64::INFINITY,
    };

    /// What the file says; nothing while the worker is not ready to begin.
    pub(super) fn read(file: &File) -> io::Result<Option<State>> {
        let mut bytes = [0; 24];
        if file.read_at(&mut bytes, 0)? < bytes.len() {
            return Ok(None);
        }
        let word = |place: usize| {
            let word = &bytes[8 * place..8 * (place + 1)];
            u64::from_le_bytes(word.try_into().expect("eight bytes"))
        };
        Ok(Some(State {
            done: word(0),
            cpu_ns: word(1),
            relative_error: f64::from_bits(word(2)),
        }))
    }

    fn write(self, file: &File) -> io::Result<()> {
        let words = [self.done, self.cpu_ns, self.relative_error.to_bits()];
        file.write_all_at(words.map(u64::to_le_bytes).as_flattened(), 0)
    }
}

/// CPU time of this process.
fn cpu_ns() -> u64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
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
    // Whatever goes wrong, nobody is there to hear of it but the exit code.
    std::process::exit(i32::from(compute(work.as_deref()).is_err()));
}

fn compute(work: Option<&str>) -> io::Result<()> {
    set_parent_process_death_signal(Some(Signal::KILL))?;
    let file = File::from(io::stdout().as_fd().try_clone_to_owned()?);
    State::BEFORE.write(&file)?;
    io::stdin().read_exact(&mut [0])?;
    match work {
        Some("arithmetic") => arithmetic(&file),
        Some("monte-carlo") => monte_carlo(&file),
        _ => Err(io::ErrorKind::InvalidInput.into()),
    }
}

fn arithmetic(file: &File) -> io::Result<()> {
    let begin_ns = cpu_ns();
    let mut state = State::BEFORE;
    let mut number = 1u64;
    loop {
        for _ in 0..BETWEEN_WRITES {
            number = black_box(number.wrapping_mul(3).wrapping_add(1));
        }
        state.done += u64::from(BETWEEN_WRITES);
        state.cpu_ns = cpu_ns() - begin_ns;
        state.write(file)?;
    }
}

/// Integrates `sqrt(1 - x^2)` from 0 to 1: a quarter of a circle.
fn monte_carlo(file: &File) -> io::Result<()> {
    let mut lots = Xoshiro256PlusPlus::seed_from_u64(std::process::id().into());
    let begin_ns = cpu_ns();
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
        let state = State {
            done: trials,
            cpu_ns: cpu_ns() - begin_ns,
            relative_error: error / mean,
        };
        state.write(file)?;
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
    fn a_state_survives_its_file() {
        let file = tempfile::tempfile().expect("there is room");
        assert_eq!(State::read(&file).expect("readable"), None);
        let state = State {
            done: 7,
            cpu_ns: 8,
            relative_error: 0.25,
        };
        state.write(&file).expect("writable");
        assert_eq!(State::read(&file).expect("readable"), Some(state));
    }
}
