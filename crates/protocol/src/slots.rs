//! Requests and answers about the timetable (2005, Figures 2.3 to 2.5).
//!
//! Looking at the table takes no request: it is a file that any program maps.

use std::fmt;
use std::str::FromStr;

pub use prorata_core::slots::admission::{Class, Members, Policy};
pub use prorata_core::slots::bank::Amount;
pub use prorata_core::slots::geometry::Cell;
pub use prorata_core::slots::level::Level;
use serde::{Deserialize, Serialize};

/// The most slots that news name while they wait for one reader; it is told how many news it missed.
pub const MOST_NEWS: usize = 1_024;

/// Any `denominator` successive slots of a row keep `numerator` unclaimed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Fraction {
    /// Slots that stay unclaimed.
    pub numerator: u32,
    /// Slots of a window.
    pub denominator: u32,
}

/// What runs in a slot.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Runs {
    /// Any task of a client, by name, identifier or pid.
    Client(String),
    /// Any thread of a process that is managed.
    Process(u32),
    /// One thread of such a process.
    Thread(u32),
}

impl fmt::Display for Runs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Client(client) => write!(f, "{client}"),
            Self::Process(pid) => write!(f, "process {pid}"),
            Self::Thread(tid) => write!(f, "thread {tid}"),
        }
    }
}

/// One slot to claim.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SlotRequest {
    /// The slot.
    pub cell: Cell,
    /// What shall run.
    pub runs: Runs,
    /// The level of the token to spend.
    pub level: Level,
    /// How long from now the claim shall hold; without it, until it is freed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_ns: Option<u64>,
}

/// An account: of a user, or of a client once that was given tokens.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum AccountName {
    /// By login name or number.
    User(String),
    /// By name, identifier or pid.
    Client(String),
}

impl FromStr for AccountName {
    type Err = std::convert::Infallible;

    /// `user:NAME`, `client:NAME`, or the name of a client alone.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Ok(match text.split_once(':') {
            Some(("user", user)) => Self::User(user.into()),
            Some(("client", client)) => Self::Client(client.into()),
            _ => Self::Client(text.into()),
        })
    }
}

/// A request about the timetable.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum SlotsRequest {
    /// Open the table, or give it another shape while nothing is claimed.
    Open {
        /// Slots of a period.
        columns: u32,
        /// Length of a slot.
        slot_ns: u64,
        /// What stays unclaimed on each CPU.
        reserve: Fraction,
        /// Close the table at the end of this connection; otherwise it stays until
        /// [`SlotsRequest::Close`].
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        hold: bool,
    },
    /// Close the table: all claims end.
    Close,
    /// How the open table is enforced.
    Status,
    /// `claim_slots`.
    Claim {
        /// At most 512.
        requests: Vec<SlotRequest>,
        /// Claim all or none.
        #[serde(default)]
        all: bool,
        /// Refuse if the table has changed since this generation.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        generation: Option<u64>,
    },
    /// `free_slots`.
    Free {
        /// At most 512.
        cells: Vec<Cell>,
    },
    /// `get_tokens`.
    Tokens {
        /// Whose; by default those that the asker's claims cost.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        account: Option<AccountName>,
    },
    /// `set_tokens`.
    SetTokens {
        /// Whose.
        account: AccountName,
        /// Which.
        level: Level,
        /// How many are free to spend.
        amount: Amount,
        /// The weight from now on.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        weight: Option<u32>,
    },
    /// `donate_tokens`.
    Donate {
        /// To whom.
        to: AccountName,
        /// Which.
        level: Level,
        /// How many.
        count: u32,
    },
    /// `reserve_slots`.
    Reserve {
        /// The row; without it, all rows.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        row: Option<u32>,
        /// What stays unclaimed.
        fraction: Fraction,
        /// Revoke claims in the way, rather than wait for their owners.
        #[serde(default)]
        immediate: bool,
    },
    /// Give tokens by a policy from now on, whenever a program first asks for something. Replaces an
    /// earlier policy; tokens that it gave stay.
    Admit {
        /// The policy; one without classes gives nothing.
        policy: Policy,
    },
    /// From now on this connection only sends: news of the user's claims, and of slots that became
    /// free if those are wanted.
    Watch {
        /// Whether slots that became free are told.
        #[serde(default)]
        freed: bool,
    },
}

