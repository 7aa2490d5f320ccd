//! Scenario files: a machine, clients with programs and rights, and a timeline of events.
//!
//! A scenario is written in TOML and read by every engine; the simulator runs it to the
//! nanosecond. The types have the shape of the file. Reading checks the shape; making a
//! [`crate::plan::Plan`] checks all other rules. Both name the line and the fix.

mod assertion;
mod distribution;
mod error;
mod hybrid;
mod program;
mod read;
pub mod slots;
mod tickets;
mod time;
mod timeline;

use std::collections::BTreeMap;

use prorata_core::cpu_limit::CpuLimit;
use prorata_core::policy::PolicyName;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use assertion::{
    Assertion, ClientBound, CountBound, LengthBound, PairBound, Ratio, Share, TimeBound,
};
pub use distribution::{Distribution, Normal, Trace, Varying};
pub use error::{KeyPath, MAX_NAME_BYTES, Problem, ReadError, ScenarioError, Segment};
pub use hybrid::Hybrid;
pub use program::{Block, COMPUTE, Loop, Mutex, MutexKind, Pipe, Program, Resource, Serve, Step};
pub use read::{MAX_FILE_BYTES, read_text};
pub use tickets::{Amount, BASE, BadAmount, MonteCarloRule, RandomRule, Rule, Tickets};
pub use time::{BadTime, Time};
pub use timeline::{Action, At, Move, SetMax, SetNice, SetTickets, Transfer, Unfund};

/// A whole scenario.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Scenario {
    /// What the scenario shows, in a line.
    pub title: String,
    /// How long it runs.
    pub duration: Time,
    /// The source of all randomness, unless the command line names another seed.
    #[serde(default)]
    pub seed: u32,
    /// The machine and its scheduler.
    #[serde(default)]
    pub machine: MachineSpec,
    /// Currencies beside the base currency, in any order.
    #[serde(default, rename = "currency")]
    pub currencies: Vec<Currency>,
    /// The clients.
    #[serde(rename = "client")]
    pub clients: Vec<Client>,
    /// The programs of clients, by name.
    #[serde(default, rename = "program")]
    pub programs: BTreeMap<String, Program>,
    /// Mutexes, by name.
    #[serde(default, rename = "mutex")]
    pub mutexes: BTreeMap<String, Mutex>,
    /// Pipes, by name.
    #[serde(default, rename = "pipe")]
    pub pipes: BTreeMap<String, Pipe>,
    /// The timetable of slots; without it, there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slots: Option<slots::Slots>,
    /// Claims of slots, made before the start in this order.
    #[serde(default, rename = "claim", skip_serializing_if = "Vec::is_empty")]
    pub claims: Vec<slots::Claim>,
    /// The timeline of events.
    #[serde(default, rename = "at")]
    pub timeline: Vec<At>,
    /// Optional measures.
    #[serde(default)]
    pub measure: Measure,
    /// The assertions on the run.
    #[serde(default, rename = "assert")]
    pub assertions: Vec<Assertion>,
    /// The paper that the scenario is from and its printed figures. Engines ignore the
    /// table; `prorata reproduce` reads it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<serde_json::Map<String, serde_json::Value>>")]
    pub reproduces: Option<toml::Table>,
}

/// The machine and its scheduler.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
pub struct MachineSpec {
    /// CPUs, all alike.
    pub cpus: u32,
    /// The pools that the CPUs are divided into; without it, there is one pool.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub pools: Vec<Pool>,
    /// Length of a standard quantum.
    pub quantum: Time,
    /// When turns end.
    pub quanta: Quanta,
    /// The policy that chooses the next client.
    pub policy: PolicyName,
    /// Time that the machine itself takes.
    pub costs: Costs,
    /// The mechanisms of hybrid lottery scheduling (1999); without them, none is in force.
    #[serde(skip_serializing_if = "Hybrid::is_off")]
    pub hybrid: Hybrid,
}

