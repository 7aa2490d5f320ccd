//! A run in figures, to be printed, compared or drawn.

use std::ops::Range;

use serde::Serialize;

use super::verdict::{Measured, Verdict, judge};
use super::{Bucket, Measures, RelativeError, Summary, Times};
use crate::machine::{Counts, Machine};
use crate::scenario::{PolicyName, Scenario};

/// A run in figures, on whatever engine.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Report {
    /// What the scenario shows.
    pub title: String,
    /// What ran it: `sim`, or an engine for real processes.
    pub engine: &'static str,
    /// How an engine for real processes keeps the others from running.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mechanism: Option<&'static str>,
    /// For how long it went on, where time is real.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub took_ns: Option<u64>,
    /// All that chance came from.
    pub seed: u64,
    /// How long it ran.
    pub duration_ns: u64,
    /// CPUs.
    pub cpus: u32,
    /// Quantum at the end.
    pub quantum_ns: u64,
    /// Policy at the end.
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
    /// What the ledger refused, the first few.
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

/// A client in figures. What the engine does not measure is left out.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct ClientReport {
    /// Who.
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
    /// Times that a thread of it went on on another CPU.
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
}

/// A pair of clients in figures.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct PairReport {
    /// Who.
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
    /// Who waited, or called.
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
    /// The figures of a run that is over.
    pub fn new(scenario: &Scenario, seed: u64, machine: &Machine, measures: &Measures) -> Report {
        let (mean_waiting_threads, most_waiting_threads) = measures.queue_length();
        let told = measures.told();
        let client_name = |client| machine.client_name(client).into_owned();
        Report {
            title: scenario.title.clone(),
            engine: "sim",
            mechanism: None,
            took_ns: None,
            seed,
            duration_ns: machine.now_ns(),
            cpus: machine.spec().cpus,
            quantum_ns: machine.spec().quantum.0,
            policy: machine.spec().policy,
            counts: Some(machine.counts()),
            mean_waiting_threads: Some(mean_waiting_threads),
            most_waiting_threads: Some(most_waiting_threads),
            pools: pools(machine, measures),
            clients: clients(machine, measures),
            pairs: pairs(machine, measures),
            mutexes: told.mutexes(machine.mutex_names(), client_name),
            services: told.services(machine.service_names(), client_name),
            series: series(measures),
            refused: told.refused().to_vec(),
            verdicts: judge(scenario, &Simulated { machine, measures }),
        }
    }

    /// Whether no assertion fails, of those that the engine can judge. If it
    /// can judge none of those that there are, that is no success either.
    pub fn holds(&self) -> bool {
        let any_judged = self.verdicts.iter().any(|verdict| verdict.judged);
        !self.verdicts.iter().any(Verdict::fails) && (any_judged || self.verdicts.is_empty())
    }
}

fn pools(machine: &Machine, measures: &Measures) -> Vec<PoolReport> {
    let mut members = vec![0; machine.pool_count() as usize];
    (0..machine.client_count()).for_each(|c| members[machine.pool_of(c) as usize] += 1);
    let pools = measures.pools().iter().zip(0..);
    let pools = pools.map(|(measured, pool)| {
        let (mean_waiting_threads, most_waiting_threads) = measured.queue_length();
        PoolReport {
            name: machine.pool_name(pool).to_owned(),
            cpus: machine.pool_cpus(pool).len() as u32,
            clients: members[pool as usize],
            busy_ns: measured.busy_ns,
            mean_waiting_threads,
            most_waiting_threads,
        }
    });
    pools.collect()
}

/// A simulation, which measures everything.
struct Simulated<'a> {
    machine: &'a Machine,
    measures: &'a Measures,
}

impl Measured for Simulated<'_> {
    fn find_clients(&self, name: &str) -> Option<Range<u32>> {
        self.machine.find_clients(name)
    }

    fn client_count(&self) -> u32 {
        self.machine.client_count()
    }

    fn received_ns_at(&self, time_ns: u64, client: u32) -> u64 {
        self.measures.received_ns_at(time_ns, client)
    }

    fn absolute_error(&self, client: u32) -> Option<f64> {
        Some(
            self.measures.clients()[client as usize]
                .absolute_error
                .largest,
        )
    }

    fn relative_errors(&self) -> Option<&[RelativeError]> {
        Some(self.measures.pairs())
    }

    fn dispatch_latencies(&self, client: u32) -> Option<&Times> {
        Some(&self.measures.clients()[client as usize].dispatch_latencies)
    }

    fn response_times(&self, client: u32) -> Option<&Times> {
        Some(&self.measures.clients()[client as usize].response_times)
    }

    fn conserves(&self) -> Option<bool> {
        Some(self.machine.check().is_ok())
    }
}

fn clients(machine: &Machine, measures: &Measures) -> Vec<ClientReport> {
    let busy_ns = machine.counts().busy_ns.max(1);
    let clients = measures.clients().iter().zip(0..);
    let clients = clients.map(|(measured, client)| {
        let usage = machine.dispatcher().usage(machine.client_id(client));
        ClientReport {
            name: machine.client_name(client).into_owned(),
            pool: (machine.pool_count() > 1)
                .then(|| machine.pool_name(machine.pool_of(client)).to_owned()),
            received_ns: usage.received_ns,
            specified_ns: usage.specified_ns,
            share: usage.received_ns as f64 / busy_ns as f64,
            largest_error: measured.absolute_error.largest,
            mean_error: Some(measured.absolute_error.mean()),
            turns: Some(measured.turns),
            blocks: Some(measured.blocks),
            migrations: Some(measured.migrations),
            response_time: measured.response_times.summary(),
            response_time_buckets: measured.response_times.histogram(),
            dispatch_latency: measured.dispatch_latencies.summary(),
            dispatch_latency_buckets: measured.dispatch_latencies.histogram(),
        }
    });
    clients.collect()
}

fn pairs(machine: &Machine, measures: &Measures) -> Vec<PairReport> {
    let name = |client| machine.client_name(client).into_owned();
    let pairs = measures.pairs().iter().map(|pair| PairReport {
        clients: (name(pair.clients.0), name(pair.clients.1)),
        largest_error: pair.largest,
    });
    pairs.collect()
}

/// Times by client, of one mutex or service.
fn series(measures: &Measures) -> Vec<PointReport> {
    let points = measures.series().iter().map(|point| PointReport {
        time_ns: point.time_ns,
        received_ns: point.service.iter().map(|service| service.0).collect(),
        specified_ns: point.service.iter().map(|service| service.1).collect(),
        relative_errors: point.relative_errors.clone(),
        waiting_threads: Some(point.waiting_threads),
        waiting_in_pools: point.waiting_in_pools.clone(),
    });
    points.collect()
}
