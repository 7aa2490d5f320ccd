//! 1994, Figure 3: values in a graph of currencies. The ledger is the simulator's at the
//! end of the scenario.

use prorata_core::ledger::{Ledger, Target};
use prorata_report::graph::{Edge, GraphDrawing, Kind, Node};
use serde::Deserialize;

use super::{Context, Result};
use crate::finding::Findings;

/// Values at the end of the scenario.
#[derive(Clone, PartialEq, Debug, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct CurrencyGraph {}

impl CurrencyGraph {
    pub(super) fn run(&self, context: &mut Context<'_>) -> Result<Findings> {
        let scenario = context.scenario();
        let (machine, ()) = context.simulate(&scenario, context.seed(0), ())?;
        let ledger = machine.dispatcher().ledger();
        let mut findings = Findings::default();
        for client in ledger.clients() {
            let metric = format!("value of {}", client.name);
            findings.add(metric, ledger.value(client.id).to_f64(), "base units");
        }
        let graph = drawing(ledger).map_err(|error| context.malformed(error.to_string()))?;
        findings.draw_svg("", graph.svg("Example currency graph"));
        Ok(findings)
    }
}

fn drawing(
    ledger: &Ledger,
) -> std::result::Result<GraphDrawing, prorata_report::graph::GraphError> {
    let currencies: Vec<_> = ledger.currencies().collect();
    let clients: Vec<_> = ledger.clients().collect();
    let mut nodes: Vec<Node> = currencies
        .iter()
        .map(|currency| Node {
            name: currency.name.to_owned(),
            kind: Kind::Currency,
            value: currency.value.to_f64(),
            active: currency.active_amount > 0,
            detail: format!(
                "{} of {} active",
                currency.active_amount, currency.issued_amount
            ),
        })
        .collect();
    nodes.extend(clients.iter().map(|client| {
        Node {
            name: client.name.to_owned(),
            kind: Kind::Client,
            value: ledger.value(client.id).to_f64(),
            active: client.active,
            detail: if client.active {
                "runnable"
            } else {
                "inactive"
            }
            .to_owned(),
        }
    }));
    let edges = ledger.tickets().filter_map(|ticket| {
        let from = currencies.iter().position(|c| c.id == ticket.currency)?;
        let to = match ticket.target? {
            Target::Currency(id) => currencies.iter().position(|c| c.id == id)?,
            Target::Client(id) => currencies.len() + clients.iter().position(|c| c.id == id)?,
        };
        Some(Edge {
            from,
            to,
            amount: ticket.amount.into(),
            active: ticket.active,
            lent: ticket.transfer.is_some(),
        })
    });
    GraphDrawing::new(nodes, edges.collect())
}
