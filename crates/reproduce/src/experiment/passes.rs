//! 1995, Figure 2: passes of clients, quantum by quantum. Drives stride
//! scheduling itself.

use prorata_core::policy::{ClientIndex, Policy, Stride};
use prorata_report::chart::{Axis, Chart, Curve, Shape};
use prorata_scenario::Scenario;
use prorata_scenario::file::Tickets;
use serde::Deserialize;

use super::{Context, Result};
use crate::finding::Findings;

/// Passes over time.
#[derive(Clone, PartialEq, Debug, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Passes {
    /// The stride of a single ticket, as it is drawn.
    pub stride1: u32,
    /// The period of turns, quantum by quantum.
    pub order: Vec<String>,
    /// Quanta drawn.
    pub quanta: u32,
}

impl Passes {
    pub(super) fn run(&self, context: &mut Context<'_>) -> Result<Findings> {
        let scenario = context.scenario();
        let mut policy = Stride::new();
        join_all(&mut policy, &scenario)
            .ok_or_else(|| context.malformed("needs clients with base tickets"))?;
        let clients = 0..scenario.clients.len() as u32;
        let stride1 = f64::from(self.stride1);
        let passes = |policy: &Stride| -> Vec<f64> {
            let passes = clients
                .clone()
                .map(|client| policy.pass(ClientIndex(client)));
            passes
                .map(|pass| pass.unwrap_or(f64::NAN) * stride1)
                .collect()
        };
        let mut findings = Findings::default();
        for (client, stride) in scenario.clients.iter().zip(passes(&policy)) {
            findings.add(format!("stride of {}", client.name), stride, "passes");
        }
        let mut course = vec![passes(&policy)];
        let mut as_said = 0u32;
        for quantum in 0..self.quanta {
            let winner = policy.pick();
            let winner = winner.ok_or_else(|| context.malformed("needs clients with tickets"))?;
            let said = &self.order[quantum as usize % self.order.len()];
            as_said += u32::from(scenario.clients[winner.0 as usize].name == *said);
            let charged = policy.charge(winner, 1, 1);
            charged.map_err(|error| context.malformed(error.to_string()))?;
            course.push(passes(&policy));
        }
        let metric = format!("quanta in the order {}", self.order.join(", "));
        findings.add(metric, f64::from(as_said), "quanta");
        let advance = policy.global_pass() * stride1 / f64::from(self.quanta);
        findings.add("advance of the global pass", advance, "passes a quantum");
        findings.draw("", &chart(&scenario, &course));
        Ok(findings)
    }
}

/// Lets all clients of a scenario join with their base tickets.
pub(super) fn join_all(policy: &mut Stride, scenario: &Scenario) -> Option<()> {
    for (client, index) in scenario.clients.iter().zip(0..) {
        let Tickets::Fixed(amounts) = &client.tickets else {
            return None;
        };
        policy
            .join(ClientIndex(index), amounts.first()?.amount)
            .ok()?;
    }
    Some(())
}

fn chart(scenario: &Scenario, course: &[Vec<f64>]) -> Chart {
    let curves = scenario.clients.iter().enumerate().map(|(place, client)| {
        let passes = course.iter().enumerate();
        Curve::new(
            Shape::Dots,
            place,
            &client.name,
            passes.map(|(quantum, passes)| (quantum as f64, passes[place])),
        )
    });
    Chart {
        title: scenario.title.clone(),
        caption: "in each quantum the smallest pass is selected and advanced".to_owned(),
        x: Axis::of("time (quanta)"),
        y: Axis::of("pass value"),
        curves: curves.collect(),
        rules: Vec::new(),
    }
}
