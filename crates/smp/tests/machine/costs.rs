//! Costs and measurements, and that no task is lost.

use std::fmt::Write as _;
use std::path::Path;

use crate::support::{LAYOUTS, machine, scenario, start, usual};
use prorata_smp::{LayoutName, SchedulerCosts, SmpError, SmpSimulation};

/// Threads that compute, sleep, yield and pass messages, and end.
const MIXED: &str = r#"
[pipe.p]
capacity = 2
[program.main]
steps = [
  { loop = { times = 5, steps = [{ fork = "writer" }, { fork = "reader" }, { fork = "sleeper" }] } },
]
[program.writer]
steps = [{ loop = { times = 40, steps = [{ compute = { exponential = "30us" } }, { send = "p" }] } }]
[program.reader]
steps = [{ loop = { times = 40, steps = [{ receive = "p" }, { compute = { exponential = "30us" } }, "yield"] } }]
[program.sleeper]
steps = [{ loop = { chance = 0.9, steps = [{ compute = "100us" }, { sleep = { exponential = "200us" } }] } }]
[[client]]
name = "a"
count = 3
program = "main"
"#;

/// Without any costs, two threads that compute for 10 ms each take 10 ms on two
/// CPUs and 20 ms on one.
#[test]
fn a_scheduler_without_cost_leaves_all_time_to_programs() {
    let text = r#"
[program.work]
steps = [{ compute = "10ms" }]
[[client]]
name = "a"
count = 2
program = "work"
"#;
    for layout in LAYOUTS {
        for (cpus, ns) in [(1, 20_000_000), (2, 10_000_000)] {
            let mut simulation = start(&scenario(text), &machine(cpus, layout, free()));
            simulation.run().expect("it can go on");
            assert_eq!(simulation.now_ns(), ns, "{layout:?} on {cpus}");
        }
    }
}

/// A scheduler that takes no time.
fn free() -> SchedulerCosts {
    SchedulerCosts {
        stretch: "0s".parse().expect("a time"),
        levels: "0s".parse().expect("a time"),
        examine: "0s".parse().expect("a time"),
        look: "0s".parse().expect("a time"),
        transfer: "0s".parse().expect("a time"),
        interrupt: "0s".parse().expect("a time"),
        context_switch: "0s".parse().expect("a time"),
        cache_refill: "0s".parse().expect("a time"),
        system_call: "0s".parse().expect("a time"),
        timer: "0s".parse().expect("a time"),
        ..SchedulerCosts::default()
    }
}

/// Of nice 19, one tick a slice; of nice 0, six. So of two threads that compute for 300 ms, the
/// one that is not nice has 300 of the first 350 ms.
#[test]
fn a_nice_client_has_short_time_slices() {
    let text = r#"
[program.work]
steps = [{ compute = "300ms" }]
[[client]]
name = "a"
program = "work"
[[client]]
name = "b"
nice = 19
program = "work"
"#;
    for layout in LAYOUTS {
        let mut simulation = start(&scenario(text), &machine(1, layout, free()));
        simulation.run_to(380_000_000).expect("it can go on");
        assert_eq!(simulation.alive(), 1, "{layout:?}");
        simulation.run().expect("it can go on");
        assert_eq!(simulation.now_ns(), 600_000_000, "{layout:?}");
    }
}

/// One thread alone on one CPU: the sum of all costs.
#[test]
fn the_time_of_a_run_is_its_steps_and_what_they_cost() {
    let text = r#"
[program.work]
steps = [{ compute = "1ms" }, "exit"]
[[client]]
name = "a"
program = "work"
"#;
    let costs = SchedulerCosts::default();
    let machine = machine(1, LayoutName::GlobalList, costs.clone());
    let mut simulation = start(&scenario(text), &machine);
    simulation.run().expect("it can go on");
    // The wake: a stretch to the lock, the transfer of its line, one more stretch
    // and a look at the CPU. schedule() twice: two stretches each, and the first
    // examines a task. The switch to the task, and its exit.
    let wake = 2 * costs.stretch.0 + costs.transfer.0 + costs.look.0;
    let schedules = 4 * costs.stretch.0 + costs.examine.0;
    let rest = costs.context_switch.0 + costs.system_call.0;
    assert_eq!(simulation.now_ns(), 1_000_000 + wake + schedules + rest);
    assert_eq!(simulation.counts().schedules, 2);
    assert_eq!(simulation.lock_statistics().acquisitions, 3);
    assert_eq!(simulation.lock_statistics().contention(), 0.0);
}

/// One thread that makes so many others, which end at once, on one CPU.
fn wakes_ns(costs: SchedulerCosts) -> (u64, u64) {
    let text = r#"
[program.ends]
steps = [{ compute = "1us" }]
[program.main]
steps = [{ loop = { times = 100, steps = [{ fork = "ends" }] } }]
[[client]]
name = "a"
program = "main"
"#;
    let mut simulation = start(&scenario(text), &machine(1, LayoutName::GlobalList, costs));
    simulation.run().expect("it can go on");
    (simulation.now_ns(), simulation.counts().wakes)
}

