//! Stride scheduling beside the queues that a Rust program would take from the
//! standard library: a `BTreeSet` (first popped, then inserted anew) and a
//! `BinaryHeap` (its top replaced). The peers do the same exact arithmetic.
//!
//! One turn is a pick and a charge of a whole quantum. Contestants take turns in
//! short batches, so that what else the machine does falls on all alike; ratios
//! are medians over rounds, taken round by round.

use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap};
use std::time::Instant;

use prorata_core::policy::{ClientIndex, HierarchicalStride, Policy, Race, STRIDE1, Stride};
use prorata_report::figures::{self, Figure};
use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

struct PeerPlace {
    stride: u64,
    tickets: u32,
    stride_rest: u32,
    rest: u32,
}
struct Global {
    pass: u64,
    rest: u64,
    stride: u64,
    stride_rest: u64,
    tickets: u64,
}
struct Peer<Q> {
    places: Vec<PeerPlace>,
    global: Global,
    queue: Q,
}

impl<Q> Peer<Q> {
    fn new(tickets: &[u32], make: impl FnOnce(Vec<(u64, u32)>) -> Q) -> Self {
        let total: u64 = tickets.iter().map(|&t| u64::from(t)).sum();
        let places = tickets
            .iter()
            .map(|&t| PeerPlace {
                stride: STRIDE1 / t as u64,
                tickets: t,
                stride_rest: (STRIDE1 % t as u64) as u32,
                rest: (STRIDE1 % t as u64) as u32,
            })
            .collect();
        let entries = tickets
            .iter()
            .enumerate()
            .map(|(i, &t)| (STRIDE1 / t as u64, i as u32))
            .collect();
        Peer {
            places,
            global: Global {
                pass: 0,
                rest: 0,
                stride: STRIDE1 / total,
                stride_rest: STRIDE1 % total,
                tickets: total,
            },
            queue: make(entries),
        }
    }
    #[inline]
    fn step(places: &mut [PeerPlace], global: &mut Global, id: u32) -> u64 {
        global.pass += global.stride;
        global.rest += global.stride_rest;
        if global.rest >= global.tickets {
            global.rest -= global.tickets;
            global.pass += 1;
        }
        let p = &mut places[id as usize];
        let mut step = p.stride;
        let mut rest = u64::from(p.rest) + u64::from(p.stride_rest);
        if rest >= p.tickets as u64 {
            rest -= p.tickets as u64;
            step += 1;
        }
        p.rest = rest as u32;
        step
    }
}
trait Contender {
    fn turn(&mut self) -> u32;
}
impl Contender for Peer<BTreeSet<(u64, u32)>> {
    fn turn(&mut self) -> u32 {
        let (pass, id) = self.queue.pop_first().unwrap();
        let step = Self::step(&mut self.places, &mut self.global, id);
        self.queue.insert((pass + step, id));
        id
    }
}
impl Contender for Peer<BinaryHeap<Reverse<(u64, u32)>>> {
    fn turn(&mut self) -> u32 {
        let mut top = self.queue.peek_mut().unwrap();
        let id = top.0.1;
        top.0.0 += Self::step(&mut self.places, &mut self.global, id);
        id
    }
}
struct Ours<P>(P);
impl<P: Policy> Contender for Ours<P> {
    fn turn(&mut self) -> u32 {
        let c = self.0.pick().unwrap();
        self.0.charge(c, 20_000_000, 20_000_000).unwrap();
        c.0
    }
}
fn ours<P: Policy>(mut p: P, tickets: &[u32]) -> Ours<P> {
    for (i, &t) in tickets.iter().enumerate() {
        p.join(ClientIndex(i as u32), t).unwrap();
    }
    Ours(p)
}

/// Turns taken in one go.
trait Contestant {
    /// Nanoseconds a turn.
    fn time_ns(&mut self, turns: u32) -> f64;
}

impl<C: Contender> Contestant for C {
    fn time_ns(&mut self, turns: u32) -> f64 {
        let start = Instant::now();
        let mut winners = 0;
        for _ in 0..turns {
            winners ^= self.turn();
        }
        std::hint::black_box(winners);
        start.elapsed().as_nanos() as f64 / f64::from(turns)
    }
}

