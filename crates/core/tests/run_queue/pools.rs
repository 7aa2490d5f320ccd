//! Pools of CPUs: the continuum between MQ and separate queues, and balancing.

use std::cmp::Ordering;

use proptest::prelude::*;
use prorata_core::run_queue::{Comparison, Cpu, End, Goodness, Layout, Pass, Ranking, Task};

use super::machine::{CPUS, Event, Machine, Nature, events, natures};
use super::seeded;
use super::turns;

proptest! {
    #![proptest_config(seeded(2001))]

    #[test]
    fn one_pool_is_mq(natures in natures(true), events in events()) {
        let layouts = [
            Layout::MultiQueue(Comparison::Scan),
            Layout::Pools(vec![0; CPUS as usize], Comparison::Scan),
        ];
        let mut machines = layouts.map(|layout| Machine::new(Goodness::X86, &layout, &natures));
        for event in events {
            let [mq, pool] = machines.each_mut().map(|machine| machine.happen(event));
            prop_assert_eq!(format!("{mq:?}"), format!("{pool:?}"));
        }
    }

    /// Each CPU decides as a machine of its own would.
    #[test]
    fn pools_of_one_cpu_are_separate_queues(natures in natures(false), events in events()) {
        let pools = Layout::Pools((0..CPUS).collect(), Comparison::Scan);
        let mut together = Machine::new(Goodness::X86, &pools, &natures);
        let queue = Layout::MultiQueue(Comparison::Scan);
        let mut alone: Vec<_> = (0..CPUS)
            .map(|_| Machine::new(Goodness::X86, &queue, &natures))
            .collect();
        let nature_of_all = |mask: u64| move |&(class, priority, nice, mm, _): &_| {
            (class, priority, nice, mm, mask)
        };
        for (cpu, machine) in alone.iter_mut().enumerate() {
            let natures: Vec<_> = natures.iter().map(nature_of_all(1 << cpu)).collect();
            *machine = Machine::new(Goodness::X86, &queue, &natures);
        }
        for event in events {
            let cpu = match event {
                Event::Wake(task) => task % CPUS,
                Event::Decide(cpu, _) | Event::Tick(cpu) => cpu,
                Event::Tickets(task, _) => task % CPUS,
            };
            let by_pool = together.happen(event);
            let by_one = alone[cpu as usize].happen(event);
            let brief = |decided: &[(Cpu, _)]| format!("{:?}", decided.iter().map(
                |(cpu, outcome): &(Cpu, prorata_core::run_queue::Outcome)| {
                    (*cpu, outcome.next, outcome.previous, outcome.recalculated)
                },
            ).collect::<Vec<_>>());
            prop_assert_eq!(brief(&by_pool), brief(&by_one));
        }
    }

    #[test]
    fn balancing_ends_with_pools_as_even_as_tasks_permit(
        natures in natures(true),
        events in events(),
        last in 0..3u32,
    ) {
        let pool_of = [0, 1, 2, last];
        balances(Goodness::X86, &natures, &events, &pool_of);
        balances(Pass::new(1000).unwrap(), &natures, &events, &pool_of);
    }
}

/// After each event pools take tasks as long as any can.
fn balances<R: Ranking>(ranking: R, natures: &[Nature], events: &[Event], pool_of: &[u32; 4]) {
    let layout = Layout::Pools(pool_of.to_vec(), Comparison::Tournament);
    let mut machine = Machine::new(ranking, &layout, natures);
    for &event in events {
        machine.happen(event);
        let mut moves = 0;
        while take_once(&mut machine) {
            moves += 1;
            assert!(moves < 100, "it never ends");
        }
        for cpu in machine.queues.take_told() {
            machine.decide(cpu.0, End::Runnable);
        }
        machine.queues.take_told();
        check_even(&machine, pool_of);
    }
}

/// Each pool takes a task if it can; whether any did.
fn take_once<R: Ranking>(machine: &mut Machine<R>) -> bool {
    let mut moved = false;
    for cpu in [0, 1, 2].map(Cpu) {
        moved |= machine.balance(cpu);
        machine.check();
    }
    moved
}

/// Nobody waits in a pool who may move to another and would leave that with less
/// load than its own had.
fn check_even<R: Ranking>(machine: &Machine<R>, pool_of: &[u32; 4]) {
    let queues = &machine.queues.queues()[..CPUS as usize];
    let of_pool = |pool: u32| queues.iter().zip(pool_of).filter(move |(_, p)| **p == pool);
    let ranking = machine.queues.shared().ranking();
    let counts = |task: &Task| u64::from(ranking.load(task).unwrap());
    let load = |pool, more: Option<&Task>| {
        let tasks = of_pool(pool).flat_map(|(queue, _)| queue.tasks());
        let weights = tasks.map(|(task, _)| task).chain(more).map(counts);
        PoolLoad::as_given(weights.collect(), of_pool(pool).count() as u64)
    };
    for (giver, taker) in (0..3).flat_map(|a| (0..3).map(move |b| (a, b))) {
        let waiting = of_pool(giver).flat_map(|(queue, _)| queue.tasks());
        for (task, _) in waiting.filter(|(_, runs)| !runs) {
            let cpus = (0..)
                .map(Cpu)
                .zip(pool_of)
                .filter(|(_, pool)| **pool == taker);
            let may_move = cpus
                .map(|(cpu, _)| cpu)
                .any(|cpu| task.allowed.contains(cpu));
            let helps = load(taker, Some(task)) < load(giver, None);
            assert!(!(may_move && helps), "{task:?} from {giver} to {taker}");
        }
    }
}