#[test]
fn a_wake_costs_the_waking_cpu_its_price_beside_all_others() {
    let usual = SchedulerCosts {
        tick: "1s".parse().expect("a time"),
        ..SchedulerCosts::default()
    };
    let (without_ns, wakes) = wakes_ns(usual.clone());
    let dear = SchedulerCosts {
        wakeup: "7us".parse().expect("a time"),
        ..usual
    };
    assert_eq!(wakes_ns(dear), (without_ns + 7_000 * wakes, wakes));
}

/// Of two computing threads on one CPU, the time of all that goes over the bus doubles: all
/// that is outside the scheduler, and the first fetch of the lock. What the scheduler does in
/// its cache takes as long as before.
#[test]
fn a_slowdown_reaches_all_that_goes_over_the_bus_and_nothing_else() {
    let text = r#"
[program.work]
steps = [{ loop = { times = 50, steps = [{ compute = "20us" }, "yield"] } }]
[[client]]
name = "a"
count = 2
program = "work"
"#;
    let run = |bus_percent| {
        let costs = SchedulerCosts {
            bus_percent,
            tick: "1s".parse().expect("a time"),
            ..SchedulerCosts::default()
        };
        let mut simulation = start(&scenario(text), &machine(1, LayoutName::GlobalList, costs));
        simulation.run().expect("it can go on");
        let counts = simulation.counts();
        let held_ns = simulation.lock_statistics().held_ns;
        (
            simulation.now_ns(),
            counts.schedules_ns,
            held_ns,
            counts.switches,
        )
    };
    let (once_ns, schedules_ns, held_ns, switches) = run(100);
    let (twice_ns, same_schedules_ns, same_held_ns, same_switches) = run(200);
    assert_eq!((same_schedules_ns, same_held_ns), (schedules_ns, held_ns));
    assert_eq!(same_switches, switches);
    let costs = SchedulerCosts::default();
    // A yield and the exit are system calls. The run ends as the last switch begins.
    let calls = 2 * 51;
    let switches_ns = (switches - 1) * costs.context_switch.0;
    let outside_ns = 100 * 20_000 + calls * costs.system_call.0 + switches_ns;
    assert_eq!(twice_ns, once_ns + outside_ns + costs.transfer.0);
}

#[test]
fn all_threads_end_under_every_layout() {
    for layout in LAYOUTS {
        for cpus in [1, 2, 4, 7] {
            let machine = usual(cpus, layout);
            let mut simulation = start(&scenario(MIXED), &machine);
            simulation.run().expect("it can go on");
            assert_eq!(simulation.alive(), 0, "{layout:?} on {cpus}");
            assert_eq!(simulation.made(), 3 * 16);
            assert_eq!(simulation.counts().sends, 3 * 5 * 40);
            assert_eq!(simulation.queue_lengths().iter().sum::<u32>(), 0);
        }
    }
}

/// All measurements of a small run, to the last nanosecond.
#[test]
fn a_small_run_is_the_same_for_ever() {
    let mut text = String::new();
    for layout in LAYOUTS {
        let mut simulation = start(&scenario(MIXED), &usual(4, layout));
        simulation.run().expect("it can go on");
        // Writing to a String cannot fail.
        let _ = writeln!(
            text,
            "{}: {} ns, {:?}, {:?}, mean length {:.4}",
            layout.title(),
            simulation.now_ns(),
            simulation.counts(),
            simulation.lock_statistics(),
            simulation.lengths().mean(),
        );
    }
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/smp.txt");
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(&path, &text).expect("writable");
    }
    let golden = std::fs::read_to_string(&path).expect("UPDATE_GOLDEN=1 writes it");
    assert_eq!(text, golden, "if that is meant, run with UPDATE_GOLDEN=1");
}

/// (2001, 5.3.)
#[test]
fn busy_cpus_contend_for_one_lock_and_not_for_a_lock_each() {
    let text = r#"
[program.yields]
steps = [{ loop = { steps = [{ compute = "1us" }, "yield"] } }]
[[client]]
name = "a"
count = 16
program = "yields"
"#;
    let contention = |layout| {
        let mut simulation = start(&scenario(text), &usual(8, layout));
        simulation.run_to(5_000_000).expect("it can go on");
        simulation.measure_afresh();
        simulation.run_to(20_000_000).expect("it can go on");
        assert_eq!(simulation.measured_ns(), 15_000_000);
        simulation.lock_statistics().contention()
    };
    assert!(contention(LayoutName::GlobalList) > 0.9);
    assert!(contention(LayoutName::MultiQueue) < 0.3);
}

/// Threads of each CPU that compute for a millisecond on average and yield or
/// sleep. They move when their time slices end.
const BUSY: &str = r#"
[program.main]
steps = [{ loop = { times = 2, steps = [{ fork = "yields" }, { fork = "sleeps" }] } }]
[program.yields]
steps = [{ loop = { steps = [{ compute = { exponential = "1ms" } }, "yield"] } }]
[program.sleeps]
steps = [{ loop = { steps = [{ compute = { exponential = "1ms" } }, { sleep = { exponential = "2ms" } }] } }]
"#;

