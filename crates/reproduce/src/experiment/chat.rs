//! 2001, Figures 2 to 5 and Tables 3 to 5: throughput of Chat over the number
//! of CPUs.

use prorata_report::chart::{Axis, Chart, Curve, Shape};
use prorata_sim::smp::{Costs, LayoutName, Simulation};
use serde::Deserialize;

use super::many_cpus::{add_growth, add_lengths, add_locks, add_ratios, of, on_cpus, pairs};
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
    /// Of all messages that arrive, it is measured after so many for each that
    /// a user sends.
    pub after: u32,
    /// For so many.
    pub measured: u32,
    /// Schedulers; the first is what the others are compared with.
    pub layouts: Vec<LayoutName>,
    /// Where the machine is not the paper's.
    #[serde(default)]
    pub costs: Costs,
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

/// What one scheduler came to.
struct Outcome {
    layout: LayoutName,
    /// CPUs, and messages a second.
    throughput: Vec<(u32, f64)>,
}

impl ChatRooms {
    pub(super) fn run(&self, context: &mut Context<'_>) -> Result<Findings> {
        let mut findings = Findings::default();
        for configuration in &self.configurations {
            let label = match self.configurations.len() {
                1 => String::new(),
                _ => format!("{} ", configuration.label()),
            };
            let outcomes = self.outcomes(context, configuration, &label, &mut findings)?;
            self.add_ratios(&mut findings, &label);
            if self.cpus.len() > 1 {
                add_speedups(&mut findings, &outcomes);
                let title = format!("Chat {}", configuration.label());
                findings.draw(&label, &throughput_chart(&title, &outcomes));
            }
        }
        self.add_loads(&mut findings);
        Ok(findings)
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

    /// What the last configuration loads run queues with over what the first
    /// does.
    fn add_loads(&self, findings: &mut Findings) {
        let [first, .., last] = &self.configurations[..] else {
            return;
        };
        for &layout in &self.layouts {
            for cpus in self.cpus.iter().map(|cpus| on_cpus(*cpus)) {
                let of = of(layout, &cpus);
                let length = |configuration: &Configuration| {
                    let label = configuration.label();
                    findings.value(&format!("{label} {of} mean run queue length"))
                };
                let ratio = length(last) / length(first);
                let metric = format!("{of} length of {} over {}", last.label(), first.label());
                findings.add(metric, ratio, ": 1");
            }
        }
    }

    fn outcomes(
        &self,
        context: &mut Context<'_>,
        configuration: &Configuration,
        label: &str,
        findings: &mut Findings,
    ) -> Result<Vec<Outcome>> {
        let &Configuration { rooms, messages } = configuration;
        let scenario = self.chat.scenario(rooms, messages);
        let mut outcomes = Vec::new();
        for &layout in &self.layouts {
            let mut throughput = Vec::new();
            for &cpus in &self.cpus {
                let mut simulation = context.many_cpus(&scenario, cpus, layout, &self.costs)?;
                let arrived = |simulation: &Simulation| Chat::arrived(simulation.counts().sends);
                for messages in [self.after, self.measured] {
                    simulation.measure_afresh();
                    let enough = Chat::deliveries(rooms, messages);
                    context.run_until(&mut simulation, 1_000_000, |s| arrived(s) >= enough)?;
                }
                let of = format!("{label}{}", of(layout, &on_cpus(cpus)));
                let seconds = simulation.measured_ns() as f64 / 1e9;
                let rate = arrived(&simulation) as f64 / seconds;
                findings.add(format!("{of} throughput"), rate, "messages/s");
                add_locks(findings, &of, &simulation);
                add_lengths(findings, &of, &simulation);
                throughput.push((cpus, rate));
                if self.cpus.len() == 1 {
                    let title = format!("{}{label}", layout.title());
                    findings.draw(&title, &lengths_chart(&title, &simulation));
                }
            }
            outcomes.push(Outcome { layout, throughput });
        }
        Ok(outcomes)
    }
}

impl Configuration {
    fn label(&self) -> String {
        format!("({},{})", self.rooms, self.messages)
    }
}

impl Outcome {
    /// CPUs at the highest throughput, and that.
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

/// Speedups go by two CPUs, "the minimum SMP configuration" (2001, 5.2).
const BASE_CPUS: u32 = 2;

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
    for (one, other) in pairs(&layouts) {
        let end =
            |layout: &LayoutName| findings.value(&format!("{}: end over peak", layout.title()));
        let ratio = end(one) / end(other);
        let metric = format!("{} over {}: end over peak", one.title(), other.title());
        findings.add(metric, ratio, ": 1");
    }
    for &(cpus, _) in &first.throughput {
        let rates = outcomes.iter().map(|outcome| outcome.at(cpus));
        let smallest = rates.clone().fold(f64::INFINITY, f64::min);
        let spread = largest(rates) / smallest;
        findings.add(format!("{cpus} CPUs: best over worst"), spread, "");
    }
}

fn throughput_chart(title: &str, outcomes: &[Outcome]) -> Chart {
    let curves = outcomes.iter().enumerate();
    let curves = curves.map(|(colour, outcome)| Curve {
        name: outcome.layout.title(),
        shape: Shape::Line,
        colour,
        points: outcome
            .throughput
            .iter()
            .map(|&(cpus, rate)| (f64::from(cpus), rate))
            .collect(),
    });
    Chart {
        title: title.to_owned(),
        caption: String::new(),
        x: axis("CPUs"),
        y: axis("messages per second"),
        curves: curves.collect(),
        rules: Vec::new(),
    }
}

fn lengths_chart(title: &str, simulation: &Simulation) -> Chart {
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
        x: axis("run queue length (tasks)"),
        y: axis("calls of schedule()"),
        curves: vec![Curve {
            name: String::new(),
            shape: Shape::Bars(width),
            colour: 0,
            points: bars.collect(),
        }],
        rules: Vec::new(),
    }
}

fn axis(label: &str) -> Axis {
    Axis {
        label: label.to_owned(),
        end: None,
    }
}
