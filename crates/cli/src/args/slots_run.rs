//! Arguments of `prorata slots run`.

use std::ffi::OsString;
use std::str::FromStr;
use std::time::Duration;

use clap::{ArgGroup, Args, ValueHint};
use prorata_core::slots::level::Level;

use super::values::{amount, duration, level};

/// `prorata slots run`.
#[derive(Clone, Args, Debug)]
#[command(
    override_usage = "prorata slots run [OPTIONS] <WISH> [--] COMMAND [ARGUMENT]...",
    group = ArgGroup::new("wish").required(true),
    after_help = "\
Examples:
  prorata slots run --periodic 4ms/20ms -- ./controller
  prorata slots run --periodic 10ms/40ms --jitter 10ms --level hard --cpu 1 -- ./player
  prorata slots run --gang 2 --columns 30 --level gang -- ./solver --threads 2
  prorata slots run --cache 50ms -- ./query
  prorata slots run --best-effort 30% -- ./index

WISH is one of --periodic, --gang, --cache and --best-effort."
)]
pub struct SlotsRunArgs {
    /// So much time of every period on one CPU
    #[arg(long, value_name = "TIME/PERIOD", group = "wish")]
    pub periodic: Option<TimeOfPeriod>,
    /// How long after its period's beginning a job may begin, instead of anywhere in it
    #[arg(long, value_name = "TIME", value_parser = duration, requires = "periodic")]
    pub jitter: Option<Duration>,
    /// So many CPUs at the same time
    #[arg(long, value_name = "THREADS", group = "wish", value_parser = clap::value_parser!(u32).range(1..))]
    pub gang: Option<u32>,
    /// In how many slots of the period the gang runs; by default in a quarter
    #[arg(long, value_name = "N", requires = "gang", value_parser = clap::value_parser!(u32).range(1..))]
    pub columns: Option<u32>,
    /// So much time in one piece on one CPU, in each period of the table
    #[arg(long, value_name = "TIME", group = "wish", value_parser = duration)]
    pub cache: Option<Duration>,
    /// Up to so much of one CPU, in unclaimed slots
    #[arg(long, value_name = "PERCENT", group = "wish")]
    pub best_effort: Option<Percent>,
    /// Level of the tokens to spend, lowest first; a higher one preempts a lower one
    #[arg(long, default_value = "best-effort", value_parser = level())]
    pub level: Level,
    /// Only on this CPU
    #[arg(long, conflicts_with_all = ["gang", "cache"])]
    pub cpu: Option<u32>,
    /// Number of tickets, for what the command gets outside its slots
    #[arg(short, long, default_value = "100", value_parser = amount)]
    pub tickets: u32,
    /// Name of the client, instead of the program's
    #[arg(short, long)]
    pub name: Option<String>,
    /// Command and its arguments
    #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true, value_hint = ValueHint::CommandWithArguments)]
    pub command: Vec<OsString>,
}

/// So much time of every period.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TimeOfPeriod {
    pub time: Duration,
    pub period: Duration,
}

impl FromStr for TimeOfPeriod {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong =
            || format!("{text:?} is no time of a period: write TIME/PERIOD, such as 4ms/20ms");
        let (time, period) = text.split_once('/').ok_or_else(wrong)?;
        let (time, period) = (
            duration(time).map_err(|_| wrong())?,
            duration(period).map_err(|_| wrong())?,
        );
        match !time.is_zero() && time <= period {
            true => Ok(Self { time, period }),
            false => Err(wrong()),
        }
    }
}

/// A part of one CPU.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Percent(pub u32);

impl FromStr for Percent {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let number = text
            .strip_suffix('%')
            .and_then(|number| number.parse().ok());
        match number {
            Some(percent @ 1..=100) => Ok(Self(percent)),
            _ => Err(format!("{text:?} is no part of a CPU: write 1% to 100%")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_of_periods_fit_in_them() {
        let times: TimeOfPeriod = "4ms/20ms".parse().unwrap();
        assert_eq!((times.time.as_millis(), times.period.as_millis()), (4, 20));
        for wrong in [
            "",
            "4ms",
            "4ms/",
            "0ms/20ms",
            "20ms/4ms",
            "4/20",
            "-4ms/20ms",
        ] {
            assert!(wrong.parse::<TimeOfPeriod>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn parts_of_a_cpu_are_percentages() {
        assert_eq!("30%".parse(), Ok(Percent(30)));
        for wrong in ["", "%", "0%", "101%", "30", "1.5%"] {
            assert!(wrong.parse::<Percent>().is_err(), "{wrong}");
        }
    }
}
