//! Beyond the paper of 2001: Reflex on machines with far more CPUs, where the paper
//! expects a benefit of pools (2001, 6).

use std::num::NonZeroU32;

use prorata_report::chart::{Axis, Chart, Curve, Shape};
use prorata_scenario::file::Time;
use prorata_smp::{LayoutName, MachineModel, SchedulerCosts, SmpSimulation, Topology, WritersWake};
use serde::Deserialize;

use super::many_cpus::{add_locks, add_ratios, of, on_cpus, pairs};
use super::{Context, Result};
use crate::finding::Findings;
use crate::workload::Reflex;

/// Reflex on machines of many sizes, with a load that grows with them.
#[derive(Clone, PartialEq, Debug, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct LargeMachines {
    /// The benchmark. Each CPU starts a process of it.
    pub reflex: Reflex,
    /// Sizes of the machine.
    pub cpus: Vec<u32>,
    /// Sizes that take minutes to simulate, measured in full only.
    pub cpus_in_full: Vec<u32>,
    /// Schedulers.
    pub layouts: Vec<LayoutName>,
    /// The largest machine on which MQ by scan is measured. On larger machines each
    /// decision tries so many locks that the simulation takes hours.
    pub largest_scan: u32,
    /// Time before the measurement. All threads begin together, so most time slices
    /// end at the same time.
    pub settles: Time,
    /// Time of the measurement.
    pub measured: Time,
    /// Runs to average, each with a seed of its own.
    pub runs: NonZeroU32,
    /// Costs that differ from the paper's machine.
    #[serde(default)]
    pub costs: SchedulerCosts,
    /// Which CPUs share what, if pools go by that; for all sizes.
    #[serde(default)]
    pub topology: Option<Topology>,
}

impl LargeMachines {
    pub(super) fn run(&self, context: &mut Context<'_>) -> Result<Findings> {
        let in_full = self.cpus_in_full.iter().filter(|_| context.full);
        let cpus: Vec<u32> = self.cpus.iter().chain(in_full).copied().collect();
        let derive = |findings: &mut Findings| {
            let sizes: Vec<String> = cpus.iter().map(|cpus| on_cpus(*cpus)).collect();
            let metrics = ["round", "decision"];
            add_ratios(findings, "", &self.layouts, &sizes, &metrics);
            self.add_growth(findings, &cpus);
            self.add_first_sizes(findings, &cpus);
        };
        let one = |context: &mut Context<'_>| self.run_once(context, &cpus);
        let mut findings = context.over_runs(self.runs, one, derive)?;
        let curves = self.curves(&findings, &cpus);
        findings.draw("", &chart(context, curves));
        Ok(findings)
    }

    fn run_once(&self, context: &mut Context<'_>, cpus: &[u32]) -> Result<Findings> {
        let mut findings = Findings::default();
        for &layout in &self.layouts {
            for cpus in self.measured_on(layout, cpus) {
                let simulation = self.measure(context, layout, cpus)?;
                let of = of(layout, &on_cpus(cpus));
                findings.add(format!("{of} round"), round_us(&simulation, cpus), "us");
                findings.add(format!("{of} decision"), decision_us(&simulation), "us");
                add_locks(&mut findings, &of, &simulation);
            }
        }
        Ok(findings)
    }

    fn measured_on(&self, layout: LayoutName, cpus: &[u32]) -> impl Iterator<Item = u32> {
        let scans = layout == LayoutName::MultiQueue;
        let is_measured = move |cpus: &u32| !scans || *cpus <= self.largest_scan;
        cpus.iter().copied().filter(is_measured)
    }

    fn curves(&self, findings: &Findings, cpus: &[u32]) -> Vec<Curve> {
        let curves = self.layouts.iter().enumerate().map(|(colour, &layout)| {
            let points = self.measured_on(layout, cpus).map(|cpus| {
                let round_us = findings.value(&format!("{} round", of(layout, &on_cpus(cpus))));
                (f64::from(cpus).log2(), round_us.log2())
            });
            Curve::new(Shape::Line, colour, layout.title(), points)
        });
        curves.collect()
    }

    fn measure(
        &self,
        context: &mut Context<'_>,
        layout: LayoutName,
        cpus: u32,
    ) -> Result<SmpSimulation> {
        let sets = self.reflex.sets_of_a_process.get() * cpus;
        let scenario = self.reflex.scenario(sets);
        let machine = MachineModel {
            cpus,
            layout,
            costs: self.costs.clone(),
            topology: self.topology.clone(),
            writers: WritersWake::default(),
        };
        let mut simulation = context.machine(&scenario, &machine)?;
        let mut end_ns = 0;
        for part_ns in [self.settles.0, self.measured.0] {
            simulation.measure_afresh();
            end_ns += part_ns;
            context.run_until(&mut simulation, part_ns, |s| s.now_ns() >= end_ns)?;
        }
        Ok(simulation)
    }

    /// The first size on which rounds take longer in one layout than in another, or
    /// not a number.
    fn add_first_sizes(&self, findings: &mut Findings, cpus: &[u32]) {
        for (one, other) in pairs(&self.layouts) {
            let pair = format!("{} over {}", one.title(), other.title());
            let ratio = |cpus| findings.value(&format!("{pair}, {}: round", on_cpus(cpus)));
            let first = cpus.iter().find(|&&cpus| ratio(cpus) > 1.0);
            let first = first.map_or(f64::NAN, |&cpus| f64::from(cpus));
            findings.add(format!("{pair}, first above 1: round"), first, "CPUs");
        }
    }

    /// The time of a decision on each machine over that on the smallest.
    fn add_growth(&self, findings: &mut Findings, cpus: &[u32]) {
        let [first, larger @ ..] = cpus else {
            return;
        };
        for &layout in &self.layouts {
            let decision =
                |cpus: u32| findings.value(&format!("{} decision", of(layout, &on_cpus(cpus))));
            let ratios: Vec<(u32, f64)> = larger
                .iter()
                .map(|&cpus| (cpus, decision(cpus) / decision(*first)))
                .collect();
            for (cpus, ratio) in ratios {
                let metric = format!("{}, {cpus} over {first} CPUs: decision", layout.title());
                findings.add(metric, ratio, ": 1");
            }
        }
    }
}

/// On a scale of powers of two, as times differ by orders of magnitude.
fn chart(context: &Context<'_>, curves: Vec<Curve>) -> Chart {
    Chart {
        title: context.figure.scenario.title.clone(),
        caption: "both axes in powers of two".to_owned(),
        x: Axis::of("log2 of CPUs"),
        y: Axis::of("log2 of the time of a round on a CPU (us)"),
        curves,
        rules: Vec::new(),
    }
}

fn round_us(simulation: &SmpSimulation, cpus: u32) -> f64 {
    let counts = simulation.counts();
    let rounds = (counts.yields + counts.sends).max(1) as f64;
    simulation.measured_ns() as f64 / 1000.0 * f64::from(cpus) / rounds
}

/// The time of a call of `schedule()`, waits for locks included.
fn decision_us(simulation: &SmpSimulation) -> f64 {
    let counts = simulation.counts();
    counts.schedules_ns as f64 / 1000.0 / counts.schedules.max(1) as f64
}
