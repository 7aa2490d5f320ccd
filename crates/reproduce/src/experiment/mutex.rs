//! 1994, Figure 11: how long threads of two groups wait for a
//! lottery-scheduled mutex.

use prorata_report::chart::{Axis, Chart, Curve, Rule, Shape};
use prorata_scenario::event::Event;
use prorata_sim::{Machine, Observer};
use serde::Deserialize;

use super::{Context, Result};
use crate::finding::{Findings, Pairs};
use crate::statistics::{deviation, mean};

/// Waiting times and acquisitions.
#[derive(Clone, PartialEq, Debug, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct MutexWaits {
    /// Runs that are averaged; the first is drawn.
    pub runs: u32,
}

/// By client: how long each acquisition was waited for, in milliseconds.
#[derive(Default)]
struct Waits(Vec<(u32, f64)>);

impl Observer for Waits {
    fn observe(&mut self, _: u64, event: Event<'_>, _: &Machine) {
        if let Event::Acquired {
            client, waited_ns, ..
        } = event
        {
            self.0.push((client, waited_ns as f64 / 1e6));
        }
    }
}

/// Waits of one group in one run.
struct Group {
    name: String,
    waits_ms: Vec<f64>,
}

impl MutexWaits {
    pub(super) fn run(&self, context: &mut Context<'_>) -> Result<Findings> {
        let scenario = context.scenario();
        let mut findings = Findings::default();
        let mut runs = Vec::new();
        for run in 0..self.runs {
            let seed = context.seed(run);
            let (machine, waits) = context.simulate(&scenario, seed, Waits::default())?;
            let groups: Vec<Group> = machine
                .groups()
                .map(|(name, members)| Group {
                    name: name.to_owned(),
                    waits_ms: waits
                        .0
                        .iter()
                        .filter(|(client, _)| members.contains(client))
                        .map(|(_, waited_ms)| *waited_ms)
                        .collect(),
                })
                .collect();
            if groups.len() != 2 {
                return Err(context.malformed("needs two groups of clients"));
            }
            runs.push(groups);
        }
        for place in 0..2 {
            let of = |value: fn(&Group) -> f64| -> Vec<f64> {
                runs.iter().map(|groups| value(&groups[place])).collect()
            };
            let name = &runs[0][place].name;
            let acquired = of(|group| group.waits_ms.len() as f64);
            findings.add_runs(format!("acquisitions of {name}"), &acquired, "");
            let waited = of(|group| mean(&group.waits_ms));
            findings.add_runs(format!("mean wait of {name}"), &waited, "ms");
        }
        let pairs = |upper: fn(&Group) -> f64, above: usize| -> Pairs {
            let pairs = runs.iter();
            let pairs = pairs.map(|groups| (upper(&groups[above]), upper(&groups[1 - above])));
            pairs.collect()
        };
        let acquisitions = pairs(|group| group.waits_ms.len() as f64, 0);
        findings.add_ratio("acquisition ratio", &acquisitions, &Pairs::default());
        let waits = pairs(|group| mean(&group.waits_ms), 1);
        let metric = "waiting time ratio, second to first";
        findings.add_ratio(metric, &waits, &Pairs::default());
        for group in &runs[0] {
            findings.draw(&group.name, &histogram(&scenario.title, group));
        }
        Ok(findings)
    }
}

/// Width of a bar, in milliseconds.
const BAR_MS: f64 = 100.0;

fn histogram(title: &str, group: &Group) -> Chart {
    let end_ms = 4000.0;
    let mut bars = vec![0.0; (end_ms / BAR_MS) as usize];
    for waited_ms in &group.waits_ms {
        let bar = (waited_ms / BAR_MS) as usize;
        bars[bar.min((end_ms / BAR_MS) as usize - 1)] += 1.0;
    }
    let points = bars.iter().enumerate();
    let points = points.map(|(bar, count)| ((bar as f64 + 0.5) * BAR_MS, *count));
    let (mean_ms, spread_ms) = (mean(&group.waits_ms), deviation(&group.waits_ms));
    let rule = |x: f64, name: &str, dashed| Rule {
        x,
        name: name.to_owned(),
        dashed,
    };
    Chart {
        title: format!("{title}: group {}", group.name),
        caption: format!(
            "{} acquisitions; longer waits in the last bar",
            group.waits_ms.len()
        ),
        x: Axis::up_to(end_ms, "waiting time (ms)"),
        y: Axis::of("frequency"),
        curves: vec![Curve::new(Shape::Bars(BAR_MS), 0, "", points)],
        rules: vec![
            rule(mean_ms, "mean", false),
            rule((mean_ms - spread_ms).max(0.0), "", true),
            rule(mean_ms + spread_ms, "", true),
        ],
    }
}
