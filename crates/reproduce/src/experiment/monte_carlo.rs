//! 1994, Figure 6: Monte-Carlo integrations that start one after the other,
//! each with tickets in proportion to the square of its relative error.
//!
//! That error is one over the root of the trials. So each one's rate is in proportion to
//! one over its trials, and the squares of trials of all running integrations grow alike.

use prorata_report::chart::{Axis, Chart, Curve, Shape};
use prorata_scenario::Scenario;
use prorata_scenario::file::{Rule, Tickets};
use serde::Deserialize;

use super::{Context, Result};
use crate::course::Course;
use crate::finding::{Findings, Pairs};

/// Trials over time.
#[derive(Clone, PartialEq, Debug, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct MonteCarlo {
    /// Runs that are averaged by simulation; the first is drawn.
    pub runs: u32,
}

impl MonteCarlo {
    pub(super) fn run(&self, context: &mut Context<'_>) -> Result<Findings> {
        let scenario = context.scenario();
        let trial_s = trial_s(&scenario)
            .ok_or_else(|| context.malformed("needs clients with monte-carlo tickets"))?;
        let starts_s: Vec<f64> = scenario
            .clients
            .iter()
            .map(|c| c.start.as_secs_f64())
            .collect();
        let mut findings = Findings::default();
        let mut caught_up = vec![Pairs::default(); starts_s.len()];
        let mut growths = caught_up.clone();
        for run in 0..context.runs(self.runs, 1) {
            let course = context.course(&scenario, context.seed(run))?;
            let course = course
                .counted()
                .unwrap_or_else(|| trials_of(course, trial_s));
            let end_s = course.end_s();
            let all_run_s = starts_s.iter().copied().fold(0.0, f64::max);
            let trials = |client, at_s| course.received(client, at_s);
            let growth = |client| trials(client, end_s).powi(2) - trials(client, all_run_s).powi(2);
            for client in 1..starts_s.len() {
                growths[client].push((growth(client), growth(0)));
                caught_up[client].push((trials(client, end_s), trials(0, end_s)));
            }
            if run == 0 {
                findings.draw("", &chart(context, &course, &starts_s));
            }
        }
        for (place, client) in scenario.clients.iter().enumerate().skip(1) {
            let first = &scenario.clients[0].name;
            let metric = format!("trials of the {} over those of the {first}", client.name);
            findings.add_ratio(metric, &caught_up[place], &Pairs::default());
            let metric = format!("growth of squared trials, {} over {first}", client.name);
            findings.add_ratio(metric, &growths[place], &Pairs::default());
        }
        Ok(findings)
    }
}

/// CPU time of a trial, in seconds.
fn trial_s(scenario: &Scenario) -> Option<f64> {
    match &scenario.clients.first()?.tickets {
        Tickets::Ruled(Rule::MonteCarlo(rule)) => Some(rule.trial.as_secs_f64()),
        _ => None,
    }
}

/// A course in trials instead of CPU time.
fn trials_of(mut course: Course, trial_s: f64) -> Course {
    let points = course.points.iter_mut();
    let received = points.flat_map(|point| &mut point.received);
    received.for_each(|received| *received /= trial_s);
    course
}

fn chart(context: &Context<'_>, course: &Course, starts_s: &[f64]) -> Chart {
    let curves = course.clients.iter().enumerate().map(|(client, name)| {
        Curve::new(
            Shape::Line,
            client,
            name,
            course
                .curve(client)
                .into_iter()
                .filter(|(at_s, _)| *at_s >= starts_s[client]),
        )
    });
    Chart {
        title: context.figure.scenario.title.clone(),
        x: Axis::up_to(course.end_s(), "time (s)"),
        y: Axis::of("cumulative trials"),
        curves: curves.collect(),
        ..Chart::default()
    }
}
