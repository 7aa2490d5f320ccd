//! The engine's own cost: CPU time of its process and of its guardian beside so many clients of one
//! process each, on two CPUs, for ten seconds each.
//!
//! `cargo bench -p prorata-user --bench cost -- computing 10` measures a single case.

#[path = "../tests/support/mod.rs"]
mod support;

use std::time::Duration;

use prorata_report::figures::{self, Figure};
use support::{Program, World};

const QUANTUM_NS: u64 = 20_000_000;
const TIME: Duration = Duration::from_secs(10);
/// Most clients that compute: a thousand would take longer to start than to measure.
const MOST_COMPUTING: usize = 100;

/// What a client's process does.
#[derive(Clone, Copy, PartialEq)]
enum Work {
    Sleeping,
    Computing,
    /// One in ten computes.
    Mixed,
}

impl Work {
    const ALL: [Work; 3] = [Work::Sleeping, Work::Computing, Work::Mixed];

    fn name(self) -> &'static str {
        match self {
            Work::Sleeping => "sleeping",
            Work::Computing => "computing",
            Work::Mixed => "mixed",
        }
    }

    fn start(self, index: usize, cpus: &[usize]) -> Program {
        let computes = match self {
            Work::Sleeping => false,
            Work::Computing => true,
            Work::Mixed => index.is_multiple_of(10),
        };
        match computes {
            true => Program::start_on(cpus, &["hog"]),
            false => Program::start_on(cpus, &["run", "sleep", "1000"]),
        }
    }
}

/// The engine's cost in percent of a CPU, and decisions a second.
fn cost(work: Work, clients: usize) -> (f64, f64) {
    let usable = rustix::thread::sched_getaffinity(None).expect("we have an affinity");
    let usable = (0..rustix::thread::CpuSet::MAX_CPU).filter(|&cpu| usable.is_set(cpu));
    let cpus: Vec<usize> = usable.take(2).collect();
    let numbers: Vec<u32> = cpus.iter().map(|&cpu| cpu as u32).collect();
    let world = World::with_cpus(None, QUANTUM_NS, &numbers);
    let programs: Vec<Program> = (0..clients).map(|n| work.start(n, &cpus)).collect();
    world.enter_all(&vec![1; clients], &programs);
    std::thread::sleep(TIME / 5);
    let before = world.engine().status();
    std::thread::sleep(TIME);
    let after = world.engine().status();
    let elapsed_ns = (after.uptime_ns - before.uptime_ns) as f64;
    let used_ns = (after.own_cpu_ns - before.own_cpu_ns) as f64;
    let decisions = (after.decisions - before.decisions) as f64;
    (used_ns / elapsed_ns * 100.0, decisions / elapsed_ns * 1e9)
}

fn measure(work: Work, clients: usize) -> Figure {
    let (percent, decisions) = cost(work, clients);
    let name = format!("own CPU time beside {clients} clients, {}", work.name());
    println!("{name}: {percent:.2} %, {decisions:.0} decisions a second");
    Figure::at_most(name, percent, "%", 1.0)
}

fn main() {
    prorata_user::guardian_entry();
    support::helper::helper_entry();
    let arguments: Vec<String> = std::env::args().collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    if let Some(work) = Work::ALL
        .into_iter()
        .find(|work| words.contains(&work.name()))
    {
        let count = words.iter().find_map(|word| word.parse().ok());
        measure(work, count.unwrap_or(1));
        return;
    }
    let mut reached = vec![measure(Work::Sleeping, 0)];
    for work in Work::ALL {
        let counts = [1, 10, 100, 1000].into_iter();
        let counts = counts.filter(|&n| work != Work::Computing || n <= MOST_COMPUTING);
        reached.extend(counts.map(|clients| measure(work, clients)));
    }
    figures::keep(env!("CARGO_TARGET_TMPDIR"), "cost", &reached);
}
