//! 1994, 5.6: what is lost to decisions.
//!
//! CPU time and iterations under the engine are compared with those under the plain kernel, so
//! only real processes show it.

use prorata_report::chart::{Axis, Chart, Curve, Shape};
use prorata_scenario::Scenario;
use serde::Deserialize;

use super::{Context, Result, decided_by};
use crate::error::ReproduceError;
use crate::finding::{Findings, Measured};
use crate::processes::{self, Lost};

/// Groups of tasks that do nothing but compute.
#[derive(Clone, PartialEq, Debug, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Overhead {
    /// How many run at a time.
    pub tasks: Vec<u32>,
}

impl Overhead {
    pub(super) fn run(&self, context: &mut Context<'_>) -> Result<Findings> {
        let mut findings = Findings::default();
        let mut bars = Vec::new();
        for &tasks in &self.tasks {
            let mut scenario = context.scenario();
            scenario.clients[0].count = Some(tasks);
            let lost = on_processes(context, &scenario, tasks)?;
            bars.push((f64::from(tasks) + BAR / 2.0, lost.received.max(0.0)));
            let metric = format!("CPU time lost, {tasks} tasks");
            findings.measured.push(Measured {
                counted: Some(lost.counted),
                ..Measured::new(metric, lost.received, "%")
            });
        }
        findings.draw("", &self.chart(context, bars));
        Ok(findings)
    }

    fn chart(&self, context: &Context<'_>, ours: Vec<(f64, f64)>) -> Chart {
        let printed = &context.figure.reproduces.printed;
        let tasks = self.tasks.iter().zip(printed);
        let paper =
            tasks.map(|(&tasks, expectation)| (f64::from(tasks) - BAR / 2.0, expectation.paper));
        let bars = |name: &str, colour, points| Curve::new(Shape::Bars(BAR), colour, name, points);
        Chart {
            title: context.figure.scenario.title.clone(),
            x: Axis::up_to(10.0, "tasks"),
            y: Axis::of("CPU time lost (%)"),
            curves: vec![bars("paper", 1, paper.collect()), bars("ours", 0, ours)],
            ..Chart::default()
        }
    }
}

/// Width of a bar, in tasks.
const BAR: f64 = 0.8;

fn on_processes(context: &mut Context<'_>, scenario: &Scenario, tasks: u32) -> Result<Lost> {
    let kind = context.engine.for_processes();
    let kind = kind.ok_or_else(|| ReproduceError::NotBySimulation(context.figure.id.clone()))?;
    context.step(&format!("{tasks} tasks"))?;
    let seed = context.seed(0);
    let scenario = decided_by(scenario, kind);
    let pace = context.on_processes()?.1.clone();
    processes::lost((kind, seed), &scenario, &pace, context.watch)
}
