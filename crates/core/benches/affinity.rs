//! What affinities cost: a decision of the dispatcher after a client blocked or woke, so that
//! weights are worked out anew, without affinities and with some.

#[path = "../tests/operations/mod.rs"]
mod operations;

use std::hint::black_box;
use std::time::Instant;

use prorata_core::dispatcher::{Dispatcher, Winner};
use prorata_core::ids::ClientId;
use prorata_core::ledger::{Ledger, Limits, Target};
use prorata_core::policy::Stride;
use prorata_report::figures::{self, Figure};

use operations::{create_client, execute, issue};

const CPUS: u32 = 8;
const CLIENTS: u32 = 64;
const QUANTUM_NS: u64 = 20_000_000;
const BATCHES: usize = 51;
const BATCH: u32 = 200;

/// The most microseconds that a decision may take: a four-hundredth of a quantum. The longest is
/// that with many clients on one CPU, as most of them are passed over for each winner.
const TARGET_US: f64 = 50.0;

fn main() {
    let mut reached = Vec::new();
    for affinities in [0, 1, 4, 16] {
        let us = decision_us(affinities);
        let name = format!(
            "decision, {CLIENTS} clients on {CPUS} CPUs, half of them with one of \
             {affinities} affinities"
        );
        println!("{name}: {us:.1} us");
        reached.push(Figure::at_most(name, us, "us", TARGET_US));
    }
    figures::keep(env!("CARGO_TARGET_TMPDIR"), "affinity", &reached);
}

/// The median of batches.
fn decision_us(affinities: u32) -> f64 {
    let (mut dispatcher, clients) = world(affinities);
    let mut winners: Vec<Winner> = Vec::new();
    let mut times_us: Vec<f64> = (0..BATCHES)
        .map(|_| {
            let start = Instant::now();
            for number in 0..BATCH {
                let client = clients[(number / 2 % CLIENTS) as usize];
                dispatcher.set_runnable(client, number % 2);
                dispatcher.decide(0, &mut winners);
                for winner in black_box(&winners) {
                    dispatcher.charge(winner.client, QUANTUM_NS);
                }
            }
            start.elapsed().as_nanos() as f64 / 1000.0 / f64::from(BATCH)
        })
        .collect();
    times_us.sort_by(f64::total_cmp);
    times_us[BATCHES / 2]
}

/// Clients with one to eight tickets. Every other one may use some of the CPUs.
fn world(affinities: u32) -> (Dispatcher, Vec<ClientId>) {
    let mut ledger = Ledger::new(Limits::default());
    let base = ledger.base();
    let clients: Vec<ClientId> = (0..CLIENTS)
        .map(|number| {
            let client = operations::client(execute(&mut ledger, create_client(None)));
            execute(
                &mut ledger,
                issue(base, 1 + number % 8, Target::Client(client)),
            );
            client
        })
        .collect();
    let mut dispatcher = Dispatcher::new(ledger, Box::new(Stride::new()), CPUS, QUANTUM_NS);
    for (number, &client) in (0..).zip(&clients) {
        if affinities > 0 && number % 2 == 0 {
            let which = number / 2 % affinities;
            // One, two or three neighbouring CPUs.
            let cpus = (0..=which % 3).map(|next| (which + next) % CPUS);
            dispatcher.set_affinity(client, Some(&cpus.collect()));
        }
        dispatcher.set_runnable(client, 1);
    }
    (dispatcher, clients)
}
