//! Proportional shares over every layout: nobody's CPU time falls two quanta
//! short of what is due to it.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::num::NonZeroU32;

use proptest::prelude::*;
use proptest::test_runner::RngSeed;
use prorata_core::run_queue::{
    Change, Comparison, Cpu, End, Layout, Pass, Sequential, Task, TaskIndex, Turn, Weights,
};

const QUANTUM_NS: u64 = 10_000_000;

/// Tasks that always could run, on CPUs that decide whenever a turn ends.
struct Machine {
    queues: Sequential<Pass>,
    now_ns: u64,
    /// When each turn ends, and where.
    turns: BinaryHeap<Reverse<(u64, u32)>>,
    /// By CPU: who runs, since when.
    runs: Vec<Option<(usize, u64)>>,
    received_ns: Vec<u64>,
    random: u64,
}

impl Machine {
    fn new(layout: &Layout, cpus: u32, tickets: &[NonZeroU32], seed: u64) -> Self {
        let ranking = Pass {
            quantum_ns: QUANTUM_NS,
        };
        let mut queues = Sequential::new(ranking, layout, cpus).unwrap();
        for (index, &tickets) in tickets.iter().enumerate() {
            let index = index as u32;
            let mut task = Task::new(TaskIndex(index), Cpu(index % cpus));
            task.tickets = tickets;
            queues.wake(task);
        }
        queues.take_told();
        Self {
            queues,
            now_ns: 0,
            turns: (0..cpus).map(|cpu| Reverse((0, cpu))).collect(),
            runs: vec![None; cpus as usize],
            received_ns: vec![0; tickets.len()],
            random: seed | 1,
        }
    }

    /// Half of the turns last a quantum, the others end earlier.
    fn turn_ns(&mut self) -> u64 {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        match self.random % 2 {
            0 => QUANTUM_NS,
            _ => 1 + self.random / 2 % QUANTUM_NS,
        }
    }

    /// The next turn ends and another begins there.
    fn step(&mut self) {
        let Some(Reverse((now_ns, cpu))) = self.turns.pop() else {
            return;
        };
        self.now_ns = now_ns;
        let used_ns = match self.runs[cpu as usize].take() {
            Some((task, since_ns)) => {
                self.received_ns[task] += now_ns - since_ns;
                now_ns - since_ns
            }
            None => 0,
        };
        let turn = Turn {
            end: End::Runnable,
            used_ns,
        };
        let next = self.queues.schedule(Cpu(cpu), turn, now_ns).next;
        let next = next.expect("there are enough tasks");
        self.runs[cpu as usize] = Some((next.0 as usize, now_ns));
        let turn_ns = self.turn_ns();
        self.turns.push(Reverse((now_ns + turn_ns, cpu)));
    }

    /// CPU time by now, in quanta, running turns included.
    fn received(&self) -> Vec<f64> {
        let mut received_ns = self.received_ns.clone();
        for &(task, since_ns) in self.runs.iter().flatten() {
            received_ns[task] += self.now_ns - since_ns;
        }
        let quanta = |ns| ns as f64 / QUANTUM_NS as f64;
        received_ns.into_iter().map(quanta).collect()
    }
}

/// Feasible tickets, and the CPUs that are due by them, for the tasks of a
/// pool.
fn shares(weights: &[(usize, u32)], cpus: u32) -> Vec<(usize, NonZeroU32, f64)> {
    let mut feasible = Weights::new(cpus);
    let mut tickets = vec![NonZeroU32::MIN; weights.iter().map(|w| w.0 + 1).max().unwrap_or(0)];
    let mut changed = Vec::new();
    for &(task, weight) in weights {
        feasible.set(
            TaskIndex(task as u32),
            NonZeroU32::new(weight),
            &mut changed,
        );
        for &(task, now) in &changed {
            tickets[task.0 as usize] = now;
        }
    }
    let of = |task: usize| f64::from(tickets[task].get());
    let total: f64 = weights.iter().map(|&(task, _)| of(task)).sum();
    let share =
        |&(task, _): &(usize, u32)| (task, tickets[task], of(task) / total * f64::from(cpus));
    weights.iter().map(share).collect()
}

