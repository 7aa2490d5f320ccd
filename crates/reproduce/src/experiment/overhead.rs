//! 1994, 5.6: what is lost to decisions.
//!
//! By simulation the time is taken that this machine needs for a decision of
//! ledger, dispatcher and policy, the simulator's own share included, and
//! compared with a quantum. On processes CPU time and iterations under the engine
//! are compared with those under the plain kernel.

use std::time::Instant;

use prorata_report::chart::{Axis, Chart, Curve, Shape};
use prorata_scenario::Scenario;
use prorata_stage::ProcessEngine;
use serde::Deserialize;

use super::{Context, Result, decided_by};
use crate::finding::{Findings, Measured};
use crate::processes::{self, Lost};

/// Groups of tasks that do nothing but compute.
#[derive(Clone, PartialEq, Debug, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Overhead {
    /// How many run at a time.
    pub tasks: Vec<u32>,
}

/// Runs, of which the one least disturbed counts.
const TRIALS: u32 = 3;

impl Overhead {
    pub(super) fn run(&self, context: &mut Context<'_>) -> Result<Findings> {
        let mut findings = Findings::default();
        let mut bars = Vec::new();
        for &tasks in &self.tasks {
            let mut scenario = context.scenario();
            scenario.clients[0].count = Some(tasks);
            let (lost, counted) = match context.engine.for_processes() {
                None => (simulated(context, &scenario)?, None),
                Some(kind) => {
                    let lost = on_processes(context, kind, &scenario, tasks)?;
                    (lost.received, Some(lost.counted))
                }
            };
            bars.push((f64::from(tasks) + BAR / 2.0, lost.max(0.0)));
            let metric = format!("CPU time lost, {tasks} tasks");
            findings.measured.push(Measured {
                counted,
                ..Measured::timed(metric, lost, "%")
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

/// Real time for the decisions of a scenario over the time that they rule, in
/// per cent.
fn simulated(context: &mut Context<'_>, scenario: &Scenario) -> Result<f64> {
    let mut shortest = f64::INFINITY;
    for run in 0..TRIALS {
        let begin = Instant::now();
        context.simulate(scenario, context.seed(run), ())?;
        shortest = shortest.min(begin.elapsed().as_secs_f64());
    }
    Ok(shortest / scenario.duration.as_secs_f64() * 100.0)
}

fn on_processes(
    context: &mut Context<'_>,
    kind: &'static ProcessEngine,
    scenario: &Scenario,
    tasks: u32,
) -> Result<Lost> {
    context.step(&format!("{tasks} tasks"))?;
    let seed = context.seed(0);
    let scenario = decided_by(scenario, kind);
    let pace = context.on_processes()?.1.clone();
    processes::lost((kind, seed), &scenario, &pace, context.watch)
}
