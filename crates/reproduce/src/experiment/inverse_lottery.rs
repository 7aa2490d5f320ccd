//! 1994, 6.2: an inverse lottery chooses the client that gives up a page. Drives the
//! lottery directly.

use prorata_core::policy::inverse::InverseLottery;
use prorata_core::policy::{ClientIndex, Policy};
use prorata_core::rng::{SeedableRng, Xoshiro256PlusPlus, below};
use prorata_report::chart::{Axis, Chart, Curve, Shape};
use prorata_scenario::file::Tickets;
use serde::Deserialize;

use super::{Context, Result};
use crate::finding::Findings;

/// Page faults, of each client as often as of any other.
#[derive(Clone, PartialEq, Debug, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Pages {
    /// Physical pages, all in use.
    pub pages: u32,
    /// Faults drawn.
    pub faults: u32,
}

/// Faults until the pages have found their places: each page is lost some
/// twenty times.
const FAULTS_FOR_EACH_PAGE: u32 = 20;

impl Pages {
    pub(super) fn run(&self, context: &mut Context<'_>) -> Result<Findings> {
        let scenario = context.scenario();
        let mut tickets = Vec::new();
        for client in &scenario.clients {
            match &client.tickets {
                Tickets::Fixed(amounts) if amounts.len() == 1 => tickets.push(amounts[0].amount),
                _ => return Err(context.malformed("needs clients with base tickets")),
            }
        }
        let names: Vec<&str> = scenario.clients.iter().map(|c| c.name.as_str()).collect();
        let seed = context.seed(0);
        let mut findings = Findings::default();
        let pages = self.pages / tickets.len() as u32;
        let mut lottery = lottery(&tickets, pages, seed);
        let mut losses = vec![0u32; tickets.len()];
        for _ in 0..self.faults {
            if let Some(victim) = lottery.pick_victim() {
                losses[victim.0 as usize] += 1;
            }
        }
        for (name, lost) in names.iter().zip(&losses) {
            let chance = f64::from(*lost) / f64::from(self.faults) * 100.0;
            findings.add(
                format!("chance of {name} to lose, equal holdings"),
                chance,
                "%",
            );
        }
        let course = self.replace_pages(&tickets, seed + 1);
        let settled = &course[course.len() / 4..];
        for (client, name) in names.iter().enumerate() {
            let held: f64 = settled.iter().map(|held| f64::from(held[client])).sum();
            let part = held / settled.len() as f64 / f64::from(self.pages) * 100.0;
            findings.add(format!("pages of {name} in the long run"), part, "%");
        }
        findings.draw("", &self.chart(&scenario.title, &names, &course));
        Ok(findings)
    }

    /// Pages held by each client, now and then.
    fn replace_pages(&self, tickets: &[u32], seed: u64) -> Vec<Vec<u32>> {
        let clients = tickets.len();
        let mut held = vec![self.pages / clients as u32; clients];
        held[0] += self.pages % clients as u32;
        let mut lottery = lottery(tickets, self.pages / clients as u32, seed);
        let mut lots = Xoshiro256PlusPlus::seed_from_u64(!seed);
        let mut course = vec![held.clone()];
        let between = (self.pages / 16).max(1);
        for fault in 1..=self.pages * FAULTS_FOR_EACH_PAGE * 16 {
            let faulter = below(&mut lots, clients as u64) as usize;
            if let Some(victim) = lottery.pick_victim() {
                held[victim.0 as usize] -= 1;
                held[faulter] += 1;
                for client in [victim.0 as usize, faulter] {
                    tell(&mut lottery, client, held[client]);
                }
            }
            if fault % between == 0 {
                course.push(held.clone());
            }
        }
        course
    }

    fn chart(&self, title: &str, names: &[&str], course: &[Vec<u32>]) -> Chart {
        let between = (self.pages / 16).max(1) as usize;
        let shown = &course[..course.len() / 16];
        let curves = names.iter().enumerate().map(|(client, name)| {
            Curve::new(
                Shape::Line,
                client,
                *name,
                shown
                    .iter()
                    .enumerate()
                    .map(|(place, held)| ((place * between) as f64, f64::from(held[client]))),
            )
        });
        Chart {
            title: title.to_owned(),
            caption: "each client has as many faults as any other".to_owned(),
            x: Axis::of("page faults"),
            y: Axis::of("pages held"),
            curves: curves.collect(),
            rules: Vec::new(),
        }
    }
}

fn lottery(tickets: &[u32], pages: u32, seed: u64) -> InverseLottery<Xoshiro256PlusPlus> {
    let mut lottery = InverseLottery::new(Xoshiro256PlusPlus::seed_from_u64(seed));
    for (client, &tickets) in tickets.iter().enumerate() {
        let joined = lottery.join(ClientIndex(client as u32), tickets);
        joined.expect("each joins once, and they are few");
        tell(&mut lottery, client, pages);
    }
    lottery
}

fn tell(lottery: &mut InverseLottery<Xoshiro256PlusPlus>, client: usize, pages: u32) {
    let told = lottery.set_holding(ClientIndex(client as u32), pages);
    told.expect("it has joined");
}
