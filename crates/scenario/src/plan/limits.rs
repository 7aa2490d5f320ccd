//! Limits on the size of a scenario.

use core::fmt::Display;

use crate::file::{KeyPath, Problem, ScenarioError};

/// CPUs of a machine.
pub const CPUS: u32 = 4096;
/// Pools that the CPUs of a machine are divided into.
pub const POOLS: u32 = prorata_core::dispatcher::MAX_POOLS as u32;
/// Clients, including copies.
pub const CLIENTS: u32 = 1 << 20;
/// Threads at any one time.
pub const THREADS: u32 = 1 << 22;
/// Currencies, including the base currency and those of mutexes.
pub const CURRENCIES: u32 = 1 << 16;
/// Programs, and likewise mutexes and pipes.
pub const OBJECTS: u32 = 1 << 16;
/// Steps of a program, including nested ones.
pub const STEPS: u32 = 4096;
/// Steps without any time passing, and as many more for each thread. The limit finds
/// programs that wake one another for ever.
pub const STEPS_AT_ONCE: u64 = 1 << 16;
/// Counted loops and traces of a program.
pub const REGISTERS: u32 = 64;
/// Times in a trace.
pub const TRACE: u32 = 1 << 24;
/// Messages in a pipe.
pub const PIPE: u32 = 1 << 24;
/// Events on the timeline.
pub const TIMELINE: u32 = 1 << 20;
/// Points of the time series.
pub const POINTS: u32 = 1 << 20;
/// Pairs whose relative error is measured.
pub const PAIRS: u32 = 1 << 10;

/// Claims before the start.
pub const CLAIMS: u32 = 1 << 16;

/// Refuses a number of things above a limit.
pub(crate) fn at_most(
    what: &'static str,
    is: usize,
    high: u32,
    place: &KeyPath,
) -> Result<(), ScenarioError> {
    if is as u64 > u64::from(high) {
        return Err(place.problem(too_many(what, is, high)));
    }
    Ok(())
}

/// Refuses a value outside a range.
pub(crate) fn within<T: PartialOrd + Display>(
    what: &'static str,
    is: T,
    low: T,
    high: T,
    place: &KeyPath,
) -> Result<(), ScenarioError> {
    if is < low || is > high {
        return Err(place.problem(Problem::Range {
            what,
            is: is.to_string(),
            low: low.to_string(),
            high: high.to_string(),
        }));
    }
    Ok(())
}

pub(crate) fn too_many(what: &'static str, is: impl Display, high: u32) -> Problem {
    Problem::Range {
        what,
        is: is.to_string(),
        low: "0".to_owned(),
        high: high.to_string(),
    }
}