fn layouts(cpus: u32) -> [Layout; 5] {
    let half = |cpu| cpu % 2;
    [
        Layout::GlobalList,
        Layout::PriorityLevels,
        Layout::MultiQueue(Comparison::Scan),
        Layout::MultiQueue(Comparison::Tournament),
        Layout::Pools((0..cpus).map(half).collect(), Comparison::Tournament),
    ]
}

/// A million tickets and more, so that rounding feasible ones to a ticket is
/// not what is measured.
fn weights() -> impl Strategy<Value = Vec<u32>> {
    let weight = prop_oneof![
        Just(1_000_000),
        1_000_000..10_000_000u32,
        1_000_000..1_000_000_000u32
    ];
    prop::collection::vec(weight, 16..28)
}

proptest! {
    #![proptest_config(ProptestConfig {
        failure_persistence: None,
        rng_seed: RngSeed::Fixed(1995),
        cases: 40,
        ..ProptestConfig::default()
    })]

    /// The bound of docs/MANY-CPUS.md: one quantum for being late, and what is
    /// due while a quantum lasts.
    #[test]
    fn nobody_falls_two_quanta_short(weights in weights(), cpus in 2..9u32, seed: u64) {
        for layout in layouts(cpus) {
            let pool_of = |task: usize| match &layout {
                Layout::Pools(pools, _) => pools[task % cpus as usize],
                _ => 0,
            };
            let mut by_task = vec![(NonZeroU32::MIN, 0.0); weights.len()];
            for pool in 0..2 {
                let members: Vec<_> = weights.iter().copied().enumerate()
                    .filter(|&(task, _)| pool_of(task) == pool).collect();
                let cpus_there = (0..cpus).filter(|&cpu| pool_of(cpu as usize) == pool).count();
                if cpus_there > 0 {
                    for (task, tickets, share) in shares(&members, cpus_there as u32) {
                        by_task[task] = (tickets, share);
                    }
                }
            }
            let tickets: Vec<_> = by_task.iter().map(|task| task.0).collect();
            let mut machine = Machine::new(&layout, cpus, &tickets, seed);
            for _ in 0..1500 {
                machine.step();
                let time = machine.now_ns as f64 / QUANTUM_NS as f64;
                for (received, (_, share)) in machine.received().iter().zip(&by_task) {
                    let short = share * time - received;
                    // 1e-3 for tickets rounded to whole ones.
                    prop_assert!(short < 1.0 + share + 1e-3, "{layout:?}: {short} quanta short");
                }
            }
        }
    }

    /// Who has twice the tickets from now on gets twice from now on.
    #[test]
    fn a_change_counts_from_the_next_turn(weights in weights(), task in 0..16usize, seed: u64) {
        let cpus = 4;
        for layout in &layouts(cpus)[..4] {
            let mut now: Vec<_> = weights.iter().copied().enumerate().collect();
            let before = shares(&now, cpus);
            let tickets: Vec<_> = before.iter().map(|share| share.1).collect();
            let mut machine = Machine::new(layout, cpus, &tickets, seed);
            (0..300).for_each(|_| machine.step());
            let (start_ns, start) = (machine.now_ns, machine.received());
            now[task].1 = now[task].1.saturating_mul(2);
            let after = shares(&now, cpus);
            for (&(task, tickets, _), _) in after.iter().zip(&before).filter(|(a, b)| a.1 != b.1) {
                machine.queues.adjust(TaskIndex(task as u32), Change::Tickets(tickets));
            }
            for _ in 0..1000 {
                machine.step();
                let time = (machine.now_ns - start_ns) as f64 / QUANTUM_NS as f64;
                let received = machine.received();
                for &(task, _, share) in &after {
                    let short = share * time - (received[task] - start[task]);
                    // Who was ahead at the change waits for that once more.
                    let ahead = weights.len() as f64;
                    prop_assert!(short < ahead + 1.0 + share, "{layout:?}: {short} short");
                }
            }
        }
    }
}
