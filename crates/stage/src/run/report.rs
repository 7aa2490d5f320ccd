//! A run in figures.

use prorata_scenario::measure::{ClientReport, PairReport, judge};
use prorata_scenario::plan::client_id;
use prorata_scenario::{Report, Scenario};

use super::Run;
use crate::engine::ProcessEngine;

impl Run {
    /// The figures of a run that is over.
    pub(super) fn report(&self, scenario: &Scenario, kind: &ProcessEngine) -> Report {
        let (cpus, quantum_ns) = {
            let dispatcher = self.stage.dispatcher();
            (dispatcher.cpus(), dispatcher.quantum_ns())
        };
        let told = &self.measures.told;
        let objects = &self.crew.objects;
        Report {
            title: scenario.title.clone(),
            engine: kind.name,
            mechanism: Some(self.stage.status().mechanism),
            took_ns: Some(self.took_ns),
            seed: self.seed,
            duration_ns: self.end_ns,
            cpus,
            quantum_ns,
            policy: self.policy.0,
            counts: None,
            mean_waiting_threads: None,
            most_waiting_threads: None,
            pools: Vec::new(),
            clients: self.clients(),
            pairs: self.pairs(),
            mutexes: told.mutexes(objects.mutex_names(), |client| self.name(client)),
            services: told.services(objects.service_names(), |client| self.name(client)),
            series: self.measures.series.clone(),
            refused: told.refused().to_vec(),
            verdicts: judge(scenario, &self.measures),
        }
    }

    fn clients(&self) -> Vec<ClientReport> {
        let received_ns = self.measures.received_at_end_ns(self.end_ns);
        let total_ns = received_ns.iter().sum::<u64>().max(1);
        let clients = self.crew.clients.iter().zip(0..);
        let clients = clients.map(|(client, number)| {
            let index = number as usize;
            ClientReport {
                name: client.name.clone(),
                pool: None,
                received_ns: received_ns[index],
                specified_ns: self.stage.usage(client_id(number)).specified_ns,
                share: received_ns[index] as f64 / total_ns as f64,
                largest_error: self.measures.absolute_errors[index].largest,
                mean_error: None,
                turns: None,
                blocks: None,
                migrations: None,
                response_time: None,
                response_time_buckets: Vec::new(),
                dispatch_latency: self.measures.latencies[index].summary(),
                dispatch_latency_buckets: self.measures.latencies[index].histogram(),
            }
        });
        clients.collect()
    }

    fn name(&self, client: u32) -> String {
        self.crew.clients[client as usize].name.clone()
    }

    fn pairs(&self) -> Vec<PairReport> {
        let pairs = self.measures.pairs.iter().map(|pair| PairReport {
            clients: (self.name(pair.clients.0), self.name(pair.clients.1)),
            largest_error: pair.largest,
        });
        pairs.collect()
    }
}
