//! The timeline of a scenario: events from outside at given times.

use prorata_core::cpu_limit::CpuLimit;
use prorata_core::policy::PolicyName;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Amount, Time, slots};

/// An event at a time.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct At {
    /// Its time. Events of the same time happen in the order of the file.
    pub time: Time,
    /// The event.
    #[serde(rename = "do")]
    pub action: Action,
}

/// An event. A client named with a count stands for all its copies.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Action {
    /// Starts a client that has exited or was stopped, from its first step.
    Start(String),
    /// Ends all threads of a client. They release their mutexes and answer the calls that
    /// they serve.
    Stop(String),
    /// Sets the face value of the ticket that a client or a currency holds in the amount's
    /// currency: inflation and deflation (1994, 3.2). Without such a ticket, a new one is
    /// issued.
    SetTickets(SetTickets),
    /// Limits the CPU time of a client, or ends its limit.
    SetMax(SetMax),
    /// Gives a client another nice value.
    SetNice(SetNice),
    /// Destroys the tickets that a client or a currency holds in a currency.
    Unfund(Unfund),
    /// Moves tickets from a client until the transfer ends (1994, 3.1).
    Transfer(Transfer),
    /// Ends a transfer.
    EndTransfer(String),
    /// Moves a client to another pool of CPUs.
    Move(Move),
    /// Changes the policy.
    Policy(PolicyName),
    /// Changes the quantum.
    Quantum(Time),
    /// Wakes one thread that waits for the signal, now or later.
    Signal(String),
    /// Claims slots (2005, 2.3); those that cannot be had are refused.
    Claim(slots::Claim),
    /// Frees slots.
    Free(slots::Free),
    /// Sets a client's tokens.
    SetTokens(slots::SetTokens),
    /// Moves tokens to another client, until that one ends.
    Donate(slots::Donate),
    /// Keeps slots unclaimed.
    Reserve(slots::Reserve),
}

/// New funding.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct SetTickets {
    /// A client or a currency.
    pub of: String,
    /// Its new amount.
    pub tickets: Amount,
}

/// A new limit.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct SetMax {
    /// A client.
    pub of: String,
    /// The most CPU time that each copy may get; without it, the limit ends.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max: Option<CpuLimit>,
}

/// A new nice value.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct SetNice {
    /// A client.
    pub of: String,
    /// Its new nice value, -20 to 20.
    pub nice: i8,
}

/// An end of funding.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Unfund {
    /// A client or a currency.
    pub of: String,
    /// Denomination of the destroyed tickets.
    pub currency: String,
}

/// A loan of tickets.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Transfer {
    /// The name for `end-transfer`.
    pub name: String,
    /// The client that gives.
    pub from: String,
    /// Clients or currencies that receive.
    pub to: Vec<String>,
    /// The amount for each receiver; without it, the receivers share all tickets of the
    /// giver equally.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tickets: Option<Amount>,
}

/// Another pool for a client.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Move {
    /// The client that moves.
    pub client: String,
    /// Its new pool.
    pub to: String,
}
