//! A kernel build (2001, Figure 1): a make keeps so many compilers going.

use prorata_scenario::Scenario;
use prorata_scenario::file::{Distribution, Step, Time, Varying};
use serde::Deserialize;

use super::{add_process, empty, repeat};

/// How a kernel is built.
#[derive(Clone, PartialEq, Debug, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Build {
    /// Jobs at a time.
    pub jobs: u32,
    /// Mean CPU time of a compilation, exponential.
    pub compile: Time,
    /// Mean CPU time between two waits for a file, exponential.
    pub compute: Time,
    /// Mean wait for a file, exponential.
    pub wait: Time,
}

impl Build {
    /// The build, without end.
    pub fn scenario(&self) -> Scenario {
        let mut scenario = empty("Kernel build");
        let varies = |mean| Distribution::Varying(Varying::Exponential(mean));
        let job = |number| {
            let files = self.compile.0 / self.compute.0.max(1);
            let part = vec![
                Step::Compute(varies(self.compute)),
                Step::Sleep(varies(self.wait)),
            ];
            let compile = repeat(Some(files.clamp(1, 1 << 20) as u32), part);
            (format!("job{number}"), vec![repeat(None, vec![compile])])
        };
        let jobs = (0..self.jobs).map(job).collect();
        add_process(&mut scenario, "make", jobs);
        scenario
    }
}
