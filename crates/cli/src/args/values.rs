//! Values on the command line: tickets, times, CPU lists, modes, receivers.

use std::fmt;
use std::time::Duration;

use clap::ValueEnum;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use prorata_core::cpu_list;
use prorata_core::slots::level::Level;
use prorata_protocol::{CpuLimit, POLICIES, PolicyName};
use rustix::process::Signal;

/// Tickets: a whole number from 1 to 2^32 - 1.
pub fn amount(text: &str) -> Result<u32, String> {
    match text.parse() {
        Ok(0) | Err(_) => {
            Err("an amount of tickets is a whole number from 1 to 4294967295".to_owned())
        }
        Ok(amount) => Ok(amount),
    }
}

/// A length of time such as `20ms` or `1s`. The daemon checks its limits.
pub fn duration(text: &str) -> Result<Duration, String> {
    let rule = || "a length of time is a number and a unit (us, ms, s), such as 20ms".to_owned();
    let digits = text
        .find(|c: char| !c.is_ascii_digit() && c != '.')
        .ok_or_else(rule)?;
    let (number, unit) = text.split_at(digits);
    let unit_s = match unit {
        "us" => 1e-6,
        "ms" => 1e-3,
        "s" => 1.0,
        _ => return Err(rule()),
    };
    let number: f64 = number.parse().map_err(|_| rule())?;
    Duration::try_from_secs_f64(number * unit_s).map_err(|_| rule())
}

/// A limit of CPU time such as `50%`, or `none`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Max(pub Option<CpuLimit>);

/// A limit, or its end.
pub fn max(text: &str) -> Result<Max, String> {
    match text {
        "none" => Ok(Max(None)),
        _ => match text.parse() {
            Ok(limit) => Ok(Max(Some(limit))),
            Err(error) => Err(format!("{error}, or none to end the limit")),
        },
    }
}

/// CPU numbers in ascending order, without repeats.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CpuList(pub Vec<u32>);

/// One past the largest CPU number of a `cpu_set_t` (sched_setaffinity(2)).
const MAX_CPUS: u32 = 1024;

impl fmt::Display for CpuList {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&cpu_list::text(&self.0))
    }
}

/// A list of CPUs such as `0,2-3`.
pub fn cpu_list(text: &str) -> Result<CpuList, String> {
    let cpus = cpu_list::parse(text).map_err(|error| error.to_string())?;
    match cpus.last() {
        None => Err("a list of CPUs names at least one: write a list like 0,2-3".to_owned()),
        Some(last) if *last >= MAX_CPUS => Err(format!(
            "CPU {last} is out of range: processes are bound to CPUs below {MAX_CPUS}"
        )),
        Some(_) => Ok(CpuList(cpus)),
    }
}

/// Three octal digits such as `744`.
pub fn mode(text: &str) -> Result<u16, String> {
    let digits = text.len() == 3 && text.bytes().all(|digit| (b'0'..=b'7').contains(&digit));
    let rule =
        "a mode is three octal digits, such as 744: each adds 4 to read, 2 to fund, 1 to issue";
    if digits {
        u16::from_str_radix(text, 8).map_err(|_| rule.to_owned())
    } else {
        Err(rule.to_owned())
    }
}

/// A receiver of a transfer: `TARGET`, or `TARGET=AMOUNT`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Receiver {
    /// A client or a currency.
    pub target: String,
    /// Number of tickets; `None` with `--all`.
    pub amount: Option<u32>,
}

/// Splits at the last `=`, as names may contain one.
pub fn receiver(text: &str) -> Result<Receiver, String> {
    let (target, amount) = match text.rsplit_once('=') {
        Some((target, tickets)) => (target, Some(amount(tickets)?)),
        None => (text, None),
    };
    if target.is_empty() {
        return Err("a receiver is a client or a currency, such as viewer or viewer=50".to_owned());
    }
    Ok(Receiver {
        target: target.to_owned(),
        amount,
    })
}

/// The signals that ask a program to end.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum, Debug)]
pub enum EndSignal {
    /// The program may save its work first
    #[value(name = "TERM", alias = "SIGTERM")]
    Term,
    /// The terminal is gone
    #[value(name = "HUP", alias = "SIGHUP")]
    Hup,
    /// As by the interrupt key of a terminal
    #[value(name = "INT", alias = "SIGINT")]
    Int,
    /// As by the quit key of a terminal, with a core dump
    #[value(name = "QUIT", alias = "SIGQUIT")]
    Quit,
    /// With a core dump
    #[value(name = "ABRT", alias = "SIGABRT")]
    Abrt,
    /// The program ends at once and saves nothing
    #[value(name = "KILL", alias = "SIGKILL")]
    Kill,
}

impl From<EndSignal> for Signal {
    fn from(signal: EndSignal) -> Signal {
        match signal {
            EndSignal::Term => Signal::TERM,
            EndSignal::Hup => Signal::HUP,
            EndSignal::Int => Signal::INT,
            EndSignal::Quit => Signal::QUIT,
            EndSignal::Abrt => Signal::ABORT,
            EndSignal::Kill => Signal::KILL,
        }
    }
}

