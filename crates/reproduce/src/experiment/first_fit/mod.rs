//! 2005, Figures 4.3 to 4.5: how much of their load first fit achieves for random sets of periodic
//! tasks, with three ways to choose a CPU, beside what an optimal placement does.

mod averages;
mod placing;
mod tasks;

use std::num::NonZeroU32;

use prorata_core::rng::{SeedableRng, Xoshiro256PlusPlus};
use prorata_core::slots::place::View;
use prorata_core::slots::place::cpu_choice::CpuChoice;
use prorata_core::slots::place::packing::pack;
use prorata_report::chart::{Axis, Chart, Curve, Shape};
use serde::Deserialize;

use super::{Context, Result};
use crate::finding::Findings;
use averages::{Averages, interval_of};
use placing::Placed;
use tasks::{Kinds, TaskSet, slots_of};

/// Random sets of tasks, placed on machines of several sizes.
#[derive(Clone, PartialEq, Debug, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct FirstFit {
    /// Which CPU a task tries first.
    pub choice: Choice,
    /// Sizes of the machine.
    pub cpus: Vec<NonZeroU32>,
    /// Slots of the table of each CPU.
    pub slots: NonZeroU32,
    /// Sets for each size.
    pub sets: NonZeroU32,
    /// Fewer sets for large machines, unless in full.
    pub short: Short,
    /// Parts of the axis of loads, in tens.
    pub tens_of_intervals: NonZeroU32,
    /// Compares with the other choices, and with the optimum.
    #[serde(default)]
    pub comparison: Option<Comparison>,
}