fn busy(cpus: u32) -> String {
    format!("{BUSY}[[client]]\nname = \"a\"\ncount = {cpus}\nprogram = \"main\"\n")
}

/// Reflex, as in `scenarios/2001/pools.toml`: for each CPU two pairs of threads
/// that pass a token. A round is 100 us of computing on average and ends in a yield
/// or in passing the token. Most threads are expired, so all CPUs look for others at
/// the same time.
fn tokens(cpus: u32) -> String {
    let compute = r#"{ compute = { exponential = "100us" } }"#;
    let yields = format!(r#"{{ loop = {{ chance = 0.5, steps = [{compute}, "yield"] }} }}"#);
    let mut text = String::new();
    for pair in 0..2 * cpus {
        let [to_first, to_second] = ["a", "b"].map(|to| format!("{pair}{to}"));
        let first = format!(
            r#"{yields}, {compute}, {{ send = "{to_second}" }}, {{ receive = "{to_first}" }}"#
        );
        let second = format!(
            r#"{{ receive = "{to_second}" }}, {yields}, {compute}, {{ send = "{to_first}" }}"#
        );
        let threads = [(to_first, first), (to_second, second)];
        for (name, steps) in &threads {
            let _ = writeln!(
                text,
                "[pipe.{name}]\ncapacity = 1\n[program.{name}]\nsteps = [{{ loop = {{ steps = [{steps}] }} }}]"
            );
        }
        let forks = threads.map(|(name, _)| format!(r#"{{ fork = "{name}" }}"#));
        let _ = writeln!(
            text,
            "[program.{pair}]\nsteps = [{}]\n[[client]]\nname = \"{pair}\"\nprogram = \"{pair}\"",
            forks.join(", ")
        );
    }
    text
}

/// The mean time of a call of `schedule()`, waits for locks included. It is
/// measured for so many milliseconds, after others in which the load settles.
fn decision_ns(
    load: fn(u32) -> String,
    cpus: u32,
    layout: LayoutName,
    settles_ms: u64,
    measured_ms: u64,
) -> f64 {
    let scenario = scenario(&load(cpus));
    let mut simulation = start(&scenario, &usual(cpus, layout));
    let mut end_ns = 0;
    for part_ms in [settles_ms, measured_ms] {
        simulation.measure_afresh();
        end_ns += part_ms * 1_000_000;
        simulation.run_to(end_ns).expect("it can go on");
    }
    let counts = simulation.counts();
    println!(
        "{} on {cpus} CPUs: {} decisions, {} migrations",
        layout.title(),
        counts.schedules,
        counts.migrations
    );
    counts.schedules_ns as f64 / counts.schedules as f64
}

/// On 8 and on 1,024 CPUs. Eight CPUs take longer to make as many decisions.
fn tournament_ns(load: fn(u32) -> String) -> [f64; 2] {
    let layout = LayoutName::MultiQueueTournament;
    let found = [(8, 2000), (1024, 100)].map(|(cpus, ms)| decision_ns(load, cpus, layout, 300, ms));
    println!("{found:?}");
    found
}

#[test]
fn a_decision_by_tournament_on_1024_cpus_takes_no_more_than_twice_that_on_8() {
    let tournament = tournament_ns(busy);
    assert!(tournament[1] <= 2.0 * tournament[0], "{tournament:?}");
    // A scan takes longer. A moment shows it.
    let scan = [8, 1024].map(|cpus| decision_ns(busy, cpus, LayoutName::MultiQueue, 5, 5));
    println!("{scan:?}");
    assert!(scan[1] > 10.0 * scan[0], "{scan:?}");
}

#[test]
fn a_decision_takes_no_more_than_twice_that_on_8_where_most_tasks_are_expired() {
    let tournament = tournament_ns(tokens);
    assert!(tournament[1] <= 2.0 * tournament[0], "{tournament:?}");
}

#[test]
fn machines_without_cpus_and_with_too_many_are_refused() {
    let scenario = scenario("[[client]]\nname = \"a\"\n");
    for cpus in [0, 4097] {
        let machine = usual(cpus, LayoutName::MultiQueue);
        let refused = SmpSimulation::new(&scenario, &machine, 1).expect_err("it is none");
        assert!(matches!(refused, SmpError::Layout(_)), "{refused}");
    }
    let machine = usual(4096, LayoutName::GlobalList);
    assert!(SmpSimulation::new(&scenario, &machine, 1).is_ok());
}

#[test]
fn programs_that_loop_without_using_time_are_refused() {
    let text = r#"
[program.round]
steps = [{ loop = { chance = 0.99999999, steps = [{ loop = { times = 4000000000, steps = [{ compute = "0s" }] } }] } }]
[[client]]
name = "a"
program = "round"
"#;
    let machine = usual(1, LayoutName::GlobalList);
    let mut simulation = start(&scenario(text), &machine);
    let error = simulation.run().expect_err("no time passes");
    assert!(
        error.to_string().contains("a goes round and round"),
        "{error}"
    );
}