/// The engines of the daemon.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum, Debug)]
pub enum DaemonEngine {
    /// The daemon schedules ordinary processes, on any Linux
    User,
    /// A scheduler in the kernel (sched_ext, Linux 6.18 or later); needs root
    Kernel,
}

/// The engines that run scenarios and figures.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, ValueEnum, Debug)]
pub enum AnyEngine {
    /// The simulator
    Sim,
    /// Real processes, in real time, under the user engine
    User,
    /// Real processes under the kernel engine; needs root and a kernel with sched_ext
    Kernel,
}

/// The policies of the daemon's engines.
pub fn policy() -> impl TypedValueParser<Value = PolicyName> {
    let described = |name: &PolicyName| {
        let help = match name {
            PolicyName::Stride => "Deterministic, with the smallest error (1995)",
            PolicyName::Lottery => "Random, as an exponential race (1994)",
            PolicyName::HierarchicalStride => "Deterministic, by a tree of clients (1995)",
            PolicyName::ClassLottery => "Random, in constant time",
            PolicyName::ListLottery
            | PolicyName::TreeLottery
            | PolicyName::Eevdf
            | PolicyName::DecayUsage => "",
        };
        PossibleValue::new(name.as_str()).help(help)
    };
    PossibleValuesParser::new(POLICIES.iter().map(described)).try_map(|name| name.parse())
}

/// The levels of tokens, lowest first, so that help and completions list them in order.
pub fn level() -> impl TypedValueParser<Value = Level> {
    let described = |level: &Level| {
        let help = match level {
            Level::Background => "Work that may wait for ever",
            Level::BestEffort => "Work without particular demands",
            Level::Gang => "Threads that run at the same time",
            Level::Soft2 => "The lower class of soft real time",
            Level::Soft1 => "The upper class of soft real time",
            Level::Hard => "Hard real time; such claims do not share by weight",
            Level::System => "What the system cannot do without; preempts all others",
        };
        PossibleValue::new(level.name()).help(help)
    };
    PossibleValuesParser::new(Level::ALL.iter().map(described)).try_map(|name| name.parse())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_from_one_to_the_last() {
        assert_eq!(amount("1"), Ok(1));
        assert_eq!(amount("4294967295"), Ok(u32::MAX));
        for wrong in ["0", "4294967296", "-1", "1.5", "", "ten"] {
            assert!(amount(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn durations_need_a_unit() {
        assert_eq!(duration("20ms"), Ok(Duration::from_millis(20)));
        assert_eq!(duration("0.5s"), Ok(Duration::from_millis(500)));
        assert_eq!(duration("1500us"), Ok(Duration::from_micros(1500)));
        for wrong in [
            "20",
            "ms",
            "-1s",
            "1h",
            "1.2.3s",
            "",
            "99999999999999999999999s",
        ] {
            assert!(duration(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn limits_are_percentages_of_a_cpu_or_none() {
        assert_eq!(max("none"), Ok(Max(None)));
        assert_eq!(max("50%"), Ok(Max(CpuLimit::from_thousandths(500))));
        assert_eq!(max("6553600%"), Ok(Max(Some(CpuLimit::MOST))));
        for wrong in ["0%", "6553601%", "50", "None", ""] {
            assert!(max(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn lists_of_cpus_are_sorted_and_bounded() {
        assert_eq!(cpu_list("0,2-3,2"), Ok(CpuList(vec![0, 2, 3])));
        assert_eq!(cpu_list("1023"), Ok(CpuList(vec![1023])));
        assert_eq!(CpuList(vec![0, 2, 3, 4, 9]).to_string(), "0,2-4,9");
        for wrong in ["1024", "", "3-1", "1,", "a", "-", "0-99999999999"] {
            assert!(cpu_list(wrong).is_err(), "{wrong}");
        }
        let past = "CPU 1024 is out of range: processes are bound to CPUs below 1024";
        assert_eq!(cpu_list("0,1024"), Err(past.to_owned()));
    }

    #[test]
    fn modes_are_three_octal_digits() {
        assert_eq!(mode("744"), Ok(0o744));
        assert_eq!(mode("000"), Ok(0));
        for wrong in ["7", "0744", "888", "+77", "rwx", ""] {
            assert!(mode(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn receivers_with_and_without_an_amount() {
        let of = |target: &str, amount| {
            Ok(Receiver {
                target: target.to_owned(),
                amount,
            })
        };
        assert_eq!(receiver("viewer"), of("viewer", None));
        assert_eq!(receiver("viewer=50"), of("viewer", Some(50)));
        assert_eq!(receiver("a=b=50"), of("a=b", Some(50)));
        for wrong in ["", "=5", "viewer=0", "viewer=x"] {
            assert!(receiver(wrong).is_err(), "{wrong}");
        }
    }
}
