//! What travels between the command line and the daemon.
//!
//! A connection carries frames: four bytes of length, little endian, then that
//! many bytes of JSON. The client sends a [`Request`] and waits for one
//! [`Response`]; it may go on with more. Text that names things (clients,
//! currencies, targets) is resolved by the daemon, so that every refusal names
//! the input, the rule and the fix in one place.

use std::fmt;

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
    /// registered with them; the answer is then [`Response::Client`].
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
        policy: Option<PolicyKind>,
    },
    /// Release everything and end the daemon.
    Stop,
}

/// The policies that an engine can run.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PolicyKind {
    /// Stride scheduling (1995, 2).
    #[default]
    Stride,
    /// Lottery scheduling as an exponential race.
    Lottery,
    /// Hierarchical stride scheduling (1995, 4).
    HierarchicalStride,
    /// Constant-time lottery.
    ClassLottery,
}

impl PolicyKind {
    /// All of them.
    pub const ALL: &[PolicyKind] = &[
        PolicyKind::Stride,
        PolicyKind::Lottery,
        PolicyKind::HierarchicalStride,
        PolicyKind::ClassLottery,
    ];
}

impl fmt::Display for PolicyKind {
    /// As it is given and stored.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            PolicyKind::Stride => "stride",
            PolicyKind::Lottery => "lottery",
            PolicyKind::HierarchicalStride => "hierarchical-stride",
            PolicyKind::ClassLottery => "class-lottery",
        })
    }
}

/// What the daemon answers.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Response {
    /// Done, nothing to tell.
    Done,
    /// To [`Request::Status`] and [`Request::Configure`].
    Status(StatusReport),
    /// The new client, to [`Request::Register`].
    Client(ClientReport),
    /// To [`Request::Suspend`]: whether the engine had its processes stopped,
    /// so that a terminal's stop signal may have been lost on them.
    Suspended {
        /// Whether to send it again.
        was_stopped: bool,
    },
    /// To [`Request::Clients`].
    Clients(Vec<ClientReport>),
    /// To [`Request::Currencies`].
    Currencies(Vec<CurrencyReport>),
    /// To [`Request::Tickets`].
    Tickets(Vec<TicketReport>),
    /// To [`Request::Transfers`].
    Transfers(Vec<TransferReport>),
    /// A new currency, ticket or transfer, by identifier.
    Created(String),
    /// Refused; nothing has changed.
    Refused {
        /// One sentence that names the input, the rule and the fix.
        message: String,
    },
}

/// The daemon and its engine.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct StatusReport {
    /// Version of the daemon's program.
    pub version: String,
    /// Its pid.
    pub pid: u32,
    /// `user` or `kernel`.
    pub engine: String,
    /// How decisions are enforced. The user engine puts losers into SCHED_IDLE
    /// (`idle`) or stops them (`stop`); the kernel engine schedules the clients'
    /// tasks (`partial`) or all of the machine (`all`), or nothing once the
    /// kernel has unloaded it (`none`).
    pub mechanism: String,
    /// Where tasks wait in the kernel (`cpu`, `one`), with the kernel engine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queues: Option<String>,
    /// Whether who wakes and deserves to run more ends the quantum of who runs, with
    /// the kernel engine.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub abbreviated: bool,
    /// Whether the decisions of the scheduler in the kernel can be traced.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub traced: bool,
    /// Policy that picks the winners.
    pub policy: PolicyKind,
    /// Length of a quantum.
    pub quantum_ns: u64,
    /// CPUs that are shared out, by number: whoever starts a command binds it
    /// to them.
    pub cpus: Vec<u32>,
    /// Time since the engine started.
    pub uptime_ns: u64,
    /// CPU time that the daemon itself has used.
    pub own_cpu_ns: u64,
    /// Decisions taken so far.
    pub decisions: u64,
    /// Clients managed.
    pub clients: u32,
    /// What the user should know of the engine, in one sentence.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trouble: Option<String>,
}

/// What a client is doing.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ClientState {
    /// It won the last decision. Under the kernel engine: it competes.
    Running,
    /// It competes and waits.
    Waiting,
    /// All its threads are blocked.
    Blocked,
    /// Its user stopped it.
    Suspended,
}

/// A client as `ps` and `top` show it.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct ClientReport {
    /// Identifier, such as `c3`.
    pub id: String,
    /// Name.
    pub name: String,
    /// User id of its owner.
    pub owner: u32,
    /// Pid of the root of its process tree.
    pub pid: u32,
    /// Processes in it now.
    pub processes: u32,
    /// What it is doing.
    pub state: ClientState,
    /// Its tickets: amount and currency of each.
    pub tickets: Vec<(u32, String)>,
    /// What they are worth in base units.
    pub value: f64,
    /// Its own quantum, if it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quantum_ns: Option<u64>,
    /// Part of the machine that it should get at this moment, 0 to 1.
    pub share: f64,
    /// CPU time it should have received since it was registered.
    pub specified_ns: u64,
    /// CPU time it did receive.
    pub received_ns: u64,
    /// Received less specified, in quanta of those that have none of their own.
    pub error_quanta: f64,
    /// Its turns, where the engine counts them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turns: Option<TurnsReport>,
}

/// Turns of a client's threads, as the kernel engine counts them.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct TurnsReport {
    /// Times that one of them was given a CPU.
    pub turns: u64,
    /// Turns on another CPU than the one before.
    pub migrations: u64,
    /// Time that they waited while they could have run, in all.
    pub waited_ns: u64,
    /// Half of all waits were shorter than this power of two.
    pub wait_median_ns: u64,
    /// Of a hundred waits ninety-nine were shorter than this power of two.
    pub wait_99th_ns: u64,
}

/// A currency as `lscur` shows it.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct CurrencyReport {
    /// Identifier, such as `u3`.
    pub id: String,
    /// Name.
    pub name: String,
    /// User id of its owner.
    pub owner: u32,
    /// Octal permissions.
    pub mode: String,
    /// Face value of all tickets issued in it.
    pub issued: u64,
    /// Face value of the active ones.
    pub active: u64,
    /// Base units that its active tickets are worth together.
    pub value: f64,
    /// Tickets that back it.
    pub backing: Vec<String>,
}

/// A ticket as `lstkt` shows it.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct TicketReport {
    /// Identifier, such as `t3`.
    pub id: String,
    /// Name of its currency.
    pub currency: String,
    /// Face value that it holds itself.
    pub amount: u32,
    /// Face value that it has lent.
    pub lent: u32,
    /// What it funds: `currency:NAME` or `client:NAME`.
    pub target: Option<String>,
    /// Whether it competes.
    pub active: bool,
    /// What it is worth in base units.
    pub value: f64,
    /// The transfer that made it.
    pub transfer: Option<String>,
}

/// A transfer as `transfer --list` shows it.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct TransferReport {
    /// Identifier, such as `x3`.
    pub id: String,
    /// Name of the giver.
    pub from: String,
    /// Target, currency and amount of each share.
    pub shares: Vec<(String, String, u32)>,
}
