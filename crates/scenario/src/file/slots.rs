//! The timetable of slots and its claims (2005).

use prorata_core::slots::geometry::Geometry;
use prorata_core::slots::level;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Time;

/// A timetable: a row of slots for each CPU, which comes round again and again (2005, 2.1).
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
pub struct Slots {
    /// Slots of a period.
    pub columns: u32,
    /// Length of a slot, 1 to 100 ms.
    pub length: Time,
    /// Slots of each CPU that stay unclaimed (2005, 2.5.1).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reserve: Option<Fraction>,
    /// Tokens of each level that each user has at first; without it, as many as there are
    /// slots. A client without tokens of its own pays with its user's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub user_tokens: Option<u32>,
    /// Tokens that clients have at first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tokens: Vec<SetTokens>,
}

impl Default for Slots {
    fn default() -> Self {
        Slots {
            columns: Geometry::DEFAULT_COLUMNS,
            length: Time(Geometry::DEFAULT_SLOT_NS),
            reserve: None,
            user_tokens: None,
            tokens: Vec::new(),
        }
    }
}

/// A part of successive slots.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Fraction {
    /// So many slots ...
    pub slots: u32,
    /// ... of any so many successive ones, round the end of the table.
    pub of: u32,
}

/// The priority of a token, the lowest first (2005, 2.4.1).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[allow(missing_docs, reason = "the names are the core's")]
pub enum Level {
    Background,
    #[default]
    BestEffort,
    Gang,
    #[serde(rename = "soft-2")]
    Soft2,
    #[serde(rename = "soft-1")]
    Soft1,
    Hard,
    System,
}

impl From<Level> for level::Level {
    fn from(level: Level) -> Self {
        match level {
            Level::Background => Self::Background,
            Level::BestEffort => Self::BestEffort,
            Level::Gang => Self::Gang,
            Level::Soft2 => Self::Soft2,
            Level::Soft1 => Self::Soft1,
            Level::Hard => Self::Hard,
            Level::System => Self::System,
        }
    }
}

/// A claim of slots: named ones, or placed as one of the library's schedulers does (2005, 2.3).
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Claim {
    /// The client that owns the claim.
    pub by: String,
    /// The client that runs in the slots; without it, the owner. If it is another user's, the
    /// claim is a gift: it charges no tickets, and never moves a thread that runs elsewhere.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub runs: Option<String>,
    /// The number of the one thread that runs, in the order in which the client's threads began
    /// from 1; without it, any thread.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thread: Option<u32>,
    /// Slots of CPUs, such as `1:3-8`, both counted from 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slots: Option<Vec<String>>,
    /// Slots in the same columns for several threads.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gang: Option<Gang>,
    /// So many slots of every so many.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub periodic: Option<Periodic>,
    /// The next slots up to a deadline; the claim expires then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub event: Option<EventDriven>,
    /// So many successive slots on one CPU.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache: Option<u32>,
    /// So many slots, whichever are left.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub best_effort: Option<u32>,
    /// The level of the tokens to spend.
    #[serde(default)]
    pub level: Level,
    /// When the claim ends, since the start of the scenario; without it, never.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires: Option<Time>,
}

/// Slots in the same columns.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Gang {
    /// CPUs in each column.
    pub threads: u32,
    /// Columns; without it, as many as there are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub columns: Option<u32>,
    /// CPUs that come first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cpus: Vec<u32>,
}

/// Slots of every window, on the first CPU that has them.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Periodic {
    /// Slots of a window.
    pub slots: u32,
    /// Length of a window, in slots. If it does not divide the table, the next shorter one that
    /// does.
    pub period: u32,
    /// The only CPU to look at.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu: Option<u32>,
}

/// Slots up to a deadline.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct EventDriven {
    /// How many.
    pub slots: u32,
    /// Time from the claim to the deadline.
    pub within: Time,
    /// The CPU.
    #[serde(default)]
    pub cpu: u32,
}

/// Slots to free.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Free {
    /// The owner.
    pub by: String,
    /// Slots of CPUs, such as `1:3-8`; without it, all of the owner's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slots: Option<Vec<String>>,
}

/// New tokens (2005, Figure 2.4).
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct SetTokens {
    /// A client, each copy of which has an account of its own from then on.
    pub of: String,
    /// Their level.
    pub level: Level,
    /// Tokens that are free to spend; claims stay.
    pub count: u32,
    /// The weight among claims of the level; without it, as before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub weight: Option<u32>,
}

/// A donation of tokens.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Donate {
    /// The client that gives.
    pub from: String,
    /// The client that receives.
    pub to: String,
    /// Their level.
    pub level: Level,
    /// How many; all there are, if they are fewer.
    pub count: u32,
}

/// A reservation (2005, Figure 2.5).
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Reserve {
    /// The CPU; without it, each.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu: Option<u32>,
    /// So many slots stay unclaimed ...
    pub slots: u32,
    /// ... of any so many successive ones. Claims in the way are revoked.
    pub of: u32,
    /// Claims in the way stay until their owners free them.
    #[serde(default)]
    pub lazy: bool,
}
