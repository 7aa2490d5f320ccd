//! Pools of CPUs: the continuum between MQ and separate queues, and balancing.

use proptest::prelude::*;
use proptest::test_runner::RngSeed;
use prorata_core::run_queue::{Balance, Comparison, Cpu, Goodness, Layout};

use super::machine::{CPUS, Event, Machine, events, natures};

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
        natures in natures(false),
        events in events(),
        pools in prop::collection::vec(0..3u32, CPUS as usize - 2),
    ) {
        // Every number is there.
        let mut pool_of = vec![0, 1];
        pool_of.extend(pools.iter().map(|&pool| pool.min(1)));
        let layout = Layout::Pools(pool_of.clone(), Comparison::Tournament);
        let mut machine = Machine::new(Goodness::X86, &layout, &natures);
        for event in events {
            machine.happen(event);
            let mut moves = 0;
            loop {
                let mut moved = false;
                for cpu in [0, 1].map(Cpu) {
                    let mut balance = Balance::new(cpu);
                    machine.run(&mut balance);
                    moved |= balance.moved().is_some();
                }
                machine.check();
                if !moved {
                    break;
                }
                moves += 1;
                prop_assert!(moves < 100, "it never ends");
            }
            for cpu in machine.queues.take_told() {
                machine.decide(cpu.0, prorata_core::run_queue::End::Runnable);
            }
            machine.queues.take_told();
            check_even(&machine, &pool_of);
        }
    }
}

/// Nobody waits in a pool whose move would leave the taker with less load a
/// CPU than the giver had.
fn check_even(machine: &Machine<Goodness>, pool_of: &[u32]) {
    let queues = &machine.queues.queues()[..CPUS as usize];
    let of_pool = |pool: u32| queues.iter().zip(pool_of).filter(move |(_, p)| **p == pool);
    for (giver, taker) in [(0, 1), (1, 0)] {
        let [from, to] = [giver, taker].map(|pool| {
            let tasks: u64 = of_pool(pool).map(|(queue, _)| queue.load()).sum();
            (tasks, of_pool(pool).count() as u64)
        });
        let waits = of_pool(giver).any(|(queue, _)| queue.waiting() > 0);
        let helps = (to.0 + 1) * from.1 < from.0 * to.1;
        assert!(!(waits && helps), "{from:?} {to:?}");
    }
}
