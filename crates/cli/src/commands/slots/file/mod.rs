//! The shape of a file of claims, which is that of a scenario's, and the rules that it may break.

mod claims;
mod value;

use prorata_core::cpu_limit::CpuLimit;
use prorata_core::slots::error::SlotError;
use prorata_core::slots::level::UnknownLevel;
use prorata_scenario::file::{MAX_NAME_BYTES, Time};
use serde::Deserialize;
use toml::Spanned;

use crate::args::timetable::Places;

pub use claims::Claims;
use value::TimeOf;
pub use value::places_of;

/// The shape of the file.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct File {
    pub slots: Spanned<Slots>,
    #[serde(default, rename = "claim")]
    pub claims: Vec<Spanned<Claim>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Slots {
    pub cpus: u32,
    pub columns: Option<u32>,
    pub length: Option<Time>,
    pub reserve: Option<Reserve>,
}

/// A reservation of each CPU.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Reserve {
    pub slots: u32,
    pub of: u32,
}

/// A claim: one of `periodic` to `slots`, and what goes with it.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Claim {
    pub by: String,
    pub level: Option<String>,
    pub periodic: Option<TimeOf>,
    pub jitter: Option<Time>,
    pub gang: Option<Gang>,
    pub event: Option<TimeOf>,
    pub cache: Option<Time>,
    pub best_effort: Option<CpuLimit>,
    pub slots: Option<Vec<String>>,
    pub cpu: Option<u32>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Gang {
    pub threads: u32,
    pub columns: Option<u32>,
    #[serde(default)]
    pub cpus: Vec<u32>,
}

/// A rule that a claim breaks, and the key that breaks it; none if the claim itself does.
pub struct Misplaced {
    pub problem: Problem,
    pub key: Option<&'static str>,
}

impl Misplaced {
    /// Where the key's line begins in a text, if the claim that begins at `claim` has one.
    pub fn start(&self, text: &str, claim: usize) -> usize {
        let Some(key) = self.key else { return claim };
        let mut start = claim;
        for (place, line) in text[claim..].split_inclusive('\n').enumerate() {
            // The next table, after this one's own header.
            if place > 0 && line.starts_with('[') {
                break;
            }
            let value = line.trim_start().strip_prefix(key);
            if value.is_some_and(|value| value.trim_start().starts_with('=')) {
                return start;
            }
            start += line.len();
        }
        claim
    }
}

impl From<Problem> for Misplaced {
    fn from(problem: Problem) -> Misplaced {
        Misplaced { problem, key: None }
    }
}

/// Names the key that a problem is in.
pub fn at<T>(key: &'static str, result: Result<T, impl Into<Problem>>) -> Result<T, Misplaced> {
    result.map_err(|problem| Misplaced {
        problem: problem.into(),
        key: Some(key),
    })
}

/// A rule that the file breaks.
#[derive(Debug, thiserror::Error)]
pub enum Problem {
    #[error(transparent)]
    Slot(#[from] SlotError),
    #[error(transparent)]
    Level(#[from] UnknownLevel),
    #[error("{0}")]
    Slots(String),
    #[error("{is} {what}: take {low} to {high}")]
    Range {
        is: u64,
        what: &'static str,
        low: u64,
        high: u64,
    },
    #[error("\"{0}\" is no name: use 1 to {MAX_NAME_BYTES} bytes without spaces")]
    Name(String),
    #[error("\"{0}\" claims twice: give one of the claims another name")]
    Twice(String),
    #[error(
        "the claim says nothing of what it wants: name one of periodic, gang, event, cache, \
         best-effort, slots"
    )]
    NoWish,
    #[error(
        "the claim wants {0} things: name one of periodic, gang, event, cache, best-effort, slots"
    )]
    Wishes(usize),
    #[error("{key} goes with {with} alone: leave it out")]
    Alone {
        key: &'static str,
        with: &'static str,
    },
    #[error("the period {period} is no whole number of slots of {length}: take {fix}")]
    Period {
        period: Time,
        length: Time,
        fix: Time,
    },
    #[error("there is no CPU {cpu}: take 0 to {last}")]
    Cpu { cpu: u32, last: u32 },
    #[error("the table has no slots {slots}: it has CPUs 0 to {cpu} and slots 0 to {column}")]
    Outside {
        slots: Places,
        cpu: u32,
        column: u32,
    },
}
