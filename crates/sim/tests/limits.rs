//! The limits that only a large scenario reaches: what is at one fits, and what
//! is one past it is refused. (For the others see `refusals.rs`.)

mod common;

use std::collections::BTreeMap;

use prorata_scenario::file::{
    Currency, Distribution, Mutex, MutexKind, Pipe, Pool, Program, Step, Time, Trace, Varying,
};
use prorata_scenario::plan::limits;
use prorata_scenario::{Plan, RunError, Scenario};
use prorata_sim::Simulation;

fn smallest() -> Scenario {
    common::parse("duration = \"1s\"\n[[client]]\nname = \"A\"\n")
}

/// Makes scenarios with `limit` things and with one more, and asserts that the
/// second is refused for that.
fn assert_limit(limit: u32, what: &str, with: impl Fn(&mut Scenario, u32)) {
    let plan = |count: u32| {
        let mut scenario = smallest();
        with(&mut scenario, count);
        Plan::new(&scenario).map(drop)
    };
    plan(limit).unwrap_or_else(|error| panic!("{limit}: {error}"));
    let error = plan(limit + 1).expect_err(what).to_string();
    assert!(error.contains(what), "{error}");
}

/// So many things, with names.
fn named<T: Clone>(count: u32, thing: &T) -> BTreeMap<String, T> {
    (0..count)
        .map(|i| (format!("n{i}"), thing.clone()))
        .collect()
}

#[test]
fn clients() {
    assert_limit(limits::CLIENTS, "count", |scenario, count| {
        scenario.clients[0].count = Some(count);
    });
    // Each line is within the limit, both are past it.
    let mut scenario = smallest();
    scenario.clients.push(scenario.clients[0].clone());
    scenario.clients[1].name = "B".to_owned();
    scenario.clients[1].count = Some(limits::CLIENTS);
    let error = Plan::new(&scenario).expect_err("one too many").to_string();
    assert!(error.contains("the number of clients"), "{error}");
}

#[test]
fn pools() {
    assert_limit(limits::POOLS, "the number of pools", |scenario, count| {
        let pools = (0..count).map(|i| Pool {
            name: format!("p{i}"),
            cpus: 1,
        });
        scenario.machine.pools = pools.collect();
        scenario.machine.cpus = count;
    });
    // All CPUs in one of two pools, and one past that.
    let mut scenario = smallest();
    for (cpus, fits) in [(limits::CPUS - 1, true), (limits::CPUS, false)] {
        let pool = |name: &str, cpus: u32| Pool {
            name: name.to_owned(),
            cpus,
        };
        scenario.machine.pools = vec![pool("a", cpus), pool("b", 1)];
        scenario.machine.cpus = cpus + 1;
        assert_eq!(Plan::new(&scenario).is_ok(), fits, "{cpus}");
    }
}

#[test]
fn currencies() {
    // The base currency is one, too.
    assert_limit(limits::CURRENCIES - 1, "currencies", |scenario, count| {
        let currencies = (0..count).map(|i| Currency {
            count: None,
            name: format!("c{i}"),
            tickets: Vec::new(),
        });
        scenario.currencies = currencies.collect();
    });
    // So is that of a mutex.
    assert_limit(limits::CURRENCIES - 1, "currencies", |scenario, count| {
        let kind = MutexKind::Lottery;
        scenario.mutexes = named(
            count,
            &Mutex {
                kind,
                ..Mutex::default()
            },
        );
    });
}

#[test]
fn objects() {
    let what = "the number of objects of a kind";
    assert_limit(limits::OBJECTS, what, |scenario, count| {
        scenario.mutexes = named(count, &Mutex::default());
    });
    assert_limit(limits::OBJECTS, what, |scenario, count| {
        scenario.pipes = named(count, &Pipe { capacity: 1 });
    });
    assert_limit(limits::OBJECTS, what, |scenario, count| {
        let steps = vec![Step::Exit];
        scenario.programs = named(count, &Program { steps });
    });
}

#[test]
fn times_of_a_trace() {
    assert_limit(limits::TRACE, "the length of a trace", |scenario, count| {
        let times = vec![Time(1); count as usize];
        let times = Distribution::Varying(Varying::Trace(Trace::Times(times)));
        let steps = vec![Step::Compute(times)];
        scenario.programs = named(1, &Program { steps });
    });
}

#[test]
fn events_of_the_timeline() {
    let text = "duration = \"1s\"\n[[client]]\nname = \"A\"\n[[at]]\ntime = \"1ms\"\ndo = { stop = \"A\" }\n";
    let event = common::parse(text).timeline.remove(0);
    assert_limit(
        limits::TIMELINE,
        "the number of events",
        |scenario, count| scenario.timeline = vec![event.clone(); count as usize],
    );
}

#[test]
fn points_of_the_time_series() {
    assert_limit(limits::POINTS, "the number of points", |scenario, count| {
        scenario.measure.every = Some(Time(1000));
        scenario.duration = Time(1000 * u64::from(count));
    });
}

#[test]
fn pairs() {
    assert_limit(limits::PAIRS, "the number of pairs", |scenario, count| {
        let mut other = scenario.clients[0].clone();
        other.name = "B".to_owned();
        scenario.clients.push(other);
        scenario.measure.pairs = vec![("A".to_owned(), "B".to_owned()); count as usize];
    });
}

/// All threads but one begin at once, and there are as many as there may be. The one that
/// comes a microsecond later is one too many. (The thread that forks it has a CPU from the
/// beginning.)
#[test]
fn threads() {
    const FORKS: usize = 1778;
    const FORKS_OF_FORKS: usize = 2358;
    assert_eq!(2 + FORKS * (1 + FORKS_OF_FORKS), limits::THREADS as usize);
    let forks = |program: &str, count: usize| {
        let mut steps = vec![Step::Fork(program.to_owned()); count];
        steps.push(Step::Wait("end".to_owned()));
        Program { steps }
    };
    let mut scenario = common::parse(
        r#"
        duration = "1ms"
        machine = { cpus = 2 }
        client = [{ name = "B", tickets = 1, program = "late" }, { name = "A", tickets = 1, program = "first" }]
        at = [{ time = "1ms", do = { signal = "end" } }]
        [program.first]
        steps = ["exit"]
        [program.late]
        steps = [{ compute = "1us" }, { fork = "compute" }, { compute = "1s" }]
        "#,
    );
    scenario
        .programs
        .insert("first".to_owned(), forks("second", FORKS));
    scenario
        .programs
        .insert("second".to_owned(), forks("compute", FORKS_OF_FORKS));
    let mut simulation = Simulation::new(&scenario, 1).expect("within all other limits");
    match simulation.run() {
        Err(error @ RunError::TooManyThreads { .. }) => assert_eq!(
            error.to_string(),
            "at 1us B starts one thread more than the 4194304 that there may be at a time: \
             let threads exit"
        ),
        other => panic!("{other:?}"),
    }
}
