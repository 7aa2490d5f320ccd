//! 1995, 4.1: the largest error of any client in trees of many sizes.

use prorata_core::rng::{SeedableRng, Xoshiro256PlusPlus, below};
use prorata_report::chart::{Axis, Chart, Curve, Shape};
use prorata_scenario::Scenario;
use prorata_scenario::event::Event;
use prorata_scenario::file::{Amount, Client, Tickets};
use prorata_sim::{Machine, Observer};
use serde::Deserialize;

use super::{Context, Result};
use crate::finding::Findings;
use crate::statistics::largest;

/// Sets of clients with random tickets.
#[derive(Clone, PartialEq, Debug, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct HierarchyBound {
    /// Numbers of clients.
    pub clients: Vec<u32>,
    /// Sets for each number.
    pub sets: u32,
    /// Tickets are from 1 up to here, uniform on a logarithmic scale.
    pub most_tickets: u32,
}

/// The largest absolute error of any client so far, in quanta. For fixed tickets on one CPU.
#[derive(Default)]
struct LargestError {
    /// Part of each client; empty before the first turn.
    shares: Vec<f64>,
    errors: Vec<f64>,
    largest: f64,
}

impl Observer for LargestError {
    fn observe(&mut self, _: u64, event: Event<'_>, machine: &Machine) {
        match event {
            Event::TurnBegan { .. } if self.shares.is_empty() => {
                let ledger = machine.dispatcher().ledger();
                let all = ledger.active_base_amount() as f64;
                let clients = 0..machine.client_count();
                let shares = clients.map(|c| ledger.value(machine.client_id(c)).to_f64() / all);
                self.shares = shares.collect();
                self.errors = vec![0.0; self.shares.len()];
            }
            Event::TurnEnded { client, used_ns } => {
                let quanta = used_ns as f64 / machine.spec().quantum.0 as f64;
                for (error, share) in self.errors.iter_mut().zip(&self.shares) {
                    *error -= quanta * share;
                }
                self.errors[client as usize] += quanta;
                let now = largest(self.errors.iter().map(|error| error.abs()));
                self.largest = self.largest.max(now);
            }
            _ => {}
        }
    }
}

impl HierarchyBound {
    pub(super) fn run(&self, context: &mut Context<'_>) -> Result<Findings> {
        let mut findings = Findings::default();
        let mut points = Vec::new();
        for &clients in &self.clients {
            let mut errors = Vec::new();
            for set in 0..self.sets {
                let seed = context.seed(set);
                let scenario = self.scenario(context, clients, seed);
                let (_, observed) = context.simulate(&scenario, seed, LargestError::default())?;
                errors.push(observed.largest);
            }
            let error = largest(errors);
            points.push((f64::from(clients).log2(), error));
            findings.add(
                format!("{clients} clients: largest absolute error"),
                error,
                "quanta",
            );
        }
        findings.draw("", &self.chart(context, points));
        Ok(findings)
    }

    /// So many clients, each with tickets of its own.
    fn scenario(&self, context: &Context<'_>, clients: u32, seed: u64) -> Scenario {
        let mut scenario = context.scenario();
        let mut lots = Xoshiro256PlusPlus::seed_from_u64(seed ^ u64::from(clients));
        let any = scenario.clients[0].clone();
        let all = (0..clients).map(|client| {
            let part = below(&mut lots, 1 << 20) as f64 / f64::from(1 << 20);
            let tickets = f64::from(self.most_tickets).powf(part).round() as u32;
            Client {
                name: format!("client{client}"),
                tickets: Tickets::Fixed(vec![Amount::base(tickets)]),
                ..any.clone()
            }
        });
        scenario.clients = all.collect();
        scenario
    }

    fn chart(&self, context: &Context<'_>, points: Vec<(f64, f64)>) -> Chart {
        let bound = points.iter().map(|&(levels, _)| (levels, levels.ceil()));
        let bound = Curve::new(Shape::Line, 5, "bound", bound.collect::<Vec<_>>());
        Chart {
            title: context.figure.scenario.title.clone(),
            x: Axis::of("log2 of clients"),
            y: Axis::of("largest absolute error (quanta)"),
            curves: vec![bound, Curve::new(Shape::Dots, 1, "observed", points)],
            ..Chart::default()
        }
    }
}
