//! 1995, Figure 8: allocations, one by one.

use prorata_report::chart::{Axis, Chart, Curve, Shape};
use prorata_scenario::Scenario;
use serde::Deserialize;

use super::panel::{Panel, to_run};
use super::{Context, Result};
use crate::finding::{Findings, Measured};
use crate::statistics::{Sample, deviation};
use crate::turns::TurnLog;

/// Cumulative allocations.
#[derive(Clone, PartialEq, Debug, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Allocations {
    /// Policies.
    pub panels: Vec<Panel>,
    /// The period of turns, quantum by quantum, where the sequence is periodic.
    pub order: Vec<String>,
}

impl Allocations {
    pub(super) fn run(&self, context: &mut Context<'_>) -> Result<Findings> {
        let mut findings = Findings::default();
        for panel in to_run(&self.panels, context) {
            let scenario = panel.scenario(context)?;
            let mut counts = Vec::new();
            for run in 0..panel.runs {
                let seed = context.seed(run);
                let (machine, turns) = context.simulate(&scenario, seed, TurnLog::default())?;
                // The turn that the end cuts short is not one.
                let whole = turns.all.iter().filter(|turn| turn.used_ns > 0);
                let winners: Vec<u32> = whole.map(|turn| turn.client).collect();
                let first = winners.iter().filter(|&&winner| winner == 0).count();
                counts.push(first as f64);
                if run == 0 {
                    let name = |winner: &u32| machine.client_name(*winner);
                    let wanted = self.order.iter().cycle();
                    let matching = winners.iter().zip(wanted);
                    let as_said = matching
                        .filter(|(winner, said)| name(winner) == said.as_str())
                        .count();
                    let metric = format!("quanta in the order {}", self.order.join(", "));
                    findings.add(panel.metric(&metric), as_said as f64, "quanta");
                    findings.draw(&panel.panel, &chart(&panel, &scenario, &winners));
                }
            }
            let first = &scenario.clients[0].name;
            let metric = panel.metric(&format!("mean allocations of {first}"));
            findings.add_runs(metric, &counts, "quanta");
            let metric = panel.metric(&format!("standard deviation of {first}'s allocations"));
            let spread = deviation(&counts);
            let sample = (counts.len() > 1).then(|| Sample::of_deviation(spread, counts.len()));
            findings.measured.push(Measured {
                sample,
                ..Measured::new(metric, spread, "quanta")
            });
        }
        Ok(findings)
    }
}

fn chart(panel: &Panel, scenario: &Scenario, winners: &[u32]) -> Chart {
    let mut curves = Vec::new();
    let tickets = tickets(scenario);
    let total: f64 = tickets.iter().sum();
    let end = winners.len() as f64;
    for (place, client) in scenario.clients.iter().enumerate() {
        let ideal = tickets[place] / total * end;
        curves.push(Curve::new(
            Shape::Dashed,
            place,
            "",
            vec![(0.0, 0.0), (end, ideal)],
        ));
        let mut points = vec![(0.0, 0.0)];
        let mut done = 0.0;
        for (quantum, &winner) in winners.iter().enumerate() {
            points.push((quantum as f64, done));
            done += f64::from(u8::from(winner as usize == place));
            points.push((quantum as f64 + 1.0, done));
        }
        curves.push(Curve::new(Shape::Line, place, &client.name, points));
    }
    Chart {
        title: scenario.title.clone(),
        caption: format!("({}) {}", panel.panel, super::policy_title(panel.policy)),
        x: Axis::up_to(end, "time (quanta)"),
        y: Axis::of("cumulative quanta"),
        curves,
        rules: Vec::new(),
    }
}

/// Base tickets, as far as they are fixed.
fn tickets(scenario: &Scenario) -> Vec<f64> {
    use prorata_scenario::file::Tickets;
    let tickets = scenario.clients.iter().map(|client| match &client.tickets {
        Tickets::Fixed(amounts) => amounts.iter().map(|a| f64::from(a.amount)).sum(),
        Tickets::Ruled(_) => 0.0,
    });
    tickets.collect()
}