impl Default for MachineSpec {
    fn default() -> Self {
        MachineSpec {
            cpus: 1,
            pools: Vec::new(),
            quantum: Time::from_ms(20),
            quanta: Quanta::default(),
            policy: PolicyName::default(),
            costs: Costs::default(),
            hybrid: Hybrid::default(),
        }
    }
}

/// CPUs with a run queue of their own.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Pool {
    /// The name by which clients name it.
    pub name: String,
    /// The number of its CPUs. The first pool has the machine's first CPUs.
    pub cpus: u32,
}

/// When turns end.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Quanta {
    /// Each turn ends a quantum after it began, as in a kernel.
    #[default]
    Own,
    /// All turns end together at every multiple of the quantum, as in the user engine. A
    /// turn that begins in between ends at the next multiple.
    Aligned,
}

/// Time that the machine itself takes, beside the time of programs.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
pub struct Costs {
    /// Time of a context switch; no thread runs on the CPU meanwhile.
    pub context_switch: Time,
    /// CPU time that a thread loses to cache misses after it migrates.
    pub cache_refill: Time,
    /// Time until an idle CPU hears of new work.
    pub interrupt: Time,
}

/// A currency (1994, 3.3).
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Currency {
    /// Its name; no client may have it. A copy's name is this name and a number from 1.
    pub name: String,
    /// Number of copies; without it, there is one without a number. An amount such as
    /// `100.users` names all copies: each copy of a client or currency then has tickets of
    /// the copy with its own number, modulo the number of copies.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub count: Option<u32>,
    /// Its backing tickets.
    #[serde(default)]
    pub tickets: Vec<Amount>,
}

/// One client, or several alike.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Client {
    /// Its name. A copy's name is this name and a number from 1.
    pub name: String,
    /// Number of copies, each with the same tickets; without it, there is one without a
    /// number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub count: Option<u32>,
    /// Its tickets.
    #[serde(default)]
    pub tickets: Tickets,
    /// Its program; without it, the client computes.
    #[serde(default = "compute")]
    pub program: String,
    /// When it starts.
    #[serde(default)]
    pub start: Time,
    /// Its pool of CPUs; without it, each copy in turn joins the pool with the fewest
    /// tickets a CPU.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pool: Option<String>,
    /// The most CPU time that each copy may get, even of CPUs that would idle; without it,
    /// there is no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max: Option<CpuLimit>,
    /// Its nice value, -20 to 20. Base tickets follow it where `machine.hybrid.nice` is true
    /// (1999, 3.4).
    #[serde(default, skip_serializing_if = "is_zero")]
    pub nice: i8,
    /// The user to whom it belongs; counts for claims of slots alone.
    #[serde(default, skip_serializing_if = "is_user_0")]
    pub user: u32,
    /// The numbers of the CPUs that it may use, from 0; without it, all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpus: Option<Vec<u32>>,
}

#[allow(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde passes the field by reference"
)]
fn is_zero(nice: &i8) -> bool {
    *nice == 0
}

#[allow(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde passes the field by reference"
)]
fn is_user_0(user: &u32) -> bool {
    *user == 0
}

fn compute() -> String {
    COMPUTE.to_owned()
}

/// Optional measures.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
pub struct Measure {
    /// Time between two points of the time series; without it, there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub every: Option<Time>,
    /// Pairs of clients whose relative error is measured.
    pub pairs: Vec<(String, String)>,
}

/// The JSON schema of scenario files, for other tools. It has no rules that span several
/// places, such as names that must be known. `R` is the type as which `prorata reproduce`
/// reads [`Scenario::reproduces`].
pub fn schema<R: JsonSchema>() -> serde_json::Value {
    let mut generator = schemars::SchemaGenerator::default();
    let mut schema = generator.root_schema_for::<Scenario>().to_value();
    let reproduces = generator.subschema_for::<R>();
    schema["title"] = "prorata scenario".into();
    schema["$defs"] = generator.take_definitions(true).into();
    schema["properties"]["reproduces"] = reproduces.to_value();
    schema
}
