use std::collections::{BTreeSet, BinaryHeap};
use std::cmp::Reverse;
use std::time::Instant;

use prorata_core::policy::{ClientIndex, Policy, STRIDE1, Stride, HierarchicalStride, Race};
use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

struct PeerPlace { stride: u64, tickets: u32, stride_rest: u32, rest: u32 }
struct Global { pass: u64, rest: u64, stride: u64, stride_rest: u64, tickets: u64 }
struct Peer<Q> { places: Vec<PeerPlace>, global: Global, queue: Q }

impl<Q> Peer<Q> {
    fn new(tickets: &[u32], make: impl FnOnce(Vec<(u64, u32)>) -> Q) -> Self {
        let total: u64 = tickets.iter().map(|&t| u64::from(t)).sum();
        let places = tickets.iter().map(|&t| PeerPlace { stride: STRIDE1 / t as u64, tickets: t, stride_rest: (STRIDE1 % t as u64) as u32, rest: (STRIDE1 % t as u64) as u32 }).collect();
        let entries = tickets.iter().enumerate().map(|(i, &t)| (STRIDE1 / t as u64, i as u32)).collect();
        Peer { places, global: Global { pass: 0, rest: 0, stride: STRIDE1 / total, stride_rest: STRIDE1 % total, tickets: total }, queue: make(entries) }
    }
    #[inline]
    fn step(places: &mut [PeerPlace], global: &mut Global, id: u32) -> u64 {
        global.pass += global.stride;
        global.rest += global.stride_rest;
        if global.rest >= global.tickets { global.rest -= global.tickets; global.pass += 1; }
        let p = &mut places[id as usize];
        let mut step = p.stride;
        let mut rest = u64::from(p.rest) + u64::from(p.stride_rest);
        if rest >= p.tickets as u64 { rest -= p.tickets as u64; step += 1; }
        p.rest = rest as u32;
        step
    }
}
trait Contender { fn turn(&mut self) -> u32; }
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
    for (i, &t) in tickets.iter().enumerate() { p.join(ClientIndex(i as u32), t).unwrap(); }
    Ours(p)
}
fn time(c: &mut dyn Contender2, turns: u32) -> f64 { c.run(turns) }
trait Contender2 { fn run(&mut self, turns: u32) -> f64; }
impl<C: Contender> Contender2 for C {
    fn run(&mut self, turns: u32) -> f64 {
        let start = Instant::now();
        let mut x = 0u32;
        for _ in 0..turns { x ^= self.turn(); }
        std::hint::black_box(x);
        start.elapsed().as_nanos() as f64 / f64::from(turns)
    }
}
fn median(v: &mut [f64]) -> f64 { v.sort_by(f64::total_cmp); v[v.len()/2] }
fn compare(name: &str, tickets: &[u32], extra: bool) {
    let mut cs: Vec<(&str, Box<dyn Contender2>)> = vec![
        ("stride", Box::new(ours(Stride::new(), tickets))),
        ("btreeset", Box::new(Peer::new(tickets, |e| e.into_iter().collect::<BTreeSet<_>>()))),
        ("heap", Box::new(Peer::new(tickets, |e| e.into_iter().map(Reverse).collect::<BinaryHeap<_>>()))),
    ];
    if extra {
        cs.push(("race", Box::new(ours(Race::new(Xoshiro256PlusPlus::seed_from_u64(1)), tickets))));
        cs.push(("hierarchical", Box::new(ours(HierarchicalStride::new(), tickets))));
    }
    let n = tickets.len() as u32;
    let warm = (3 * n).max(100_000);
    for (_, c) in &mut cs { time(&mut **c, warm); }
    let rounds = 15;
    let turns = (n / 4).clamp(20_000, 250_000);
    let mut times = vec![Vec::new(); cs.len()];
    for _ in 0..rounds {
        for (k, (_, c)) in cs.iter_mut().enumerate() { times[k].push(time(&mut **c, turns)); }
    }
    let own = times[0].clone();
    print!("{name:28}");
    for (k, (label, _)) in cs.iter().enumerate() {
        let mut ratio: Vec<f64> = times[k].iter().zip(&own).map(|(a, b)| a / b).collect();
        print!(" {label} {:.1} ns ({:.2}x)", median(&mut times[k]), median(&mut ratio));
    }
    println!();
}
fn shuffled(n: u32) -> Vec<u32> {
    let mut t: Vec<u32> = (1..=n).collect();
    let mut g = Xoshiro256PlusPlus::seed_from_u64(7);
    for i in (1..t.len()).rev() { t.swap(i, (g.next_u64() % (i as u64 + 1)) as usize); }
    t
}
fn main() {
    let extra = std::env::args().any(|a| a == "extra");
    for n in [10, 100, 1000, 10_000, 100_000, 1_000_000] {
        compare(&format!("{n} distinct"), &shuffled(n), extra);
        if n >= 100 {
        let s: Vec<u32> = shuffled(n).iter().map(|t| 1 + t % 64).collect();
        compare(&format!("{n} sharing 64 values"), &s, extra); }
        if n >= 100 {
        let s: Vec<u32> = shuffled(n).iter().map(|t| 1 + t % 8).collect();
        compare(&format!("{n} sharing 8 values"), &s, extra); }
    }
    compare("1000000 one ticket", &vec![1; 1_000_000], extra);
    let mut hog = vec![1; 101]; hog[0] = 100;
    compare("101 100:1:...:1", &hog, extra);
}
