//! 2001, Figures 6 and 7 and Table 6: the time of a round of Reflex.

use std::num::NonZeroU32;

use prorata_report::chart::{Axis, Chart, Curve, Shape};
use prorata_smp::{LayoutName, SchedulerCosts, SmpSimulation};
use serde::Deserialize;

use super::many_cpus::{
    Compared, add_growth, add_lengths, add_locks, add_ratios, of, on_cpus, pairs,
};
use super::{Context, Result};
use crate::finding::Findings;
use crate::workload::Reflex;

/// Reflex under several schedulers.
#[derive(Clone, PartialEq, Debug, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Rounds {
    /// The benchmark.
    pub reflex: Reflex,
    /// Sizes of the machine.
    pub cpus: Vec<u32>,
    /// Active sets. One thread of each is runnable.
    pub active_sets: Vec<u32>,
    /// Schedulers. The others are compared with the first.
    pub layouts: Vec<LayoutName>,
    /// Measured rounds of each runnable thread, after half as many that are not
    /// measured. All threads together have at least [`LEAST_ROUNDS`].
    pub rounds: u64,
    /// Runs to average, each with a seed of its own.
    pub runs: NonZeroU32,
    /// Costs that differ from the paper's machine.
    #[serde(default)]
    pub costs: SchedulerCosts,
}

/// With fewer rounds, chance would show.
const LEAST_ROUNDS: u64 = 4000;

/// A point of a curve: what is varied, and the time of a round.
type Point = (f64, f64);

impl Rounds {
    pub(super) fn run(&self, context: &mut Context<'_>) -> Result<Findings> {
        let derive = |findings: &mut Findings| {
            self.add_comparisons(findings);
            add_crossings(findings, &self.curves(findings));
        };
        let mut findings =
            context.over_runs(self.runs, |context| self.run_once(context), derive)?;
        let curves = self.curves(&findings);
        findings.draw("", &self.chart(context, &curves));
        if !self.sets_vary() {
            let compared = Compared {
                label: "",
                layouts: &self.layouts,
                cpus: &self.cpus,
            };
            let metrics = [
                ("contention", "%"),
                ("mean hold", "us"),
                ("mean wait", "us"),
            ];
            compared.draw(context, &mut findings, &metrics);
        }
        Ok(findings)
    }

    fn run_once(&self, context: &mut Context<'_>) -> Result<Findings> {
        let mut findings = Findings::default();
        for &layout in &self.layouts {
            for (cpus, sets) in self.loads() {
                let simulation = self.measure(context, layout, cpus, sets)?;
                let of = of(layout, &self.size(cpus, sets).1);
                findings.add(format!("{of} round"), round_us(&simulation), "us");
                add_locks(&mut findings, &of, &simulation);
                add_lengths(&mut findings, &of, &simulation);
            }
        }
        Ok(findings)
    }

    fn add_comparisons(&self, findings: &mut Findings) {
        let sizes: Vec<String> = self.loads().map(|(c, s)| self.size(c, s).1).collect();
        let metrics = ["round", "contention", "mean hold"];
        add_ratios(findings, "", &self.layouts, &sizes, &metrics);
        let most = self.cpus.last().filter(|_| self.cpus.contains(&2));
        if let Some(most) = most.filter(|_| !self.sets_vary()) {
            add_growth(findings, &self.layouts, *most);
        }
    }

    /// The time of a round over what is varied, in the mean of all runs.
    fn curves(&self, findings: &Findings) -> Vec<(LayoutName, Vec<Point>)> {
        let points = |&layout: &LayoutName| {
            let points = self.loads().map(|(cpus, sets)| {
                let (x, size) = self.size(cpus, sets);
                (x, findings.value(&format!("{} round", of(layout, &size))))
            });
            (layout, points.collect())
        };
        self.layouts.iter().map(points).collect()
    }

