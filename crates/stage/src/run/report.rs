//! A run in figures.

use prorata_scenario::measure::Ran;
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
        let clients = 0..self.crew.clients.len() as u32;
        let service_ns = clients.map(|client| {
            let received_ns = self.looks.run.received_ns_at(self.end_ns, client);
            (
                received_ns,
                self.stage.usage(client_id(client)).specified_ns,
            )
        });
        let ran = Ran {
            scenario,
            engine: kind.name,
            seed: self.seed,
            duration_ns: self.end_ns,
            cpus,
            quantum_ns,
            policy: self.policy.0,
            groups: &self.groups,
            objects: &self.crew.objects,
            measures: &self.looks.run,
            // The engine alone knows when a turn ends.
            sees_turns: false,
            service_ns: service_ns.collect(),
            conserves: &|| self.looks.conserves,
        };
        Report {
            mechanism: Some(self.stage.status().mechanism),
            took_ns: Some(self.took_ns),
            ..ran.report()
        }
    }
}
