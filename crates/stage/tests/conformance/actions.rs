//! All steps and events, on processes. The assertions depend on no share: they are on CPU
//! time used, order, and exited clients.

use libtest_mimic::{Failed, Trial};
use prorata_scenario::Report;
use prorata_stage::{USER, run};

use super::{assert_no_child, parse};

pub fn list(trials: &mut Vec<Trial>) {
    let mut add = |name: &str, test: fn() -> Result<(), Failed>| {
        trials.push(Trial::test(name, test));
    };
    add(
        "programs use what they are to use, and end",
        computes_and_ends,
    );
    add("threads meet at mutexes, pipes, signals", meetings);
    add("a timeline starts, stops, funds and lends", timeline);
    add("rules and policies change tickets and turns", rules);
}

fn played(text: &str) -> Result<Report, Failed> {
    let report = run(&parse(text), 7, &USER, &mut ())?;
    assert_no_child();
    Ok(report)
}

fn received_ms(report: &Report, client: &str) -> f64 {
    let mut clients = report.clients.iter();
    let client = clients.find(|c| c.name == client).expect("it is listed");
    client.received_ns as f64 / 1e6
}

/// Asserts that a client used so much CPU time, and little more for its
/// messages and its end.
#[track_caller]
fn assert_received(report: &Report, client: &str, ms: f64) {
    let received_ms = received_ms(report, client);
    assert!(
        (ms..ms + 15.0).contains(&received_ms),
        "{client}: {received_ms} ms instead of {ms}"
    );
}

fn computes_and_ends() -> Result<(), Failed> {
    let report = played(
        r#"
        title = "loops, draws, forks, sleeps"
        duration = "1s"
        [program.loops]
        steps = [
          { loop = { times = 5, steps = [
            { compute = "2ms" },
            { loop = { times = 2, steps = [{ compute = { trace = ["1ms", "3ms"] } }] } },
          ] } },
          "exit",
          { compute = "10s" },
        ]
        [program.forks]
        steps = [{ fork = "loops" }, { fork = "loops" }, { sleep = "1ms" }, { compute = "5ms" }]
        [[client]]
        name = "loops"
        tickets = 1
        program = "loops"
        [[client]]
        name = "forks"
        tickets = 1
        program = "forks"
        [[assert]]
        dispatch-latency = { client = "forks", percentile = 100, at-most = "1s" }
        [[assert]]
        response-time = { client = "forks", percentile = 100, at-most = "1s" }
        "#,
    )?;
    assert_received(&report, "loops", 30.0);
    assert_received(&report, "forks", 65.0);
    assert!(report.verdicts[0].judged && report.verdicts[0].holds);
    // A figure that is not measured is not judged.
    assert!(!report.verdicts[1].judged && !report.verdicts[1].holds);
    assert!(report.holds());
    Ok(())
}

fn meetings() -> Result<(), Failed> {
    let report = played(
        r#"
        title = "waiting threads continue"
        duration = "1.5s"
        [mutex.plain]
        [mutex.fair]
        kind = "lottery"
        keeps-cpu = true
        [pipe.p]
        capacity = 2
        [program.source]
        steps = [{ loop = { times = 10, steps = [{ compute = "1ms" }, { send = "p" }] } }]
        [program.sink]
        steps = [
          { loop = { times = 10, steps = [
            { receive = "p" },
            { lock = "plain" }, { compute = "1ms" }, { unlock = "plain" },
            { signal = "done" },
          ] } },
        ]
        [program.counter]
        steps = [
          { loop = { times = 10, steps = [
            { wait = "done" },
            { lock = "plain" }, { lock = "fair" }, { compute = "1ms" }, { unlock = "fair" }, { unlock = "plain" },
          ] } },
          { call = "end" },
        ]
        [program.locker]
        steps = [{ loop = { times = 10, steps = [{ lock = "fair" }, { compute = "1ms" }, { unlock = "fair" }] } }]
        [program.end]
        steps = [{ serve = { service = "end", steps = [{ compute = "20ms" }] } }]
        [[client]]
        name = "source"
        tickets = 1
        program = "source"
        [[client]]
        name = "sink"
        tickets = 1
        program = "sink"
        [[client]]
        name = "counter"
        tickets = 1
        program = "counter"
        [[client]]
        name = "locker"
        count = 3
        tickets = 1
        program = "locker"
        [[client]]
        name = "end"
        program = "end"
        [[assert]]
        conservation = true
        "#,
    )?;
    for client in ["source", "sink", "counter", "locker1", "locker2", "locker3"] {
        assert_received(&report, client, 10.0);
    }
    // The server has no tickets but those of its only caller.
    assert_received(&report, "end", 20.0);
    let times = |name: &str, client: &str| {
        let mut waits = report.mutexes.iter().chain(&report.services);
        let wait = waits.find(|wait| wait.name == name && wait.client == client);
        wait.and_then(|wait| wait.times)
            .map_or(0, |times| times.count)
    };
    assert_eq!(
        (times("plain", "sink"), times("plain", "counter")),
        (10, 10)
    );
    assert_eq!(
        (times("fair", "counter"), times("fair", "locker2")),
        (10, 10)
    );
    assert_eq!(times("end", "counter"), 1);
    assert!(report.holds(), "{:?}", report.verdicts);
    Ok(())
}

