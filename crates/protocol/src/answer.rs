//! What the daemon answers.

use serde::{Deserialize, Serialize};

use crate::engine_choice::EngineChoice;
use crate::event::EventReport;
use crate::hybrid_choice::HybridChoice;
use crate::request::{CpuLimit, PolicyName};
use crate::slots::SlotsAnswer;

/// What the daemon answers.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Response {
    /// Done, nothing to tell.
    Done,
    /// To [`Request::Status`](crate::Request::Status) and [`Request::Configure`](crate::Request::Configure).
    Status(StatusReport),
    /// The new client, to [`Request::Register`](crate::Request::Register).
    Client(ClientReport),
    /// To [`Request::Suspend`](crate::Request::Suspend): whether the engine had stopped the client's
    /// processes, so that they may have missed the terminal's stop signal.
    Suspended {
        /// Whether to send the signal again.
        was_stopped: bool,
    },
    /// To [`Request::Clients`](crate::Request::Clients).
    Clients(Vec<ClientReport>),
    /// To [`Request::FindClient`](crate::Request::FindClient): an identifier, if the daemon manages
    /// the process.
    Found(Option<String>),
    /// To [`Request::Processes`](crate::Request::Processes).
    Processes(ProcessesReport),
    /// To [`Request::Currencies`](crate::Request::Currencies).
    Currencies(Vec<CurrencyReport>),
    /// To [`Request::Tickets`](crate::Request::Tickets).
    Tickets(Vec<TicketReport>),
    /// To [`Request::Transfers`](crate::Request::Transfers).
    Transfers(Vec<TransferReport>),
    /// To [`Request::Events`](crate::Request::Events), the oldest first.
    Events(Vec<EventReport>),
    /// To [`Request::Slots`](crate::Request::Slots).
    Slots(SlotsAnswer),
    /// A new currency, ticket or transfer, by identifier.
    Created(String),
    /// The daemon has no room for this connection at the moment.
    Full {
        /// What the daemon does, as a sentence without its subject.
        message: String,
    },
    /// Refused, because the journal cannot be written; nothing has changed.
    NotKept {
        /// One sentence that names the journal, the reason and the fix.
        message: String,
    },
    /// Refused; nothing has changed.
    Refused {
        /// One sentence that names the input, the rule and the fix.
        message: String,
    },
}

/// The state of the daemon and its engine.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct StatusReport {
    /// Version of the daemon's program.
    pub version: String,
    /// Its pid.
    pub pid: u32,
    /// `user` or `kernel`.
    pub engine: String,
    /// The running engine in the words of the command line.
    #[serde(default)]
    pub engine_choice: EngineChoice,
    /// How decisions are enforced. The user engine puts losers into SCHED_IDLE
    /// (`idle`) or stops them (`stop`). The kernel engine schedules the
    /// clients' tasks (`partial`) or the whole machine (`all`), or nothing once
    /// the kernel has unloaded it (`none`).
    pub mechanism: String,
    /// Kernel engine: where tasks wait (`cpu`, `cache`, `one`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queues: Option<String>,
    /// The mechanisms of hybrid lottery scheduling that are in force.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hybrid: Option<HybridChoice>,
    /// Kernel engine: whether its decisions can be traced.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub traced: bool,
    /// Policy that picks the winners.
    pub policy: PolicyName,
    /// Length of a quantum.
    pub quantum_ns: u64,
    /// CPUs that are shared out, by number. `prorata run` binds its command to
    /// them.
    pub cpus: Vec<u32>,
    /// Time since the engine started.
    pub uptime_ns: u64,
    /// Whether the daemon stays without clients until it is stopped.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub stays: bool,
    /// Set if what users run without a request is a client of each.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub users: Option<UsersReport>,
    /// CPU time that the daemon itself has used.
    pub own_cpu_ns: u64,
    /// Decisions taken so far.
    pub decisions: u64,
    /// Clients managed.
    pub clients: u32,
    /// CPUs of which programs without a client use a part. User engine, with
    /// several CPUs: only where that changes what clients receive.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub outside: Vec<OutsideReport>,
    /// What would be better with another choice or right, in one sentence.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub advice: Option<String>,
    /// What the user should know of the engine, in one sentence.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trouble: Option<String>,
}

/// The clients of what users run without a request.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct UsersReport {
    /// Processes that are in no client, because only signals would hold them down.
    pub left_out: u32,
}

/// Load on a CPU that is no client's.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct OutsideReport {
    /// The CPU's number.
    pub cpu: u32,
    /// The part of its time that other programs use, in percent.
    pub percent: u32,
}

/// The state of a client.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ClientState {
    /// The client won the last decision. Under the kernel engine: it competes.
    Running,
    /// The client competes and waits.
    Waiting,
    /// All its threads are blocked.
    Blocked,
    /// The client has used the CPU time that its limit allows for now.
    Limited,
    /// The user stopped the client.
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
    /// Its state.
    pub state: ClientState,
    /// Its tickets: amount and currency of each.
    pub tickets: Vec<(u32, String)>,
    /// What they are worth in base units.
    pub value: f64,
    /// Its own quantum, if it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quantum_ns: Option<u64>,
    /// The most CPU time that the client may get, if it has a limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max: Option<CpuLimit>,
    /// Part of the machine that the client deserves now, 0 to 1.
    pub share: f64,
    /// CPU time that the client deserved since it was registered.
    pub specified_ns: u64,
    /// CPU time that the client received.
    pub received_ns: u64,
    /// Received less specified, in common quanta.
    pub error_quanta: f64,
    /// Its turns, where the engine counts them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turns: Option<TurnsReport>,
    /// How hybrid lottery scheduling judges the client, where a mechanism is in force.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hybrid: Option<HybridReport>,
    /// Nice values of its processes, of 64 at most.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nice: Option<NiceReport>,
}

/// How hybrid lottery scheduling (1999) judges a client.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub struct HybridReport {
    /// `min((1/f)^4, 10,000)`, where `f` is the part of its due that the client received in ten
    /// seconds; 1 is none. Under the kernel engine: the greatest of its processes' first threads
    /// when they last ran.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub boost: Option<f64>,
    /// CPU time by which the client's use is ahead of its due. Under the kernel engine: when it
    /// last ran.
    pub lead_ns: u64,
}

/// The least and the greatest of nice values.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct NiceReport {
    /// The least.
    pub least: i32,
    /// The greatest.
    pub greatest: i32,
}

/// The processes of a client when the engine last looked.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct ProcessesReport {
    /// Identifier of the client, such as `c3`.
    pub client: String,
    /// All its processes, in no order.
    pub processes: Vec<ProcessReport>,
}

/// A process, named for as long as the machine runs.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct ProcessReport {
    /// Its pid, which another process may get later.
    pub pid: u32,
    /// When it started, in clock ticks since boot.
    pub start_time_ticks: u64,
}

/// Turns of a client's threads, as the kernel engine counts them.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct TurnsReport {
    /// Number of turns.
    pub turns: u64,
    /// Turns on another CPU than the one before.
    pub migrations: u64,
    /// Time that the threads waited while they were runnable, in all.
    pub waited_ns: u64,
    /// Half of all waits were shorter than this power of two.
    pub wait_median_ns: u64,
    /// 99 % of all waits were shorter than this power of two.
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
    /// Face value that the ticket has kept.
    pub amount: u32,
    /// Face value that the ticket has lent.
    pub lent: u32,
    /// What it funds: `currency:NAME` or `client:NAME`.
    pub target: Option<String>,
    /// Whether the ticket competes.
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
