//! Pools of CPUs: balancing and its cost (2001, 6).

use prorata_smp::{
    LayoutName, MachineModel, SchedulerCosts, SharedBy, SmpError, SmpSimulation, Topology,
    TopologyError,
};

use crate::support::{self, scenario, usual};

fn start(text: &str, cpus: u32, layout: LayoutName) -> SmpSimulation {
    // Neighbours by number are in different packages.
    let topology = Topology {
        packages: vec![vec!["0,2".to_owned()], vec!["1,3".to_owned()]],
    };
    let machine = MachineModel {
        topology: matches!(layout, LayoutName::PoolsBy(_)).then_some(topology),
        ..usual(cpus, layout)
    };
    support::start(&scenario(text), &machine)
}

/// A process whose threads all begin in the pool of the first CPU.
const LOPSIDED: &str = r#"
[program.main]
steps = [{ loop = { times = 8, steps = [{ fork = "work" }] } }]
[program.work]
steps = [{ loop = { steps = [{ compute = { exponential = "1ms" } }, { sleep = { exponential = "100us" } }] } }]
[[client]]
name = "a"
program = "main"
"#;

#[test]
fn a_load_that_begins_in_one_pool_ends_in_both() {
    let of_two = [[0, 1], [2, 3]];
    for (layout, pools) in [
        (LayoutName::Pools(2), of_two),
        (LayoutName::PoolsTournament(2), of_two),
        (LayoutName::PoolsBy(SharedBy::Package), [[0, 2], [1, 3]]),
    ] {
        let mut simulation = start(LOPSIDED, 4, layout);
        let in_pools = |simulation: &SmpSimulation| {
            let lengths = simulation.queue_lengths();
            pools.map(|[one, other]| lengths[one] + lengths[other])
        };
        // No CPU balances before it falls idle or its timer ticks.
        simulation.run_to(2_000_000).expect("it can go on");
        assert_eq!((simulation.alive(), in_pools(&simulation)[1]), (8, 0));
        simulation.run_to(200_000_000).expect("it can go on");
        simulation.measure_afresh();
        let mut runnable = [0.0; 2];
        for part in 1..=100 {
            simulation
                .run_to(200_000_000 + part * 1_000_000)
                .expect("it can go on");
            let lengths = in_pools(&simulation);
            runnable = [0, 1].map(|pool| runnable[pool] + f64::from(lengths[pool]) / 100.0);
        }
        println!("{layout:?}: {runnable:?}, {:?}", simulation.counts());
        assert!((runnable[0] - runnable[1]).abs() < 1.0, "{runnable:?}");
    }
    let mut alone = start(LOPSIDED, 4, LayoutName::LocalQueues);
    alone.run_to(300_000_000).expect("it can go on");
    assert_eq!(alone.counts().moves, 0);
    assert_eq!(alone.queue_lengths()[1..4], [0; 3], "it is never balanced");
}

/// 64 threads on 16 CPUs, all begun on one CPU of the first pool. The pools are even
/// when the second has as many runnable threads, but for one on each CPU. The test
/// compares the work of the first 100 ms with MQ, where each CPU takes tasks from any
/// other, and with local queues, which are never balanced. Some 28 threads have to
/// move. Each of eight CPUs takes one when it idles and one with each tick of 10 ms:
/// four ticks do.
#[test]
fn a_lopsided_load_is_even_soon_and_costs_little_throughput() {
    let text = LOPSIDED.replace("times = 8", "times = 64");
    let run = |layout| {
        let mut simulation = start(&text, 16, layout);
        let mut even_ms = None;
        for ms in 1..=100 {
            simulation.run_to(ms * 1_000_000).expect("it can go on");
            let lengths = simulation.queue_lengths();
            let of = |cpus: &[u32]| cpus.iter().sum::<u32>();
            let (first, second) = (of(&lengths[..8]), of(&lengths[8..]));
            if even_ms.is_none() && first.abs_diff(second) <= 8 {
                even_ms = Some(ms);
            }
        }
        let counts = simulation.counts();
        println!("{layout:?}: even after {even_ms:?} ms, {counts:?}");
        (even_ms, counts.sleeps as f64)
    };
    let (mq, local) = (run(LayoutName::MultiQueue), run(LayoutName::LocalQueues));
    assert!(local.0.is_none() && local.1 < mq.1 / 10.0, "{local:?}");
    for layout in [LayoutName::Pools(8), LayoutName::PoolsTournament(8)] {
        let (even_ms, done) = run(layout);
        assert!(even_ms.is_some_and(|ms| ms <= 40), "{even_ms:?}");
        assert!(done > 0.9 * mq.1, "{done} of {}", mq.1);
    }
}

/// The second CPU falls idle after a millisecond, long before its timer ticks. It
/// takes one of the two threads that wait on the first.
#[test]
fn a_cpu_that_falls_idle_looks_for_work_at_once() {
    let text = r#"
[program.long]
steps = [{ fork = "work" }, { fork = "work" }]
[program.work]
steps = [{ compute = "8ms" }]
[program.short]
steps = [{ compute = "1ms" }]
[[client]]
name = "long"
program = "long"
[[client]]
name = "short"
program = "short"
"#;
    let run = |layout| {
        let mut simulation = start(text, 2, layout);
        simulation.run().expect("it can go on");
        (simulation.now_ns() / 1_000_000, simulation.counts().moves)
    };
    assert_eq!(run(LayoutName::LocalQueues), (16, 0));
    assert_eq!(run(LayoutName::Pools(1)), (9, 1));
}

/// A thread on each of two CPUs for ten ticks. With each tick each CPU looks at the
/// loads of two pools, and no task moves. Nothing else takes longer than without
/// balancing.
#[test]
fn a_look_for_work_takes_a_look_at_each_pool() {
    let text = r#"
[program.work]
steps = [{ compute = "100ms" }]
[[client]]
name = "a"
count = 2
program = "work"
"#;
    let run = |layout| {
        let mut simulation = start(text, 2, layout);
        simulation.run_to(99_000_000).expect("it can go on");
        simulation.measure_afresh();
        simulation.run().expect("it can go on");
        simulation
    };
    let (alone, pools) = (run(LayoutName::LocalQueues), run(LayoutName::Pools(1)));
    let costs = SchedulerCosts::default();
    println!("{:?}\n{:?}", alone.counts(), pools.counts());
    // The other pool's load was written once, when its thread came.
    let looks = 10 * 2 * costs.look.0 + costs.transfer.0;
    assert_eq!(pools.now_ns() - alone.now_ns(), looks);
}

#[test]
fn pools_by_topology_without_a_topology_are_refused() {
    let scenario = scenario("[[client]]\nname = \"a\"\n");
    let machine = usual(4, LayoutName::PoolsBy(SharedBy::Package));
    let refused = SmpSimulation::new(&scenario, &machine, 1).expect_err("nothing is said");
    assert_eq!(refused, SmpError::Topology(TopologyError::Missing));
}
