//! 1994, Figure 1: a winning ticket is drawn and the list of clients searched
//! for its holder. Drives the list lottery itself.

use std::convert::Infallible;

use prorata_core::policy::lottery::{ListLottery, ListOrder};
use prorata_core::policy::{ClientIndex, Policy};
use prorata_report::svg::{Anchor, Svg};
use prorata_scenario::Scenario;
use prorata_scenario::file::Tickets;
use rand_core::TryRng;
use serde::Deserialize;

use super::{Context, Result};
use crate::finding::Findings;

/// One lottery.
#[derive(Clone, PartialEq, Debug, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct ListSearch {
    /// The winning ticket, counted from zero.
    pub winning_ticket: u32,
}

/// Draws one ticket of so many, for ever.
struct Rigged {
    word: u64,
}

impl Rigged {
    /// A word `w` draws ticket `w * total / 2^64`, rounded down: this is the
    /// one in the middle of those that draw `ticket`.
    fn new(ticket: u32, total: u32) -> Rigged {
        let middle = (u128::from(ticket) * 2 + 1) << 63;
        Rigged {
            word: (middle / u128::from(total)) as u64,
        }
    }
}

impl TryRng for Rigged {
    type Error = Infallible;

    fn try_next_u32(&mut self) -> std::result::Result<u32, Infallible> {
        Ok((self.word >> 32) as u32)
    }

    fn try_next_u64(&mut self) -> std::result::Result<u64, Infallible> {
        Ok(self.word)
    }

    fn try_fill_bytes(&mut self, bytes: &mut [u8]) -> std::result::Result<(), Infallible> {
        bytes.fill(0);
        Ok(())
    }
}

impl ListSearch {
    pub(super) fn run(&self, context: &mut Context<'_>) -> Result<Findings> {
        let tickets = base_tickets(&context.figure.scenario)
            .ok_or_else(|| context.malformed("needs clients with base tickets"))?;
        let total: u32 = tickets.iter().sum();
        if self.winning_ticket >= total {
            return Err(context.malformed("winning-ticket must be below the number of tickets"));
        }
        let lots = Rigged::new(self.winning_ticket, total);
        let mut lottery = ListLottery::new(ListOrder::MoveToFront, lots);
        // A joining client goes to the front.
        for (client, &tickets) in tickets.iter().enumerate().rev() {
            let joined = lottery.join(ClientIndex(client as u32), tickets);
            joined.map_err(|error| context.malformed(error.to_string()))?;
        }
        let winner = lottery.pick();
        let winner = winner.ok_or_else(|| context.malformed("needs clients with tickets"))?;
        let examined = lottery.examined() as usize;
        let mut findings = Findings::default();
        findings.add("tickets in all", lottery.total_tickets() as f64, "tickets");
        findings.add("clients examined", examined as f64, "clients");
        findings.add("winner", f64::from(winner.0) + 1.0, "th client");
        let mut sum = 0;
        for (place, tickets) in tickets.iter().take(examined).enumerate() {
            sum += tickets;
            let metric = format!("running sum at client {}", place + 1);
            findings.add(metric, f64::from(sum), "tickets");
        }
        findings.draw_svg("", drawing(&tickets, self.winning_ticket, examined));
        Ok(findings)
    }
}

/// Tickets of the clients, of the base currency.
fn base_tickets(scenario: &Scenario) -> Option<Vec<u32>> {
    let clients = scenario.clients.iter();
    let tickets = clients.map(|client| match &client.tickets {
        Tickets::Fixed(amounts) => Some(amounts.first()?.amount),
        Tickets::Ruled(_) => None,
    });
    tickets.collect()
}

fn drawing(tickets: &[u32], winning: u32, examined: usize) -> String {
    let width = 90.0 * tickets.len() as f64 + 40.0;
    let mut svg = Svg::new(width.max(460.0), 190.0, "Example lottery");
    let total: u32 = tickets.iter().sum();
    let heading = format!("total = {total}    random [0 .. {}] = {winning}", total - 1);
    svg.text("title", (20.0, 32.0), Anchor::Start, &heading);
    let mut sum = 0;
    for (place, &tickets) in tickets.iter().enumerate() {
        let x = 20.0 + 90.0 * place as f64;
        let middle = x + 30.0;
        sum += tickets;
        svg.rect("node client", (x, 60.0), (60.0, 40.0), 4.0);
        svg.text(
            "strong",
            (middle, 85.0),
            Anchor::Middle,
            &tickets.to_string(),
        );
        if place < examined {
            svg.path("edge", &format!("M{middle} 112 v14"));
            svg.text(
                "faint",
                (middle, 144.0),
                Anchor::Middle,
                &format!("sum = {sum}"),
            );
            let found = format!("sum > {winning}?");
            svg.text("faint", (middle, 160.0), Anchor::Middle, &found);
            let answer = if sum > winning { "yes" } else { "no" };
            svg.text("strong", (middle, 177.0), Anchor::Middle, answer);
        }
        if place + 1 < examined {
            svg.path("edge", &format!("M{} 80 h26 l-6 -4 m6 4 l-6 4", x + 62.0));
        }
    }
    svg.finish()
}
