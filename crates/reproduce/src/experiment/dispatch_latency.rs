//! 1999, Figures 5 and 6 and Table 1: the time from when a client becomes runnable to the CPU,
//! over spans of its life, under several sets of mechanisms.

use prorata_report::chart::{Axis, Chart, Curve, Rule, Shape};
use prorata_scenario::event::Event;
use prorata_scenario::file::{Hybrid, Time};
use prorata_sim::{Machine, Observer};
use serde::Deserialize;

use super::{Context, Result, as_far_as_possible};
use crate::finding::Findings;
use crate::statistics::{deviation, mean, median};

/// Dispatch latencies of one client.
#[derive(Clone, PartialEq, Debug, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct DispatchLatency {
    /// The client.
    pub client: String,
    /// Mechanisms that are compared.
    pub variants: Vec<Variant>,
    /// Stages of the client.
    pub spans: Vec<Span>,
    /// Latencies of at least this time are counted.
    pub long: Time,
    /// Runs that are averaged; the first is drawn.
    pub runs: u32,
}

/// Mechanisms in force.
#[derive(Clone, PartialEq, Debug, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Variant {
    /// What it is called.
    pub name: String,
    /// The mechanisms.
    pub hybrid: Hybrid,
}

/// A span of time.
#[derive(Clone, PartialEq, Debug, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Span {
    /// What it is called.
    pub name: String,
    /// From when on.
    pub from: Time,
    /// Until when.
    pub until: Time,
}

/// Times at which a client got a CPU, and how long it had waited, in nanoseconds.
struct Latencies {
    client: u32,
    all: Vec<(u64, u64)>,
}

impl Observer for Latencies {
    fn observe(&mut self, now_ns: u64, event: Event<'_>, _: &Machine) {
        if let Event::Dispatched {
            client,
            start_ns,
            ready_ns,
            ..
        } = event
            && client == self.client
        {
            self.all.push((now_ns, start_ns - ready_ns));
        }
    }
}

const MS: f64 = 1e6;

impl DispatchLatency {
    pub(super) fn run(&self, context: &mut Context<'_>) -> Result<Findings> {
        let mut findings = Findings::default();
        for variant in &self.variants {
            let mut runs = Vec::new();
            for run in 0..self.runs {
                let latencies = self.latencies(context, variant, run)?;
                runs.push(self.found(context, variant, &latencies, run == 0));
            }
            let found = Findings::of_runs(runs);
            findings.measured.extend(found.measured);
            findings.drawings.extend(found.drawings);
        }
        Ok(findings)
    }

    fn latencies(
        &self,
        context: &mut Context<'_>,
        variant: &Variant,
        run: u32,
    ) -> Result<Latencies> {
        let mut scenario = context.scenario();
        scenario.machine.hybrid = variant.hybrid;
        as_far_as_possible(&mut scenario);
        let client = scenario.clients.iter().position(|c| c.name == self.client);
        let client = client.ok_or_else(|| {
            context.malformed(format!("speaks of '{}', which it lacks", self.client))
        })?;
        let observer = Latencies {
            client: client as u32,
            all: Vec::new(),
        };
        let seed = context.seed(run);
        Ok(context.simulate(&scenario, seed, observer)?.1)
    }

    fn found(
        &self,
        context: &Context<'_>,
        variant: &Variant,
        latencies: &Latencies,
        draws: bool,
    ) -> Findings {
        let mut findings = Findings::default();
        for span in &self.spans {
            let within = latencies.all.iter();
            let within = within.filter(|(at, _)| (span.from.0..span.until.0).contains(at));
            let waits: Vec<f64> = within.map(|(_, wait)| *wait as f64 / MS).collect();
            let long_ms = self.long.0 as f64 / MS;
            let long = waits.iter().filter(|wait| **wait >= long_ms).count();
            let metric = |what: &str| format!("{}, {}: {what}", variant.name, span.name);
            findings.add(metric("mean"), mean(&waits), "ms");
            findings.add(metric("deviation"), deviation(&waits), "ms");
            findings.add(metric("median"), median(&waits), "ms");
            findings.add(metric(&format!("{} or more", self.long)), long as f64, "");
            let part = long as f64 / waits.len().max(1) as f64 * 100.0;
            findings.add(metric(&format!("part of {} or more", self.long)), part, "%");
        }
        if draws {
            let chart = self.chart(context, variant, latencies);
            findings.draw(&variant.name, &chart);
        }
        findings
    }

    fn chart(&self, context: &Context<'_>, variant: &Variant, latencies: &Latencies) -> Chart {
        let points = latencies.all.iter();
        let points = points.map(|(at, wait)| (*at as f64 / 1e9, *wait as f64 / MS));
        let rules = self.spans.iter().map(|span| Rule {
            x: span.from.as_secs_f64(),
            name: String::new(),
            dashed: true,
        });
        Chart {
            title: context.figure.scenario.title.clone(),
            caption: variant.name.clone(),
            x: Axis::up_to(context.figure.scenario.duration.as_secs_f64(), "time (s)"),
            y: Axis::of("dispatch latency (ms)"),
            curves: vec![Curve::new(Shape::Dots, 0, &self.client, points)],
            rules: rules.collect(),
        }
    }
}
