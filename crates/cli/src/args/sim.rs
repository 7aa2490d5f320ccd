//! Arguments of `prorata sim`.

use std::num::NonZero;
use std::ops::RangeInclusive;
use std::path::PathBuf;

use clap::{Args, ValueHint};

use super::Format;
use super::values::AnyEngine;

/// `prorata sim`.
#[derive(Clone, Args, Debug)]
#[command(
    arg_required_else_help = true,
    after_help = "\
With --step, each line of standard input is a command: an empty line advances by one event, a number \
by that many events, a time such as 1.5s up to that time, and a client's name up to the client's next \
event. p shows clients and CPUs, q quits.

Examples:
  prorata sim scenarios/three-two-one.toml
  prorata sim scenarios/mixed.toml --seed 7 --perfetto trace.json
  prorata sim scenarios/mixed.toml --step
  prorata sim scenarios/conformance/three-two-one.toml --engine user
  prorata vm run -- prorata sim scenarios/conformance/three-two-one.toml --engine kernel
  prorata sim scenarios/server.toml --sweep machine.policy=stride,lottery --seeds 1-100
  prorata sim --faults --seeds 1-1000

Exit codes: 0 done, and every judged assertion holds; 1 refused or failed, or an assertion fails, or \
the engine can judge none; 2 wrong usage."
)]
pub struct SimArgs {
    /// Scenario file to run
    #[arg(value_hint = ValueHint::FilePath, required_unless_present_any = ["faults", "schema"])]
    pub scenario: Option<PathBuf>,
    /// Seed of all random numbers, instead of the scenario's seed
    #[arg(long, value_name = "N", conflicts_with = "seeds")]
    pub seed: Option<u64>,
    /// Engine that runs the clients
    #[arg(
        long,
        value_enum,
        default_value = "sim",
        conflicts_with_all = ["sweep", "seeds", "faults"]
    )]
    pub engine: AnyEngine,
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

/// Output files of a run.
#[derive(Clone, Args, Debug)]
pub struct Files {
    /// Write received time, errors and queue lengths over time as CSV to FILE (- for standard output)
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub csv: Option<PathBuf>,
    /// Draw shares, errors, queue lengths and times as SVG into FILE
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub svg: Option<PathBuf>,
    /// Write a trace for ui.perfetto.dev to FILE
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub perfetto: Option<PathBuf>,
    /// Write every event as a line to FILE
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub record: Option<PathBuf>,
}

/// Options of sweeps and trials.
#[derive(Clone, Args, Debug)]
pub struct Many {
    /// Run with each of these values of a setting; several such options make a grid
    #[arg(
        long,
        value_name = "SETTING=VALUE,...",
        conflicts_with_all = ["csv", "svg", "perfetto", "record", "faults"]
    )]
    pub sweep: Vec<String>,
    /// Run with each of these seeds, such as 1-100
    #[arg(long, value_name = "FIRST-LAST", value_parser = seeds, conflicts_with_all = ["csv", "svg", "perfetto", "step"])]
    pub seeds: Option<RangeInclusive<u64>>,
    /// Append the results of a sweep to FILE, a line of JSON per run; runs found there are not
    /// repeated [default: beside the scenario, ending in .results]
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, requires = "scenario")]
    pub results: Option<PathBuf>,
    /// Number of threads [default: one per CPU]
    #[arg(long, value_name = "N")]
    pub threads: Option<NonZero<usize>>,
    /// Run random scenarios with random changes of tickets, and check all invariants at every event
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
