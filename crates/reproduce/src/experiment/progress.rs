//! 1994, Figures 8 and 9: CPU time of clients over time, and the ratios of their shares
//! between times.

use prorata_report::chart::{Axis, Chart, Curve, Rule, Shape};
use prorata_scenario::Scenario;
use prorata_scenario::file::Time;
use serde::Deserialize;

use super::{Context, Result};
use crate::course::Course;
use crate::finding::{Findings, Pairs};

/// Cumulative service.
#[derive(Clone, PartialEq, Debug, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Progress {
    /// What is drawn upwards.
    pub label: String,
    /// So much of it is done in a second of the CPU.
    pub per_cpu_second: f64,
    /// Clients whose progress is drawn; without it, all.
    #[serde(default)]
    pub shown: Option<Vec<String>>,
    /// Ratios that the paper speaks of.
    pub ratios: Vec<Ratio>,
    /// Rates that the paper prints besides.
    #[serde(default)]
    pub rates: Vec<Rate>,
    /// Runs that are averaged by simulation; the first is drawn.
    pub runs: u32,
    /// When something changes.
    pub change: Time,
}

/// A ratio of what some received between two times.
#[derive(Clone, PartialEq, Debug, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Ratio {
    /// What it is called.
    pub metric: String,
    /// Above the line.
    pub of: Sum,
    /// Below it.
    pub to: Sum,
}

/// What some did in a second, between two times.
#[derive(Clone, PartialEq, Debug, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Rate {
    /// What it is called.
    pub metric: String,
    /// Clients and a span.
    pub of: Sum,
}

/// What some received between two times.
#[derive(Clone, PartialEq, Debug, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Sum {
    /// The clients.
    pub clients: Vec<String>,
    /// From when on.
    pub from: Time,
    /// Until when.
    pub until: Time,
}

impl Sum {
    /// In seconds.
    fn span(&self) -> (f64, f64) {
        (self.from.as_secs_f64(), self.until.as_secs_f64())
    }
}

impl Progress {
    pub(super) fn run(&self, context: &mut Context<'_>) -> Result<Findings> {
        let scenario = context.scenario();
        let mut findings = Findings::default();
        let mut received = vec![Pairs::default(); self.ratios.len()];
        let mut counted = received.clone();
        let mut rates = vec![Vec::new(); self.rates.len()];
        for run in 0..context.runs(self.runs, 1) {
            let course = context.course(&scenario, context.seed(run))?;
            self.add_ratios(context, &course, &mut received)?;
            for (rate, values) in self.rates.iter().zip(&mut rates) {
                let (from_s, until_s) = rate.of.span();
                let done = received_by(context, &course, &rate.of)? * self.per_cpu_second;
                values.push(done / (until_s - from_s));
            }
            let by_count = course.counted();
            if let Some(course) = &by_count {
                self.add_ratios(context, course, &mut counted)?;
            }
            if run == 0 {
                let drawn = by_count.unwrap_or(course);
                findings.draw("", &self.chart(&scenario, &drawn));
            }
        }
        for ((ratio, received), counted) in self.ratios.iter().zip(&received).zip(&counted) {
            findings.add_ratio(&ratio.metric, received, counted);
        }
        for (rate, values) in self.rates.iter().zip(&rates) {
            findings.add_runs(&rate.metric, values, "/s");
        }
        Ok(findings)
    }

    /// Adds each ratio of a run to those of others.
    fn add_ratios(
        &self,
        context: &Context<'_>,
        course: &Course,
        values: &mut [Pairs],
    ) -> Result<()> {
        for (ratio, values) in self.ratios.iter().zip(values) {
            let of = share(context, course, &ratio.of)?;
            values.push((of, share(context, course, &ratio.to)?));
        }
        Ok(())
    }

    fn chart(&self, scenario: &Scenario, course: &Course) -> Chart {
        let is_shown = |name: &String| {
            let shown = self.shown.as_ref();
            shown.is_none_or(|shown| shown.contains(name))
        };
        let shown = course.clients.iter().enumerate();
        let shown = shown.filter(|(_, name)| is_shown(name));
        // Where a program counts by itself the scale is this machine's.
        let scale = match course.unit {
            "CPU seconds" => self.per_cpu_second,
            _ => 1.0,
        };
        let curves = shown.map(|(client, name)| {
            let start_s = scenario.clients[client].start.as_secs_f64();
            let points = course.curve(client).into_iter();
            let points = points.filter(|(at_s, _)| *at_s >= start_s);
            Curve::new(
                Shape::Line,
                client,
                name,
                points.map(|(at_s, done)| (at_s, done * scale)),
            )
        });
        Chart {
            title: scenario.title.clone(),
            caption: String::new(),
            x: Axis::up_to(course.end_s(), "time (s)"),
            y: Axis::of(self.label.clone()),
            curves: curves.collect(),
            rules: vec![Rule {
                x: self.change.as_secs_f64(),
                name: String::new(),
                dashed: true,
            }],
        }
    }
}

/// The part of everything that some received between two times. On a machine
/// of one's own that is a rate; elsewhere it does not depend on what others
/// leave.
fn share(context: &Context<'_>, course: &Course, sum: &Sum) -> Result<f64> {
    let all_clients = 0..course.clients.len();
    let all: f64 = all_clients
        .map(|client| course.between(client, sum.span()))
        .sum();
    Ok(received_by(context, course, sum)? / all)
}

/// What some received between two times.
fn received_by(context: &Context<'_>, course: &Course, sum: &Sum) -> Result<f64> {
    let mut received = 0.0;
    for name in &sum.clients {
        let client = course.find(name);
        let client = client
            .ok_or_else(|| context.malformed(format!("speaks of '{name}', which it lacks")))?;
        received += course.between(client, sum.span());
    }
    Ok(received)
}
