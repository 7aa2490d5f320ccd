//! 2001, Figures 2 to 5 and Tables 3 to 5: throughput of Chat over the number
//! of CPUs.

use std::num::NonZeroU32;

use prorata_report::chart::{Axis, Chart, Curve, Shape};
use prorata_smp::{LayoutName, MachineModel, SchedulerCosts, SmpSimulation, WritersWake};
use serde::Deserialize;

use super::many_cpus::{
    Compared, add_growth, add_lengths, add_locks, add_ratios, of, on_cpus, pairs, paper_points,
};
use super::{Context, Result};
use crate::finding::Findings;
use crate::statistics::largest;
use crate::workload::Chat;

/// Chat under several schedulers, on several machines.
#[derive(Clone, PartialEq, Debug, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct ChatRooms {
    /// The benchmark.
    pub chat: Chat,
    /// Rooms and messages a user.
    pub configurations: Vec<Configuration>,
    /// Sizes of the machine.
    pub cpus: Vec<u32>,
    /// Schedulers. The others are compared with the first.
    pub layouts: Vec<LayoutName>,
    /// Runs to average, each with a seed of its own. The chart of run queue lengths
    /// is of the first.
    pub runs: NonZeroU32,
    /// Costs that differ from the paper's machine.
    #[serde(default)]
    pub costs: SchedulerCosts,
    /// Each CPU beyond two slows all that goes over the memory bus down by so many
    /// thousandths.
    #[serde(default)]
    pub slowdown_thousandths: u32,
    /// When a full socket wakes its writers.
    #[serde(default)]
    pub writers: WritersWake,
}

/// A configuration of the benchmark.
#[derive(Clone, PartialEq, Debug, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Configuration {
    /// Rooms.
    pub rooms: u32,
    /// Messages that each user sends.
    pub messages: u32,
}

/// Between two looks whether the benchmark's clock runs.
const BEGINS_WITHIN_NS: u64 = 100_000;

/// The result of one scheduler.
struct Outcome {
    layout: LayoutName,
    /// CPUs, and messages a second.
    throughput: Vec<(u32, f64)>,
}

impl ChatRooms {
    pub(super) fn run(&self, context: &mut Context<'_>) -> Result<Findings> {
        let derive = |findings: &mut Findings| self.add_comparisons(findings);
        let mut findings =
            context.over_runs(self.runs, |context| self.run_once(context), derive)?;
        for configuration in &self.configurations {
            let label = self.label(configuration);
            if self.cpus.len() > 1 {
                let compared = Compared {
                    label: &label,
                    layouts: &self.layouts,
                    cpus: &self.cpus,
                };
                let outcomes = outcomes(&findings, compared);
                let title = format!("Chat {}", configuration.label());
                findings.draw(&label, &throughput_chart(&title, &outcomes));
                let panel = format!("{label}speedup");
                findings.draw(&panel, &speedup_chart(context, &title, &outcomes));
                let metrics = [
                    ("contention", "%"),
                    ("mean hold", "us"),
                    ("mean wait", "us"),
                ];
                compared.draw(context, &mut findings, &metrics);
            }
        }
        Ok(findings)
    }

    /// What follows from the means of all runs.
    fn add_comparisons(&self, findings: &mut Findings) {
        for configuration in &self.configurations {
            let label = self.label(configuration);
            self.add_ratios(findings, &label);
            if self.cpus.len() > 1 {
                let compared = Compared {
                    label: &label,
                    layouts: &self.layouts,
                    cpus: &self.cpus,
                };
                add_speedups(findings, &outcomes(findings, compared));
                self.add_requests(findings, &label);
                compared.add_ratios_to(findings, BASE_CPUS, &COUNTS_A_MESSAGE);
                compared.add_best_over_worst(findings);
            }
        }
        self.add_loads(findings);
    }

    fn run_once(&self, context: &mut Context<'_>) -> Result<Findings> {
        let mut findings = Findings::default();
        for configuration in &self.configurations {
            self.measure(context, configuration, &mut findings)?;
        }
        Ok(findings)
    }

    fn costs_on(&self, cpus: u32) -> SchedulerCosts {
        let costs = self.costs.clone();
        costs.slowed_down(self.slowdown_thousandths, cpus)
    }

