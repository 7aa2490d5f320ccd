//! Past the paper of 2001: Reflex on machines with far more CPUs, which is where
//! pools of CPUs are to be beneficial (2001, 6).

use std::num::NonZeroU32;

use prorata_report::chart::{Chart, Curve, Shape};
use prorata_sim::scenario::Time;
use prorata_sim::smp::{Costs, LayoutName, Simulation};
use serde::Deserialize;

use super::many_cpus::{add_locks, add_ratios, axis, of, on_cpus};
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
    /// Those that take minutes to simulate, and are measured only in full.
    pub cpus_in_full: Vec<u32>,
    /// Schedulers.
    pub layouts: Vec<LayoutName>,
    /// The largest machine on which MQ by scan is measured: on larger ones each
    /// decision tries so many locks that they take hours to simulate.
    pub largest_scan: u32,
    /// Time before anything is measured. All threads begin together, so no
    /// time slice ends before most do.
    pub settles: Time,
    /// Time that is measured.
    pub measured: Time,
    /// Runs that are averaged, each with a seed of its own; the first is drawn.
    pub runs: NonZeroU32,
    /// Where the machine is not the paper's.
    #[serde(default)]
    pub costs: Costs,
}

impl LargeMachines {
    pub(super) fn run(&self, context: &mut Context<'_>) -> Result<Findings> {
        context.over_runs(self.runs, |context| self.run_once(context))
    }

    fn run_once(&self, context: &mut Context<'_>) -> Result<Findings> {
        let in_full = self.cpus_in_full.iter().filter(|_| context.full);
        let cpus: Vec<u32> = self.cpus.iter().chain(in_full).copied().collect();
        let mut findings = Findings::default();
        let mut curves = Vec::new();
        for (colour, &layout) in self.layouts.iter().enumerate() {
            let mut points = Vec::new();
            let is_measured =
                |cpus: &&u32| layout != LayoutName::MultiQueue || **cpus <= self.largest_scan;
            for &cpus in cpus.iter().filter(is_measured) {
                let simulation = self.measure(context, layout, cpus)?;
                let of = of(layout, &on_cpus(cpus));
                let round_us = round_us(&simulation, cpus);
                findings.add(format!("{of} round"), round_us, "us");
                findings.add(format!("{of} decision"), decision_us(&simulation), "us");
                add_locks(&mut findings, &of, &simulation);
                points.push((f64::from(cpus).log2(), round_us.log2()));
            }
            curves.push(Curve {
                name: layout.title(),
                shape: Shape::Line,
                colour,
                points,
            });
        }
        let sizes: Vec<String> = cpus.iter().map(|cpus| on_cpus(*cpus)).collect();
        let metrics = ["round", "decision"];
        add_ratios(&mut findings, "", &self.layouts, &sizes, &metrics);
        self.add_growth(&mut findings, &cpus);
        findings.draw("", &chart(context, curves));
        Ok(findings)
    }

    fn measure(
        &self,
        context: &mut Context<'_>,
        layout: LayoutName,
        cpus: u32,
    ) -> Result<Simulation> {
        let sets = self.reflex.sets_of_a_process.get() * cpus;
        let scenario = self.reflex.scenario(sets);
        let mut simulation = context.many_cpus(&scenario, cpus, layout, &self.costs)?;
        let mut end_ns = 0;
        for part_ns in [self.settles.0, self.measured.0] {
            simulation.measure_afresh();
            end_ns += part_ns;
            context.run_until(&mut simulation, part_ns, |s| s.now_ns() >= end_ns)?;
        }
        Ok(simulation)
    }

    /// What a decision on each machine takes over one on the smallest.
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
        x: axis("log2 of CPUs"),
        y: axis("log2 of the time of a round on a CPU (us)"),
        curves,
        rules: Vec::new(),
    }
}

/// What a round takes on the CPU that does it.
fn round_us(simulation: &Simulation, cpus: u32) -> f64 {
    let counts = simulation.counts();
    let rounds = (counts.yields + counts.sends).max(1) as f64;
    simulation.measured_ns() as f64 / 1000.0 * f64::from(cpus) / rounds
}

/// What a call of `schedule()` takes, waits for locks included.
fn decision_us(simulation: &Simulation) -> f64 {
    let counts = simulation.counts();
    counts.schedules_ns as f64 / 1000.0 / counts.schedules.max(1) as f64
}
