//! Arguments of `prorata slots` for the open timetable.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use clap::{ArgGroup, Args, ValueHint};
use prorata_core::slots::level::Level;
use prorata_protocol::slots::{AccountName, Fraction};

use super::Format;
use super::values::{duration, level};

/// `prorata slots open`.
#[derive(Clone, Args, Debug)]
#[command(after_help = "\
Examples:
  prorata slots open
  prorata slots open --columns 12 --length 10ms --reserve 1/6")]
pub struct OpenArgs {
    /// Slots of a period
    #[arg(long, value_name = "N", default_value = "120")]
    pub columns: u32,
    /// Length of a slot, 1ms to 100ms
    #[arg(long, value_name = "TIME", default_value = "10ms", value_parser = duration)]
    pub length: Duration,
    /// Slots that stay unclaimed on each CPU, of so many successive ones
    #[arg(long, value_name = "N/M", default_value = "1/10", value_parser = fraction)]
    pub reserve: Fraction,
    #[command(flatten)]
    pub format: Format,
}

/// `prorata slots close`.
#[derive(Clone, Args, Debug)]
#[command(after_help = "\
Example:
  prorata slots close")]
pub struct CloseArgs {}

/// `prorata slots show`.
#[derive(Clone, Args, Debug)]
#[command(after_help = "\
Examples:
  prorata slots show
  prorata slots show --columns 33-38
  prorata slots show --svg table.svg
  prorata slots show --json | jq '.claims[].level'")]
pub struct ShowArgs {
    /// Draw only these slots of the period, such as 33-38
    #[arg(long, value_name = "RANGE", value_parser = range)]
    pub columns: Option<Range>,
    /// Draw into a file instead, or to standard output for -
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub svg: Option<PathBuf>,
    #[command(flatten)]
    pub format: Format,
}

/// `prorata slots watch`.
#[derive(Clone, Args, Debug)]
#[command(after_help = "\
Examples:
  prorata slots watch
  prorata slots watch --freed --json")]
pub struct WatchArgs {
    /// Tell slots that become free, too
    #[arg(long)]
    pub freed: bool,
    #[command(flatten)]
    pub format: Format,
}

/// `prorata slots claim`.
#[derive(Clone, Args, Debug)]
#[command(
    group = ArgGroup::new("runs").required(true),
    after_help = "\
Examples:
  prorata slots claim 0:0,12,24 --client player
  prorata slots claim 0:3-8 1:3-8 --client solver --all
  prorata slots claim 1:7 --process 4711 --expires 400ms

With tokens of a higher level, which root gives to the user that claims, here to root:
  prorata slots tokens user:root --level soft-1 --add 4
  prorata slots claim 0:0,4 --client player --level soft-1"
)]
pub struct ClaimArgs {
    /// CPU and slots of the period, such as 1:3-8,20
    #[arg(required = true, value_name = "CPU:SLOTS")]
    pub slots: Vec<Places>,
    /// A client: any of its tasks runs
    #[arg(long, value_name = "CLIENT", group = "runs")]
    pub client: Option<String>,
    /// A process of a client: any of its threads runs
    #[arg(long, value_name = "PID", group = "runs")]
    pub process: Option<u32>,
    /// One thread of a client
    #[arg(long, value_name = "TID", group = "runs")]
    pub thread: Option<u32>,
    /// Level of the tokens to spend, lowest first; a higher one preempts a lower one
    #[arg(long, default_value = "best-effort", value_parser = level())]
    pub level: Level,
    /// How long the claims hold, instead of until they are freed
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub expires: Option<Duration>,
    /// Claim all of them or none
    #[arg(long)]
    pub all: bool,
    #[command(flatten)]
    pub format: Format,
}

/// `prorata slots free`.
#[derive(Clone, Args, Debug)]
#[command(after_help = "\
Example:
  prorata slots free 0:3-8 1:3-8")]
pub struct FreeArgs {
    /// CPU and slots of the period, such as 1:3-8,20
    #[arg(required = true, value_name = "CPU:SLOTS")]
    pub slots: Vec<Places>,
}

/// `prorata slots tokens`.
#[derive(Clone, Args, Debug)]
#[command(after_help = "\
Examples:
  prorata slots tokens
  prorata slots tokens user:alice
  prorata slots tokens user:alice --level hard --set 12 --weight 2
  prorata slots tokens user:root --level soft-1 --add 4
  prorata slots tokens client:player --level soft-1 --add 4   for claims that player itself makes")]
