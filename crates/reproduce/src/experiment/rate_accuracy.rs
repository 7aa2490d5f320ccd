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
    /// Besides, over whole waits alone: what quantization at both ends adds
    /// is left out.
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

/// Observed ratios, by run.
#[derive(Default)]
struct Observed {
    /// Of all service from the beginning to the end.
    plain: Vec<f64>,
    /// Over whole waits alone; none where they are not asked for.
    whole_waits: Vec<f64>,
}

impl Observed {
    fn add(&self, findings: &mut Findings, metric: String) {
        if !self.whole_waits.is_empty() {
            let metric = format!("{metric}, whole waits");
            findings.add(metric, mean(&self.whole_waits), ": 1");
        }
        findings.add(metric, mean(&self.plain), ": 1");
    }
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
            let observed = self.ratios(context, &scenario, ratio, runs, &mut case)?;
            let drawn = observed.plain.iter().take(self.drawn as usize);
            dots.extend(drawn.map(|&measured| (f64::from(ratio), measured)));
            observed.add(&mut findings, format!("{ratio}:1"));
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
            let observed = self.ratios(context, &longer, further.ratio, runs, &mut case);
            context.full = full;
            let metric = format!("{}:1 over {}", further.ratio, further.duration);
            observed?.add(&mut findings, metric);
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
    ) -> Result<Observed> {
        let mut scenario = scenario.clone();
        scenario.clients[0].tickets = Tickets::Fixed(vec![Amount::base(ratio)]);
        let mut observed = Observed::default();
        for run in 1..=runs {
            if context.engine != Engine::Sim {
                context.step(&format!("{ratio}:1, run {run} of {runs}"))?;
            }
            *case += 1;
            let seed = context.seed(*case);
            let course = context.course(&scenario, seed)?;
            let received = |client| course.received(client, course.end_s());
            observed.plain.push(received(0) / received(1));
            if self.whole_waits {
                let share = |client| course.share_over_whole_waits(client);
                // Without two waits each, nothing was measured.
                let ratio = share(0).zip(share(1)).map(|(first, second)| first / second);
                observed.whole_waits.push(ratio.unwrap_or(f64::NAN));
            }
        }
        Ok(observed)
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
