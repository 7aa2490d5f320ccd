//! 1994, Figure 4 and 1995, Figure 14: the ratio of two clients' rates over
//! the ratio of their tickets.

use prorata_report::chart::{Axis, Chart, Curve, Shape};
use prorata_scenario::Scenario;
use prorata_scenario::file::{Amount, Tickets, Time};
use serde::Deserialize;

use super::{Context, Result};
use crate::course::Course;
use crate::finding::Findings;
use crate::reproduction::Engine;
use crate::statistics::largest;

/// Ratios from 1:1 upwards.
#[derive(Clone, PartialEq, Debug, Deserialize, schemars::JsonSchema)]
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
    /// On processes, over whole waits alone: what quantization at both ends adds
    /// is left out.
    #[serde(default)]
    pub whole_waits: bool,
}

/// One more ratio.
#[derive(Clone, PartialEq, Debug, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Further {
    /// Of tickets.
    pub ratio: u32,
    /// How long it runs.
    pub duration: Time,
    /// Runs in the paper.
    pub runs: u32,
}

/// One way to observe rates.
struct Way {
    /// Behind the metric's name.
    name: &'static str,
    rates: fn(&Course) -> (f64, f64),
}

/// Of all service from the beginning to the end.
const PLAIN: Way = Way {
    name: "",
    rates: |course| {
        let received = |client| course.received(client, course.end_s());
        (received(0), received(1))
    },
};

/// Over whole waits alone. Without two waits each, nothing was measured.
const WHOLE_WAITS: Way = Way {
    name: ", whole waits",
    rates: |course| {
        let share = |client| course.share_over_whole_waits(client).unwrap_or(f64::NAN);
        (share(0), share(1))
    },
};

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
            let courses = self.courses(context, &scenario, ratio, runs, &mut case)?;
            let rates = self.way(context).rates;
            let drawn = courses.iter().take(self.drawn as usize).map(rates);
            dots.extend(drawn.map(|(first, second)| (f64::from(ratio), first / second)));
            self.add(context, &mut findings, &format!("{ratio}:1"), &courses);
        }
        for further in &self.further {
            let mut longer = scenario.clone();
            longer.duration = further.duration;
            let runs = context.runs(self.runs, further.runs);
            let courses = self.courses(context, &longer, further.ratio, runs, &mut case)?;
            let metric = format!("{}:1 over {}", further.ratio, further.duration);
            self.add(context, &mut findings, &metric, &courses);
        }
        findings.draw("", &self.chart(context, dots));
        Ok(findings)
    }

    /// How rates are observed. Where processes begin and end matters more than how they were
    /// served, so only whole waits say something of them. In a simulation whole waits are exact
    /// by construction.
    fn way(&self, context: &Context<'_>) -> &'static Way {
        match (self.whole_waits, context.engine) {
            (true, Engine::User | Engine::Kernel) => &WHOLE_WAITS,
            (true, Engine::Sim) | (false, _) => &PLAIN,
        }
    }

    /// Adds what is observed over some runs.
    fn add(&self, context: &Context<'_>, findings: &mut Findings, metric: &str, runs: &[Course]) {
        let Way { name, rates } = self.way(context);
        let received = runs.iter().map(rates).collect();
        let counted = runs.iter().filter_map(Course::counted);
        let counted = counted.map(|course| rates(&course)).collect();
        findings.add_ratio(format!("{metric}{name}"), &received, &counted);
        let ratios: Vec<f64> = runs
            .iter()
            .map(rates)
            .map(|(one, other)| one / other)
            .collect();
        let widest: Vec<f64> = ratios
            .chunks_exact(self.drawn.max(1) as usize)
            .map(|as_in_paper| largest(as_in_paper.iter().copied()))
            .collect();
        let metric = format!("{metric}{name}, largest of {} runs", self.drawn);
        findings.add_runs(metric, &widest, ": 1");
    }

    /// Some runs with a ratio of tickets.
    fn courses(
        &self,
        context: &mut Context<'_>,
        scenario: &Scenario,
        ratio: u32,
        runs: u32,
        case: &mut u32,
    ) -> Result<Vec<Course>> {
        let mut scenario = scenario.clone();
        scenario.clients[0].tickets = Tickets::Fixed(vec![Amount::base(ratio)]);
        let runs = (1..=runs).map(|run| {
            if context.engine != Engine::Sim {
                context.step(&format!("{ratio}:1, run {run} of {runs}"))?;
            }
            *case += 1;
            let seed = context.seed(*case);
            context.course(&scenario, seed)
        });
        runs.collect()
    }

    fn chart(&self, context: &Context<'_>, dots: Vec<(f64, f64)>) -> Chart {
        let end = f64::from(self.ratios.iter().copied().max().unwrap_or(1));
        let ideal = Curve::new(Shape::Line, 5, "ideal", vec![(0.0, 0.0), (end, end)]);
        let observed = Curve::new(Shape::Dots, 1, "observed", dots);
        Chart {
            title: context.figure.scenario.title.clone(),
            caption: format!("{} runs for each ratio", self.drawn),
            x: Axis::up_to(end, "allocated ratio"),
            y: Axis::of("observed ratio"),
            curves: vec![ideal, observed],
            rules: Vec::new(),
        }
    }
}
