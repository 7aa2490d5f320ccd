//! 2001, Figure 1: how far run queues deviate from their mean length where each
//! CPU takes tasks from its own queue only.

use std::num::NonZeroU32;

use prorata_report::chart::{Axis, Chart, Curve, Shape};
use prorata_scenario::file::Time;
use prorata_smp::{LayoutName, SchedulerCosts};
use serde::Deserialize;

use super::many_cpus::pairs;
use super::{Context, Result};
use crate::finding::Findings;
use crate::statistics::{largest, mean};
use crate::workload::Build;

/// Lengths of run queues over time.
#[derive(Clone, PartialEq, Debug, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Imbalance {
    /// The load.
    pub build: Build,
    /// Size of the machine.
    pub cpus: u32,
    /// Schedulers, each with a queue for each CPU.
    pub layouts: Vec<LayoutName>,
    /// Time of the measurement.
    pub looked_at: Time,
    /// Between two looks at the queues.
    pub every: Time,
    /// Runs to average, each with a seed of its own. The chart is of the first.
    pub runs: NonZeroU32,
    /// Costs that differ from the paper's machine.
    #[serde(default)]
    pub costs: SchedulerCosts,
}

impl Imbalance {
    pub(super) fn run(&self, context: &mut Context<'_>) -> Result<Findings> {
        let derive = |findings: &mut Findings| self.add_ratios(findings);
        context.over_runs(self.runs, |context| self.run_once(context), derive)
    }

    fn add_ratios(&self, findings: &mut Findings) {
        for (one, other) in pairs(&self.layouts) {
            let of = |layout: &LayoutName| {
                findings.value(&format!("{}: mean deviation", layout.title()))
            };
            let ratio = of(one) / of(other);
            let metric = format!("{} over {}: mean deviation", one.title(), other.title());
            findings.add(metric, ratio, ": 1");
        }
    }

    fn run_once(&self, context: &mut Context<'_>) -> Result<Findings> {
        let mut findings = Findings::default();
        for &layout in &self.layouts {
            let deviations = self.deviations(context, layout)?;
            let all: Vec<f64> = deviations.iter().flat_map(|(_, of)| of.clone()).collect();
            let sizes: Vec<f64> = all.iter().map(|deviation| deviation.abs()).collect();
            let title = layout.title();
            let furthest = largest(sizes.iter().copied());
            findings.add(format!("{title}: largest deviation"), furthest, "tasks");
            findings.add(format!("{title}: mean deviation"), mean(&sizes), "tasks");
            findings.draw(&title, &self.chart(&title, &deviations));
        }
        Ok(findings)
    }

    /// By time in seconds: each queue's length less their mean.
    fn deviations(
        &self,
        context: &mut Context<'_>,
        layout: LayoutName,
    ) -> Result<Vec<(f64, Vec<f64>)>> {
        let scenario = self.build.scenario();
        let mut simulation = context.many_cpus(&scenario, self.cpus, layout, &self.costs)?;
        let mut deviations = Vec::new();
        let end_ns = self.looked_at.0;
        context.run_until(&mut simulation, self.every.0, |simulation| {
            let lengths = simulation.queue_lengths().into_iter().map(f64::from);
            let lengths: Vec<f64> = lengths.collect();
            let mean = mean(&lengths);
            let of = lengths.iter().map(|length| length - mean).collect();
            deviations.push((simulation.now_ns() as f64 / 1e9, of));
            simulation.now_ns() >= end_ns
        })?;
        Ok(deviations)
    }

    /// Around the number of jobs, as axes begin at zero.
    fn chart(&self, title: &str, deviations: &[(f64, Vec<f64>)]) -> Chart {
        let middle = f64::from(self.build.jobs);
        let curves = (0..self.cpus as usize).map(|cpu| {
            Curve::new(
                Shape::Line,
                cpu,
                format!("CPU {cpu}"),
                deviations
                    .iter()
                    .map(|(at_s, of)| (*at_s, of[cpu] + middle)),
            )
        });
        Chart {
            title: format!("Deviation from the mean run queue length, {title}"),
            caption: format!("{middle} is no deviation"),
            x: Axis::up_to(self.looked_at.as_secs_f64(), "time (s)"),
            y: Axis::up_to(2.0 * middle, format!("deviation (tasks) + {middle}")),
            curves: curves.collect(),
            rules: Vec::new(),
        }
    }
}
