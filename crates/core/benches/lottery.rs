//! The lotteries beside `rand_distr`'s `WeightedTreeIndex`, the tree of partial
//! sums that a Rust program would take: same weights, same generator, same run.
//!
//! * *pick*: one winner drawn;
//! * *re-weigh*: one winner drawn and given new tickets, which may move it to
//!   another class.
//!
//! Two sets of tickets. *Every size*: as many clients hold 1 to 2 tickets as
//! hold 2^19 to 2^20, and new tickets are drawn evenly from 1 to 2^20, which
//! keeps it so: winners hold many tickets. *Even*: evenly from 1 to 10,000,
//! which spreads the winners over all the memory there is, and changes, as
//! large holders are the ones that get new tickets.
//!
//! Times are medians of short batches, and contestants take turns, so that what
//! else the machine does falls on all alike; judge by the ratios.

#![allow(missing_docs, reason = "criterion's macros make undocumented items")]

use std::hint::black_box;
use std::time::Instant;

use criterion::{Criterion, criterion_group, criterion_main};
use prorata_core::policy::lottery::{ClassLottery, ListLottery, ListOrder, TreeLottery};
use prorata_core::policy::{ClientIndex, Policy};
use prorata_core::rng::{Rng, SeedableRng, Xoshiro256PlusPlus, below};
use prorata_report::figures::{self, Figure};
use rand_distr::Distribution;
use rand_distr::weighted::WeightedTreeIndex;

const SIZES: [u32; 4] = [1_000, 10_000, 100_000, 1_000_000];
const SEED: u64 = 1994;
/// Searching a list of more clients than this takes too long to be of interest.
const LONGEST_LIST: u32 = 10_000;
/// A batch is short enough that most pass without an interruption.
const BATCH: u32 = 2_000;
/// Batches run before those that are timed, to get one's memory back from the
/// contestant before.
const WARM_UP: usize = 50;
const TIMED: usize = 51;
/// Turns that each contestant takes.
const ROUNDS: usize = 9;

/// How tickets are distributed, and what new ones are drawn from.
#[derive(Clone, Copy)]
enum Tickets {
    EverySize,
    Even,
}

impl Tickets {
    const ALL: [Tickets; 2] = [Tickets::EverySize, Tickets::Even];

    fn name(self) -> &'static str {
        match self {
            Tickets::EverySize => "tickets of every size",
            Tickets::Even => "even tickets",
        }
    }

    fn held(self, rng: &mut Xoshiro256PlusPlus) -> u32 {
        match self {
            Tickets::EverySize => {
                let unit = (rng.next_u64() >> 11) as f64 / (1u64 << 53) as f64;
                (unit * 20.0).exp2() as u32
            }
            Tickets::Even => self.fresh(rng),
        }
    }

    fn fresh(self, rng: &mut Xoshiro256PlusPlus) -> u32 {
        let most = match self {
            Tickets::EverySize => 1 << 20,
            Tickets::Even => 10_000,
        };
        below(rng, most) as u32 + 1
    }
}

trait Contestant {
    fn pick(&mut self) -> u32;
    fn set_tickets(&mut self, client: u32, tickets: u32);
}

struct Ours<P>(P);

impl<P: Policy> Ours<P> {
    fn new(mut lottery: P, held: &[u32]) -> Self {
        for (index, &tickets) in (0..).zip(held) {
            lottery.join(ClientIndex(index), tickets).unwrap();
        }
        Ours(lottery)
    }
}

impl<P: Policy> Contestant for Ours<P> {
    #[inline]
    fn pick(&mut self) -> u32 {
        self.0.pick().unwrap().0
    }

    #[inline]
    fn set_tickets(&mut self, client: u32, tickets: u32) {
        self.0.set_tickets(ClientIndex(client), tickets).unwrap();
    }
}

struct Peer {
    tree: WeightedTreeIndex<u64>,
    rng: Xoshiro256PlusPlus,
}

