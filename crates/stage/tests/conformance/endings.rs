//! Runs that are refused or broken off: each says why, and leaves nothing
//! behind.

use std::time::{Duration, Instant};

use libtest_mimic::{Failed, Trial};
use prorata_stage::{StageError, USER, Watch, check, run};
use rustix::process::{Pid, Signal, kill_process};

use super::{assert_no_child, parse};

pub fn list(trials: &mut Vec<Trial>) {
    let mut add = |name: &str, test: fn() -> Result<(), Failed>| {
        trials.push(Trial::test(name, test));
    };
    add(
        "what processes cannot do is refused where it stands",
        refusals,
    );
    add("a run that is broken off leaves nothing behind", broken_off);
    add("a process that is killed ends the run", killed);
    add("threads without end end the run", fork_storm);
}

const HOGS: &str = r#"
title = "hogs"
duration = "100s"
[[client]]
name = "hog"
count = 3
tickets = 1
"#;

fn refusals() -> Result<(), Failed> {
    let machine = |key: &str| format!("{HOGS}[machine]\n{key}\n");
    let program =
        |step: &str| format!("{HOGS}[program.p]\nsteps = [{{ compute = \"1s\" }}, {step}]\n");
    let cases = [
        (
            machine("cpus = 4096"),
            "machine.cpus: ",
            "as many as this process may use",
        ),
        (
            machine("pools = [{ name = \"one\", cpus = 1 }]"),
            "machine.pools: ",
            "--engine sim",
        ),
        (
            machine("costs = { interrupt = \"1us\" }"),
            "machine.costs: ",
            "--engine sim",
        ),
        (
            machine("hybrid = { ticket-boost = true }"),
            "machine.hybrid: ",
            "--engine sim",
        ),
        (
            format!("{HOGS}nice = 5\n"),
            "client[0].nice: ",
            "--engine sim",
        ),
        (
            machine("[[at]]\ntime = \"1s\"\ndo = { set-nice = { of = \"hog\", nice = 5 } }"),
            "at[0].do.set-nice: ",
            "--engine sim",
        ),
        (
            program("{ loop = { steps = [{ block = { for = \"1s\", in = \"disk\" } }] } }"),
            "program.p.steps[1].loop.steps[0].block: ",
            "--engine sim",
        ),
        (
            format!("{HOGS}[mutex.m]\nkernel = true\n"),
            "mutex.m.kernel: ",
            "--engine sim",
        ),
        (
            format!("{HOGS}user = 1\n[slots]\n"),
            "client[0].user: ",
            "--engine sim",
        ),
        (
            format!("{HOGS}[slots]\n[[claim]]\nby = \"hog1\"\nthread = 1\ncache = 1\n"),
            "claim[0].thread: ",
            "--engine sim",
        ),
        (
            machine("policy = \"eevdf\""),
            "machine.policy: ",
            "--engine sim",
        ),
        (
            machine("quantum = \"999us\""),
            "machine.quantum: ",
            "1ms to 1s, for this engine",
        ),
        (
            machine("quantum = \"1001ms\""),
            "machine.quantum: ",
            "1ms to 1s, for this engine",
        ),
        (
            HOGS.replace("3", "1025"),
            "client[0]: ",
            "1024, as each is a process",
        ),
        (
            program("\"yield\""),
            "program.p.steps[1]: ",
            "leave it out, or sleep",
        ),
        (
            program("{ loop = { times = 2, steps = [\"yield\"] } }"),
            "program.p.steps[1].loop.steps[0]: ",
            "leave it out, or sleep",
        ),
        (
            program("{ serve = { service = \"s\", steps = [\"yield\"] } }"),
            "program.p.steps[1].serve.steps[0]: ",
            "leave it out, or sleep",
        ),
        (
            format!("{HOGS}[mutex.m]\nkind = \"lottery\"\n"),
            "mutex.m: ",
            "keeps-cpu = true",
        ),
        (
            format!("{HOGS}[[at]]\ntime = \"1s\"\ndo = {{ policy = \"eevdf\" }}\n"),
            "at[0].do.policy: ",
            "--engine sim",
        ),
        (
            format!("{HOGS}[[at]]\ntime = \"1s\"\ndo = {{ quantum = \"2s\" }}\n"),
            "at[0].do.quantum: ",
            "1ms to 1s",
        ),
    ];
    for (text, place, fix) in cases {
        let refused = check(&parse(&text), &USER).expect_err(&text).to_string();
        assert!(
            refused.starts_with(place) && refused.contains(fix),
            "{refused}"
        );
    }
    let at_limits = [
        machine("quantum = \"1ms\""),
        machine("quantum = \"1s\""),
        HOGS.replace("3", &USER.most_clients.to_string()),
        format!("{HOGS}[mutex.m]\nkind = \"lottery\"\nkeeps-cpu = true\n"),
    ];
    for text in at_limits {
        check(&parse(&text), &USER)?;
    }
    Ok(())
}

/// Calls a function once the scenario is under way, and wants it to end then,
/// or not.
struct Soon<F> {
    then: F,
    ends: bool,
}

impl<F: FnMut()> Watch for Soon<F> {
    fn goes_on(&mut self, now_ns: u64, _: u64) -> bool {
        let soon = now_ns > 200_000_000;
        if soon {
            (self.then)();
        }
        !(soon && self.ends)
    }
}

fn broken_off() -> Result<(), Failed> {
    let begin = Instant::now();
    let mut watch = Soon {
        then: || {},
        ends: true,
    };
    let ended = run(&parse(HOGS), 1, &USER, &mut watch);
    assert!(matches!(ended, Err(StageError::Interrupted)), "{ended:?}");
    assert!(begin.elapsed() < Duration::from_secs(60));
    assert_no_child();
    Ok(())
}

fn killed() -> Result<(), Failed> {
    let kill_a_child = || {
        let children = std::fs::read_to_string(format!(
            "/proc/self/task/{}/children",
            rustix::thread::gettid().as_raw_nonzero()
        ));
        let children = children.expect("the kernel lists children");
        let mut pids = children
            .split_whitespace()
            .filter_map(|pid| pid.parse().ok());
        // The guardian is ours too.
        let hog = pids.find(|pid| {
            let line = std::fs::read(format!("/proc/{pid}/cmdline"));
            line.is_ok_and(|line| line.starts_with(b"prorata-client"))
        });
        if let Some(hog) = hog.and_then(Pid::from_raw) {
            let _ = kill_process(hog, Signal::KILL);
        }
    };
    let mut watch = Soon {
        then: kill_a_child,
        ends: false,
    };
    let ended = run(&parse(HOGS), 1, &USER, &mut watch);
    let Err(StageError::ProcessLost { client, .. }) = &ended else {
        panic!("{ended:?}");
    };
    assert!(client.starts_with("hog"), "{client}");
    assert_no_child();
    Ok(())
}

fn fork_storm() -> Result<(), Failed> {
    let scenario = parse(
        r#"
        title = "storm"
        duration = "100s"
        [program.storm]
        steps = [{ loop = { times = 5000, steps = [{ fork = "idle" }] } }]
        [program.idle]
        steps = [{ wait = "never" }]
        [[client]]
        name = "storm"
        tickets = 1
        program = "storm"
        [[at]]
        time = "100s"
        do = { signal = "never" }
        "#,
    );
    let ended = run(&scenario, 1, &USER, &mut ());
    let Err(StageError::TooManyThreads { client, .. }) = &ended else {
        panic!("{ended:?}");
    };
    assert_eq!(client, "storm");
    assert_no_child();
    Ok(())
}
