//! A decision-support database (2001, 5.1), as a scheduler sees it.

use prorata_scenario::Scenario;
use prorata_scenario::file::{Distribution, Step, Time, Varying};
use serde::Deserialize;

use super::{add_process, empty, repeat};

/// Servants that compute and wait, in turn, for times drawn at random.
#[derive(Clone, PartialEq, Debug, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct DecisionSupport {
    /// The degree of parallelism, which grows with the machine.
    pub servants_per_cpu: u32,
    /// Mean CPU time between two waits, exponential.
    pub compute: Time,
    /// Mean time of a wait, exponential.
    pub wait: Time,
}

impl DecisionSupport {
    /// The load of a machine with so many CPUs.
    pub fn scenario(&self, cpus: u32) -> Scenario {
        let mut scenario = empty(&format!("Decision support, {cpus} CPUs"));
        let varies = |mean| Distribution::Varying(Varying::Exponential(mean));
        let servant = |number| {
            let steps = vec![
                Step::Compute(varies(self.compute)),
                Step::Sleep(varies(self.wait)),
            ];
            (format!("servant{number}"), vec![repeat(None, steps)])
        };
        let servants = (0..self.servants_per_cpu * cpus).map(servant).collect();
        add_process(&mut scenario, "database", servants);
        scenario
    }
}
