//! Thousands of clients of one process each: what it takes to register one, and the engine's cost
//! while all sleep but two, which compute on two CPUs.
//!
//! `cargo bench -p prorata-user --bench crowd -- 10000` measures one size.

#[path = "../tests/support/mod.rs"]
mod support;

use std::time::{Duration, Instant};

use prorata_report::figures::{self, Figure};
use prorata_user::ProcessId;
use support::{Program, World};

const QUANTUM_NS: u64 = 20_000_000;
const TIME: Duration = Duration::from_secs(10);
const SIZES: [usize; 3] = [100, 1_000, 10_000];

/// Registrations at the end that are timed.
const TIMED: usize = 50;

fn measure(clients: usize) -> Vec<Figure> {
    let usable = rustix::thread::sched_getaffinity(None).expect("we have an affinity");
    let usable = (0..rustix::thread::CpuSet::MAX_CPU).filter(|&cpu| usable.is_set(cpu));
    let cpus: Vec<usize> = usable.take(2).collect();
    let numbers: Vec<u32> = cpus.iter().map(|&cpu| cpu as u32).collect();
    let world = World::with_cpus(None, QUANTUM_NS, &numbers);
    let mut parent = Program::start_on(&cpus, &["crowd", &clients.to_string()]);
    let pids = parent.hear();
    let mut took = Vec::new();
    for (number, pid) in pids.split(' ').enumerate() {
        let process = ProcessId::of(pid.parse().expect("a pid")).expect("it runs");
        let client = world.client(&format!("client {number}"), 1);
        let begun = Instant::now();
        world
            .engine()
            .manage(client, process)
            .expect("there is room");
        took.push(begun.elapsed());
    }
    let mut last: Vec<Duration> = took.iter().rev().take(TIMED).copied().collect();
    last.sort_unstable();
    let each_us = last[last.len() / 2].as_secs_f64() * 1e6;
    let hogs = [(); 2].map(|()| Program::start_on(&cpus, &["hog"]));
    world.enter_all(&[1, 1], &hogs);
    std::thread::sleep(TIME / 5);
    let before = world.engine().status();
    std::thread::sleep(TIME);
    let after = world.engine().status();
    let elapsed_ns = (after.uptime_ns - before.uptime_ns) as f64;
    let percent = (after.own_cpu_ns - before.own_cpu_ns) as f64 / elapsed_ns * 100.0;
    println!("{clients} clients: {percent:.2} % of a CPU, {each_us:.0} us for a registration");
    vec![
        Figure::at_most(
            format!("own CPU time beside {clients} clients, two of them computing"),
            percent,
            "%",
            10.0,
        ),
        Figure::at_most(
            format!("registration of a client beside {clients}"),
            each_us,
            "us",
            1000.0,
        ),
    ]
}

fn main() {
    prorata_user::guardian_entry();
    support::helper::helper_entry();
    let wanted = std::env::args().find_map(|word| word.parse().ok());
    if let Some(clients) = wanted {
        measure(clients);
        return;
    }
    let reached: Vec<Figure> = SIZES.into_iter().flat_map(measure).collect();
    figures::keep(env!("CARGO_TARGET_TMPDIR"), "crowd", &reached);
}
