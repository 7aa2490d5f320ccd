//! 1999, Figure 2: a literal transcription of `lott_choose_next_runner()` gives each process
//! the same chance as entitlements and the list lottery. Drives these themselves.

use prorata_core::entitlement::Entitlements;
use prorata_core::hybrid::{MAX_BOOST, boost};
use prorata_core::ledger::Ledger;
use prorata_core::policy::lottery::{ListLottery, ListOrder};
use prorata_core::policy::{ClientIndex, Policy, PolicyError};
use prorata_core::rng::{SeedableRng, Xoshiro256PlusPlus, below};
use prorata_report::chart::{Axis, Chart, Curve, Shape};
use prorata_scenario::Scenario;
use prorata_scenario::file::Tickets;
use prorata_scenario::plan::client_id;
use serde::Deserialize;

use super::{Context, Result};
use crate::finding::Findings;

/// Random lotteries among the scenario's processes.
#[derive(Clone, PartialEq, Debug, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct EffectiveTickets {
    /// Lotteries.
    pub lotteries: u32,
}

/// What is known of a process when a lottery begins.
struct Process {
    runnable: bool,
    /// Of its last turn.
    used_ns: u64,
    /// Of the last ten seconds.
    received_ns: u64,
    deserved_ns: u64,
}

impl Process {
    fn random(lots: &mut Xoshiro256PlusPlus, quantum_ns: u64) -> Process {
        Process {
            runnable: below(lots, 4) > 0,
            used_ns: 1 + below(lots, 2 * quantum_ns),
            received_ns: below(lots, 5_000_000_000),
            deserved_ns: 1 + below(lots, 5_000_000_000),
        }
    }

    fn boost(&self) -> Option<u32> {
        let is_below = self.received_ns < self.deserved_ns;
        is_below.then(|| boost(self.received_ns, self.deserved_ns))
    }

    /// By how much its tickets count, as the pseudo-code says it.
    fn factor(&self, quantum_ns: u64) -> f64 {
        let f = self.received_ns as f64 / self.deserved_ns as f64;
        match f < 1.0 {
            true => (1.0 / f).powi(4).min(10_000.0),
            false => quantum_ns as f64 / self.used_ns as f64,
        }
    }
}

impl EffectiveTickets {
    pub(super) fn run(&self, context: &mut Context<'_>) -> Result<Findings> {
        let scenario = context.scenario();
        let ledger = context.plan()?.ledger;
        let quantum_ns = scenario.machine.quantum.0;
        let mut lots = Xoshiro256PlusPlus::seed_from_u64(context.seed(0));
        let (mut largest, mut clipped) = (0f64, 0u32);
        let mut points = Vec::new();
        for _ in 0..self.lotteries {
            let count = scenario.clients.len();
            let processes = (0..count).map(|_| Process::random(&mut lots, quantum_ns));
            let processes: Vec<Process> = processes.collect();
            let ours = ours(ledger.clone(), &processes, quantum_ns)
                .map_err(|error| context.malformed(error.to_string()))?;
            let literal = literal(&scenario, &processes, quantum_ns)
                .ok_or_else(|| context.malformed("needs clients with tickets of one currency"))?;
            for (ours, literal) in ours.iter().zip(&literal) {
                largest = largest.max((ours - literal).abs());
                points.push((*literal, *ours));
            }
            let is_clipped = |process: &&Process| process.boost() == Some(MAX_BOOST);
            clipped += processes.iter().filter(is_clipped).count() as u32;
        }
        let mut findings = Findings::default();
        findings.add("largest difference of a chance", largest, "");
        findings.add("boosts clipped at 10,000", f64::from(clipped), "");
        findings.draw("", &chart(context, points));
        Ok(findings)
    }
}

/// The chance of each process in the lottery.
fn ours(
    ledger: Ledger,
    processes: &[Process],
    quantum_ns: u64,
) -> core::result::Result<Vec<f64>, PolicyError> {
    let mut entitlements = Entitlements::new(ledger, &[1]);
    let numbers = || processes.iter().zip(0u32..);
    for (_, client) in numbers().filter(|(process, _)| process.runnable) {
        entitlements.set_runnable(client_id(client), 1);
    }
    entitlements.refresh_all(&mut |_, _, _| {});
    let lots = Xoshiro256PlusPlus::seed_from_u64(0);
    let mut lottery = ListLottery::new(ListOrder::MoveToFront, lots);
    for (client, tickets) in entitlements.competing(0) {
        let process = &processes[client.0 as usize];
        lottery.join(client, tickets)?;
        lottery.charge(client, process.used_ns, quantum_ns)?;
        lottery.set_boost(client, process.boost());
    }
    let weights = numbers().map(|(_, client)| {
        let weight = lottery.effective_tickets(ClientIndex(client));
        weight.units() as f64
    });
    Ok(chances(weights.collect()))
}

/// The same by the pseudo-code.
fn literal(scenario: &Scenario, processes: &[Process], quantum_ns: u64) -> Option<Vec<f64>> {
    let held = |client: usize| match &scenario.clients[client].tickets {
        Tickets::Fixed(amounts) => amounts.first(),
        Tickets::Ruled(_) => None,
    };
    let mut base_tickets = Vec::new();
    for (client, process) in processes.iter().enumerate() {
        let tickets = held(client)?;
        let user = scenario.currencies.iter();
        let mut user = user.filter(|currency| currency.name == tickets.currency);
        let funding = user.next()?.tickets.first()?.amount;
        // "the number of tickets in all of the user's runnable processes" (1999, 4.1)
        let mut all = 0;
        for (other, sibling) in processes.iter().enumerate() {
            let of_other = held(other)?;
            if sibling.runnable && of_other.currency == tickets.currency {
                all += of_other.amount;
            }
        }
        let exchange_rate = f64::from(funding) / f64::from(all.max(1));
        let effective = f64::from(tickets.amount) * process.factor(quantum_ns);
        base_tickets.push(match process.runnable {
            true => exchange_rate * effective,
            false => 0.0,
        });
    }
    Some(chances(base_tickets))
}

fn chances(weights: Vec<f64>) -> Vec<f64> {
    let total = weights.iter().sum::<f64>().max(f64::MIN_POSITIVE);
    weights.iter().map(|weight| weight / total).collect()
}

fn chart(context: &Context<'_>, points: Vec<(f64, f64)>) -> Chart {
    Chart {
        title: context.figure.scenario.title.clone(),
        caption: String::new(),
        x: Axis::up_to(1.0, "chance by the pseudo-code"),
        y: Axis::of("chance in the list lottery"),
        curves: vec![
            Curve::new(Shape::Line, 5, "equal", vec![(0.0, 0.0), (1.0, 1.0)]),
            Curve::new(Shape::Dots, 0, "processes", points.into_iter().take(400)),
        ],
        rules: Vec::new(),
    }
}
