//! 1994, Figure 7: clients that do nothing but call a server, which computes
//! for them with the tickets that they lend it.

use prorata_report::chart::{Axis, Chart, Curve, Shape};
use prorata_scenario::event::Event;
use prorata_sim::{Machine, Observer};
use serde::Deserialize;

use super::{Context, Result};
use crate::finding::Findings;
use crate::statistics::{deviation, largest, mean};

/// Queries answered over time.
#[derive(Clone, PartialEq, Debug, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Queries {
    /// Clients that call. The first makes a certain number of queries and ends.
    pub clients: Vec<String>,
    /// Runs that are averaged; the first is drawn.
    pub runs: u32,
}

/// A query that was answered.
#[derive(Clone, Copy, Debug)]
struct Answer {
    client: u32,
    at_s: f64,
    took_s: f64,
}

#[derive(Default)]
struct Answers(Vec<Answer>);

impl Observer for Answers {
    fn observe(&mut self, now_ns: u64, event: Event<'_>, _: &Machine) {
        if let Event::Answered {
            client, took_ns, ..
        } = event
        {
            self.0.push(Answer {
                client,
                at_s: now_ns as f64 / 1e9,
                took_s: took_ns as f64 / 1e9,
            });
        }
    }
}

/// What one run comes to, by metric.
type Run = Vec<(String, f64, &'static str)>;

/// How the metrics of average response times begin.
const RESPONSE_TIME: &str = "response time of";

/// The average of some response times, and their deviation from it.
fn add_times(run: &mut Run, of: &str, times_s: &[f64]) {
    let average_s = mean(times_s);
    run.push((format!("{RESPONSE_TIME} {of}"), average_s, "s"));
    let spread = deviation(times_s) / average_s * 100.0;
    run.push((format!("deviation of response times of {of}"), spread, "%"));
}

/// How much sooner on average the others have their answers than the last.
fn add_speeds(run: &mut Run, averages_s: &[(&String, f64)], when: &str) {
    let Some(((last, slowest_s), others)) = averages_s.split_last() else {
        return;
    };
    for (name, average_s) in others {
        let metric = format!("relative speed of {name} to {last}{when}");
        run.push((metric, slowest_s / average_s, ": 1"));
    }
}

impl Queries {
    pub(super) fn run(&self, context: &mut Context<'_>) -> Result<Findings> {
        let scenario = context.scenario();
        let mut findings = Findings::default();
        let mut runs: Vec<Run> = Vec::new();
        for run in 0..self.runs {
            let (machine, answers) =
                context.simulate(&scenario, context.seed(run), Answers::default())?;
            let clients: Option<Vec<u32>> = self
                .clients
                .iter()
                .map(|name| machine.find_clients(name).map(|found| found.start))
                .collect();
            let clients = clients
                .ok_or_else(|| context.malformed("names clients that the scenario lacks"))?;
            runs.push(self.metrics(&clients, &answers.0));
            if run == 0 {
                let end_s = scenario.duration.as_secs_f64();
                findings.draw(
                    "",
                    &self.chart(&scenario.title, &clients, &answers.0, end_s),
                );
            }
        }
        for (place, (metric, _, unit)) in runs[0].iter().enumerate() {
            let values: Vec<f64> = runs.iter().map(|run| run[place].1).collect();
            findings.add_runs(metric, &values, unit);
            if metric.starts_with(RESPONSE_TIME) {
                let spread = deviation(&values) / mean(&values) * 100.0;
                findings.add(format!("deviation of the average {metric}"), spread, "%");
            }
        }
        Ok(findings)
    }

    fn metrics(&self, clients: &[u32], answers: &[Answer]) -> Run {
        let of_first = answers.iter().filter(|a| a.client == clients[0]);
        let first_ends_s = largest(of_first.map(|a| a.at_s));
        let times = |client: u32, before: bool| -> Vec<f64> {
            let own = answers.iter().filter(|a| a.client == client);
            // Queries in progress when the first ends belong to neither time.
            let within = own.filter(|a| {
                if before {
                    a.at_s <= first_ends_s
                } else {
                    a.at_s - a.took_s >= first_ends_s
                }
            });
            within.map(|a| a.took_s).collect()
        };
        let mut metrics = Run::new();
        let others = answers.iter().filter(|a| a.client != clients[0]);
        let done = others.filter(|a| a.at_s <= first_ends_s).count();
        let metric = format!("queries of the others when {} ends", self.clients[0]);
        metrics.push((metric, done as f64, "queries"));
        let (mut while_all_s, mut after_s) = (Vec::new(), Vec::new());
        for (name, &client) in self.clients.iter().zip(clients) {
            let all = answers.iter().filter(|a| a.client == client).count();
            metrics.push((format!("queries of {name}"), all as f64, "queries"));
            let while_all = times(client, true);
            add_times(&mut metrics, name, &while_all);
            while_all_s.push((name, mean(&while_all)));
            if client != clients[0] {
                let after = times(client, false);
                after_s.push((name, mean(&after)));
                let name = format!("{name} after {} ends", self.clients[0]);
                add_times(&mut metrics, &name, &after);
            }
        }
        add_speeds(&mut metrics, &while_all_s, "");
        let after = format!(" after {} ends", self.clients[0]);
        add_speeds(&mut metrics, &after_s, &after);
        metrics
    }

    fn chart(&self, title: &str, clients: &[u32], answers: &[Answer], end_s: f64) -> Chart {
        let curves = self.clients.iter().zip(clients).enumerate();
        let curves = curves.map(|(colour, (name, &client))| {
            let own = answers.iter().filter(|a| a.client == client);
            let mut points = vec![(0.0, 0.0)];
            points.extend(own.zip(1..).map(|(a, done)| (a.at_s, f64::from(done))));
            Curve::new(Shape::Line, colour, name, points)
        });
        Chart {
            title: title.to_owned(),
            x: Axis::up_to(end_s, "time (s)"),
            y: Axis::of("queries processed"),
            curves: curves.collect(),
            ..Chart::default()
        }
    }
}
