//! Hybrid lottery scheduling (1999), each mechanism by itself.

use prorata_core::hybrid::Mechanisms;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The mechanisms of hybrid lottery scheduling (1999, 3).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
pub struct Hybrid {
    /// A client that wakes from a sleep in the kernel runs before others, while its lead
    /// permits it (1999, 3.1).
    pub kernel_priorities: bool,
    /// A client that wakes preempts a running one that deserves less by at least 1 ms
    /// (1999, 3.2).
    pub abbreviated_quanta: bool,
    /// A client that wakes and received less than it deserved in ten seconds runs before
    /// others, while its lead permits it (1999, 3.3).
    pub ticket_boost: bool,
    /// The mechanisms are those that the paper prints, without a bound: a boost multiplies
    /// tickets, a kernel priority lasts until a quantum is used, and each wake preempts. For
    /// list-lottery, tree-lottery, class-lottery and decay-usage.
    pub as_printed: bool,
    /// A client's base tickets follow its nice value (1999, 3.4).
    pub nice: bool,
}

impl Hybrid {
    /// Whether no mechanism is in force.
    pub fn is_off(&self) -> bool {
        *self == Self::default()
    }

    /// For a dispatcher.
    pub fn mechanisms(self) -> Mechanisms {
        Mechanisms {
            kernel_priorities: self.kernel_priorities,
            abbreviated_quanta: self.abbreviated_quanta,
            ticket_boost: self.ticket_boost,
            nice: self.nice,
        }
    }
}
