//! What the experiments of 2001 share: a machine whose scheduler takes time, and
//! the metrics of its locks and run queues.

use prorata_report::chart::{Axis, Chart, Curve, Shape};
use prorata_scenario::Scenario;
use prorata_smp::{LayoutName, MachineModel, SchedulerCosts, SmpSimulation, WritersWake};

use super::{Context, Result};
use crate::error::ReproduceError;
use crate::expectation::{Expectation, Source};
use crate::finding::Findings;
use crate::statistics::largest;

impl Context<'_> {
    /// A machine with so many CPUs, about to run a scenario.
    pub fn many_cpus(
        &mut self,
        scenario: &Scenario,
        cpus: u32,
        layout: LayoutName,
        costs: &SchedulerCosts,
    ) -> Result<SmpSimulation> {
        let machine = MachineModel {
            cpus,
            layout,
            costs: costs.clone(),
            topology: None,
            writers: WritersWake::default(),
        };
        self.machine(scenario, &machine)
    }

    /// A machine, about to run a scenario.
    pub fn machine(
        &mut self,
        scenario: &Scenario,
        machine: &MachineModel,
    ) -> Result<SmpSimulation> {
        self.step("")?;
        let seed = self.seed(self.run);
        SmpSimulation::new(scenario, machine, seed).map_err(|error| ReproduceError::Start {
            id: self.figure.id.clone(),
            error: Box::new(error),
        })
    }

    /// The paper's number for a metric, if it prints one. Of contention above 83 % expectations
    /// state the complement.
    pub fn printed(&self, metric: &str) -> Option<f64> {
        let is_printed = |expectation: &&Expectation| {
            matches!(expectation.source, Source::Printed | Source::Fitted)
        };
        let printed = |metric: &str| {
            let mut printed = self.expectations.iter().filter(is_printed);
            let found = printed.find(|expectation| expectation.metric == metric);
            found.map(|expectation| expectation.paper)
        };
        printed(metric).or_else(|| {
            let of = metric.strip_suffix("contention")?;
            Some(100.0 - printed(&format!("{of}uncontended"))?)
        })
    }

    /// Runs a simulation until `enough` or to its end, with a look every so often.
    pub fn run_until(
        &self,
        simulation: &mut SmpSimulation,
        every_ns: u64,
        mut enough: impl FnMut(&SmpSimulation) -> bool,
    ) -> Result<()> {
        let mut end_ns = simulation.now_ns();
        while simulation.alive() > 0 && !enough(simulation) {
            end_ns += every_ns;
            let run = simulation.run_to(end_ns);
            run.map_err(|error| ReproduceError::Run {
                id: self.figure.id.clone(),
                error,
            })?;
        }
        Ok(())
    }
}

/// The paper's points beside a curve of ours; none where it prints none.
pub(super) fn paper_points(
    layout: LayoutName,
    colour: usize,
    points: Vec<(f64, f64)>,
) -> Option<Curve> {
    (!points.is_empty()).then(|| {
        Curve::new(
            Shape::Dots,
            colour,
            format!("{}, the paper", layout.title()),
            points,
        )
    })
}

#[derive(Clone, Copy)]
pub(super) struct Compared<'a> {
    /// Begins the names of all metrics.
    pub label: &'a str,
    pub layouts: &'a [LayoutName],
    pub cpus: &'a [u32],
}

impl Compared<'_> {
    /// Draws the means of some metrics over the number of CPUs, each in a panel of
    /// its own, beside the paper's numbers.
    pub fn draw(self, context: &Context<'_>, findings: &mut Findings, metrics: &[(&str, &str)]) {
        for (metric, unit) in metrics {
            let mut curves = Vec::new();
            for (colour, &layout) in self.layouts.iter().enumerate() {
                let of = |cpus| format!("{}{} {metric}", self.label, of(layout, &on_cpus(cpus)));
                let points = |value: &dyn Fn(&str) -> Option<f64>| {
                    let cpus = self.cpus.iter();
                    let points = cpus.map(|&cpus| Some((f64::from(cpus), value(&of(cpus))?)));
                    points.flatten().collect()
                };
                curves.push(Curve::new(
                    Shape::Line,
                    colour,
                    layout.title(),
                    points(&|metric| Some(findings.value(metric))),
                ));
                let printed = points(&|metric| context.printed(metric));
                curves.extend(paper_points(layout, colour, printed));
            }
            let chart = Chart {
                title: format!("{}: {metric}", context.figure.scenario.title),
                x: Axis::of("CPUs"),
                y: Axis::of(format!("{metric} ({unit})")),
                curves,
                ..Chart::default()
            };
            findings.draw(&format!("{}{metric}", self.label), &chart);
        }
    }

    /// Metrics of each size over those of a machine with `base` CPUs.
    pub fn add_ratios_to(self, findings: &mut Findings, base: u32, metrics: &[&str]) {
        for &layout in self.layouts {
            for what in metrics {
                let value = |findings: &Findings, cpus: u32| {
                    let of = of(layout, &on_cpus(cpus));
                    findings.value(&format!("{}{of} {what}", self.label))
                };
                for &cpus in self.cpus {
                    let ratio = value(findings, cpus) / value(findings, base);
                    let of = format!("{}{}, {cpus} over {base} CPUs", self.label, layout.title());
                    findings.add(format!("{of}: {what}"), ratio, ": 1");
                }
            }
        }
    }

    /// The highest throughput over the lowest, for each size.
    pub fn add_best_over_worst(self, findings: &mut Findings) {
        for &cpus in self.cpus {
            let layouts = self.layouts.iter();
            let rates = layouts.map(|&layout| {
                let of = of(layout, &on_cpus(cpus));
                findings.value(&format!("{}{of} throughput", self.label))
            });
            let smallest = rates.clone().fold(f64::INFINITY, f64::min);
            let spread = largest(rates) / smallest;
            let metric = format!("{}{cpus} CPUs: best over worst", self.label);
            findings.add(metric, spread, "");
        }
    }
}

