//! Scenarios: a machine, programs with their rights, and what happens to them.
//!
//! A scenario is written in TOML and read by every engine; the simulator runs
//! it to the nanosecond. The types here are the file's own shape. What they
//! cannot express wrongly is checked while reading, everything else when a
//! [`crate::plan::Plan`] is made; both name the line and the fix.

mod assertion;
mod distribution;
mod error;
mod program;
mod read;
mod tickets;
mod time;
mod timeline;

use std::collections::BTreeMap;

use prorata_core::policy::PolicyName;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use assertion::{Assertion, ClientBound, PairBound, Ratio, Share, TimeBound};
pub use distribution::{Distribution, Normal, Trace, Varying};
pub use error::{KeyPath, MAX_NAME_BYTES, Problem, ReadError, ScenarioError, Segment};
pub use program::{COMPUTE, Loop, Mutex, MutexKind, Pipe, Program, Serve, Step};
pub use read::MAX_FILE_BYTES;
pub use tickets::{Amount, BASE, BadAmount, MonteCarloRule, RandomRule, Rule, Tickets};
pub use time::{BadTime, Time};
pub use timeline::{Action, At, Move, SetTickets, Transfer, Unfund};

/// A whole scenario.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Scenario {
    /// What it shows, in a line.
    pub title: String,
    /// How long it runs.
    pub duration: Time,
    /// From which all randomness comes, unless another seed is asked for.
    #[serde(default)]
    pub seed: u32,
    /// What is shared out, and how.
    #[serde(default)]
    pub machine: MachineSpec,
    /// Currencies beside the base currency, in any order.
    #[serde(default, rename = "currency")]
    pub currencies: Vec<Currency>,
    /// Who competes.
    #[serde(rename = "client")]
    pub clients: Vec<Client>,
    /// What clients do, by name.
    #[serde(default, rename = "program")]
    pub programs: BTreeMap<String, Program>,
    /// Mutexes, by name.
    #[serde(default, rename = "mutex")]
    pub mutexes: BTreeMap<String, Mutex>,
    /// Pipes, by name.
    #[serde(default, rename = "pipe")]
    pub pipes: BTreeMap<String, Pipe>,
    /// What happens from outside.
    #[serde(default, rename = "at")]
    pub timeline: Vec<At>,
    /// What is measured beyond what always is.
    #[serde(default)]
    pub measure: Measure,
    /// What must hold afterwards.
    #[serde(default, rename = "assert")]
    pub assertions: Vec<Assertion>,
    /// What paper it is from and what is printed there. Engines pass over it;
    /// `prorata reproduce` reads it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<serde_json::Map<String, serde_json::Value>>")]
    pub reproduces: Option<toml::Table>,
}

/// What is shared out, and how.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
pub struct MachineSpec {
    /// CPUs, all alike.
    pub cpus: u32,
    /// What the CPUs are divided into; without it, they are one pool.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub pools: Vec<Pool>,
    /// Length of a standard quantum.
    pub quantum: Time,
    /// When turns end.
    pub quanta: Quanta,
    /// Who runs next.
    pub policy: PolicyName,
    /// What the machine spends on itself.
    pub costs: Costs,
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
        }
    }
}

/// CPUs with a run queue of their own.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Pool {
    /// By which clients name it.
    pub name: String,
    /// How many of the machine's CPUs are its own. The first pool has the
    /// first ones.
    pub cpus: u32,
}

/// When turns end.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Quanta {
    /// Each a quantum after it began, as in a kernel.
    #[default]
    Own,
    /// All together at every multiple of the quantum, as in the user engine.
    /// Who is given a CPU in between has it until then.
    Aligned,
}

/// What the machine spends on itself, beside what programs use.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
pub struct Costs {
    /// A CPU goes from one thread to another: so long nobody runs on it.
    pub context_switch: Time,
    /// A thread goes on on another CPU: so much of its CPU time does nothing
    /// but refill the cache.
    pub cache_refill: Time,
    /// An idle CPU is given work: so long it takes to hear of it.
    pub interrupt: Time,
}

/// A currency (1994, 3.3).
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Currency {
    /// Other than those of the clients. Copies are named by it and a number from 1.
    pub name: String,
    /// Copies; without it, one without a number. Where amounts name the copies
    /// together, as `100.users`, each copy of a client or a currency has its own
    /// of the copy that has its number, counted round where there are fewer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub count: Option<u32>,
    /// What backs it.
    #[serde(default)]
    pub tickets: Vec<Amount>,
}

/// One client, or several alike.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Client {
    /// Its name. Copies are named by it and a number from 1.
    pub name: String,
    /// Copies, each with the same tickets; without it, one without a number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub count: Option<u32>,
    /// What funds it.
    #[serde(default)]
    pub tickets: Tickets,
    /// What it does; without it, it computes.
    #[serde(default = "compute")]
    pub program: String,
    /// When it starts.
    #[serde(default)]
    pub start: Time,
    /// The pool of CPUs that it belongs to; without it, each copy in turn is
    /// given to the pool with the fewest tickets a CPU.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pool: Option<String>,
}

fn compute() -> String {
    COMPUTE.to_owned()
}

/// What is measured beyond what always is.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
pub struct Measure {
    /// Time between two points of the time series; without it, there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub every: Option<Time>,
    /// Pairs of clients whose relative error is followed.
    pub pairs: Vec<(String, String)>,
}

/// The JSON schema of scenario files: what tools can check without us. Rules
/// that span several places, such as names that must be known, are beyond it.
/// `R` is what [`Scenario::reproduces`] is read as by those who read it.
pub fn schema<R: JsonSchema>() -> serde_json::Value {
    let mut generator = schemars::SchemaGenerator::default();
    let mut schema = generator.root_schema_for::<Scenario>().to_value();
    let reproduces = generator.subschema_for::<R>();
    schema["title"] = "prorata scenario".into();
    schema["$defs"] = generator.take_definitions(true).into();
    schema["properties"]["reproduces"] = reproduces.to_value();
    schema
}
