//! What travels between the command line and the daemon.
//!
//! A connection carries frames: four bytes of length, little endian, then that
//! many bytes of JSON. The client sends a [`Request`] and waits for one
//! [`Response`](crate::Response); it may go on with more. Text that names things (clients,
//! currencies, targets) is resolved by the daemon, so that every refusal names
//! the input, the rule and the fix in one place.

pub use prorata_core::policy::PolicyName;
use serde::{Deserialize, Serialize};

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
    /// What it asks.
    pub request: Request,
}

/// Tickets to hold: so many, in a currency (the user's own if not given).
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
        /// Which of the giver's currencies, if it holds several.
        currency: Option<String>,
        /// Target and amount.
        shares: Vec<(String, u32)>,
    },
}

/// What a client asks. A `client` is a name, an identifier such as `c3`, or
/// the pid of any process of it; a `target` is such a client or a currency's
/// name, with `client:` or `currency:` in front where both would fit.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Request {
    /// How the daemon and its engine fare.
    Status,
    /// Manage the process `pid` and all its descendants as a new client.
    /// Refused for dead pids, other users' processes and those managed
    /// already.
    Register {
        /// Root of the process tree.
        pid: u32,
        /// Wanted name; made unique with a number. The program's name if
        /// not given.
        name: Option<String>,
        /// Its tickets.
        funding: Funding,
        /// Its own quantum, as for [`Request::SetQuantum`].
        #[serde(default, skip_serializing_if = "Option::is_none")]
        quantum_ns: Option<u64>,
        /// The asker is the parent of `pid` and, as a child subreaper
        /// (prctl(2)), will inherit the client's orphans: whatever becomes its
        /// child belongs to the client too.
        #[serde(default)]
        adopts: bool,
    },
    /// Stop managing a client: its processes go on as if never managed.
    Release {
        /// Which one.
        client: String,
    },
    /// The user stopped this client (job control): take it out of the
    /// competition and undo whatever the engine did to its processes.
    Suspend {
        /// Which one.
        client: String,
    },
    /// The user continued this client.
    Resume {
        /// Which one.
        client: String,
    },
    /// All clients that the asker may see.
    Clients,
    /// All currencies that the asker may see.
    Currencies,
    /// All tickets that the asker may see; of one currency if given.
    Tickets {
        /// Name of a currency.
        currency: Option<String>,
    },
    /// Transfers under way.
    Transfers,
    /// Inflate or deflate a client's tickets in its currency (in the one
    /// given, if it holds several). A pid that is not managed yet is
    /// registered with them; the answer is then [`Response::Client`](crate::Response::Client).
    SetTickets {
        /// Which one.
        client: String,
        /// New face value and currency.
        funding: Funding,
    },
    /// Turns of the client's threads last so long from the next one on; shares stay
    /// what they are.
    SetQuantum {
        /// Which one.
        client: String,
        /// In nanoseconds, 1 ms to 1 s; that of all if not given.
        quantum_ns: Option<u64>,
    },
    /// `mkcur`.
    CreateCurrency {
        /// Its name.
        name: String,
        /// User who owns it (the asker if not given), by number.
        owner: Option<u32>,
        /// Octal permissions (744 if not given).
        mode: Option<u16>,
    },
    /// `rmcur`.
    DestroyCurrency {
        /// Its name.
        name: String,
    },
    /// `mktkt`.
    Issue {
        /// Denomination and face value.
        funding: Funding,
        /// What it funds; nothing for now if not given.
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
    /// `chuser`: move a client under another user's currency (1999, 4.2).
    ChangeUser {
        /// Which one.
        client: String,
        /// Login name or number.
        user: String,
    },
    /// Lend tickets.
    Transfer {
        /// Giver.
        from: String,
        /// How much, to whom.
        portion: TransferPortion,
        /// Undo it when this connection closes; else it lasts until
        /// [`Request::EndTransfer`].
        hold: bool,
    },
    /// Undo a transfer.
    EndTransfer {
        /// Identifier, such as `x3`.
        transfer: String,
    },
    /// Change how decisions are made; what is not given stays.
    Configure {
        /// Quantum in nanoseconds, 1 ms to 1 s.
        quantum_ns: Option<u64>,
        /// Which policy picks the winners.
        policy: Option<PolicyName>,
        /// The daemon stays until [`Request::Stop`], with or without clients.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        stay: bool,
    },
    /// Release everything and end the daemon.
    Stop,
}

/// The policies that a daemon can run; an engine may know fewer.
pub const POLICIES: &[PolicyName] = &[
    PolicyName::Stride,
    PolicyName::Lottery,
    PolicyName::HierarchicalStride,
    PolicyName::ClassLottery,
];