/// How metrics of one layout begin, on a machine or under a load of a certain
/// size.
pub(super) fn of(layout: LayoutName, size: &str) -> String {
    format!("{}, {size}:", layout.title())
}

/// `8 CPUs`.
pub(super) fn on_cpus(cpus: u32) -> String {
    format!("{cpus} CPUs")
}

/// For each two layouts, the metrics of the one over those of the other. `label`
/// begins the names of all metrics.
pub(super) fn add_ratios(
    findings: &mut Findings,
    label: &str,
    layouts: &[LayoutName],
    sizes: &[String],
    metrics: &[&str],
) {
    for (&one, &other) in pairs(layouts) {
        for size in sizes {
            for metric in metrics {
                let value =
                    |layout| findings.value(&format!("{label}{} {metric}", of(layout, size)));
                let ratio = value(one) / value(other);
                let pair = format!("{} over {}", one.title(), other.title());
                findings.add(format!("{label}{pair}, {size}: {metric}"), ratio, ": 1");
            }
        }
    }
}

/// Each two layouts, in either order.
pub(super) fn pairs(layouts: &[LayoutName]) -> impl Iterator<Item = (&LayoutName, &LayoutName)> {
    let both = layouts
        .iter()
        .flat_map(|one| layouts.iter().map(move |other| (one, other)));
    both.filter(|(one, other)| one != other)
}

/// How contention and times of each layout grow from two CPUs to the most, and the
/// ratio of the growth of two layouts.
pub(super) fn add_growth(findings: &mut Findings, layouts: &[LayoutName], most: u32) {
    let grow = ["contention", "mean hold", "mean wait", "longest wait"];
    for &layout in layouts {
        let of_growth = format!("{}, 2 to {most} CPUs: growth of", layout.title());
        for metric in grow {
            let value = |cpus| findings.value(&format!("{} {metric}", of(layout, &on_cpus(cpus))));
            let growth = value(most) / value(2);
            findings.add(format!("{of_growth} {metric}"), growth, ": 1");
        }
        let growth = |metric: &str| findings.value(&format!("{of_growth} {metric}"));
        let ratio = growth("mean hold") / growth("contention");
        let metric = format!("{of_growth} mean hold over that of contention");
        findings.add(metric, ratio, ": 1");
    }
    let size = format!("2 to {most} CPUs");
    let metrics = grow.map(|metric| format!("growth of {metric}"));
    let metrics = metrics.each_ref().map(String::as_str);
    add_ratios(findings, "", layouts, &[size], &metrics);
}

/// The locks of the run queues, as Lockmeter prints them.
pub(super) fn add_locks(findings: &mut Findings, of: &str, simulation: &SmpSimulation) {
    let locks = simulation.lock_statistics();
    let us = |ns: f64| ns / 1000.0;
    let without_tries = locks.contention_without_tries() * 100.0;
    let contention = locks.contention() * 100.0;
    findings.add(format!("{of} contention"), contention, "%");
    findings.add(format!("{of} uncontended"), 100.0 - contention, "%");
    findings.add(format!("{of} NF contention"), without_tries, "%");
    findings.add(format!("{of} tries"), locks.tries as f64, "attempts");
    findings.add(format!("{of} mean hold"), us(locks.mean_hold_ns()), "us");
    findings.add(format!("{of} mean wait"), us(locks.mean_wait_ns()), "us");
    let longest = [
        ("longest hold", locks.longest_hold_ns),
        ("longest wait", locks.longest_wait_ns),
    ];
    for (what, ns) in longest {
        findings.add(format!("{of} {what}"), us(ns as f64), "us");
    }
}

/// Lengths of run queues, as each call of `schedule()` found them.
pub(super) fn add_lengths(findings: &mut Findings, of: &str, simulation: &SmpSimulation) {
    let lengths = simulation.lengths();
    let mean = format!("{of} mean run queue length");
    findings.add(mean, lengths.mean(), "tasks");
    let longest = lengths.longest() as f64;
    findings.add(format!("{of} longest run queue"), longest, "tasks");
}
