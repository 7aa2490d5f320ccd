//! The requests of clients.
//!
//! A connection carries frames: four bytes of length, little endian, then that
//! many bytes of JSON. The client sends a [`Request`], waits for one
//! [`Response`](crate::Response), and may continue with more. The daemon
//! resolves the names of clients, currencies and targets, so that one place
//! writes every refusal with the input, the rule and the fix.

pub use prorata_core::cpu_limit::CpuLimit;
pub use prorata_core::policy::PolicyName;
use serde::{Deserialize, Serialize};

use crate::hybrid_choice::HybridChoice;
use crate::slots::SlotsRequest;

/// Changes when an old client could misread a new daemon or the reverse.
pub const PROTOCOL_VERSION: u32 = 1;

/// Longest request that the daemon reads, in bytes.
pub const MAX_REQUEST_BYTES: u32 = 64 << 10;

/// Longest response that a client reads, in bytes.
pub const MAX_RESPONSE_BYTES: u32 = 64 << 20;

/// One frame from a client.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Envelope {
    /// [`PROTOCOL_VERSION`] of the sender.
    pub version: u32,
    /// The request itself.
    pub request: Request,
}

/// Tickets to hold: an amount in a currency, by default the user's own.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Funding {
    /// Face value, 1 to 2^32 - 1.
    pub amount: u32,
    /// Name of the currency.
    pub currency: Option<String>,
}

/// How many tickets a transfer moves.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum TransferPortion {
    /// Everything, shared equally among these targets.
    Whole(Vec<String>),
    /// So many tickets to each target.
    Part {
        /// The giver's currency, if it holds several.
        currency: Option<String>,
        /// Target and amount.
        shares: Vec<(String, u32)>,
    },
}

/// A request. A `client` is a name, an identifier such as `c3`, or the pid of
/// any of its processes. A `target` is a client or a currency's name, with
/// `client:` or `currency:` in front where both fit.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
#[allow(missing_docs, reason = "the names explain the rest")]
pub enum Request {
    /// Ask for the state of the daemon and its engine.
    Status,
    /// Manage the process `pid` and all its descendants as a new client. The
    /// daemon refuses dead pids, other users' processes and managed ones.
    Register {
        /// Root of the process tree.
        pid: u32,
        /// Wanted name, by default the program's; a number makes it unique.
        name: Option<String>,
        funding: Funding,
        /// Its own quantum, as for [`Request::SetQuantum`].
        #[serde(default, skip_serializing_if = "Option::is_none")]
        quantum_ns: Option<u64>,
        /// Its limit, as for [`Request::SetMax`].
        #[serde(default, skip_serializing_if = "Option::is_none")]
        max: Option<CpuLimit>,
        /// The asker is the parent of `pid` and, as a child subreaper (prctl(2)),
        /// inherits the client's orphans: its next children belong to the client
        /// too.
        #[serde(default)]
        adopts: bool,
    },
    /// Release a client: its processes continue as if never managed.
    Release { client: String },
    /// The user stopped this client (job control): take it out of the
    /// competition and undo all enforcement on its processes.
    Suspend { client: String },
    /// The user continued this client.
    Resume { client: String },
    /// All clients that the asker may see.
    Clients,
    /// The client to which a process belongs.
    FindClient { pid: u32 },
    /// The processes of a client that the asker may change.
    Processes { client: String },
    /// All currencies that the asker may see.
    Currencies,
    /// All tickets that the asker may see, or those of one currency.
    Tickets { currency: Option<String> },
    /// Transfers under way.
    Transfers,
    /// The last events of the clients that the asker may see. Refused where the engine keeps none.
    Events {
        /// How many, 1 to [`MOST_EVENTS`](crate::MOST_EVENTS).
        count: u32,
    },
    /// Inflate or deflate a client's tickets in its currency, or in the given
    /// one of several. A pid that is not managed is registered with these
    /// tickets; the answer is then
    /// [`Response::Client`](crate::Response::Client).
    SetTickets {
        client: String,
        /// New face value and currency.
        funding: Funding,
    },
    /// Set a client's quantum from its next turn on. Shares stay what they are.
    SetQuantum {
        client: String,
        /// In nanoseconds, 1 ms to 1 s; by default the common quantum.
        quantum_ns: Option<u64>,
    },
    /// Limit a client's CPU time, whatever idles. Refused where the engine holds
    /// no limits.
    SetMax {
        client: String,
        /// Its limit; none ends it.
        max: Option<CpuLimit>,
    },
    /// `mkcur`.
    CreateCurrency {
        name: String,
        /// Number of the owner, by default the asker.
        owner: Option<u32>,
        /// Octal permissions, by default 744.
        mode: Option<u16>,
    },
    /// `rmcur`.
    DestroyCurrency { name: String },
    /// `mktkt`.
    Issue {
        /// Denomination and face value.
        funding: Funding,
        /// What it funds; by default nothing for now.
        target: Option<String>,
    },
    /// `rmtkt`.
    DestroyTicket {
        /// Identifier, such as `t3`.
        ticket: String,
    },
    /// Inflate or deflate one ticket.
    SetAmount {
        /// Identifier, such as `t3`.
        ticket: String,
        /// New face value.
        amount: u32,
    },
    /// `fund`.
    Fund {
        /// Identifier, such as `t3`.
        ticket: String,
        /// What it funds from now on.
        target: String,
    },
    /// `unfund`.
    Unfund {
        /// Identifier, such as `t3`.
        ticket: String,
    },
    /// `set-funding`: so many base tickets back this user's currency.
    SetFunding {
        /// Login name or number.
        user: String,
        /// Base tickets.
        amount: u32,
    },
    /// `chuser`: move a client, or a process, under another user's currency (1999, 4.2).
    ChangeUser {
        client: String,
        /// Login name or number.
        user: String,
    },
    /// Lend tickets.
    Transfer {
        from: String,
        /// How much, to whom.
        portion: TransferPortion,
        /// End the transfer with this connection; otherwise it lasts until
        /// [`Request::EndTransfer`].
        hold: bool,
    },
    /// Undo a transfer.
    EndTransfer {
        /// Identifier, such as `x3`.
        transfer: String,
    },
    /// Change settings; a setting that is not given stays.
    Configure {
        /// Quantum in nanoseconds, 1 ms to 1 s.
        quantum_ns: Option<u64>,
        /// The policy that picks the winners.
        policy: Option<PolicyName>,
        /// The mechanisms of hybrid lottery scheduling. Refused where the engine has others that
        /// were fixed when it started.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        hybrid: Option<HybridChoice>,
        /// The daemon stays until [`Request::Stop`], with or without clients.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        stay: bool,
        /// What users run without a request is a client of each from now on.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        users: bool,
    },
    /// Ask about the timetable, or change it.
    Slots(SlotsRequest),
    /// Release all clients and end the daemon.
    Stop,
}

/// The policies that a daemon can run; an engine may know fewer.
pub const POLICIES: &[PolicyName] = &[
    PolicyName::Stride,
    PolicyName::Lottery,
    PolicyName::HierarchicalStride,
    PolicyName::ClassLottery,
];