/// Fewer sets for large machines, on which each set has more tasks and differs less from others.
#[derive(Clone, PartialEq, Debug, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Short {
    /// Machines with more CPUs are large.
    pub above_cpus: u32,
    /// Sets for each size of them.
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
        let is_known = |cpus: &NonZeroU32| cpus.get() <= MOST_CPUS;
        if self.slots.get() > MOST_SLOTS || !self.cpus.iter().all(is_known) {
            let what = format!("takes at most {MOST_SLOTS} slots and {MOST_CPUS} CPUs");
            return Err(context.malformed(what));
        }
        let mut sizes: Vec<Size> = self
            .cpus
            .iter()
            .map(|cpus| Size::new(self, cpus.get(), context))
            .collect();
        for size in &mut sizes {
            context.step(&on_cpus(size.cpus))?;
            for set in 1..=self.sets_for(size.cpus, context.full) {
                size.add_set(self);
                if set % 100 == 0 {
                    context.step("")?;
                }
            }
        }
        let mut findings = Findings::default();
        self.add_claims(&mut findings, &sizes);
        self.draw(context, &mut findings, &sizes);
        Ok(findings)
    }

    fn sets_for(&self, cpus: u32, in_full: bool) -> u32 {
        match in_full || cpus <= self.short.above_cpus {
            true => self.sets.get(),
            false => self.short.sets.get(),
        }
    }

    fn add_claims(&self, findings: &mut Findings, sizes: &[Size]) {
        for size in sizes {
            let (on, all) = (on_cpus(size.cpus), &size.chosen);
            for tenth in [LOW, TOP] {
                let metric = format!("{on}, {}: achieved", loads(tenth));
                findings.add(metric, all.achieved(tenth), "%");
            }
            let falls = || (1..10).map(|tenth| all.achieved(tenth - 1) - all.achieved(tenth));
            let metric = format!("{on}: largest fall from a tenth of load to the next");
            findings.add(metric, falls().fold(0.0, f64::max), "points");
            let metric = format!("{on}: largest rise from a tenth of load to the next");
            findings.add(
                metric,
                falls().map(|fall| -fall).fold(0.0, f64::max),
                "points",
            );
            findings.add(
                format!("{on}, all loads: achieved"),
                all.achieved_overall(),
                "%",
            );
            findings.add(
                format!("{on}, all loads: sets placed in whole"),
                all.whole(),
                "%",
            );
            let metric = format!("{on}, {}: tasks left out", loads(HIGH));
            findings.add(metric, all.left_out(HIGH), "%");
        }
        for pair in sizes.windows(2) {
            let sizes = format!("{} over {} CPUs", pair[1].cpus, pair[0].cpus);
            let gain = |of: fn(&Size) -> &Averages| {
                of(&pair[1]).achieved(TOP) / of(&pair[0]).achieved(TOP)
            };
            let metric = format!("{sizes}, {}: achieved", loads(TOP));
            findings.add(metric, gain(|size| &size.chosen), ": 1");
            let metric = format!("{sizes}, own {}: achieved", loads(TOP));
            findings.add(metric, gain(|size| &size.by_own_load), ": 1");
        }
        if let Some(comparison) = &self.comparison {
            self.add_comparison(findings, comparison, sizes);
        }
    }

    fn add_comparison(&self, findings: &mut Findings, comparison: &Comparison, sizes: &[Size]) {
        for (place, other) in comparison.choices.iter().enumerate() {
            let gain = |size: &Size| size.chosen.achieved(TOP) / size.others[place].achieved(TOP);
            for size in sizes {
                let (on, other) = (on_cpus(size.cpus), other.title());
                let metric = format!("{on}, {}: achieved, over {other}", loads(TOP));
                findings.add(metric, gain(size), ": 1");
                let more = size.chosen.empty_cpus(MIDDLE) - size.others[place].empty_cpus(MIDDLE);
                let metric = format!(
                    "{on}, {}: CPUs without a task, more than {other}",
                    loads(MIDDLE)
                );
                findings.add(metric, more, "points");
            }
            if let [first, .., last] = sizes {
                let metric = format!(
                    "{} over {} CPUs, {}: achieved, over {}",
                    last.cpus,
                    first.cpus,
                    loads(TOP),
                    other.title()
                );
                findings.add(metric, gain(last) / gain(first), ": 1");
            }
        }
        for size in sizes {
            let on = on_cpus(size.cpus);
            findings.add(
                format!("optimum, {on}: sets placed in whole"),
                size.optimum.whole(),
                "%",
            );
            let metric = format!("optimum, {on}, {}: achieved", loads(TOP));
            findings.add(metric, size.optimum.achieved(TOP), "%");
            let given_up = f64::from(size.given_up) / f64::from(size.sets);
            findings.add(
                format!("optimum, {on}: sets given up"),
                100.0 * given_up,
                "%",
            );
            if size.cpus == 1 {
                let metric = "1 CPU: tenths of use with room more often than in the one before";
                findings.add(metric, size.rises_in_room(), "");
            }
        }
    }

    fn caption(&self, in_full: bool) -> String {
        let Short { above_cpus, sets } = &self.short;
        match in_full {
            true => format!("{} sets for each number of CPUs", self.sets),
            false => format!("{} sets, and {sets} above {above_cpus} CPUs", self.sets),
        }
    }

    fn draw(&self, context: &Context<'_>, findings: &mut Findings, sizes: &[Size]) {
        let curves = sizes.iter().enumerate().map(|(colour, size)| {
            Curve::new(Shape::Line, colour, on_cpus(size.cpus), size.chosen.curve())
        });
        let chart = Chart {
            title: context.figure.scenario.title.clone(),
            caption: self.caption(context.full),
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
        let curve = |colour: usize, name: &str, of: &dyn Fn(&Size) -> &Averages| {
            let point = |size: &Size| (f64::from(size.cpus).log2(), of(size).achieved(TOP));
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

/// What became of the sets on machines of one size.
struct Size {
    cpus: u32,
    columns: u32,
    empty: View,
    seed: u64,
    kinds: Kinds,
    lots: Xoshiro256PlusPlus,
    sets: u32,
    chosen: Averages,
    /// The same by what the sets' loads came to, below their targets.
    by_own_load: Averages,
    others: Vec<Averages>,
    optimum: Averages,
    given_up: u32,
    /// By the tenth of its slots that a lone CPU has used: random tasks, and those with room.
    probes: [(u32, u32); 10],
}

impl Size {
    fn new(of: &FirstFit, cpus: u32, context: &Context<'_>) -> Size {
        let intervals = of.tens_of_intervals.get() as usize * 10;
        let averages = || Averages::new(cpus, intervals);
        let others = of
            .comparison
            .iter()
            .flat_map(|comparison| &comparison.choices);
        let seed = context.seed(cpus);
        Size {
            cpus,
            columns: of.slots.get(),
            empty: View::new(cpus, of.slots.get(), |_| true),
            seed,
            kinds: Kinds::of(of.slots.get()),
            lots: Xoshiro256PlusPlus::seed_from_u64(seed),
            sets: 0,
            chosen: averages(),
            by_own_load: averages(),
            others: others.map(|_| averages()).collect(),
            optimum: averages(),
            given_up: 0,
            probes: [(0, 0); 10],
        }
    }

    /// Draws one more set and places it.
    fn add_set(&mut self, of: &FirstFit) {
        let set = self.kinds.draw_set(self.cpus, &mut self.lots);
        let placed = self.place(&set, of.choice);
        self.chosen.add(set.target, &set, placed);
        let own = f64::from(set.load) / f64::from(self.cpus * self.columns);
        self.by_own_load.add(own, &set, placed);
        if let Some(comparison) = &of.comparison {
            let tenth = interval_of(set.target, 10);
            for (place, &other) in comparison.choices.iter().enumerate() {
                if tenth == MIDDLE || tenth == TOP {
                    let placed = self.place(&set, other);
                    self.others[place].add(set.target, &set, placed);
                }
            }
            self.add_optimum(&set, comparison.steps);
            if self.cpus == 1 {
                self.add_probes(&set);
            }
        }
        self.sets += 1;
    }

    /// Lots of a set's own to choose CPUs by, the same in all figures.
    fn lots_of_set(&self) -> Xoshiro256PlusPlus {
        Xoshiro256PlusPlus::seed_from_u64(!(self.seed ^ u64::from(self.sets) << 43))
    }

    fn place(&self, set: &TaskSet, choice: Choice) -> Placed {
        let mut lots = self.lots_of_set();
        placing::place_all(&set.tasks, self.empty.clone(), choice.into(), &mut lots)
    }

    fn add_optimum(&mut self, set: &TaskSet, steps: u32) {
        let tasks = set.tasks.iter();
        let loads: Vec<u32> = tasks.map(|&task| slots_of(task, self.columns)).collect();
        let packing = pack(&loads, self.cpus, self.columns, steps);
        let placed = Placed {
            load: packing.load,
            left_out: u32::from(packing.load < set.load),
            empty_cpus: 0,
        };
        self.optimum.add(set.target, set, placed);
        self.given_up += u32::from(!packing.is_exact);
    }

    /// Whether a random task would find room on a lone CPU, after each task of a set.
    fn add_probes(&mut self, set: &TaskSet) {
        let mut table = self.empty.clone();
        let mut lots = self.lots_of_set();
        for &task in &set.tasks {
            placing::place(task, &mut table, CpuChoice::MostUtilised, &mut lots);
            let used = f64::from(self.columns - table.open_in(0)) / f64::from(self.columns);
            let (probes, fitting) = &mut self.probes[interval_of(used, 10)];
            let (probe, mut table) = (self.kinds.draw(&mut lots), table.clone());
            let fits = placing::place(probe, &mut table, CpuChoice::MostUtilised, &mut lots);
            *probes += 1;
            *fitting += u32::from(fits.is_some());
        }
    }

    /// Tenths of a CPU's use in which a task finds room more often than in the tenth before.
    fn rises_in_room(&self) -> f64 {
        let probes = self.probes.iter().filter(|(probes, _)| *probes > 0);
        let chance = |&(probes, fitting): &(u32, u32)| f64::from(fitting) / f64::from(probes);
        let chances: Vec<f64> = probes.map(chance).collect();
        let rises = chances.windows(2).filter(|pair| pair[1] > pair[0]);
        rises.count() as f64
    }
}

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
