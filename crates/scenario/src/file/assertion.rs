//! Assertions on a run: the same for every engine.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Time;

/// A condition on the measures. A client named with a count stands for the sum, or the
/// worst, of all its copies.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Assertion {
    /// A client's part of the CPU time of all clients.
    Share(Share),
    /// CPU time of one client divided by that of another.
    Ratio(Ratio),
    /// A client's largest absolute error (1995, 2).
    AbsoluteError(ClientBound),
    /// The largest relative error of two clients (1995, 2).
    RelativeError(PairBound),
    /// Time from a wake to the CPU.
    DispatchLatency(TimeBound),
    /// Time from the end of one turn to the end of the next (1995, 5.3).
    ResponseTime(TimeBound),
    /// All active clients' values together are the active base amount, and
    /// all time of all CPUs is accounted for.
    Conservation(bool),
    /// Time from the beginning of a client's slot, or from a wake in it, until the client runs
    /// there.
    SlotLateness(TimeBound),
    /// A client's slots in which it never ran: it was blocked, or had too few threads.
    Missed(CountBound),
    /// Time from the first to the last beginning of a client's slots in one column.
    GangSkew(LengthBound),
    /// Time in which a client can run and no thread of it does.
    Blackout(LengthBound),
    /// A client's claims that ended without its doing and before they expired.
    Revocations(CountBound),
    /// No token came or went but by what sets tokens.
    TokensConserved(bool),
}

/// A part of the CPU time received.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Share {
    /// The client.
    pub client: String,
    /// The expected share, 0 to 1.
    pub is: f64,
    /// Largest difference, in parts of the whole.
    pub within: f64,
    /// Start of the span; without it, the start of the scenario.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<Time>,
    /// End of the span; without it, the end of the scenario.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<Time>,
}

/// A quotient of CPU times received.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Ratio {
    /// The first client and the second.
    pub of: (String, String),
    /// The expected quotient.
    pub is: f64,
    /// Largest difference, in parts of `is`.
    pub within: f64,
    /// Start of the time looked at; without it, that of the scenario.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<Time>,
    /// End of the time looked at; without it, that of the scenario.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<Time>,
}

/// A bound on a client's error.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct ClientBound {
    /// Whose.
    pub client: String,
    /// Largest error allowed, in quanta.
    pub at_most: f64,
}

/// A bound on the error between two clients.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct PairBound {
    /// The two clients.
    pub of: (String, String),
    /// Largest error allowed, in quanta.
    pub at_most: f64,
}

/// A bound on a client's times.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct TimeBound {
    /// Whose.
    pub client: String,
    /// The percentile: 50 is the median, 100 the longest time.
    pub percentile: f64,
    /// Longest time allowed.
    pub at_most: Time,
}

/// A bound on how often something happens to a client.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct CountBound {
    /// Whose.
    pub client: String,
    /// Most times allowed.
    pub at_most: u64,
}

/// A bound on a client's longest time.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct LengthBound {
    /// Whose.
    pub client: String,
    /// Longest time allowed.
    pub at_most: Time,
}
