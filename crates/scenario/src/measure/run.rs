//! The measures of a run on any engine, and the report of a run that is over.

use std::collections::BTreeMap;

use prorata_core::policy::PolicyName;

use super::verdict::judge;
use super::{AbsoluteError, ClientReport, PairReport, PointReport, RelativeError};
use super::{Report, SlotMeasures, Times, Told};
use crate::Scenario;
use crate::plan::{Group, client_name};
use crate::world::Objects;

/// Everything measured of one client.
#[derive(Clone, Default, Debug)]
pub struct ClientMeasures {
    /// Difference between service received and due.
    pub absolute_error: AbsoluteError,
    /// From the end of one turn up to and including the end of another
    /// (1995, 5.3).
    pub response_times: Times,
    /// From a wake, or a start, to the CPU.
    pub dispatch_latencies: Times,
    /// Turns that it had.
    pub turns: u64,
    /// Times that a thread of it began to wait or to sleep.
    pub blocks: u64,
    /// Times that a thread of it continued on another CPU.
    pub migrations: u64,
    last_turn_end_ns: Option<u64>,
}

impl ClientMeasures {
    /// A turn ends.
    pub fn end_turn(&mut self, now_ns: u64) {
        self.turns += 1;
        self.absolute_error.count_turn();
        if let Some(last_ns) = self.last_turn_end_ns.replace(now_ns) {
            self.response_times.record(now_ns - last_ns);
        }
    }
}

/// The measures of a run on any engine.
#[derive(Debug, Default)]
pub struct RunMeasures {
    /// By client.
    pub clients: Vec<ClientMeasures>,
    /// The pairs that the scenario asks for.
    pub pairs: Vec<RelativeError>,
    /// Waits at mutexes and for services, and the ledger's refusals.
    pub told: Told,
    /// The time series, empty unless the scenario asks for one.
    pub series: Vec<PointReport>,
    /// Of the timetable, where there is one that the engine enforces.
    pub slots: Option<Box<SlotMeasures>>,
    /// Service received by each client at the times that assertions name.
    marks: BTreeMap<u64, Vec<u64>>,
}

impl RunMeasures {
    /// At the beginning of a run.
    pub fn new(clients: u32, pairs: &[(u32, u32)]) -> RunMeasures {
        RunMeasures {
            clients: vec![ClientMeasures::default(); clients as usize],
            pairs: pairs.iter().map(|pair| RelativeError::new(*pair)).collect(),
            ..RunMeasures::default()
        }
    }

    /// Keeps what each client has received, for assertions that name this time.
    pub fn mark(&mut self, now_ns: u64, received_ns: Vec<u64>) {
        self.marks.insert(now_ns, received_ns);
    }

    /// What a client had received at a marked time; nothing at other times.
    pub fn received_ns_at(&self, time_ns: u64, client: u32) -> u64 {
        let received = self.marks.get(&time_ns);
        received.map_or(0, |received_ns| received_ns[client as usize])
    }
}

/// A run that is over.
#[allow(missing_docs, reason = "the names explain the rest")]
pub struct Ran<'a> {
    pub scenario: &'a Scenario,
    pub engine: &'static str,
    /// The source of all randomness.
    pub seed: u64,
    pub duration_ns: u64,
    pub cpus: u32,
    pub quantum_ns: u64,
    pub policy: PolicyName,
    /// The plan's clients.
    pub groups: &'a [Group],
    /// The objects at which threads met.
    pub objects: &'a Objects,
    /// What was measured.
    pub measures: &'a RunMeasures,
    /// Whether the engine shows when turns end, threads block and tasks migrate.
    pub sees_turns: bool,
    /// CPU time received and due, by client.
    pub service_ns: Vec<(u64, u64)>,
    /// Whether no value and no CPU time came or went.
    pub conserves: &'a dyn Fn() -> bool,
}

impl Ran<'_> {
    /// The run in figures, those left out that only a simulated machine has.
    pub fn report(&self) -> Report {
        let told = &self.measures.told;
        let name = |client| client_name(self.groups, client).into_owned();
        let pairs = self.measures.pairs.iter().map(|pair| PairReport {
            clients: (name(pair.clients.0), name(pair.clients.1)),
            largest_error: pair.largest,
        });
        Report {
            title: self.scenario.title.clone(),
            engine: self.engine,
            mechanism: None,
            took_ns: None,
            seed: self.seed,
            duration_ns: self.duration_ns,
            cpus: self.cpus,
            quantum_ns: self.quantum_ns,
            policy: self.policy,
            counts: None,
            mean_waiting_threads: None,
            most_waiting_threads: None,
            pools: Vec::new(),
            clients: self.clients(),
            pairs: pairs.collect(),
            mutexes: told.mutexes(self.objects.mutex_names(), name),
            services: told.services(self.objects.service_names(), name),
            series: self.measures.series.clone(),
            refused: told.refused().to_vec(),
            verdicts: judge(self),
        }
    }

    fn clients(&self) -> Vec<ClientReport> {
        let total_ns = self.service_ns.iter().map(|service| service.0).sum::<u64>();
        let clients = self.measures.clients.iter().zip(&self.service_ns).zip(0..);
        let clients = clients.map(|((measured, service), client)| {
            let (received_ns, specified_ns) = *service;
            let (responses, latencies) = (&measured.response_times, &measured.dispatch_latencies);
            let seen = |figure: u64| self.sees_turns.then_some(figure);
            ClientReport {
                name: client_name(self.groups, client).into_owned(),
                pool: None,
                received_ns,
                specified_ns,
                share: received_ns as f64 / total_ns.max(1) as f64,
                largest_error: measured.absolute_error.largest,
                mean_error: self.sees_turns.then(|| measured.absolute_error.mean()),
                turns: seen(measured.turns),
                blocks: seen(measured.blocks),
                migrations: seen(measured.migrations),
                response_time: responses.summary(),
                response_time_buckets: responses.histogram(),
                dispatch_latency: latencies.summary(),
                dispatch_latency_buckets: latencies.histogram(),
                in_slots_ns: None,
                uncharged_ns: None,
            }
        });
        clients.collect()
    }
}
