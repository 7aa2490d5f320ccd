//! 1994, Figure 5 and 1995, Figure 15: rates of two clients over a series of
//! windows.

use prorata_report::chart::{Axis, Chart, Curve, Shape};
use prorata_scenario::file::Time;
use serde::Deserialize;

use super::{Context, Result};
use crate::course::Course;
use crate::finding::Findings;
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

impl Windows {
    pub(super) fn run(&self, context: &mut Context<'_>) -> Result<Findings> {
        let scenario = context.scenario();
        if scenario.clients.len() != 2 {
            return Err(context.malformed("needs two clients"));
        }
        let mut findings = Findings::default();
        let mut received: [Vec<f64>; 3] = Default::default();
        let mut counted = received.clone();
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
        let metrics = [
            (format!("{pair} over the whole run"), ": 1"),
            (
                format!("standard deviation of {}'s share of a window", names[0]),
                "%",
            ),
            (format!("largest deviation of {pair} in a window"), "%"),
        ];
        for (((metric, unit), received), counted) in
            metrics.into_iter().zip(&received).zip(&counted)
        {
            findings.add_means(metric, received, counted, unit);
        }
        Ok(findings)
    }

    /// Adds what a run shows to what others did: the ratio over all of it, how
    /// far shares of a window spread and how far the worst ratio is off, the
    /// latter two in per cent.
    fn add_to(&self, shown: &mut [Vec<f64>; 3], course: &Course) {
        let end_s = course.end_s();
        let overall = course.received(0, end_s) / course.received(1, end_s);
        let shares = self.shares(course);
        let ratio = |share: &f64| share / (1.0 - share);
        let off = shares
            .iter()
            .map(|share| (ratio(share) / overall - 1.0).abs());
        let values = [overall, deviation(&shares) * 100.0, largest(off) * 100.0];
        shown
            .iter_mut()
            .zip(values)
            .for_each(|(shown, value)| shown.push(value));
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