/// What the daemon answers.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SlotsAnswer {
    /// The open table.
    Open(SlotsReport),
    /// To [`SlotsRequest::Claim`].
    Claimed {
        /// The number of the change.
        generation: u64,
        /// What was claimed, in the order of the requests.
        claimed: Vec<Cell>,
        /// The others: place in the vector, and why.
        refused: Vec<(usize, String)>,
    },
    /// To [`SlotsRequest::Free`].
    Freed {
        /// Slots that the asker may not free, or that nobody had claimed.
        kept: Vec<Cell>,
    },
    /// To [`SlotsRequest::Tokens`] and [`SlotsRequest::SetTokens`].
    Tokens(TokensReport),
    /// To [`SlotsRequest::Donate`].
    Donated {
        /// Tokens that moved: fewer than were asked for if there were no more.
        moved: u64,
    },
    /// To [`SlotsRequest::Reserve`].
    Reserved {
        /// Claims that were revoked.
        revoked: usize,
    },
    /// To [`SlotsRequest::Admit`].
    Admitted,
    /// After [`SlotsRequest::Watch`], as it happens.
    News(SlotsNews),
}

/// The open table, and how the engine enforces it.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct SlotsReport {
    /// Where the table is, to be mapped.
    pub path: String,
    /// The CPU of each row.
    pub cpus: Vec<u32>,
    /// Slots of a period.
    pub columns: u32,
    /// Length of a slot.
    pub slot_ns: u64,
    /// Claimed slots.
    pub claimed: usize,
    /// The number of the last change.
    pub generation: u64,
    /// The reservation of each row.
    pub reservations: Vec<Fraction>,
    /// How slots are enforced (`raise`, `lower`, `stop`, `kernel`); none: they are not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mechanism: Option<String>,
    /// What does not hold, in one sentence.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trouble: Option<String>,
    /// What the engine counted, row by row.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rows: Vec<RowReport>,
}

/// What the engine counted on one CPU.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct RowReport {
    /// The CPU.
    pub cpu: u32,
    /// Claimed slots that began in time to be enforced.
    pub begun: u64,
    /// Those through which the engine slept.
    pub missed: u64,
    /// Slots in which the schedulee ran.
    pub ran: u64,
    /// Slots in which it could not run: it slept, or must not be raised.
    pub idle: u64,
    /// Slots in which it was runnable and did not run at all.
    pub lost: u64,
    /// Half of all starts were not later than this.
    pub late_median_ns: u64,
    /// 99 % of them.
    pub late_99th_ns: u64,
    /// All of them.
    pub late_most_ns: u64,
    /// Time of claimed slots in which runnable schedulees waited.
    pub stolen_ns: u64,
}

/// What an account has.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct TokensReport {
    /// `user NAME` or `client NAME`.
    pub account: String,
    /// The lowest level first.
    pub levels: Vec<LevelReport>,
}

/// What an account has of one level.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct LevelReport {
    /// The level.
    pub level: Level,
    /// Tokens free to spend.
    pub free: u64,
    /// Tokens in claims.
    pub spent: u64,
    /// The weight of its claims.
    pub weight: u32,
}

/// News of the timetable.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SlotsNews {
    /// A claim of the user has ended.
    Ended {
        /// The slot.
        cell: Cell,
        /// What ran in it.
        runs: Runs,
        /// Its level.
        level: Level,
        /// Why.
        why: Ended,
        /// Whose claim or call ended it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        by: Option<String>,
    },
    /// Slots that became free.
    Freed(Vec<Cell>),
    /// So many news were not told: look at the table.
    Missed(u64),
    /// The table was closed.
    Closed,
}

/// Why a claim ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Ended {
    /// A claim of a higher level took the slot.
    Preempted,
    /// A claim of the same level took it: its account had less than its fair share.
    Shared,
    /// An administrator reserved slots.
    Reserved,
    /// The user or an administrator freed it.
    Freed,
    /// Its time was over.
    Expired,
    /// What ran in it has ended.
    ScheduleeEnded,
}
