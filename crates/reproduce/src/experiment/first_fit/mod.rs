//! 2005, Figures 4.3 to 4.5: how much of their load first fit achieves for random sets of periodic
//! tasks, with three ways to choose a CPU, beside what an optimal placement does.

mod averages;
mod batch;
mod claims;
mod placing;
mod size;
mod tasks;

use std::num::NonZeroU32;

use prorata_core::slots::place::cpu_choice::CpuChoice;
use prorata_report::chart::{Axis, Chart, Curve, Shape};
use serde::Deserialize;

use super::{Context, Result};
use crate::finding::Findings;
use averages::Averages;
use batch::Batch;
use size::{BATCHES, Size};

/// Random sets of tasks, placed on machines of several sizes.
#[derive(Clone, PartialEq, Debug, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct FirstFit {
    /// Which CPU a task tries first.
    pub choice: Choice,
    /// Slots of the table of each CPU.
    pub slots: NonZeroU32,
    /// Machines, each with its number of sets.
    pub sizes: Vec<MachineSize>,
    /// Parts of the axis of loads, in tens.
    pub tens_of_intervals: NonZeroU32,
    /// Compares with the other choices, and with the optimum.
    #[serde(default)]
    pub comparison: Option<Comparison>,
}

/// A size of the machine. On a small one, sets have few tasks and differ more from each other, so
/// there must be more of them.
#[derive(Clone, PartialEq, Debug, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct MachineSize {
    /// CPUs.
    pub cpus: NonZeroU32,
    /// Sets that are placed, one by one.
    pub sets: NonZeroU32,
}

/// What else the sets are placed by.
#[derive(Clone, PartialEq, Debug, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Comparison {
    /// Other choices, for the tenths of load of which something is compared.
    pub choices: Vec<Choice>,
    /// Steps after which the search for an optimal placement of a set is given up.
    pub steps: u32,
}

/// The three heuristics.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Choice {
    LeastUtilised,
    Random,
    MostUtilised,
}

/// Tenths of the target load that the text speaks of: "low loads", "relatively high loads", near
/// 1.0; and one in the middle, where there are both tasks and room.
const LOW: usize = 0;
const MIDDLE: usize = 4;
const HIGH: usize = 8;
const TOP: usize = 9;

impl FirstFit {
    pub(super) fn run(&self, context: &mut Context<'_>) -> Result<Findings> {
        let is_known = |machine: &MachineSize| machine.cpus.get() <= MOST_CPUS;
        if self.slots.get() > MOST_SLOTS || !self.sizes.iter().all(is_known) {
            let what = format!("takes at most {MOST_SLOTS} slots and {MOST_CPUS} CPUs");
            return Err(context.malformed(what));
        }
        let mut sizes = Vec::new();
        for machine in &self.sizes {
            let cpus = machine.cpus.get();
            let mut size = Size::new(self, cpus, context.seed(cpus));
            context.step(&on_cpus(cpus))?;
            for set in 1..=machine.sets.get() {
                size.add_set(self);
                if set % 100 == 0 {
                    context.step("")?;
                }
            }
            sizes.push(size);
        }
        let together = |left_out| -> Vec<Batch> {
            let together = sizes.iter().map(|size| size.together(self, left_out));
            together.collect()
        };
        let without = (0..BATCHES).map(|batch| self.claims(&together(Some(batch))));
        let without: Vec<Findings> = without.collect();
        let all = together(None);
        let mut findings = self.claims(&all);
        findings.set_errors_of_jackknife(&without);
        self.draw(context, &mut findings, &all);
        Ok(findings)
    }

    fn caption(&self) -> String {
        let sets = || self.sizes.iter().map(|machine| machine.sets.get());
        let (fewest, most) = (sets().min(), sets().max());
        match (fewest, most) {
            (Some(fewest), Some(most)) if fewest < most => {
                format!("{fewest} to {most} sets for each number of CPUs")
            }
            _ => format!("{} sets for each number of CPUs", most.unwrap_or(0)),
        }
    }

    fn draw(&self, context: &Context<'_>, findings: &mut Findings, sizes: &[Batch]) {
        let curves = sizes.iter().enumerate().map(|(colour, size)| {
            Curve::new(Shape::Line, colour, on_cpus(size.cpus), size.chosen.curve())
        });
        let chart = Chart {
            title: context.figure.scenario.title.clone(),
            caption: self.caption(),
            x: Axis::up_to(1.0, "target load"),
            y: Axis::up_to(100.0, "load achieved (% of the set's)"),
            curves: curves.collect(),
            rules: Vec::new(),
        };
        let Some(comparison) = &self.comparison else {
            findings.draw("", &chart);
            return;
        };
        findings.draw("a", &chart);
        let curve = |colour: usize, name: &str, of: &dyn Fn(&Batch) -> &Averages| {
            let point = |size: &Batch| (f64::from(size.cpus).log2(), of(size).achieved(TOP));
            Curve::new(Shape::Line, colour, name, sizes.iter().map(point))
        };
        let others = comparison.choices.iter().enumerate();
        let mut curves: Vec<Curve> = others
            .map(|(place, other)| curve(place + 2, other.title(), &|size| &size.others[place]))
            .collect();
        curves.push(curve(1, self.choice.title(), &|size| &size.chosen));
        curves.push(Curve {
            shape: Shape::Dashed,
            ..curve(0, "optimum", &|size| &size.optimum)
        });
        let chart = Chart {
            title: "First fit and the optimum".to_owned(),
            caption: format!("at {} of all CPUs", loads(TOP)),
            x: Axis::of("log2 of CPUs"),
            y: Axis::up_to(100.0, "load achieved (% of the set's)"),
            curves,
            rules: Vec::new(),
        };
        findings.draw("b", &chart);
    }
}

/// Limits, so that loads and seeds fit their words.
const MOST_SLOTS: u32 = 10_000;
const MOST_CPUS: u32 = 1_024;

impl Choice {
    fn title(self) -> &'static str {
        match self {
            Choice::LeastUtilised => "least utilised",
            Choice::Random => "random",
            Choice::MostUtilised => "most utilised",
        }
    }
}

impl From<Choice> for CpuChoice {
    fn from(choice: Choice) -> CpuChoice {
        match choice {
            Choice::LeastUtilised => CpuChoice::LeastUtilised,
            Choice::Random => CpuChoice::Random,
            Choice::MostUtilised => CpuChoice::MostUtilised,
        }
    }
}

fn on_cpus(cpus: u32) -> String {
    match cpus {
        1 => "1 CPU".to_owned(),
        _ => format!("{cpus} CPUs"),
    }
}

/// `loads 0.9 to 1`, a tenth of the target loads.
fn loads(tenth: usize) -> String {
    format!(
        "loads {} to {}",
        tenth as f64 / 10.0,
        (tenth + 1) as f64 / 10.0
    )
}
