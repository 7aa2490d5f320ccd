//! 1994, Figure 5 and 1995, Figure 15: rates of two clients over a series of
//! windows.

use prorata_report::chart::{Axis, Chart, Curve, Shape};
use prorata_scenario::file::Time;
use serde::Deserialize;

use super::{Context, Result};
use crate::course::Course;
use crate::finding::{Findings, Pairs};
use crate::statistics::{deviation, largest};

/// A series of windows.
#[derive(Clone, PartialEq, Debug, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Windows {
    /// Length of each.
    pub window: Time,
    /// Runs that are averaged by simulation; the first is drawn.
    pub runs: u32,
    /// The paper's iterations in a second of the CPU, so that rates are in
    /// the same unit.
    pub iterations_per_cpu_second: f64,
}

/// What several runs show.
#[derive(Default)]
struct Observed {
    /// Service of both clients over the whole run.
    rates: Pairs,
    /// How far shares of a window spread, in per cent.
    deviations: Vec<f64>,
    /// How far the worst ratio of a window is off, in per cent.
    largest: Vec<f64>,
}

impl Windows {
    pub(super) fn run(&self, context: &mut Context<'_>) -> Result<Findings> {
        let scenario = context.scenario();
        if scenario.clients.len() != 2 {
            return Err(context.malformed("needs two clients"));
        }
        let mut findings = Findings::default();
        let (mut received, mut counted) = (Observed::default(), Observed::default());
        for run in 0..context.runs(self.runs, 1) {
            let course = context.course(&scenario, context.seed(run))?;
            self.add_to(&mut received, &course);
            let by_count = course.counted();
            if let Some(course) = &by_count {
                self.add_to(&mut counted, course);
            }
            if run == 0 {
                let drawn = by_count.unwrap_or(course);
                findings.draw("", &self.chart(context, &drawn));
            }
        }
        let names: Vec<&str> = scenario.clients.iter().map(|c| c.name.as_str()).collect();
        let pair = names.join(":");
        let metric = format!("{pair} over the whole run");
        findings.add_ratio(metric, &received.rates, &counted.rates);
        let metric = format!("standard deviation of {}'s share of a window", names[0]);
        findings.add_means(metric, &received.deviations, &counted.deviations, "%");
        let metric = format!("largest deviation of {pair} in a window");
        findings.add_means(metric, &received.largest, &counted.largest, "%");
        Ok(findings)
    }

    /// Adds what a run shows to what others did.
    fn add_to(&self, observed: &mut Observed, course: &Course) {
        let end_s = course.end_s();
        let rates = (course.received(0, end_s), course.received(1, end_s));
        let overall = rates.0 / rates.1;
        let shares = self.shares(course);
        let ratio = |share: &f64| share / (1.0 - share);
        let off = shares
            .iter()
            .map(|share| (ratio(share) / overall - 1.0).abs());
        observed.rates.push(rates);
        observed.deviations.push(deviation(&shares) * 100.0);
        observed.largest.push(largest(off) * 100.0);
    }

    fn spans(&self, course: &Course) -> Vec<(f64, f64)> {
        let window_s = self.window.as_secs_f64();
        let count = (course.end_s() / window_s + 0.01) as u32;
        let begin = (0..count).map(|window| f64::from(window) * window_s);
        begin.map(|begin_s| (begin_s, begin_s + window_s)).collect()
    }

    /// The first client's part of each window.
    fn shares(&self, course: &Course) -> Vec<f64> {
        let spans = self.spans(course).into_iter();
        let shares = spans.map(|span| {
            let (first, second) = (course.between(0, span), course.between(1, span));
            first / (first + second)
        });
        shares.collect()
    }

    fn chart(&self, context: &Context<'_>, course: &Course) -> Chart {
        let spans = self.spans(course);
        // Where a program counts by itself the scale is this machine's.
        let total = course.received(0, course.end_s()) + course.received(1, course.end_s());
        let scale = self.iterations_per_cpu_second * course.end_s() / total.max(1e-9);
        let curves = course.clients.iter().enumerate().map(|(client, name)| {
            let rate = |&(from_s, to_s): &(f64, f64)| {
                let rate = course.between(client, (from_s, to_s)) / (to_s - from_s) * scale;
                ((from_s + to_s) / 2.0, rate)
            };
            Curve::new(Shape::Line, client, name, spans.iter().map(rate))
        });
        Chart {
            title: context.figure.scenario.title.clone(),
            caption: format!("windows of {}; scaled to the paper's machine", self.window),
            x: Axis::up_to(course.end_s(), "time (s)"),
            y: Axis::of("average iterations per second"),
            curves: curves.collect(),
            rules: Vec::new(),
        }
    }
}
