//! 1994, Figure 4 and 1995, Figure 14: the ratio of two clients' rates over
//! the ratio of their tickets.

use prorata_report::chart::{Axis, Chart, Curve, Shape};
use prorata_sim::scenario::{Amount, Scenario, Tickets, Time};
use serde::Deserialize;

use super::{Context, Result};
use crate::finding::Findings;
use crate::reproduction::Engine;
use crate::statistics::mean;

/// Ratios from 1:1 upwards.
#[derive(Clone, PartialEq, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct RateAccuracy {
    /// Of tickets, that are drawn.
    pub ratios: Vec<u32>,
    /// Runs for each ratio by simulation. On processes there are as many as
    /// in the paper.
    pub runs: u32,
    /// Runs for each ratio in the paper, which are drawn.
    pub drawn: u32,
    /// Further ratios that the paper speaks of.
    pub further: Vec<Further>,
    /// Each share is taken over whole waits: a program can look at the clock
    /// only while it runs. Else all service up to the end counts.
    #[serde(default)]
    pub whole_waits: bool,
}

/// One more ratio.
#[derive(Clone, PartialEq, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Further {
    /// Of tickets.
    pub ratio: u32,
    /// How long it runs.
    pub duration: Time,
    /// Runs in the paper.
    pub runs: u32,
    /// On processes it is run once as long as in the paper, where all else is
    /// shortened: in less time there are too few turns.
    #[serde(default)]
    pub never_shortened: bool,
}

impl RateAccuracy {
    pub(super) fn run(&self, context: &mut Context<'_>) -> Result<Findings> {
        let scenario = context.scenario();
        if scenario.clients.len() != 2 {
            return Err(context.malformed("needs two clients"));
        }
        let mut findings = Findings::default();
        let mut dots = Vec::new();
        let mut case = 0;
        for &ratio in &self.ratios {
            let runs = context.runs(self.runs, self.drawn);
            let ratios = self.ratios(context, &scenario, ratio, runs, &mut case)?;
            let drawn = ratios.iter().take(self.drawn as usize);
            dots.extend(drawn.map(|&measured| (f64::from(ratio), measured)));
            findings.add(format!("{ratio}:1"), mean(&ratios), ": 1");
        }
        for further in &self.further {
            let mut longer = scenario.clone();
            longer.duration = further.duration;
            let full = context.full;
            let runs = match further.never_shortened && !full {
                true => context.runs(self.runs, 1),
                false => context.runs(self.runs, further.runs),
            };
            context.full |= further.never_shortened;
            let ratios = self.ratios(context, &longer, further.ratio, runs, &mut case);
            context.full = full;
            let ratios = ratios?;
            let metric = format!("{}:1 over {}", further.ratio, further.duration);
            findings.add(metric, mean(&ratios), ": 1");
        }
        findings.draw("", &self.chart(context, dots));
        Ok(findings)
    }

    /// Observed ratios of some runs.
    fn ratios(
        &self,
        context: &mut Context<'_>,
        scenario: &Scenario,
        ratio: u32,
        runs: u32,
        case: &mut u32,
    ) -> Result<Vec<f64>> {
        let mut scenario = scenario.clone();
        scenario.clients[0].tickets = Tickets::Fixed(vec![Amount::base(ratio)]);
        let mut ratios = Vec::new();
        for run in 1..=runs {
            if context.engine != Engine::Sim {
                context.step(&format!("{ratio}:1, run {run} of {runs}"))?;
            }
            *case += 1;
            let seed = context.seed(*case);
            let course = context.course(&scenario, seed)?;
            let rate = |client| {
                if self.whole_waits {
                    course.share_over_whole_waits(client)
                } else {
                    Some(course.received(client, course.end_s()))
                }
            };
            // Without two waits each, nothing was measured.
            let ratio = rate(0).zip(rate(1)).map(|(first, second)| first / second);
            ratios.push(ratio.unwrap_or(f64::NAN));
        }
        Ok(ratios)
    }

    fn chart(&self, context: &Context<'_>, dots: Vec<(f64, f64)>) -> Chart {
        let end = f64::from(self.ratios.iter().copied().max().unwrap_or(1));
        let ideal = Curve {
            name: "ideal".to_owned(),
            shape: Shape::Line,
            colour: 5,
            points: vec![(0.0, 0.0), (end, end)],
        };
        let observed = Curve {
            name: "observed".to_owned(),
            shape: Shape::Dots,
            colour: 1,
            points: dots,
        };
        Chart {
            title: context.figure.scenario.title.clone(),
            caption: format!("{} runs for each ratio", self.drawn),
            x: Axis {
                label: "allocated ratio".to_owned(),
                end: Some(end),
            },
            y: Axis {
                label: "observed ratio".to_owned(),
                end: None,
            },
            curves: vec![ideal, observed],
            rules: Vec::new(),
        }
    }
}