fn timeline() -> Result<(), Failed> {
    let report = played(
        r#"
        title = "from outside"
        duration = "2s"
        [mutex.m]
        [program.holds]
        steps = [{ lock = "m" }, { wait = "go" }, { unlock = "m" }]
        [program.waits]
        steps = [{ sleep = "10ms" }, { lock = "m" }, { compute = "20ms" }, { unlock = "m" }]
        [[currency]]
        name = "rich"
        tickets = ["1000.base"]
        [[client]]
        name = "holder"
        tickets = 1
        program = "holds"
        [[client]]
        name = "waiter"
        tickets = "10.rich"
        program = "waits"
        [[client]]
        name = "hog"
        tickets = 10
        [[client]]
        name = "late"
        start = "1s"
        tickets = 10
        [[at]]
        time = "200ms"
        do = { stop = "holder" }
        [[at]]
        time = "400ms"
        do = { start = "holder" }
        [[at]]
        time = "500ms"
        do = { start = "waiter" }
        [[at]]
        time = "600ms"
        do = { signal = "go" }
        [[at]]
        time = "700ms"
        do = { transfer = { name = "loan", from = "hog", to = ["late"], tickets = "5.base" } }
        [[at]]
        time = "800ms"
        do = { end-transfer = "loan" }
        [[at]]
        time = "1s"
        do = { stop = "hog" }
        [[at]]
        time = "1.5s"
        do = { set-tickets = { of = "late", tickets = "20.base" } }
        [[at]]
        time = "1.6s"
        do = { unfund = { of = "rich", currency = "base" } }
        [[at]]
        time = "1.7s"
        do = { transfer = { name = "other", from = "late", to = ["hog"], tickets = "4000000000.base" } }
        [measure]
        every = "100ms"
        [[assert]]
        share = { client = "hog", is = 0.99, within = 0.04, from = "700ms", to = "1s" }
        [[assert]]
        share = { client = "late", is = 1, within = 0.02, from = "1.1s" }
        [[assert]]
        conservation = true
        "#,
    )?;
    // Stopped, the holder let the mutex go; started again, it waited until it
    // had it, and was let go on by a signal to its end, which gave it back.
    assert_received(&report, "waiter", 40.0);
    assert_eq!(report.refused.len(), 1, "{:?}", report.refused);
    assert_eq!(report.series.len(), 20);
    assert!(report.holds(), "{:?}", report.verdicts);
    Ok(())
}

fn rules() -> Result<(), Failed> {
    let report = played(
        r#"
        title = "what changes by itself"
        duration = "1.5s"
        [machine]
        policy = "lottery"
        quantum = "10ms"
        [[client]]
        name = "random"
        tickets = { random = { between = [50, 150], every = "20ms" } }
        [[client]]
        name = "young"
        start = "500ms"
        tickets = { monte-carlo = { scale = 4000000000, trial = "100us", every = "20ms" } }
        [[at]]
        time = "1s"
        do = { policy = "stride" }
        [[at]]
        time = "1s"
        do = { quantum = "5ms" }
        [[assert]]
        share = { client = "young", is = 1, within = 0.1, from = "600ms", to = "950ms" }
        [[assert]]
        conservation = true
        "#,
    )?;
    assert_eq!(report.quantum_ns, 5_000_000);
    assert_eq!(report.policy, prorata_core::policy::PolicyName::Stride);
    assert!(report.holds(), "{:?}", report.verdicts);
    Ok(())
}
