//! 1994, 4.5: what the tickets of a client count for after a turn of a part of a quantum. Drives
//! entitlements and the list lottery themselves: a machine does not show what its policy weighs.

use std::collections::BTreeMap;

use prorata_core::entitlement::Entitlements;
use prorata_core::ledger::Ledger;
use prorata_core::policy::lottery::{ListLottery, ListOrder};
use prorata_core::policy::{ClientIndex, Policy, PolicyError};
use prorata_core::rng::{SeedableRng, Xoshiro256PlusPlus};
use prorata_report::chart::{Axis, Chart, Curve, Shape};
use prorata_scenario::file::Time;
use prorata_scenario::plan::client_id;
use serde::Deserialize;

use super::{Context, Result};
use crate::finding::Findings;

/// One turn of each client, and the lottery after it.
#[derive(Clone, PartialEq, Debug, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct NextLottery {
    /// By client: the time that it uses in its turn.
    pub turns: BTreeMap<String, Time>,
}

/// What a client's tickets are worth, in base units.
struct Worth {
    held: f64,
    in_next_lottery: f64,
}

impl NextLottery {
    pub(super) fn run(&self, context: &mut Context<'_>) -> Result<Findings> {
        let worths = self.worths(context)?;
        let mut findings = Findings::default();
        for (client, worth) in context.figure.scenario.clients.iter().zip(&worths) {
            let name = &client.name;
            let metric = format!("{name}: total funding in its next lottery");
            findings.add(metric, worth.in_next_lottery, "base units");
            let granted = worth.in_next_lottery - worth.held;
            findings.add(format!("{name}: compensation"), granted, "base units");
        }
        findings.draw("", &chart(context, &worths));
        Ok(findings)
    }

    fn worths(&self, context: &Context<'_>) -> Result<Vec<Worth>> {
        let scenario = &context.figure.scenario;
        let mut turns_ns = Vec::new();
        for client in &scenario.clients {
            let turn = self.turns.get(&client.name);
            let turn =
                turn.ok_or_else(|| context.malformed(format!("has no turn of '{}'", client.name)))?;
            turns_ns.push(turn.0);
        }
        let (ledger, quantum_ns) = (context.plan()?.ledger, scenario.machine.quantum.0);
        worths(ledger, &turns_ns, (quantum_ns, context.seed(0)))
            .map_err(|error| context.malformed(error.to_string()))
    }
}

/// By client, if each competes, and then has a turn of such a length.
fn worths(
    ledger: Ledger,
    turns_ns: &[u64],
    (quantum_ns, seed): (u64, u64),
) -> core::result::Result<Vec<Worth>, PolicyError> {
    let clients = || (0u32..).zip(turns_ns);
    let mut entitlements = Entitlements::new(ledger, &[1]);
    clients().for_each(|(client, _)| {
        entitlements.set_runnable(client_id(client), 1);
    });
    entitlements.refresh_all(&mut |_, _, _| {});
    let lots = Xoshiro256PlusPlus::seed_from_u64(seed);
    let mut lottery = ListLottery::new(ListOrder::MoveToFront, lots);
    for (client, tickets) in entitlements.competing(0) {
        lottery.join(client, tickets)?;
    }
    let weights = |lottery: &ListLottery<_>| -> Vec<f64> {
        let weights = clients().map(|(client, _)| lottery.effective_tickets(ClientIndex(client)));
        weights.map(|weight| weight.units() as f64).collect()
    };
    let before: f64 = weights(&lottery).iter().sum();
    for (client, turn_ns) in clients() {
        lottery.charge(ClientIndex(client), *turn_ns, quantum_ns)?;
    }
    let held = clients().map(|(client, _)| entitlements.ledger().value(client_id(client)).to_f64());
    let held: Vec<f64> = held.collect();
    let base_units = held.iter().sum::<f64>() / before;
    let worths = held.iter().zip(weights(&lottery));
    let worths = worths.map(|(&held, weight)| Worth {
        held,
        in_next_lottery: weight * base_units,
    });
    Ok(worths.collect())
}

fn chart(context: &Context<'_>, worths: &[Worth]) -> Chart {
    let clients = &context.figure.scenario.clients;
    let names: Vec<&str> = clients.iter().map(|client| client.name.as_str()).collect();
    let bars = |shift: f64, of: fn(&Worth) -> f64| {
        let worths = worths.iter().enumerate();
        let points = worths.map(|(place, worth)| (place as f64 + shift, of(worth)));
        points.collect::<Vec<_>>()
    };
    Chart {
        title: context.figure.scenario.title.clone(),
        caption: names.join(", "),
        x: Axis::of("client"),
        y: Axis::of("base units"),
        curves: vec![
            Curve::new(Shape::Bars(0.35), 1, "held", bars(-0.2, |v| v.held)),
            Curve::new(
                Shape::Bars(0.35),
                0,
                "in the next lottery",
                bars(0.2, |v| v.in_next_lottery),
            ),
        ],
        rules: Vec::new(),
    }
}