impl Peer {
    fn new(held: &[u32]) -> Self {
        Peer {
            tree: WeightedTreeIndex::new(held.iter().copied().map(u64::from)).unwrap(),
            rng: generator(),
        }
    }
}

impl Contestant for Peer {
    #[inline]
    fn pick(&mut self) -> u32 {
        self.tree.sample(&mut self.rng) as u32
    }

    #[inline]
    fn set_tickets(&mut self, client: u32, tickets: u32) {
        self.tree
            .update(client as usize, u64::from(tickets))
            .unwrap();
    }
}

fn generator() -> Xoshiro256PlusPlus {
    Xoshiro256PlusPlus::seed_from_u64(SEED)
}

/// A contestant with all that its turns need; the loops are compiled for it.
trait Runner {
    fn name(&self) -> &'static str;
    /// Nanoseconds for a pick: the median of one turn's batches.
    fn pick(&mut self) -> f64;
    /// The same for a pick and new tickets.
    fn reweigh(&mut self) -> f64;
}

struct Entrant<C> {
    name: &'static str,
    contestant: C,
    tickets: Tickets,
    fresh: Xoshiro256PlusPlus,
}

fn entrant<C: Contestant + 'static>(
    name: &'static str,
    tickets: Tickets,
    contestant: C,
) -> Box<dyn Runner> {
    Box::new(Entrant {
        name,
        contestant,
        tickets,
        fresh: Xoshiro256PlusPlus::seed_from_u64(!SEED),
    })
}

impl<C: Contestant> Entrant<C> {
    fn turn(&mut self, mut call: impl FnMut(&mut Self)) -> f64 {
        let mut batches: Vec<f64> = (0..WARM_UP + TIMED)
            .map(|_| {
                let start = Instant::now();
                for _ in 0..BATCH {
                    call(self);
                }
                start.elapsed().as_nanos() as f64 / f64::from(BATCH)
            })
            .skip(WARM_UP)
            .collect();
        median(&mut batches)
    }
}

impl<C: Contestant> Runner for Entrant<C> {
    fn name(&self) -> &'static str {
        self.name
    }

    fn pick(&mut self) -> f64 {
        self.turn(|entrant| {
            black_box(entrant.contestant.pick());
        })
    }

    fn reweigh(&mut self) -> f64 {
        self.turn(|entrant| {
            let winner = entrant.contestant.pick();
            let fresh = entrant.tickets.fresh(&mut entrant.fresh);
            entrant.contestant.set_tickets(winner, fresh);
        })
    }
}

fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// The peer first, then the constant-time lottery, then the others.
fn entrants(tickets: Tickets, size: u32) -> Vec<Box<dyn Runner>> {
    let mut rng = generator();
    let held: Vec<u32> = (0..size).map(|_| tickets.held(&mut rng)).collect();
    let list = |order| Ours::new(ListLottery::new(order, generator()), &held);
    let mut all = vec![
        entrant("peer", tickets, Peer::new(&held)),
        entrant(
            "classes",
            tickets,
            Ours::new(ClassLottery::new(generator()), &held),
        ),
        entrant(
            "tree",
            tickets,
            Ours::new(TreeLottery::new(generator()), &held),
        ),
    ];
    if size <= LONGEST_LIST {
        all.push(entrant("sorted list", tickets, list(ListOrder::Sorted)));
        all.push(entrant(
            "moving list",
            tickets,
            list(ListOrder::MoveToFront),
        ));
    }
    all
}

/// One contestant's times by round.
#[derive(Default)]
struct Times {
    pick: Vec<f64>,
    reweigh: Vec<f64>,
}

/// How many times faster than the peer: the median over the rounds.
fn ratio(peer: &[f64], ours: &[f64]) -> f64 {
    let mut ratios: Vec<f64> = peer
        .iter()
        .zip(ours)
        .map(|(peer, ours)| peer / ours)
        .collect();
    median(&mut ratios)
}

