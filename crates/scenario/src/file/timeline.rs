//! What happens to a scenario from outside, at given times.

use prorata_core::policy::PolicyName;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Amount, Time};

/// Something that happens at a time.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct At {
    /// When. What is to happen at the same time happens in the order of the file.
    pub time: Time,
    /// What.
    #[serde(rename = "do")]
    pub action: Action,
}

/// What can happen. A client named with a count stands for all its copies.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Action {
    /// Starts a client that has exited or was stopped, from its first step.
    Start(String),
    /// Ends all threads of a client. Locks that it holds are released, calls
    /// that it serves are answered.
    Stop(String),
    /// Gives the ticket that a client or a currency holds in the amount's
    /// currency this new face value: inflation and deflation (1994, 3.2). If
    /// it holds none, one is issued and funds it.
    SetTickets(SetTickets),
    /// Destroys the tickets that a client or a currency holds in a currency.
    Unfund(Unfund),
    /// Moves tickets from a client until the transfer ends (1994, 3.1).
    Transfer(Transfer),
    /// Undoes a transfer.
    EndTransfer(String),
    /// Takes a client to another pool of CPUs.
    Move(Move),
    /// Goes on under another policy.
    Policy(PolicyName),
    /// Goes on with another quantum.
    Quantum(Time),
    /// Lets one thread that waits, now or later, go on.
    Signal(String),
}

/// New funding.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct SetTickets {
    /// A client or a currency.
    pub of: String,
    /// What it holds from now on.
    pub tickets: Amount,
}

/// An end of funding.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Unfund {
    /// A client or a currency.
    pub of: String,
    /// Denomination of the tickets that it loses.
    pub currency: String,
}

/// A loan of tickets.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Transfer {
    /// By which `end-transfer` names it.
    pub name: String,
    /// The client that gives.
    pub from: String,
    /// Clients or currencies that receive.
    pub to: Vec<String>,
    /// What each receives; without it, all that the giver holds is shared
    /// equally.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tickets: Option<Amount>,
}

/// Another pool for a client.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Move {
    /// Who moves.
    pub client: String,
    /// The pool that it belongs to from now on.
    pub to: String,
}
