//! 1999, Figures 3 and 4: programs that end when their work is done, and how far the others
//! are then.

use prorata_report::chart::{Axis, Chart, Curve, Shape};
use prorata_scenario::Scenario;
use prorata_scenario::file::Time;
use serde::Deserialize;

use super::{Context, Result};
use crate::course::Course;
use crate::finding::Findings;

/// Progress of programs that end.
#[derive(Clone, PartialEq, Debug, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Finishes {
    /// CPU time after which each program ends.
    pub work: Time,
    /// Operations in that time.
    pub operations: f64,
    /// Runs that are averaged by simulation; the first is drawn.
    pub runs: u32,
}

impl Finishes {
    pub(super) fn run(&self, context: &mut Context<'_>) -> Result<Findings> {
        let scenario = context.scenario();
        let mut runs = Vec::new();
        for run in 0..context.runs(self.runs, 1) {
            let course = context.course(&scenario, context.seed(run))?;
            let mut findings = self.found(&course);
            if run == 0 {
                findings.draw("", &self.chart(&scenario, &course));
            }
            runs.push(findings);
        }
        Ok(Findings::of_runs(runs))
    }

    fn found(&self, course: &Course) -> Findings {
        let mut findings = Findings::default();
        let work_s = self.work.as_secs_f64();
        let ends: Vec<f64> = (0..course.clients.len())
            .map(|client| end_s(course, client, work_s))
            .collect();
        for (ended, &end_s) in course.clients.iter().zip(&ends) {
            for (client, name) in course.clients.iter().enumerate() {
                if ends[client] > end_s {
                    let part = course.received(client, end_s) / work_s * 100.0;
                    findings.add(format!("progress of {name} when {ended} ends"), part, "%");
                }
            }
        }
        let mut order: Vec<usize> = (0..ends.len()).collect();
        order.sort_by(|a, b| ends[*a].total_cmp(&ends[*b]));
        let mut from_s = 0.0;
        for (ended, &next) in order.iter().enumerate() {
            let until_s = ends[next];
            let running = order.len() - ended;
            for &client in &order[ended..] {
                let rate = course.between(client, (from_s, until_s)) / (until_s - from_s);
                let name = &course.clients[client];
                findings.add(format!("rate of {name} while {running} run"), rate, "CPUs");
            }
            from_s = until_s;
        }
        findings
    }

    fn chart(&self, scenario: &Scenario, course: &Course) -> Chart {
        let scale = self.operations / self.work.as_secs_f64();
        let curves = course.clients.iter().enumerate().map(|(client, name)| {
            let points = course.curve(client).into_iter();
            let points = points.map(|(at_s, received)| (at_s, received * scale));
            Curve::new(Shape::Line, client, name, points)
        });
        Chart {
            title: scenario.title.clone(),
            caption: String::new(),
            x: Axis::up_to(course.end_s(), "time (s)"),
            y: Axis::of("operations"),
            curves: curves.collect(),
            rules: Vec::new(),
        }
    }
}

/// When a client has done its work, read off the line between two moments; not a number if
/// it never has.
fn end_s(course: &Course, client: usize, work_s: f64) -> f64 {
    // Sums of decimal fractions must not decide at the very edge.
    let is_done = |received: f64| received >= work_s - 1e-6;
    let points = &course.points;
    let Some(after) = points.iter().position(|p| is_done(p.received[client])) else {
        return f64::NAN;
    };
    let (next, before) = (&points[after], &points[after.saturating_sub(1)]);
    let (done, at) = (next.received[client], before.received[client]);
    let part = if done > at {
        (work_s - at) / (done - at)
    } else {
        1.0
    };
    before.at_s + part * (next.at_s - before.at_s)
}
