//! Pools of CPUs: the continuum between MQ and separate queues, and balancing.

use proptest::prelude::*;
use proptest::test_runner::RngSeed;
use prorata_core::run_queue::{Comparison, Cpu, End, Goodness, Layout, Pass, Ranking};

use super::machine::{CPUS, Event, Machine, Nature, events, natures};

proptest! {
    #![proptest_config(ProptestConfig {
        failure_persistence: None,
        rng_seed: RngSeed::Fixed(2001),
        ..ProptestConfig::default()
    })]

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
/// load a CPU than its own had.
fn check_even<R: Ranking>(machine: &Machine<R>, pool_of: &[u32; 4]) {
    let queues = &machine.queues.queues()[..CPUS as usize];
    let of_pool = |pool: u32| queues.iter().zip(pool_of).filter(move |(_, p)| **p == pool);
    let load = |pool| {
        let load: u64 = of_pool(pool).map(|(queue, _)| queue.load()).sum();
        (load, of_pool(pool).count() as u64)
    };
    for (giver, taker) in (0..3).flat_map(|a| (0..3).map(move |b| (a, b))) {
        let (from, to) = (load(giver), load(taker));
        let waiting = of_pool(giver).flat_map(|(queue, _)| queue.tasks());
        for (task, _) in waiting.filter(|(_, runs)| !runs) {
            let cpus = (0..)
                .map(Cpu)
                .zip(pool_of)
                .filter(|(_, pool)| **pool == taker);
            let may_move = cpus
                .map(|(cpu, _)| cpu)
                .any(|cpu| task.allowed.contains(cpu));
            let alone = u64::from(machine.queues.shared().ranking().load(task));
            let helps = (to.0 + alone) * from.1 < from.0 * to.1;
            assert!(!(may_move && helps), "{task:?} from {giver} to {taker}");
        }
    }
}