    /// CPUs and active sets of each measurement.
    fn loads(&self) -> impl Iterator<Item = (u32, u32)> + '_ {
        let on = |&cpus| self.active_sets.iter().map(move |&sets| (cpus, sets));
        self.cpus.iter().flat_map(on)
    }

    /// What is varied, as a number and in words.
    fn size(&self, cpus: u32, sets: u32) -> (f64, String) {
        match self.sets_vary() {
            true => (sets.into(), format!("{sets} threads")),
            false => (cpus.into(), on_cpus(cpus)),
        }
    }

    fn sets_vary(&self) -> bool {
        self.active_sets.len() > 1
    }

    fn measure(
        &self,
        context: &mut Context<'_>,
        layout: LayoutName,
        cpus: u32,
        sets: u32,
    ) -> Result<SmpSimulation> {
        let scenario = self.reflex.scenario(sets);
        let mut simulation = context.many_cpus(&scenario, cpus, layout, &self.costs)?;
        let rounds = (self.rounds * u64::from(sets)).max(LEAST_ROUNDS);
        let every_ns = 20_000;
        // The threads that start the others have ended.
        let threads = u64::from(sets * self.reflex.threads_of_a_set.get());
        let processes = u64::from(sets.div_ceil(self.reflex.sets_of_a_process.get()));
        context.run_until(&mut simulation, every_ns, |s| {
            s.made() == threads + processes && s.alive() == threads
        })?;
        simulation.measure_afresh();
        context.run_until(&mut simulation, every_ns, |s| rounds_of(s) >= rounds / 2)?;
        simulation.measure_afresh();
        context.run_until(&mut simulation, every_ns, |s| rounds_of(s) >= rounds)?;
        Ok(simulation)
    }

    /// On a scale of powers of two, as times differ by orders of magnitude.
    fn chart(&self, context: &Context<'_>, curves: &[(LayoutName, Vec<Point>)]) -> Chart {
        let of_what = if self.sets_vary() {
            "runnable threads"
        } else {
            "CPUs"
        };
        let drawn = curves.iter().enumerate().map(|(colour, (layout, points))| {
            Curve::new(
                Shape::Line,
                colour,
                layout.title(),
                points.iter().map(|(x, y)| (x.log2(), (y * 1000.0).log2())),
            )
        });
        Chart {
            title: context.figure.scenario.title.clone(),
            caption: "both axes in powers of two".to_owned(),
            x: Axis::of(format!("log2 of {of_what}")),
            y: Axis::of("log2 of the time of a round (ns)"),
            curves: drawn.collect(),
            rules: Vec::new(),
        }
    }
}

/// The load from which on rounds of one layout take longer than those of another,
/// and how a round grows from a middling load to the largest.
fn add_crossings(findings: &mut Findings, curves: &[(LayoutName, Vec<Point>)]) {
    let layouts: Vec<LayoutName> = curves.iter().map(|(layout, _)| *layout).collect();
    for (layout, points) in curves {
        for (other, others) in curves.iter().filter(|(other, _)| other != layout) {
            let mut both = points.iter().zip(others);
            let first = both.find(|((_, ours), (_, theirs))| ours > theirs);
            let first = first.map_or(f64::NAN, |((x, _), _)| *x);
            let metric = format!("{} over {}, first above 1", layout.title(), other.title());
            findings.add(metric, first, "");
        }
        if let (Some((_, first)), Some((_, last))) = (points.first(), points.last()) {
            let growth = last / first;
            let metric = format!("{}: growth of a round", layout.title());
            findings.add(metric, growth, ": 1");
        }
        if let [.., (x, before), _, _, (most, last)] = points[..] {
            let metric = format!("{}, {most} over {x}: round", layout.title());
            findings.add(metric, last / before, ": 1");
        }
    }
    for (one, other) in pairs(&layouts) {
        let growth =
            |layout: &LayoutName| findings.value(&format!("{}: growth of a round", layout.title()));
        let ratio = growth(one) / growth(other);
        let metric = format!("{} over {}: growth of a round", one.title(), other.title());
        findings.add(metric, ratio, ": 1");
    }
}

fn rounds_of(simulation: &SmpSimulation) -> u64 {
    let counts = simulation.counts();
    counts.yields + counts.sends
}

/// The run time divided by the rounds of all threads (2001, 5.3).
fn round_us(simulation: &SmpSimulation) -> f64 {
    simulation.measured_ns() as f64 / 1000.0 / rounds_of(simulation).max(1) as f64
}
