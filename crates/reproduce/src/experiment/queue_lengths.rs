//! 2001, Tables 1 and 2: lengths of run queues and statistics of their locks
//! under a decision-support load that grows with the machine.

use std::num::NonZeroU32;

use prorata_report::chart::{Chart, Curve, Shape};
use prorata_sim::scenario::Time;
use prorata_sim::smp::{Costs, LayoutName};
use serde::Deserialize;

use super::many_cpus::{
    add_growth, add_lengths, add_locks, add_ratios, axis, of, on_cpus, paper_points,
};
use super::{Context, Result};
use crate::finding::Findings;
use crate::workload::DecisionSupport;

/// A load and what is measured of it.
#[derive(Clone, PartialEq, Debug, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct QueueLengths {
    /// The load.
    pub load: DecisionSupport,
    /// Sizes of the machine.
    pub cpus: Vec<u32>,
    /// Schedulers.
    pub layouts: Vec<LayoutName>,
    /// How long it is measured, after a tenth of that.
    pub measured: Time,
    /// Runs that are averaged, each with a seed of its own; the first is drawn.
    pub runs: NonZeroU32,
    /// Where the machine is not the paper's.
    #[serde(default)]
    pub costs: Costs,
}

impl QueueLengths {
    pub(super) fn run(&self, context: &mut Context<'_>) -> Result<Findings> {
        context.over_runs(self.runs, |context| self.run_once(context))
    }

    fn run_once(&self, context: &mut Context<'_>) -> Result<Findings> {
        let mut findings = Findings::default();
        let mut curves = Vec::new();
        for (colour, &layout) in self.layouts.iter().enumerate() {
            let (mut points, mut printed) = (Vec::new(), Vec::new());
            for &cpus in &self.cpus {
                let scenario = self.load.scenario(cpus);
                let mut simulation = context.many_cpus(&scenario, cpus, layout, &self.costs)?;
                let mut end_ns = 0;
                for part_ns in [self.measured.0 / 10, self.measured.0] {
                    simulation.measure_afresh();
                    end_ns += part_ns;
                    context.run_until(&mut simulation, part_ns, |s| s.now_ns() >= end_ns)?;
                }
                let of = of(layout, &on_cpus(cpus));
                add_locks(&mut findings, &of, &simulation);
                add_lengths(&mut findings, &of, &simulation);
                let contention = simulation.lock_statistics().contention() * 100.0;
                points.push((f64::from(cpus), contention));
                let paper = context.printed(&format!("{of} contention"));
                printed.extend(paper.map(|paper| (f64::from(cpus), paper)));
            }
            curves.push(Curve {
                name: layout.title(),
                shape: Shape::Line,
                colour,
                points,
            });
            curves.extend(paper_points(layout, colour, printed));
        }
        let sizes: Vec<String> = self.cpus.iter().map(|cpus| on_cpus(*cpus)).collect();
        let metrics = ["contention", "mean hold", "mean wait"];
        add_ratios(&mut findings, "", &self.layouts, &sizes, &metrics);
        if let Some(most) = self.cpus.last() {
            add_growth(&mut findings, &self.layouts, *most);
        }
        let chart = Chart {
            title: context.figure.scenario.title.clone(),
            caption: String::new(),
            x: axis("CPUs"),
            y: axis("lock contention (%)"),
            curves,
            rules: Vec::new(),
        };
        findings.draw("", &chart);
        Ok(findings)
    }
}