    /// Begins the names of a configuration's metrics, if there are several.
    fn label(&self, configuration: &Configuration) -> String {
        match self.configurations.len() {
            1 => String::new(),
            _ => format!("{} ", configuration.label()),
        }
    }

    fn add_ratios(&self, findings: &mut Findings, label: &str) {
        let sizes: Vec<String> = self.cpus.iter().map(|cpus| on_cpus(*cpus)).collect();
        let metrics = [
            "throughput",
            "contention",
            "mean hold",
            "mean wait",
            "mean run queue length",
        ];
        add_ratios(findings, label, &self.layouts, &sizes, &metrics);
        if let Some(most) = self.cpus.last().filter(|_| self.cpus.contains(&2)) {
            add_growth(findings, &self.layouts, *most);
        }
    }

    /// The requests for run queue locks, for each message, on the largest
    /// machine over those on two CPUs. They are computed from the printed
    /// statistics of locks, so that the paper's numbers and ours compare. A request
    /// finds a lock held for the part of the time that other CPUs hold it. This is
    /// true of one lock, so only of DSS and PLS.
    fn add_requests(&self, findings: &mut Findings, label: &str) {
        let [.., most] = &self.cpus[..] else {
            return;
        };
        let has_one_lock = |layout: &LayoutName| {
            matches!(layout, LayoutName::GlobalList | LayoutName::PriorityLevels)
        };
        for layout in self.layouts.iter().copied().filter(has_one_lock) {
            let for_a_message = |cpus: u32| {
                let of = of(layout, &on_cpus(cpus));
                let value = |what| findings.value(&format!("{label}{of} {what}"));
                let held = value("contention") * f64::from(cpus) / f64::from(cpus - 1);
                held / value("mean hold") / value("throughput")
            };
            let growth = for_a_message(*most) / for_a_message(BASE_CPUS);
            let title = layout.title();
            let metric = format!("{label}{title}, {BASE_CPUS} to {most} CPUs: growth of requests");
            findings.add(metric, growth, ": 1");
        }
    }

    /// Run queues and hold times under the last configuration over those under
    /// the first, and how far from proportional the two are. Where they are
    /// proportional, a hold takes the same time for each task of the queue.
    fn add_loads(&self, findings: &mut Findings) {
        let [first, .., last] = &self.configurations[..] else {
            return;
        };
        for &layout in &self.layouts {
            for cpus in self.cpus.iter().map(|cpus| on_cpus(*cpus)) {
                let of = of(layout, &cpus);
                for (what, metric) in [("length", "mean run queue length"), ("hold", "mean hold")] {
                    let value = |configuration: &Configuration| {
                        let label = configuration.label();
                        findings.value(&format!("{label} {of} {metric}"))
                    };
                    let ratio = value(last) / value(first);
                    let metric = format!("{of} {what} of {} over {}", last.label(), first.label());
                    findings.add(metric, ratio, ": 1");
                }
                let configurations = self.configurations.iter();
                let a_task = configurations.map(|configuration| {
                    let label = configuration.label();
                    let value = |what| findings.value(&format!("{label} {of} {what}"));
                    value("mean hold") / value("mean run queue length")
                });
                let least = a_task.clone().fold(f64::INFINITY, f64::min);
                let ratio = largest(a_task) / least;
                let metric = format!("{of} hold for each task of the queue, most over least");
                findings.add(metric, ratio, ": 1");
            }
        }
    }

    fn measure(
        &self,
        context: &mut Context<'_>,
        configuration: &Configuration,
        findings: &mut Findings,
    ) -> Result<()> {
        let label = self.label(configuration);
        let &Configuration { rooms, messages } = configuration;
        let scenario = self.chat.scenario(rooms, messages);
        for &layout in &self.layouts {
            for &cpus in &self.cpus {
                let machine = MachineModel {
                    cpus,
                    layout,
                    costs: self.costs_on(cpus),
                    topology: None,
                    writers: self.writers,
                };
                let mut simulation = context.machine(&scenario, &machine)?;
                context.run_until(&mut simulation, BEGINS_WITHIN_NS, |simulation| {
                    self.chat.has_begun(rooms, simulation)
                })?;
                simulation.measure_afresh();
                context.run_until(&mut simulation, 1_000_000, |_| false)?;
                let of = format!("{label}{}", of(layout, &on_cpus(cpus)));
                let seconds = simulation.measured_ns() as f64 / 1e9;
                let deliveries = Chat::deliveries(rooms, messages) as f64;
                findings.add(
                    format!("{of} throughput"),
                    deliveries / seconds,
                    "messages/s",
                );
                add_counts(findings, &of, deliveries, &simulation);
                add_locks(findings, &of, &simulation);
                add_lengths(findings, &of, &simulation);
                if self.cpus.len() == 1 && context.run == 0 {
                    let title = format!("{}{label}", layout.title());
                    findings.draw(&title, &lengths_chart(&title, &simulation));
                }
            }
        }
        Ok(())
    }
}