/// Prints a table for one set of tickets and returns the figures to reach.
fn compare(tickets: Tickets) -> Vec<Figure> {
    println!(
        "\n{}: nanoseconds, and times faster than the peer",
        tickets.name()
    );
    println!(
        "{:>9}  {:<12} {:>8} {:>7} {:>9} {:>7}",
        "clients", "", "pick", "", "re-weigh", ""
    );
    let mut reached = Vec::new();
    let mut smallest = 0.0;
    for size in SIZES {
        let mut entrants = entrants(tickets, size);
        let mut times: Vec<Times> = entrants.iter().map(|_| Times::default()).collect();
        for _ in 0..ROUNDS {
            for (entrant, times) in entrants.iter_mut().zip(&mut times) {
                times.pick.push(entrant.pick());
            }
            for (entrant, times) in entrants.iter_mut().zip(&mut times) {
                times.reweigh.push(entrant.reweigh());
            }
        }
        for (entrant, ours) in entrants.iter().zip(&times) {
            println!(
                "{size:>9}  {:<12} {:>8.1} {:>6.1}x {:>9.1} {:>6.1}x",
                entrant.name(),
                median(&mut ours.pick.clone()),
                ratio(&times[0].pick, &ours.pick),
                median(&mut ours.reweigh.clone()),
                ratio(&times[0].reweigh, &ours.reweigh),
            );
        }
        let pick = median(&mut times[1].pick.clone());
        if size == SIZES[0] {
            smallest = pick;
        }
        if size == SIZES[SIZES.len() - 1] {
            reached.push(faster(tickets, "pick", 5.0, &times[0].pick, &times[1].pick));
            reached.push(faster(
                tickets,
                "pick and re-weigh",
                3.0,
                &times[0].reweigh,
                &times[1].reweigh,
            ));
            reached.push(growth(tickets, smallest, pick));
        }
    }
    reached
}

fn faster(tickets: Tickets, what: &str, target: f64, peer: &[f64], ours: &[f64]) -> Figure {
    let name = format!(
        "constant-time lottery, 1,000,000 clients, {}: {what}",
        tickets.name()
    );
    let figure = Figure::at_least(name, ratio(peer, ours), "times faster", target);
    figure.beside(format!(
        "WeightedTreeIndex {:.0} ns, ours {:.0} ns",
        median(&mut peer.to_vec()),
        median(&mut ours.to_vec())
    ))
}

fn growth(tickets: Tickets, smallest: f64, largest: f64) -> Figure {
    /// A thousand times the clients do not fit the processor's caches: one
    /// read from memory, and no more, may be added.
    const NEARLY_FLAT: f64 = 3.0;
    let name = format!(
        "constant-time lottery, {}: pick at 1,000,000 clients",
        tickets.name()
    );
    Figure::at_most(name, largest / smallest, "times that at 1,000", NEARLY_FLAT)
}

fn lotteries(criterion: &mut Criterion) {
    let reached: Vec<Figure> = Tickets::ALL.into_iter().flat_map(compare).collect();
    figures::keep(env!("CARGO_TARGET_TMPDIR"), "lottery", &reached);
    let mut group = criterion.benchmark_group("lottery");
    let mut rng = generator();
    let held: Vec<u32> = (0..SIZES[3])
        .map(|_| Tickets::EverySize.held(&mut rng))
        .collect();
    let mut classes = ClassLottery::new(generator());
    for (index, &tickets) in (0..).zip(&held) {
        classes.join(ClientIndex(index), tickets).unwrap();
    }
    group.bench_function("classes/pick", |bencher| bencher.iter(|| classes.pick()));
    let mut peer = Peer::new(&held);
    group.bench_function("peer/pick", |bencher| bencher.iter(|| peer.pick()));
    group.finish();
}

criterion_group!(benches, lotteries);
criterion_main!(benches);
