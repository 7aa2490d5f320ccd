//! 2001, Tables 1 and 2: lengths of run queues and statistics of their locks
//! under a decision-support load that grows with the machine.

use std::num::NonZeroU32;

use prorata_scenario::file::Time;
use prorata_smp::{LayoutName, SchedulerCosts, SmpSimulation};
use serde::Deserialize;

use super::many_cpus::{
    Compared, add_growth, add_lengths, add_locks, add_ratios, of, on_cpus, pairs,
};
use super::{Context, Result};
use crate::finding::Findings;
use crate::workload::DecisionSupport;

/// A load and its measurement.
#[derive(Clone, PartialEq, Debug, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct QueueLengths {
    /// The load.
    pub load: DecisionSupport,
    /// Sizes of the machine.
    pub cpus: Vec<u32>,
    /// Schedulers.
    pub layouts: Vec<LayoutName>,
    /// Time of the measurement, after a tenth of that.
    pub measured: Time,
    /// Runs to average, each with a seed of its own.
    pub runs: NonZeroU32,
    /// Costs that differ from the paper's machine.
    #[serde(default)]
    pub costs: SchedulerCosts,
}

/// The metric of how often a CPU decides for a certain amount of work.
const SCHEDULES: &str = "schedules a wait";

impl QueueLengths {
    pub(super) fn run(&self, context: &mut Context<'_>) -> Result<Findings> {
        let derive = |findings: &mut Findings| self.add_comparisons(findings);
        let mut findings =
            context.over_runs(self.runs, |context| self.run_once(context), derive)?;
        let metrics = [
            ("contention", "%"),
            ("mean hold", "us"),
            ("mean wait", "us"),
            ("mean run queue length", "tasks"),
            ("longest run queue", "tasks"),
        ];
        self.compared().draw(context, &mut findings, &metrics);
        Ok(findings)
    }

    fn compared(&self) -> Compared<'_> {
        Compared {
            label: "",
            layouts: &self.layouts,
            cpus: &self.cpus,
        }
    }

    fn run_once(&self, context: &mut Context<'_>) -> Result<Findings> {
        let mut findings = Findings::default();
        for &layout in &self.layouts {
            for &cpus in &self.cpus {
                let simulation = self.measure(context, layout, cpus)?;
                let of = of(layout, &on_cpus(cpus));
                let seconds = simulation.measured_ns() as f64 / 1e9;
                let counts = simulation.counts();
                let rate = counts.sleeps as f64 / seconds;
                findings.add(format!("{of} throughput"), rate, "waits/s");
                let schedules = counts.schedules as f64 / counts.sleeps as f64;
                findings.add(format!("{of} {SCHEDULES}"), schedules, ": 1");
                add_locks(&mut findings, &of, &simulation);
                add_lengths(&mut findings, &of, &simulation);
            }
        }
        Ok(findings)
    }

    fn measure(
        &self,
        context: &mut Context<'_>,
        layout: LayoutName,
        cpus: u32,
    ) -> Result<SmpSimulation> {
        let scenario = self.load.scenario(cpus);
        let mut simulation = context.many_cpus(&scenario, cpus, layout, &self.costs)?;
        let mut end_ns = 0;
        for part_ns in [self.measured.0 / 10, self.measured.0] {
            simulation.measure_afresh();
            end_ns += part_ns;
            context.run_until(&mut simulation, part_ns, |s| s.now_ns() >= end_ns)?;
        }
        Ok(simulation)
    }

    fn add_comparisons(&self, findings: &mut Findings) {
        let sizes: Vec<String> = self.cpus.iter().map(|cpus| on_cpus(*cpus)).collect();
        let metrics = ["contention", "mean hold", "mean wait", "throughput"];
        add_ratios(findings, "", &self.layouts, &sizes, &metrics);
        for (one, other) in pairs(&self.layouts) {
            for size in &sizes {
                let pair = format!("{} over {}, {size}:", one.title(), other.title());
                let gain = findings.value(&format!("{pair} throughput")) * 100.0 - 100.0;
                findings.add(format!("{pair} gain in throughput"), gain, "%");
            }
        }
        if let Some(first) = self.cpus.first() {
            let compared = self.compared();
            compared.add_ratios_to(findings, *first, &[SCHEDULES]);
        }
        self.compared().add_best_over_worst(findings);
        if let Some(most) = self.cpus.last() {
            add_growth(findings, &self.layouts, *most);
        }
    }
}
