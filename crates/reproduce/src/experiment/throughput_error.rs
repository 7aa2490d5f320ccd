//! 1995, Figures 9 and 10, and the example of section 4: the error of a
//! client over allocations.

use prorata_report::chart::{Axis, Chart, Curve, Shape};
use serde::Deserialize;

use super::panel::{Panel, to_run};
use super::{Context, Result};
use crate::finding::Findings;
use crate::statistics::largest;
use crate::turns::Errors;

/// Errors, averaged over runs.
#[derive(Clone, PartialEq, Debug, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct ThroughputError {
    /// Policies and tickets.
    pub panels: Vec<Panel>,
}

impl ThroughputError {
    pub(super) fn run(&self, context: &mut Context<'_>) -> Result<Findings> {
        let mut findings = Findings::default();
        for panel in to_run(&self.panels, context) {
            let (errors, last) = mean_errors(context, &panel)?;
            let metric = format!("mean error after {} allocations", errors.len());
            findings.add_runs(panel.metric(&metric), &last, "quanta");
            let worst = largest(errors.iter().copied());
            let metric = match panel.runs {
                1 => "largest error",
                _ => "largest mean error",
            };
            findings.add(panel.metric(metric), worst, "quanta");
            if let Some(period) = panel.period {
                let ends = errors.iter().skip(period as usize - 1);
                let at_ends = largest(ends.step_by(period as usize).copied());
                let metric = format!("largest error at the ends of periods of {period}");
                findings.add(panel.metric(&metric), at_ends, "quanta");
            }
            findings.draw(&panel.panel, &chart(context, &panel, &errors));
        }
        Ok(findings)
    }
}

/// The magnitude of the error after each allocation, averaged over runs, and that after the last
/// one of each run.
fn mean_errors(context: &mut Context<'_>, panel: &Panel) -> Result<(Vec<f64>, Vec<f64>)> {
    let scenario = panel.scenario(context)?;
    let (mut sums, mut last): (Vec<f64>, Vec<f64>) = Default::default();
    for run in 0..panel.runs {
        let seed = context.seed(run);
        let (_, errors) = context.simulate(&scenario, seed, Errors::of(0))?;
        sums.resize(errors.all.len(), 0.0);
        last.push(errors.all.last().map_or(0.0, |error| error.abs()));
        let all = sums.iter_mut().zip(&errors.all);
        all.for_each(|(sum, error)| *sum += error.abs());
    }
    let runs = f64::from(panel.runs);
    Ok((sums.into_iter().map(|sum| sum / runs).collect(), last))
}

fn chart(context: &Context<'_>, panel: &Panel, errors: &[f64]) -> Chart {
    let shown = panel.shown.map_or(errors.len(), |shown| shown as usize);
    let points = errors.iter().take(shown).enumerate();
    let mut curve = vec![(0.0, 0.0)];
    curve.extend(points.map(|(done, error)| (done as f64 + 1.0, *error)));
    let runs = match panel.runs {
        1 => "one run".to_owned(),
        runs => format!("mean of {runs} runs"),
    };
    let policy = super::policy_title(panel.policy);
    Chart {
        title: context.figure.scenario.title.clone(),
        caption: format!("({}) {policy}, {runs}", panel.panel),
        x: Axis::up_to(shown as f64, "time (quanta)"),
        y: Axis::of(match panel.runs {
            1 => "error (quanta)".to_owned(),
            _ => "mean error (quanta)".to_owned(),
        }),
        curves: vec![Curve::new(Shape::Line, 0, "", curve)],
        rules: Vec::new(),
    }
}