const ROUNDS: usize = 15;
const LABELS: [&str; 5] = ["stride", "BTreeSet", "BinaryHeap", "race", "hierarchical"];

/// In the order of [`LABELS`].
fn contestants(tickets: &[u32]) -> [Box<dyn Contestant>; 5] {
    let set = Peer::new(tickets, |entries| {
        entries.into_iter().collect::<BTreeSet<_>>()
    });
    let heap = Peer::new(tickets, |entries| {
        entries.into_iter().map(Reverse).collect::<BinaryHeap<_>>()
    });
    let race = Race::new(Xoshiro256PlusPlus::seed_from_u64(1));
    [
        Box::new(ours(Stride::new(), tickets)),
        Box::new(set),
        Box::new(heap),
        Box::new(ours(race, tickets)),
        Box::new(ours(HierarchicalStride::new(), tickets)),
    ]
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// What a contestant's turn takes.
struct Turn {
    median_ns: f64,
    /// How many times stride's own.
    ratio: f64,
}

/// Prints a line and returns what it says.
fn compare(name: &str, tickets: &[u32]) -> Vec<Turn> {
    let mut contestants = contestants(tickets);
    let clients = tickets.len() as u32;
    // Long enough for each client to have a turn in most distributions.
    for contestant in &mut contestants {
        contestant.time_ns((3 * clients).max(100_000));
    }
    let turns = (clients / 4).clamp(20_000, 250_000);
    let mut times = vec![Vec::new(); contestants.len()];
    for _ in 0..ROUNDS {
        for (contestant, times) in contestants.iter_mut().zip(&mut times) {
            times.push(contestant.time_ns(turns));
        }
    }
    let ratio = |times: &[f64], own: &[f64]| {
        median(
            times
                .iter()
                .zip(own)
                .map(|(peer, own)| peer / own)
                .collect(),
        )
    };
    let turns: Vec<Turn> = times
        .iter()
        .map(|peer| Turn {
            median_ns: median(peer.clone()),
            ratio: ratio(peer, &times[0]),
        })
        .collect();
    print!("{name:28}");
    for turn in &turns {
        print!("{:>8.0} {:>4.1}x", turn.median_ns, turn.ratio);
    }
    println!();
    turns
}

/// Ticket counts 1 to `clients`, shuffled.
fn distinct(clients: u32) -> Vec<u32> {
    let mut tickets: Vec<u32> = (1..=clients).collect();
    let mut generator = Xoshiro256PlusPlus::seed_from_u64(7);
    for i in (1..tickets.len()).rev() {
        tickets.swap(i, (generator.next_u64() % (i as u64 + 1)) as usize);
    }
    tickets
}

/// `turns[0]` is stride's own.
fn figure(tickets: &str, target: f64, turns: &[Turn], peer: usize) -> Figure {
    let name = format!("stride pick and charge, 1,000,000 clients, {tickets}");
    let figure = Figure::at_least(name, turns[peer].ratio, "times faster", target);
    figure.beside(format!(
        "{} {:.0} ns, ours {:.0} ns",
        LABELS[peer], turns[peer].median_ns, turns[0].median_ns
    ))
}

fn main() {
    println!("\nnanoseconds a turn, and times stride's own");
    print!("{:28}", "clients");
    for label in LABELS {
        print!("{label:>14}");
    }
    println!();
    let mut reached = Vec::new();
    for clients in [10, 100, 1_000, 10_000, 100_000, 1_000_000] {
        let tickets = distinct(clients);
        let mut generator = Xoshiro256PlusPlus::seed_from_u64(64);
        let values: [u32; 64] = std::array::from_fn(|_| 1 + generator.next_u32() % 1000);
        let shared = tickets.iter().map(|ticket| values[*ticket as usize % 64]);
        let shared: Vec<u32> = shared.collect();
        let distinct = compare(&format!("{clients}, distinct tickets"), &tickets);
        let shared = compare(&format!("{clients}, 64 ticket values"), &shared);
        if clients == 1_000_000 {
            let name = "distinct tickets";
            reached.push(figure(name, 2.0, &distinct, 1));
            reached.push(figure(name, 4.0, &distinct, 2));
            reached.push(figure("64 ticket values", 8.0, &shared, 2));
        }
    }
    figures::keep(env!("CARGO_TARGET_TMPDIR"), "stride", &reached);
}
