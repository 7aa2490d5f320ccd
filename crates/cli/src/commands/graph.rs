//! `graph`: the currencies, their tickets and the clients, drawn.

use std::collections::HashMap;

use anyhow::Result;
use prorata_protocol::{ClientReport, CurrencyReport, TicketReport};
use prorata_report::graph::{Edge, GraphDrawing, Kind, Node};
use serde::Serialize;

use super::clients::state;
use super::currencies::currencies;
use super::tickets::tickets;
use crate::args::view::GraphArgs;
use crate::caller::{Caller, clients};
use crate::{output, terminal};

/// The daemon's ledger, as the caller may see it.
#[derive(Clone, PartialEq, Debug, Serialize)]
struct LedgerReport {
    currencies: Vec<CurrencyReport>,
    tickets: Vec<TicketReport>,
    clients: Vec<ClientReport>,
}

pub fn graph(caller: &Caller, args: &GraphArgs) -> Result<()> {
    let mut connection = caller.open_to_read()?;
    let ledger = LedgerReport {
        currencies: currencies(&mut connection)?,
        tickets: tickets(&mut connection, None)?,
        clients: clients(&mut connection)?,
    };
    if args.format.json {
        return output::json(&ledger);
    }
    let drawing = drawing(&ledger)?;
    match &args.svg {
        Some(path) => output::document(path, &drawing.svg("Currencies, tickets and clients")),
        None => output::write(&drawing.text(terminal::columns())),
    }
}

/// The graph without tickets whose ends are missing: the caller may not see
/// them, or they vanished between two requests.
fn drawing(ledger: &LedgerReport) -> Result<GraphDrawing> {
    let mut places = HashMap::new();
    let mut nodes = Vec::new();
    for currency in &ledger.currencies {
        places.insert(format!("currency:{}", currency.name), nodes.len());
        nodes.push(Node {
            name: currency.name.clone(),
            kind: Kind::Currency,
            value: currency.value,
            active: currency.active > 0,
            detail: format!("{} of {} active", currency.active, currency.issued),
        });
    }
    for client in &ledger.clients {
        places.insert(format!("client:{}", client.name), nodes.len());
        nodes.push(Node {
            name: client.name.clone(),
            kind: Kind::Client,
            value: client.value,
            active: client.value > 0.0,
            detail: state(client.state).to_owned(),
        });
    }
    let edge = |ticket: &TicketReport| {
        Some(Edge {
            from: *places.get(&format!("currency:{}", ticket.currency))?,
            to: *places.get(ticket.target.as_ref()?)?,
            amount: ticket.amount.into(),
            active: ticket.active,
            lent: ticket.transfer.is_some(),
        })
    };
    let edges = ledger.tickets.iter().filter_map(edge).collect();
    Ok(GraphDrawing::new(nodes, edges)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn currency(name: &str, issued: u64, active: u64) -> CurrencyReport {
        CurrencyReport {
            id: "u1".into(),
            name: name.into(),
            owner: 0,
            mode: "744".into(),
            issued,
            active,
            value: active as f64,
            backing: Vec::new(),
        }
    }

    fn ticket(currency: &str, amount: u32, target: Option<&str>, active: bool) -> TicketReport {
        TicketReport {
            id: "t1".into(),
            currency: currency.into(),
            amount,
            lent: 0,
            target: target.map(str::to_owned),
            active,
            value: 0.0,
            transfer: None,
        }
    }

    #[test]
    fn only_tickets_with_two_known_ends_become_edges() {
        let ledger = LedgerReport {
            currencies: vec![currency("base", 1000, 1000), currency("alice", 300, 0)],
            tickets: vec![
                ticket("base", 1000, Some("currency:alice"), true),
                ticket("alice", 300, None, false),
                ticket("alice", 5, Some("client:hidden"), false),
            ],
            clients: Vec::new(),
        };
        let text = drawing(&ledger).unwrap().text(None);
        assert!(text.contains("└─ 1000 ─> alice"), "{text}");
        assert!(text.contains("inactive, 0 of 300 active"), "{text}");
        assert!(!text.contains("hidden"), "{text}");
    }
}
