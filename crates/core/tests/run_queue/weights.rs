//! Tickets that are feasible: as if all were worked out afresh.

use proptest::prelude::*;
use prorata_core::feasible::{Demand, feasible_weights};
use prorata_core::run_queue::{
    Comparison, Cpu, End, InForce, Layout, LockIndex, MAX_TICKETS, MIN_QUANTUM_NS, Pass, Ranking,
    Reweigh, Sequential, TICKET_PARTS, Task, TaskIndex, Tickets, Turn, Weights,
};

use super::machine::Locks;
use super::seeded;
use super::turns::due;

/// The tickets of all, in parts, from the papers' definition.
fn afresh(weights: &[u32], cpus: u32) -> Vec<u32> {
    let demand = |weight: &u32| Demand {
        weight: weight * TICKET_PARTS,
        cpus: 1,
    };
    feasible_weights(&weights.iter().map(demand).collect::<Vec<_>>(), cpus)
}

const TASKS: u32 = 12;

/// Weights of a pool, changed one by one.
struct Pool {
    ranking: Pass,
    weights: Weights,
}

impl Pool {
    fn new(cpus: u32) -> Self {
        Self {
            ranking: Pass::weighted(MIN_QUANTUM_NS, TASKS).unwrap(),
            weights: Weights::new(cpus).unwrap(),
        }
    }

    /// Who is told.
    fn set(&mut self, task: u32, weight: u32) -> Vec<TaskIndex> {
        let feasible = self.ranking.feasible().unwrap();
        let weight = Tickets::new(weight).ok();
        let told = self.weights.set(TaskIndex(task), weight, feasible);
        told.unwrap().to_vec()
    }

    fn in_force(&self) -> Vec<Option<InForce>> {
        let feasible = self.ranking.feasible().unwrap();
        (0..TASKS).map(|i| feasible.get(TaskIndex(i))).collect()
    }

    fn parts(&self) -> Vec<u32> {
        let parts = |in_force: Option<InForce>| in_force.map_or(0, InForce::parts);
        self.in_force().into_iter().map(parts).collect()
    }
}

proptest! {
    #![proptest_config(seeded(2001))]

    /// Just those are told who competed and have other tickets then.
    #[test]
    fn everybody_has_the_tickets_that_are_feasible(
        changes in prop::collection::vec((0..TASKS, prop_oneof![Just(0), 1..100u32, 1..=MAX_TICKETS]), 1..100),
        cpus in 1..8u32,
    ) {
        let mut pool = Pool::new(cpus);
        let mut by_weight = vec![0; TASKS as usize];
        for (task, weight) in changes {
            by_weight[task as usize] = weight;
            let before = pool.in_force();
            let mut told = pool.set(task, weight);
            prop_assert_eq!(&pool.parts(), &afresh(&by_weight, cpus));
            let both = before.iter().zip(pool.in_force()).zip(0..);
            let changed = both.filter(|((before, after), _)| {
                before.is_some() && after.is_some() && *before != after
            });
            let changed: Vec<_> = changed.map(|(_, index)| TaskIndex(index)).collect();
            told.sort();
            prop_assert_eq!(told, changed);
        }
    }

    /// However few tickets there are, nobody is due anything else than by exact
    /// weights, but for a hundredth of it; and exactly those are cut whose
    /// tickets are worth more than a CPU.
    #[test]
    fn feasible_tickets_are_exact_to_a_hundredth(
        weights in prop::collection::vec(prop_oneof![3 => 1..4u32, 1 => 1..1000u32], 1..=TASKS as usize),
        cpus in 1..8u32,
    ) {
        let mut pool = Pool::new(cpus);
        for (task, &weight) in (0..).zip(&weights) {
            pool.set(task, weight);
        }
        let parts = pool.parts();
        let sum: u32 = parts.iter().sum();
        let usable = f64::from(cpus.min(weights.len() as u32));
        let exact = due(&weights.iter().map(|&w| f64::from(w)).collect::<Vec<_>>(), cpus);
        let worth: u32 = weights.iter().sum();
        for (task, due) in exact.into_iter().enumerate() {
            let by_tickets = f64::from(parts[task]) / f64::from(sum) * usable;
            prop_assert!((by_tickets / due - 1.0).abs() < 0.01, "{by_tickets} {due}");
            if weights.len() > cpus as usize {
                let proportional = f64::from(weights[task]) / f64::from(worth) * f64::from(cpus);
                let is_cut = pool.in_force()[task].unwrap().is_cut();
                prop_assert!(is_cut || proportional <= 1.0 + 1e-9);
                prop_assert!(!is_cut || due == 1.0);
            }
        }
    }
}

/// Three of one ticket and one of a hundred, on three CPUs: one has a CPU, the
/// others share two.
#[test]
fn one_and_two_thirds_of_a_cpu() {
    let mut pool = Pool::new(3);
    for (task, weight) in [1, 1, 1, 100].into_iter().enumerate() {
        pool.set(task as u32, weight);
    }
    let one = TICKET_PARTS;
    assert_eq!(pool.parts()[..4], [one, one, one, one + one / 2]);
}

/// Only those queues are visited where somebody's tickets have changed.
#[test]
fn the_others_are_left_alone() {
    let ranking = Pass::weighted(MIN_QUANTUM_NS, 9).unwrap();
    let layout = Layout::MultiQueue(Comparison::Scan);
    let mut queues = Sequential::new(ranking, &layout, 4).unwrap();
    for index in 0..9 {
        queues
            .wake(Task::new(TaskIndex(index), Cpu(index % 4)))
            .unwrap();
    }
    let visited = |queues: &mut Sequential<Pass>, changed: &[u32]| {
        let changed: Vec<_> = changed.iter().copied().map(TaskIndex).collect();
        let mut reweigh = Locks(Reweigh::new(queues.shared(), &changed), Vec::new());
        queues.run(&mut reweigh, |_| true);
        reweigh.1.sort();
        reweigh.1.into_iter().map(|LockIndex(lock)| lock).collect()
    };
    let [nobody, one, two]: [Vec<u32>; 3] =
        [&[][..], &[2], &[1, 3, 7]].map(|changed| visited(&mut queues, changed));
    assert_eq!([nobody, one, two], [vec![], vec![2], vec![1, 3]]);
    // CPU 2 has nobody of its own then, and fetches them.
    let turn = Turn {
        end: End::Blocks,
        used_ns: 0,
    };
    for _ in 0..3 {
        queues.schedule(Cpu(2), turn, 0);
    }
    let next = queues.schedule(Cpu(2), turn, 0).next.unwrap();
    assert!(next.0 % 4 != 2);
    assert_eq!(visited(&mut queues, &[next.0]), [2]);
}