pub struct TokensArgs {
    /// user:NAME or client:NAME; by default the account that pays for your claims
    pub account: Option<AccountName>,
    /// Level of the tokens to set, lowest first
    #[arg(long, requires = "account", value_parser = level())]
    pub level: Option<Level>,
    /// So many are free to spend afterwards
    #[arg(long, value_name = "N", requires = "level", conflicts_with_all = ["add", "remove"])]
    pub set: Option<u32>,
    /// So many more
    #[arg(long, value_name = "N", requires = "level", conflicts_with = "remove")]
    pub add: Option<u32>,
    /// So many fewer
    #[arg(long, value_name = "N", requires = "level")]
    pub remove: Option<u32>,
    /// Weight of the account's claims against others of the level
    #[arg(long, value_name = "N", requires = "level")]
    pub weight: Option<u32>,
    #[command(flatten)]
    pub format: Format,
}

/// `prorata slots donate`.
#[derive(Clone, Args, Debug)]
#[command(after_help = "\
Example:
  prorata slots donate client:solver gang 4")]
pub struct DonateArgs {
    /// user:NAME or client:NAME
    pub to: AccountName,
    /// Level of the tokens, lowest first
    #[arg(value_parser = level())]
    pub level: Level,
    /// How many
    #[arg(value_parser = clap::value_parser!(u32).range(1..))]
    pub count: u32,
}

/// `prorata slots admit`.
#[derive(Clone, Args, Debug)]
#[command(after_help = "\
Example:
  prorata slots admit players.toml

A policy file:
  [[class]]
  group = \"audio\"    # or user, or client
  level = \"soft-1\"
  count = 12         # tokens of each user of the group
  weight = 2
  most = \"30%\"       # of the table's slots, all together")]
pub struct AdmitArgs {
    /// Policy file
    #[arg(value_hint = ValueHint::FilePath)]
    pub file: PathBuf,
}

/// `prorata slots reserve`.
#[derive(Clone, Args, Debug)]
#[command(after_help = "\
Examples:
  prorata slots reserve 1/6
  prorata slots reserve 1/2 --cpu 0 --immediate")]
pub struct ReserveArgs {
    /// Slots that stay unclaimed, of so many successive ones; 0/1 ends a reservation
    #[arg(value_name = "N/M", value_parser = fraction)]
    pub fraction: Fraction,
    /// Only on this CPU
    #[arg(long)]
    pub cpu: Option<u32>,
    /// Revoke claims in the way, rather than wait for their owners
    #[arg(long)]
    pub immediate: bool,
}

/// Slots of one CPU.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Places {
    pub cpu: u32,
    pub columns: Vec<Range>,
}

/// Columns, the last one included.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Range {
    pub first: u32,
    pub last: u32,
}

impl FromStr for Places {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("{text:?} names no slots: write CPU:SLOTS, such as 1:3-8,20");
        let (cpu, columns) = text.split_once(':').ok_or_else(wrong)?;
        let cpu = cpu.parse().map_err(|_| wrong())?;
        let columns = columns.split(',').map(range);
        let columns = columns.collect::<Result<_, _>>().map_err(|_| wrong())?;
        Ok(Self { cpu, columns })
    }
}

impl fmt::Display for Places {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let columns = self.columns.iter().map(|range| match range {
            Range { first, last } if first == last => first.to_string(),
            Range { first, last } => format!("{first}-{last}"),
        });
        let columns: Vec<String> = columns.collect();
        write!(f, "{}:{}", self.cpu, columns.join(","))
    }
}

fn range(text: &str) -> Result<Range, String> {
    let wrong = || format!("{text:?} is no range of slots: write 7 or 3-8");
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    let number = |text: &str| text.parse().map_err(|_| wrong());
    let (first, last) = (number(first)?, number(last)?);
    match first <= last {
        true => Ok(Range { first, last }),
        false => Err(wrong()),
    }
}

fn fraction(text: &str) -> Result<Fraction, String> {
    let wrong = || format!("{text:?} is no fraction of slots: write N/M, such as 1/10");
    let (numerator, denominator) = text.split_once('/').ok_or_else(wrong)?;
    Ok(Fraction {
        numerator: numerator.parse().map_err(|_| wrong())?,
        denominator: denominator.parse().map_err(|_| wrong())?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_are_named_by_cpu_and_ranges() {
        let places: Places = "1:3-8,20".parse().unwrap();
        let columns = [
            Range { first: 3, last: 8 },
            Range {
                first: 20,
                last: 20,
            },
        ];
        assert_eq!((places.cpu, &places.columns[..]), (1, &columns[..]));
        for wrong in ["", "1", "1:", ":3", "1:8-3", "1:3,", "a:3", "1:3-", "-1:3"] {
            assert!(wrong.parse::<Places>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn fractions_have_two_numbers() {
        let fraction_of = |text| fraction(text).map(|it| (it.numerator, it.denominator));
        assert_eq!(fraction_of("1/10"), Ok((1, 10)));
        for wrong in ["", "1", "1/", "/2", "1/2/3", "-1/2", "0.5"] {
            assert!(fraction(wrong).is_err(), "{wrong}");
        }
    }
}