/// Decisions and lock requests for each message that arrives, as counted.
fn add_counts(findings: &mut Findings, of: &str, deliveries: f64, simulation: &SmpSimulation) {
    let locks = simulation.lock_statistics();
    let counts = simulation.counts();
    let requests = locks.acquisitions + locks.failed_tries;
    let counted = [
        ("schedules a message", counts.schedules),
        ("wakes a message", counts.wakes),
        ("lock requests a message", requests),
    ];
    for (what, count) in counted {
        findings.add(format!("{of} {what}"), count as f64 / deliveries, "");
    }
}

/// The result of each scheduler, in the mean of all runs.
fn outcomes(findings: &Findings, compared: Compared<'_>) -> Vec<Outcome> {
    let layouts = compared.layouts.iter();
    let outcomes = layouts.map(|&layout| {
        let cpus = compared.cpus.iter();
        let throughput = cpus.map(|&cpus| {
            let of = of(layout, &on_cpus(cpus));
            let rate = findings.value(&format!("{}{of} throughput", compared.label));
            (cpus, rate)
        });
        Outcome {
            layout,
            throughput: throughput.collect(),
        }
    });
    outcomes.collect()
}

impl Configuration {
    fn label(&self) -> String {
        format!("({},{})", self.rooms, self.messages)
    }
}

impl Outcome {
    /// CPUs at the highest throughput, and that throughput.
    fn peak(&self) -> (u32, f64) {
        let better = |best: (u32, f64), next: &(u32, f64)| match next.1 > best.1 {
            true => *next,
            false => best,
        };
        self.throughput.iter().fold((0, 0.0), better)
    }

    fn at(&self, cpus: u32) -> f64 {
        let found = self.throughput.iter().find(|(other, _)| *other == cpus);
        found.map_or(f64::NAN, |(_, rate)| *rate)
    }
}

/// Speedups are over two CPUs, "the minimum SMP configuration" (2001, 5.2).
const BASE_CPUS: u32 = 2;

/// Decisions and lock requests for each message, as counted.
const COUNTS_A_MESSAGE: [&str; 2] = ["schedules a message", "lock requests a message"];

fn add_speedups(findings: &mut Findings, outcomes: &[Outcome]) {
    let Some(first) = outcomes.first() else {
        return;
    };
    let most = first.throughput.last().map_or(0, |(cpus, _)| *cpus);
    for outcome in outcomes {
        let title = outcome.layout.title();
        let base = outcome.at(BASE_CPUS);
        let (cpus, peak) = outcome.peak();
        findings.add(
            format!("{title}: CPUs at the peak"),
            f64::from(cpus),
            "CPUs",
        );
        findings.add(format!("{title}: speedup at the peak"), peak / base, "");
        let end = outcome.at(most);
        findings.add(format!("{title}: speedup on {most} CPUs"), end / base, "");
        findings.add(format!("{title}: end over peak"), end / peak, "");
        let relative = peak / first.peak().1;
        let metric = format!("{title}: peak over that of {}", first.layout.title());
        findings.add(metric, relative, "");
    }
    let layouts: Vec<LayoutName> = outcomes.iter().map(|outcome| outcome.layout).collect();
    let speedup = format!("speedup on {most} CPUs");
    for (one, other) in pairs(&layouts) {
        let value = |layout: &LayoutName| findings.value(&format!("{}: {speedup}", layout.title()));
        let ratio = value(one) / value(other);
        let metric = format!("{} over {}: {speedup}", one.title(), other.title());
        findings.add(metric, ratio, ": 1");
    }
}

