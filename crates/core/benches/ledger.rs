//! What a block and a wake cost the ledger: 100,000 clients funded by
//! currencies at depth 3, picked at random.
//!
//! * *shared*: ten clients at each of 10,000 lowest currencies, so that hardly
//!   anything travels beyond a client's own currency;
//! * *single*: every client has the two lowest currencies to itself, as a
//!   process of one thread has, and shares the highest with 999 others; each
//!   block and each wake travels through two currencies;
//! * *private*: every client has all three to itself, so that each block and
//!   each wake travels all the way to the base currency; nothing is worse for
//!   a tree of this depth.
//!
//! Prints the median and the best of [`BATCHES`] batches before criterion runs.

#![allow(missing_docs, reason = "criterion's macros make undocumented items")]

#[path = "../tests/operations/mod.rs"]
mod operations;

use std::hint::black_box;
use std::time::Instant;

use criterion::{Criterion, criterion_group, criterion_main};
use prorata_core::ids::{ClientId, CurrencyId};
use prorata_core::ledger::{Ledger, Limits, Target};
use prorata_report::figures::{self, Figure};
use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

use operations::{create_client, create_currency, execute, issue};

const CLIENTS: usize = 100_000;
/// Short enough that most batches pass without the kernel running something else.
const BATCH: usize = 2_000;
const BATCHES: usize = 401;
/// Length of the random order, after which it repeats.
const PAIRS: usize = 1_000_000;
const SEED: u64 = 1994;

/// How many users there are, tasks each, threads each, and clients each: the
/// fan-outs of three levels of currencies and of the clients below.
const SHAPES: [(&str, [usize; 4]); 3] = [
    ("shared", [10, 100, 10, 10]),
    ("single", [100, 1000, 1, 1]),
    ("private", [CLIENTS, 1, 1, 1]),
];

struct World {
    ledger: Ledger,
    /// Clients in random order, each many times.
    order: Vec<ClientId>,
    next: usize,
}

impl World {
    /// A tree that grows depth first, as users come with their tasks and threads.
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

fn grow(ledger: &mut Ledger, parent: CurrencyId, fan_outs: &[usize]) {
    let [fan_out, below @ ..] = fan_outs else {
        return;
    };
    for number in 0..*fan_out {
        let name = format!("{parent}/{number}");
        if below.is_empty() {
            let client = operations::client(execute(ledger, create_client(Some(name))));
            execute(ledger, issue(parent, 100, Target::Client(client)));
        } else {
            let child = operations::currency(execute(ledger, create_currency(name)));
            execute(ledger, issue(parent, 100, Target::Currency(child)));
            grow(ledger, child, below);
        }
    }
}

/// Prints nanoseconds per call, the median and the best batch, and returns the
/// median.
fn measure<R>(name: &str, world: &mut World, mut call: impl FnMut(&mut World) -> R) -> f64 {
    let mut batches: Vec<f64> = (0..BATCHES)
        .map(|_| {
            let start = Instant::now();
            for _ in 0..BATCH {
                black_box(call(world));
            }
            start.elapsed().as_nanos() as f64 / BATCH as f64
        })
        .collect();
    batches.sort_by(f64::total_cmp);
    println!(
        "{name}: {:.0} ns median, {:.0} ns best",
        batches[BATCHES / 2],
        batches[0]
    );
    batches[BATCHES / 2]
}

/// The most that a block and a wake together may take.
const TARGET_NS: f64 = 200.0;

fn block_and_wake(criterion: &mut Criterion) {
    let mut reached = Vec::new();
    for (shape, fan_outs) in SHAPES {
        let mut world = World::new(&fan_outs);
        let name = format!("ledger, {CLIENTS} clients, depth 3, {shape}");
        let pair = format!("{name}, block and wake");
        let median = measure(&pair, &mut world, World::pair);
        reached.push(Figure::at_most(pair, median, "ns", TARGET_NS));
        measure(
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
    figures::keep(env!("CARGO_TARGET_TMPDIR"), "ledger", &reached);
}

criterion_group!(benches, block_and_wake);
criterion_main!(benches);
