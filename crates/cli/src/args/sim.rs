//! `prorata sim`.

use std::num::NonZero;
use std::ops::RangeInclusive;
use std::path::PathBuf;

use clap::{Args, ValueEnum, ValueHint};

use super::Format;

/// `prorata sim`.
#[derive(Clone, Args, Debug)]
#[command(
    arg_required_else_help = true,
    after_help = "\
Stepping through a run, a line of standard input says how far: nothing, one event; a number, so many \
events; a time such as 1.5s, up to then; a client's name, up to its next event; p shows clients and \
CPUs, q quits.

Examples:
  prorata sim scenarios/three-two-one.toml
  prorata sim scenarios/mixed.toml --seed 7 --perfetto trace.json
  prorata sim scenarios/mixed.toml --step
  prorata sim scenarios/conformance/three-two-one.toml --engine user
  prorata vm run -- prorata sim scenarios/conformance/three-two-one.toml --engine kernel
  prorata sim scenarios/server.toml --sweep machine.policy=stride,lottery --seeds 1-100
  prorata sim --faults --seeds 1-1000

Exit codes: 0 done and no assertion of the scenario fails that the engine can judge, 1 one does, or \
it can judge none, or refused or failed, 2 wrong usage."
)]
pub struct Sim {
    /// Scenario to run
    #[arg(value_hint = ValueHint::FilePath, required_unless_present_any = ["faults", "schema"])]
    pub scenario: Option<PathBuf>,
    /// Where all chance comes from, instead of the scenario's own seed
    #[arg(long, value_name = "N", conflicts_with = "seeds")]
    pub seed: Option<u64>,
    /// What runs the clients
    #[arg(
        long,
        value_enum,
        default_value = "sim",
        conflicts_with_all = ["sweep", "seeds", "faults"]
    )]
    pub engine: Engine,
    #[command(flatten)]
    pub files: Files,
    /// Step through the run
    #[arg(long, conflicts_with_all = ["json", "csv", "svg", "perfetto", "record", "sweep", "faults"])]
    pub step: bool,
    #[command(flatten)]
    pub many: Many,
    /// Print the JSON schema of scenario files
    #[arg(long, exclusive = true)]
    pub schema: bool,
    #[command(flatten)]
    pub format: Format,
}

/// What runs a scenario's clients.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum, Debug)]
pub enum Engine {
    /// The simulator
    Sim,
    /// Real processes, in real time, under the engine for ordinary Linux
    User,
    /// The same under the scheduler in the kernel, as root on a kernel with sched_ext
    Kernel,
}

/// What a run is written to.
#[derive(Clone, Args, Debug)]
pub struct Files {
    /// Write service over time as CSV to FILE (- for standard output)
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub csv: Option<PathBuf>,
    /// Draw shares over time into FILE
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub svg: Option<PathBuf>,
    /// Write a trace for ui.perfetto.dev to FILE
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub perfetto: Option<PathBuf>,
    /// Record every event as a line in FILE
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub record: Option<PathBuf>,
}

/// Many runs at once.
#[derive(Clone, Args, Debug)]
pub struct Many {
    /// Run with each of these values of a setting; several make a grid
    #[arg(
        long,
        value_name = "SETTING=VALUE,...",
        conflicts_with_all = ["csv", "svg", "perfetto", "record", "faults"]
    )]
    pub sweep: Vec<String>,
    /// Run with each of these seeds, such as 1-100
    #[arg(long, value_name = "FIRST-LAST", value_parser = seeds, conflicts_with_all = ["csv", "svg", "perfetto", "step"])]
    pub seeds: Option<RangeInclusive<u64>>,
    /// Keep the results of a sweep in FILE, a line of JSON a run; runs that are there are not
    /// repeated [default: beside the scenario, ending in .results]
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, requires = "scenario")]
    pub results: Option<PathBuf>,
    /// Threads that run [default: one a CPU]
    #[arg(long, value_name = "N")]
    pub threads: Option<NonZero<usize>>,
    /// Try random scenarios with random changes of rights, checking everything at every event
    #[arg(long, conflicts_with = "scenario")]
    pub faults: bool,
}

/// One seed, or a range of seeds such as `1-100`.
fn seeds(text: &str) -> Result<RangeInclusive<u64>, String> {
    let rule = || "seeds are a number or a range, such as 1-100".to_owned();
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    let number = |text: &str| text.parse::<u64>().map_err(|_| rule());
    let (first, last) = (number(first)?, number(last)?);
    if first > last {
        return Err(rule());
    }
    Ok(first..=last)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seeds_are_a_number_or_a_range() {
        assert_eq!(seeds("7"), Ok(7..=7));
        assert_eq!(seeds("0-18446744073709551615"), Ok(0..=u64::MAX));
        for wrong in ["", "-", "3-1", "a", "1-", "1-2-3", "18446744073709551616"] {
            assert!(seeds(wrong).is_err(), "{wrong:?}");
        }
    }
}
