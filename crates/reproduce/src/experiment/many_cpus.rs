//! What the experiments of 2001 have in common: a machine whose scheduler takes
//! time, and what is printed of its locks and run queues.

use prorata_sim::Scenario;
use prorata_sim::smp::{Costs, LayoutName, Machine, Simulation};

use super::{Context, Result};
use crate::error::ReproduceError;
use crate::finding::Findings;

impl Context<'_> {
    /// The paper's machine with so many CPUs, about to run a scenario.
    pub fn many_cpus(
        &mut self,
        scenario: &Scenario,
        cpus: u32,
        layout: LayoutName,
    ) -> Result<Simulation> {
        self.step("")?;
        let machine = Machine {
            cpus,
            layout,
            costs: Costs::default(),
        };
        let seed = self.seed(0);
        Simulation::new(scenario, &machine, seed).map_err(|error| ReproduceError::Scenario {
            id: self.figure.id.clone(),
            error: Box::new(error),
        })
    }

    /// Runs it until `enough`, or to its end, looking every so often.
    pub fn run_until(
        &self,
        simulation: &mut Simulation,
        every_ns: u64,
        mut enough: impl FnMut(&Simulation) -> bool,
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

/// How metrics of one layout on one machine begin.
pub(super) fn of(layout: LayoutName, cpus: u32) -> String {
    format!("{}, {cpus} CPUs:", layout.title())
}

/// The locks of the run queues, as Lockmeter prints them.
pub(super) fn add_locks(findings: &mut Findings, of: &str, simulation: &Simulation) {
    let locks = simulation.lock_statistics();
    let us = |ns: f64| ns / 1000.0;
    let without_tries = locks.contention_without_tries() * 100.0;
    findings.add(format!("{of} contention"), locks.contention() * 100.0, "%");
    findings.add(format!("{of} NF contention"), without_tries, "%");
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

/// Lengths of run queues, as every call of `schedule()` found them.
pub(super) fn add_lengths(findings: &mut Findings, of: &str, simulation: &Simulation) {
    let lengths = simulation.lengths();
    let mean = format!("{of} mean run queue length");
    findings.add(mean, lengths.mean(), "tasks");
    let longest = lengths.longest() as f64;
    findings.add(format!("{of} longest run queue"), longest, "tasks");
}
