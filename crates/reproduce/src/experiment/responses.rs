//! 1995, Figures 11 to 13: distributions of response times.

use prorata_report::chart::{Axis, Chart, Curve, Shape};
use prorata_scenario::Scenario;
use serde::Deserialize;

use super::panel::{Panel, to_run};
use super::{Context, Result};
use crate::finding::Findings;
use crate::statistics::largest;
use crate::turns::{Errors, Histogram, ResponseTimes};

/// Response times of one client in each panel.
#[derive(Clone, PartialEq, Debug, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Responses {
    /// Policies and clients.
    pub panels: Vec<Panel>,
    /// Longest response time drawn, in quanta.
    pub drawn: u64,
    /// Whether the other clients' times, and the client's largest absolute
    /// error, are looked at too.
    #[serde(default)]
    pub others: bool,
}

/// What the runs of a panel come to.
#[derive(Default)]
struct Outcome {
    times: Histogram,
    /// Of each run.
    longest: Vec<f64>,
    shortest: u64,
    /// Of all other clients.
    others: Histogram,
    largest_error: f64,
}

impl Responses {
    pub(super) fn run(&self, context: &mut Context<'_>) -> Result<Findings> {
        let mut findings = Findings::default();
        for panel in to_run(&self.panels, context) {
            let scenario = panel.scenario(context)?;
            let outcome = self.outcome(context, &panel, &scenario)?;
            let mut add =
                |what: &str, value: f64| findings.add(panel.metric(what), value, "quanta");
            add("mean response time", outcome.times.mean());
            add("standard deviation", outcome.times.deviation());
            add("shortest response time", outcome.shortest as f64);
            let longest = panel.metric("longest response time");
            findings.add_runs(longest, &outcome.longest, "quanta");
            if self.others {
                let mut add =
                    |what: &str, value: f64| findings.add(panel.metric(what), value, "quanta");
                add("largest absolute error", outcome.largest_error);
                add(
                    "shortest response time of the others",
                    outcome.others.shortest() as f64,
                );
                add(
                    "longest response time of the others",
                    outcome.others.longest() as f64,
                );
            }
            findings.draw(&panel.panel, &self.chart(&panel, &scenario, &outcome.times));
        }
        Ok(findings)
    }

    fn outcome(
        &self,
        context: &mut Context<'_>,
        panel: &Panel,
        scenario: &Scenario,
    ) -> Result<Outcome> {
        let name = panel.client(scenario);
        let client = scenario
            .clients
            .iter()
            .position(|client| client.name == name);
        let client = client
            .ok_or_else(|| context.malformed(format!("speaks of '{name}', which it lacks")))?
            as u32;
        let mut outcome = Outcome {
            shortest: u64::MAX,
            ..Outcome::default()
        };
        for run in 0..panel.runs {
            let seed = context.seed(run);
            let watched = if self.others {
                let both = (ResponseTimes::default(), Errors::of(client));
                let (machine, (times, errors)) = context.simulate(scenario, seed, both)?;
                let worst = largest(errors.all.iter().map(|error| error.abs()));
                outcome.largest_error = outcome.largest_error.max(worst);
                let others = (0..machine.client_count()).filter(|other| *other != client);
                others.for_each(|other| outcome.others.add(&times.of(other)));
                times
            } else {
                context
                    .simulate(scenario, seed, ResponseTimes::default())?
                    .1
            };
            let times = watched.of(client);
            outcome.longest.push(times.longest() as f64);
            outcome.shortest = outcome.shortest.min(times.shortest());
            outcome.times.add(&times);
        }
        Ok(outcome)
    }

    fn chart(&self, panel: &Panel, scenario: &Scenario, times: &Histogram) -> Chart {
        let runs = f64::from(panel.runs);
        let shown = times.counts.iter().filter(|(time, _)| **time <= self.drawn);
        let points = shown.map(|(time, count)| (*time as f64, *count as f64 / 1000.0 / runs));
        let policy = super::policy_title(panel.policy);
        let client = panel.client(scenario);
        Chart {
            title: scenario.title.clone(),
            caption: format!("({}) client {client}, {policy}", panel.panel),
            x: Axis::up_to(self.drawn as f64 + 1.0, "response time (quanta)"),
            y: Axis::of("frequency (thousands)"),
            curves: vec![Curve::new(Shape::Bars(0.8), 0, "", points)],
            rules: Vec::new(),
        }
    }
}
