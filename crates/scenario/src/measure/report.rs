//! A run in figures, to be printed, compared or drawn.

use prorata_core::policy::PolicyName;
use serde::Serialize;

use super::{Bucket, Counts, Summary, Verdict};

/// A run in figures, on whatever engine.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
#[allow(missing_docs, reason = "the names explain the rest")]
pub struct Report {
    pub title: String,
    /// The engine: `sim`, or one for real processes.
    pub engine: &'static str,
    /// How an engine for real processes enforces its decisions.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mechanism: Option<&'static str>,
    /// The real time that it took, on real processes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub took_ns: Option<u64>,
    /// The source of all randomness.
    pub seed: u64,
    /// Length of the run.
    pub duration_ns: u64,
    pub cpus: u32,
    pub quantum_ns: u64,
    pub policy: PolicyName,
    /// Totals of the simulated machine.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub counts: Option<Counts>,
    /// Threads that could run but had no CPU: mean over time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mean_waiting_threads: Option<f64>,
    /// Threads that could run but had no CPU: most at a time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub most_waiting_threads: Option<u64>,
    /// By pool of CPUs; empty where they are one pool.
    pub pools: Vec<PoolReport>,
    /// By client.
    pub clients: Vec<ClientReport>,
    /// The pairs that the scenario asks for.
    pub pairs: Vec<PairReport>,
    /// By mutex and client.
    pub mutexes: Vec<WaitReport>,
    /// By service and client.
    pub services: Vec<WaitReport>,
    /// The time series, if the scenario asks for one.
    pub series: Vec<PointReport>,
    /// The ledger's first few refusals.
    pub refused: Vec<String>,
    /// The scenario's assertions.
    pub verdicts: Vec<Verdict>,
}

/// A pool of CPUs in figures.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct PoolReport {
    /// Its name.
    pub name: String,
    /// Its CPUs.
    pub cpus: u32,
    /// Clients that belong to it at the end.
    pub clients: u32,
    /// CPU time used by threads on its CPUs.
    pub busy_ns: u64,
    /// Its threads that could run but had no CPU: mean over time.
    pub mean_waiting_threads: f64,
    /// Its threads that could run but had no CPU: most at a time.
    pub most_waiting_threads: u64,
}

/// A client in figures. Figures that the engine does not measure are left out.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct ClientReport {
    /// Its name.
    pub name: String,
    /// The pool of CPUs that it belongs to at the end, where there are
    /// several.
    pub pool: Option<String>,
    /// CPU time received.
    pub received_ns: u64,
    /// CPU time due while it could run.
    pub specified_ns: u64,
    /// Its part of all CPU time received.
    pub share: f64,
    /// Largest absolute error, in quanta.
    pub largest_error: f64,
    /// Mean absolute error at the ends of its turns, in quanta.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mean_error: Option<f64>,
    /// Turns that it had.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub turns: Option<u64>,
    /// Times that a thread of it began to wait or to sleep.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub blocks: Option<u64>,
    /// Times that a thread of it continued on another CPU.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub migrations: Option<u64>,
    /// From the end of one turn to the end of the next.
    pub response_time: Option<Summary>,
    /// How those times are distributed.
    pub response_time_buckets: Vec<Bucket>,
    /// From a wake, or a start, to the CPU.
    pub dispatch_latency: Option<Summary>,
    /// How those times are distributed.
    pub dispatch_latency_buckets: Vec<Bucket>,
    /// What of `received_ns` it received in slots of the timetable.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub in_slots_ns: Option<u64>,
    /// What of that was not charged, and so was due to nobody.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub uncharged_ns: Option<u64>,
}

/// A pair of clients in figures.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct PairReport {
    /// Their names.
    pub clients: (String, String),
    /// Largest relative error, in quanta.
    pub largest_error: f64,
}

/// Times of a client at a mutex or a service.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct WaitReport {
    /// Which mutex or service.
    pub name: String,
    /// The client that waited, or called.
    pub client: String,
    /// From lock to acquisition, or from call to reply.
    pub times: Option<Summary>,
}

/// A point of the time series.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct PointReport {
    /// When.
    pub time_ns: u64,
    /// CPU time received, by client.
    pub received_ns: Vec<u64>,
    /// CPU time due, by client.
    pub specified_ns: Vec<u64>,
    /// Relative error in quanta, by pair.
    pub relative_errors: Vec<f64>,
    /// Threads that could run but had no CPU.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub waiting_threads: Option<u64>,
    /// The same by pool of CPUs; empty where they are one pool.
    pub waiting_in_pools: Vec<u64>,
}

impl Report {
    /// Whether no assertion fails that the engine can judge. A run with assertions of which
    /// the engine can judge none does not hold.
    pub fn holds(&self) -> bool {
        let any_judged = self.verdicts.iter().any(|verdict| verdict.judged);
        !self.verdicts.iter().any(Verdict::fails) && (any_judged || self.verdicts.is_empty())
    }
}
