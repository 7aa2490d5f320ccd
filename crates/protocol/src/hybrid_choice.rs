//! The mechanisms of hybrid lottery scheduling (1999) as a user chooses them.

use std::fmt;
use std::str::FromStr;

use prorata_core::hybrid::Mechanisms;
use serde::{Deserialize, Serialize};

/// Which mechanisms decide beside the policy when a client runs. Only nice values change shares.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct HybridChoice {
    /// A task that wakes from a sleep in the kernel runs first (3.1).
    pub kernel_priorities: bool,
    /// A waking task preempts a running task that deserves less (3.2).
    pub abbreviated_quanta: bool,
    /// A waking task that received less than it deserved runs first (3.3).
    pub ticket_boost: bool,
    /// A client's base tickets follow the nice values of its tasks (3.4). Older journals lack it.
    #[serde(default)]
    pub nice: bool,
}

const KERNEL_PRIORITIES: &str = "kernel-priorities";
const ABBREVIATED_QUANTA: &str = "abbreviated-quanta";
const TICKET_BOOST: &str = "ticket-boost";
const NICE: &str = "nice";
const NONE: &str = "none";

impl HybridChoice {
    /// The policies of 1994 and 1995 alone.
    pub const NONE: Self = Self {
        kernel_priorities: false,
        abbreviated_quanta: false,
        ticket_boost: false,
        nice: false,
    };
    /// All mechanisms.
    pub const ALL: Self = Self {
        kernel_priorities: true,
        abbreviated_quanta: true,
        ticket_boost: true,
        nice: true,
    };
}

impl From<HybridChoice> for Mechanisms {
    fn from(choice: HybridChoice) -> Self {
        let HybridChoice {
            kernel_priorities,
            abbreviated_quanta,
            ticket_boost,
            nice,
        } = choice;
        Self {
            kernel_priorities,
            abbreviated_quanta,
            ticket_boost,
            nice,
        }
    }
}

impl Default for HybridChoice {
    fn default() -> Self {
        Self::ALL
    }
}

impl FromStr for HybridChoice {
    type Err = String;

    /// Names separated by commas, or `none`.
    fn from_str(text: &str) -> Result<Self, String> {
        let mut choice = Self::NONE;
        if text == NONE {
            return Ok(choice);
        }
        for name in text.split(',') {
            match name {
                KERNEL_PRIORITIES => choice.kernel_priorities = true,
                ABBREVIATED_QUANTA => choice.abbreviated_quanta = true,
                TICKET_BOOST => choice.ticket_boost = true,
                NICE => choice.nice = true,
                _ => {
                    return Err(format!(
                        "{name:?} is no mechanism: write none, or some of {} with commas between them",
                        Self::ALL
                    ));
                }
            }
        }
        Ok(choice)
    }
}

impl fmt::Display for HybridChoice {
    /// As on the command line.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mechanisms = [
            (self.kernel_priorities, KERNEL_PRIORITIES),
            (self.abbreviated_quanta, ABBREVIATED_QUANTA),
            (self.ticket_boost, TICKET_BOOST),
            (self.nice, NICE),
        ];
        let chosen = mechanisms.into_iter().filter(|(is_chosen, _)| *is_chosen);
        let names: Vec<&str> = chosen.map(|(_, name)| name).collect();
        match names.is_empty() {
            true => f.write_str(NONE),
            false => f.write_str(&names.join(",")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_choice_reads_as_it_is_written() {
        for bits in 0..16 {
            let choice = HybridChoice {
                kernel_priorities: bits & 1 != 0,
                abbreviated_quanta: bits & 2 != 0,
                ticket_boost: bits & 4 != 0,
                nice: bits & 8 != 0,
            };
            assert_eq!(choice.to_string().parse(), Ok(choice));
        }
        for wrong in ["", "boost", "none,ticket-boost", "ticket-boost,"] {
            let refused = wrong.parse::<HybridChoice>().unwrap_err();
            assert!(
                refused.contains("write none, or some of kernel-priorities,"),
                "{refused}"
            );
        }
    }
}