fn throughput_chart(title: &str, outcomes: &[Outcome]) -> Chart {
    let curves = outcomes.iter().enumerate();
    let curves = curves.map(|(colour, outcome)| {
        Curve::new(
            Shape::Line,
            colour,
            outcome.layout.title(),
            outcome
                .throughput
                .iter()
                .map(|&(cpus, rate)| (f64::from(cpus), rate)),
        )
    });
    Chart {
        title: title.to_owned(),
        x: Axis::of("CPUs"),
        y: Axis::of("messages per second"),
        curves: curves.collect(),
        ..Chart::default()
    }
}

/// Speedups over two CPUs, with those that the paper prints (Table 5).
fn speedup_chart(context: &Context<'_>, title: &str, outcomes: &[Outcome]) -> Chart {
    let mut curves = Vec::new();
    for (colour, outcome) in outcomes.iter().enumerate() {
        let layout = outcome.layout.title();
        let base = outcome.at(BASE_CPUS);
        let points = outcome.throughput.iter();
        curves.push(Curve::new(
            Shape::Line,
            colour,
            &layout,
            points.map(|&(cpus, rate)| (f64::from(cpus), rate / base)),
        ));
        let printed = |what: &str| context.printed(&format!("{layout}: {what}"));
        let peak = printed("CPUs at the peak").zip(printed("speedup at the peak"));
        let end = printed("speedup on 8 CPUs").map(|speedup| (8.0, speedup));
        let points = peak.into_iter().chain(end).collect();
        curves.extend(paper_points(outcome.layout, colour, points));
    }
    Chart {
        title: format!("{title}: speedup over {BASE_CPUS} CPUs"),
        x: Axis::of("CPUs"),
        y: Axis::of("speedup"),
        curves,
        ..Chart::default()
    }
}

fn lengths_chart(title: &str, simulation: &SmpSimulation) -> Chart {
    let counts = simulation.lengths().counts();
    let width = (counts.len() / 60 + 1) as f64;
    let bars = counts
        .chunks(width as usize)
        .enumerate()
        .map(|(bar, counts)| {
            let found = counts.iter().sum::<u64>() as f64;
            ((bar as f64 + 0.5) * width, found)
        });
    Chart {
        title: format!("Run queue lengths, {title}"),
        caption: "as every call of schedule() found them".to_owned(),
        x: Axis::of("run queue length (tasks)"),
        y: Axis::of("calls of schedule()"),
        curves: vec![Curve::new(Shape::Bars(width), 0, "", bars)],
        rules: Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An experiment with further keys.
    fn with(keys: &str) -> ChatRooms {
        let text = format!(
            r#"
configurations = [{{ rooms = 1, messages = 1 }}]
cpus = [2, 4]
layouts = ["global-list"]
runs = 1
chat = {{ socket = 1, write = "1us", read = "1us" }}
{keys}
"#
        );
        toml::from_str(&text).expect("an experiment")
    }

    #[test]
    fn larger_machines_are_slowed_down_only_by_the_key() {
        let percents = |keys| [2, 4].map(|cpus| with(keys).costs_on(cpus).bus_percent);
        assert_eq!(percents(""), [100, 100]);
        assert_eq!(percents("slowdown-thousandths = 90"), [100, 118]);
    }

    #[test]
    fn the_growth_of_requests_by_cpus_is_that_of_the_counts() {
        let rooms = with("");
        let mut findings = Findings::default();
        for (cpus, schedules, requests) in [(2, 0.1, 0.25), (4, 0.3, 0.5)] {
            let of = format!("DSS, {cpus} CPUs:");
            findings.add(format!("{of} schedules a message"), schedules, "");
            findings.add(format!("{of} lock requests a message"), requests, "");
        }
        let compared = Compared {
            label: "",
            layouts: &rooms.layouts,
            cpus: &rooms.cpus,
        };
        compared.add_ratios_to(&mut findings, BASE_CPUS, &COUNTS_A_MESSAGE);
        let growth = |what: &str| findings.value(&format!("DSS, 4 over 2 CPUs: {what}"));
        assert!((growth("schedules a message") - 3.0).abs() < 1e-9);
        assert!((growth("lock requests a message") - 2.0).abs() < 1e-9);
    }
}