/// What a pool counts for, from the definition.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum PoolLoad {
    /// Tasks a CPU.
    Free(Fraction),
    /// What a CPU is worth.
    Crowded(Fraction),
}

#[derive(Clone, Copy, Debug)]
struct Fraction(u64, u64);

impl Ord for Fraction {
    fn cmp(&self, other: &Self) -> Ordering {
        let product = |a: u64, b: u64| u128::from(a) * u128::from(b);
        product(self.0, other.1).cmp(&product(other.0, self.1))
    }
}

impl PartialOrd for Fraction {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Fraction {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Fraction {}

impl PoolLoad {
    fn as_given(weights: Vec<u64>, cpus: u64) -> Self {
        let tasks = weights.len() as u64;
        match tasks > cpus {
            true => Self::Crowded(Fraction(weights.iter().sum(), cpus)),
            false => Self::Free(Fraction(tasks, cpus)),
        }
    }

    /// Whoever is worth more than a CPU has one.
    fn feasible(mut weights: Vec<u64>, mut cpus: u64) -> Self {
        if weights.len() as u64 > cpus {
            weights.sort();
            let mut sum: u64 = weights.iter().sum();
            while let Some(most) = weights.pop().filter(|most| most * cpus > sum) {
                (sum, cpus) = (sum - most, cpus - 1);
            }
            return Self::Crowded(Fraction(sum, cpus));
        }
        Self::as_given(weights, cpus)
    }
}

/// Of each pool, the largest first.
fn loads(machine: &turns::Machine) -> Vec<PoolLoad> {
    let load = |(cpus, members): (u32, Vec<turns::Member>)| {
        let weights = members.iter().map(|member| member.weight as u64);
        PoolLoad::feasible(weights.collect(), cpus.into())
    };
    let mut loads: Vec<_> = machine.pools().into_iter().map(load).collect();
    loads.sort_by(|a, b| b.cmp(a));
    loads
}

/// All pools take tasks until none does; how often one did. With each move the
/// loads come earlier in the dictionary.
fn balance_out(machine: &mut turns::Machine) -> u32 {
    let (mut moves, mut still) = (0, 0);
    let mut cpus = (0..machine.cpus).cycle();
    while still < machine.cpus {
        let before = loads(machine);
        still += 1;
        if machine.balance(cpus.next().unwrap()) {
            let after = loads(machine);
            assert!(after < before, "{before:?} {after:?}");
            (moves, still) = (moves + 1, 0);
        }
    }
    moves
}

/// No CPU idles in one pool while somebody waits in another.
fn check_nobody_idles_beside_others(machine: &turns::Machine) {
    let crowded = |(cpus, members): &(u32, Vec<turns::Member>)| members.len() as u32 > *cpus;
    let free = |(cpus, members): &(u32, Vec<turns::Member>)| (members.len() as u32) < *cpus;
    let pools = machine.pools();
    assert!(!(pools.iter().any(crowded) && pools.iter().any(free)));
}

/// One rich task alone in a pool, and many poor ones in the other.
#[test]
fn idle_cpus_beside_a_rich_task_take_from_others() {
    let layout = Layout::Pools(vec![0, 0, 0, 0, 1, 1, 1, 1], Comparison::Scan);
    let weights: Vec<_> = [1000].into_iter().chain([1; 100]).collect();
    let mut machine = turns::Machine::new(&layout, 8, &weights, 1);
    for task in 0..=100 {
        machine.start_on(task, if task == 0 { 0 } else { 4 });
    }
    assert_eq!(machine.running(), 5);
    for moves in 1..=3 {
        assert!(machine.balance(1));
        assert_eq!(machine.running(), 5 + moves);
    }
    balance_out(&mut machine);
    let pools = machine.pools();
    // The poor ones have three CPUs here and four there.
    assert_eq!([pools[0].1.len(), pools[1].1.len()], [44, 57]);
}

proptest! {
    #![proptest_config(seeded(2001))]

    #[test]
    fn balancing_by_feasible_tickets_ends_and_leaves_no_cpu_idle(
        weights in prop::collection::vec(prop_oneof![2 => 1..10u32, 1 => 1..5000u32], 1..40),
        pool_of in prop::collection::vec(0..3u32, 6),
        events in prop::collection::vec((any::<prop::sample::Index>(), any::<bool>()), 1..30),
        seed in any::<u64>(),
    ) {
        let pool_of: Vec<_> = [0, 1, 2].into_iter().chain(pool_of).collect();
        let cpus = pool_of.len() as u32;
        let layout = Layout::Pools(pool_of, Comparison::Tournament);
        let mut machine = turns::Machine::new(&layout, cpus, &weights, seed);
        machine.wake_all();
        machine.settle();
        for (index, blocks) in events {
            match blocks {
                true => { machine.step(End::Blocks); }
                false => machine.wake(index.index(weights.len())),
            }
            balance_out(&mut machine);
            check_nobody_idles_beside_others(&machine);
        }
    }
}
