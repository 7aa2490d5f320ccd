//! 1999, Table 2: waits for a lock of the kernel, with kernel priorities and without.

use prorata_report::chart::{Axis, Chart, Curve, Shape};
use prorata_scenario::event::Event;
use prorata_sim::{Machine, Observer};
use serde::Deserialize;

use super::{Context, Result, as_far_as_possible};
use crate::finding::Findings;
use crate::statistics::median;

/// Waits for the mutexes of the scenario, with its mechanisms and without kernel priorities.
#[derive(Clone, PartialEq, Debug, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct LockWaits {
    /// Improvements that the paper prints, in per cent.
    pub printed: Vec<Improvement>,
    /// Runs that are averaged.
    pub runs: u32,
}

/// A row of the table.
#[derive(Clone, PartialEq, Debug, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Improvement {
    /// What processes sleep on.
    pub name: String,
    /// Reduction of the number of sleeps.
    pub frequency: f64,
    /// Reduction of their median duration.
    pub duration: f64,
}

impl Improvement {
    /// The reduction of number times duration.
    fn weighted(&self) -> f64 {
        let left = (1.0 - self.frequency / 100.0) * (1.0 - self.duration / 100.0);
        100.0 * (1.0 - left)
    }
}

/// Times of waits for mutexes that were taken, in milliseconds.
#[derive(Default)]
struct Waits(Vec<f64>);

impl Observer for Waits {
    fn observe(&mut self, _: u64, event: Event<'_>, _: &Machine) {
        if let Event::Acquired { waited_ns, .. } = event
            && waited_ns > 0
        {
            self.0.push(waited_ns as f64 / 1e6);
        }
    }
}

/// Number of waits, and the median in milliseconds.
struct Outcome {
    number: f64,
    median_ms: f64,
}

impl LockWaits {
    pub(super) fn run(&self, context: &mut Context<'_>) -> Result<Findings> {
        let mut runs = Vec::new();
        for run in 0..self.runs {
            let without = outcome(context, run, false)?;
            let with = outcome(context, run, true)?;
            let reduction = |with: f64, without: f64| 100.0 * (1.0 - with / without);
            let ours = Improvement {
                name: "lock".to_owned(),
                frequency: reduction(with.number, without.number),
                duration: reduction(with.median_ms, without.median_ms),
            };
            let mut findings = Findings::default();
            findings.add("lock: frequency", ours.frequency, "%");
            findings.add("lock: duration", ours.duration, "%");
            findings.add("lock: weighted", ours.weighted(), "%");
            findings.add("lock: median without", without.median_ms, "ms");
            findings.add("lock: median with", with.median_ms, "ms");
            runs.push(findings);
        }
        let mut findings = Findings::of_runs(runs);
        for row in &self.printed {
            findings.add(format!("{}: weighted", row.name), row.weighted(), "%");
        }
        findings.draw("", &self.chart(context, findings.value("lock: weighted")));
        Ok(findings)
    }

    fn chart(&self, context: &Context<'_>, ours: f64) -> Chart {
        let printed = self.printed.iter().enumerate();
        let printed = printed.map(|(place, row)| (place as f64 + 1.0, row.weighted().max(-100.0)));
        let names: Vec<&str> = self.printed.iter().map(|row| row.name.as_str()).collect();
        Chart {
            title: context.figure.scenario.title.clone(),
            caption: format!("ours, {} (cut off at -100)", names.join(", ")),
            x: Axis::of("reason of the sleep"),
            y: Axis::of("weighted improvement (%)"),
            curves: vec![
                Curve::new(Shape::Bars(0.8), 0, "ours", vec![(0.0, ours)]),
                Curve::new(Shape::Bars(0.8), 1, "paper", printed),
            ],
            rules: Vec::new(),
        }
    }
}

fn outcome(context: &mut Context<'_>, run: u32, with: bool) -> Result<Outcome> {
    let mut scenario = context.scenario();
    scenario.machine.hybrid.kernel_priorities = with;
    as_far_as_possible(&mut scenario);
    let seed = context.seed(run);
    let (_, Waits(waits)) = context.simulate(&scenario, seed, Waits::default())?;
    Ok(Outcome {
        number: waits.len() as f64,
        median_ms: median(&waits),
    })
}
