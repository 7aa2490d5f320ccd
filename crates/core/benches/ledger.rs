//! What a block and a wake cost the ledger: 100,000 clients funded by
//! currencies at depth 3, picked at random.
//!
//! *Shared*: the currencies form a tree, ten clients at each leaf, so that
//! hardly anything travels beyond a client's own currency. *Private*: every
//! client has three currencies to itself, so that each block and each wake
//! travels all the way to the base currency; nothing is worse for a tree of
//! this depth.
//!
//! Prints the median and the best of [`BATCHES`] batches before criterion runs.

#![allow(missing_docs, reason = "criterion's macros make undocumented items")]

use std::hint::black_box;
use std::time::Instant;

use criterion::{Criterion, criterion_group, criterion_main};
use prorata_core::ids::{ClientId, CurrencyId};
use prorata_core::ledger::{Ledger, Limits, Mode, Operation, Outcome, Principal, Target};
use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

const CLIENTS: usize = 100_000;
const BATCHES: usize = 15;
const PAIRS: usize = 200_000;
const SEED: u64 = 1994;

struct World {
    ledger: Ledger,
    /// Clients in random order, each many times.
    order: Vec<ClientId>,
    next: usize,
}

impl World {
    /// A tree of currencies with these fan-outs, the last one that of clients;
    /// it grows depth first, as users come with their tasks and threads.
    fn new(fan_outs: &[usize]) -> Self {
        let limits = Limits {
            currencies: 1 << 20,
            ..Limits::default()
        };
        let mut ledger = Ledger::new(limits);
        let base = ledger.base();
        grow(&mut ledger, base, fan_outs);
        let clients: Vec<ClientId> = ledger.clients().map(|client| client.id).collect();
        assert_eq!(clients.len(), CLIENTS);
        clients.iter().for_each(|client| ledger.activate(*client));
        let mut random = Xoshiro256PlusPlus::seed_from_u64(SEED);
        let order = (0..PAIRS)
            .map(|_| clients[random.next_u64() as usize % CLIENTS])
            .collect();
        World {
            ledger,
            order,
            next: 0,
        }
    }

    fn shared() -> Self {
        Self::new(&[10, 100, 10, 10])
    }

    fn private() -> Self {
        Self::new(&[CLIENTS, 1, 1, 1])
    }

    /// One client blocks and wakes.
    fn pair(&mut self) -> ClientId {
        let client = self.order[self.next];
        self.next = (self.next + 1) % PAIRS;
        self.ledger.deactivate(client);
        self.ledger.activate(client);
        client
    }

    /// The same, and its value is read, as a dispatcher does.
    fn pair_and_value(&mut self) -> u128 {
        let client = self.pair();
        self.ledger.value(client).0
    }
}

fn run(ledger: &mut Ledger, operation: Operation) -> Outcome {
    ledger
        .execute(&Principal::ROOT, operation)
        .expect("a world within its limits")
}

fn grow(ledger: &mut Ledger, parent: CurrencyId, fan_outs: &[usize]) {
    let [fan_out, below @ ..] = fan_outs else {
        return;
    };
    for number in 0..*fan_out {
        let name = format!("{parent}/{number}");
        let target = if below.is_empty() {
            client(ledger, name)
        } else {
            currency(ledger, name)
        };
        run(
            ledger,
            Operation::Issue {
                currency: parent,
                amount: 100,
                target: Some(target),
            },
        );
        if let Target::Currency(child) = target {
            grow(ledger, child, below);
        }
    }
}

fn currency(ledger: &mut Ledger, name: String) -> Target {
    let mode = Mode::DEFAULT;
    match run(
        ledger,
        Operation::CreateCurrency {
            name,
            owner: 0,
            group: 0,
            mode,
        },
    ) {
        Outcome::Currency(currency) => Target::Currency(currency),
        outcome => unreachable!("{outcome:?}"),
    }
}

fn client(ledger: &mut Ledger, name: String) -> Target {
    match run(ledger, Operation::CreateClient { name, owner: 0 }) {
        Outcome::Client(client) => Target::Client(client),
        outcome => unreachable!("{outcome:?}"),
    }
}

/// Prints nanoseconds per call: the median and the best batch.
fn print_plainly<R>(name: &str, world: &mut World, mut call: impl FnMut(&mut World) -> R) {
    let mut batches: Vec<f64> = (0..BATCHES)
        .map(|_| {
            let start = Instant::now();
            for _ in 0..PAIRS {
                black_box(call(world));
            }
            start.elapsed().as_nanos() as f64 / PAIRS as f64
        })
        .collect();
    batches.sort_by(f64::total_cmp);
    println!(
        "{name}: {:.0} ns median, {:.0} ns best",
        batches[BATCHES / 2],
        batches[0]
    );
}

fn block_and_wake(criterion: &mut Criterion) {
    for (shape, world) in [
        ("shared", World::shared as fn() -> World),
        ("private", World::private),
    ] {
        let mut world = world();
        let name = format!("ledger, {CLIENTS} clients, depth 3, {shape}");
        print_plainly(&format!("{name}, block and wake"), &mut world, World::pair);
        print_plainly(
            &format!("{name}, block, wake and value"),
            &mut world,
            World::pair_and_value,
        );
        let mut group = criterion.benchmark_group("ledger");
        group.bench_function(format!("{shape}/block-wake"), |bencher| {
            bencher.iter(|| world.pair())
        });
        group.bench_function(format!("{shape}/block-wake-value"), |bencher| {
            bencher.iter(|| world.pair_and_value())
        });
        group.finish();
    }
}

criterion_group!(benches, block_and_wake);
criterion_main!(benches);
