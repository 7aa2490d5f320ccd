//! Shares on one to eight CPUs, in machines whose clocks count instructions: programs with
//! 1, 2, 3 and 4 hundred tickets, two for each CPU, and on several CPUs one more that is
//! entitled to more than a CPU. Each is set beside what it is due with feasible weights, by
//! the core's readjustment.
//!
//! Run by hand with `--measure` it does the measurement where it is.

use std::path::Path;
use std::process::{Child, Command, ExitCode, Stdio};
use std::thread::{available_parallelism, sleep};
use std::time::Duration;

use prorata_core::feasible::{Demand, Readjustment};
use prorata_kernel::scheduler::{BASE, Options, Policy, Queues, Scheduler, Scope, Ticket};
use prorata_report::figures::{self, Figure, Quantity};

/// The current series.
const KERNEL: &str = "7";
/// An instruction lasts so many nanoseconds: a second takes a fraction of one.
const ICOUNT: &str = "--icount=16";
const MOST_CPUS: u32 = 8;
/// How long shares are looked at, and what it takes everybody to begin.
const TIME: Duration = Duration::from_secs(10);
const SETTLE: Duration = Duration::from_secs(2);
/// A tick: turns last no less.
const QUANTUM_NS: u64 = 4_000_000;
/// Far more than a CPU's worth.
const RICH: u32 = 10_000;
/// By how many per cent anybody may be off.
const TARGET: f64 = 2.0;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.first().map(String::as_str) {
        Some("--measure") => measure(),
        // Not `spin_loop`: the machine would stop at each of its instructions.
        Some("--hog") => loop {
            std::hint::black_box(0);
        },
        _ => return all_sizes(),
    }
    ExitCode::SUCCESS
}

/// Starts a machine of each size.
fn all_sizes() -> ExitCode {
    let mut all = Vec::new();
    for cpus in 1..=MOST_CPUS {
        let Some(off) = in_machine(cpus) else {
            eprintln!("no machine to measure in: see `prorata vm fetch`");
            return ExitCode::FAILURE;
        };
        println!("{cpus} CPUs: off by at most {off:.2} %");
        all.push(Figure {
            name: format!("shares on {cpus} CPUs, off by at most"),
            paper: None,
            peer: None,
            measured: off,
            unit: "%".to_owned(),
            target: Some(Quantity::Words(format!("at most {TARGET}"))),
            ok: off <= TARGET,
        });
    }
    // A bench runs in its package's directory, beside which the target
    // directory need not be; cargo makes the latter's `tmp` and says where.
    let target = Path::new(env!("CARGO_TARGET_TMPDIR"))
        .parent()
        .expect("it is below the target directory");
    figures::write(&target.join("bench/processors.json"), &all).expect("figures can be written");
    ExitCode::SUCCESS
}

/// By how many per cent whoever is off most is, in a machine of so many CPUs.
fn in_machine(cpus: u32) -> Option<f64> {
    let output = Command::new(env!("CARGO_BIN_EXE_prorata"))
        .args(["vm", "run", ICOUNT, "--kernel", KERNEL])
        .args(["--cpus", &cpus.to_string(), "--"])
        .arg(std::env::current_exe().ok()?)
        .arg("--measure")
        .stderr(Stdio::inherit())
        .output()
        .ok()?;
    String::from_utf8(output.stdout).ok()?.trim().parse().ok()
}

fn measure() {
    let cpus = available_parallelism().map_or(1, |cpus| cpus.get() as u32);
    let scheduler = Scheduler::load(&Options {
        policy: Policy::Stride,
        quantum_ns: QUANTUM_NS,
        scope: Scope::Given,
        queues: Queues::Cpu,
        abbreviated: false,
    });
    let scheduler = scheduler.unwrap_or_else(|error| panic!("{error}"));
    let poor = (0..2 * cpus.max(2)).map(|number| 100 * (number % 4 + 1));
    let tickets: Vec<u32> = poor.chain((cpus > 1).then_some(RICH)).collect();
    let mut hogs = Vec::new();
    for (node, amount) in (1..).zip(&tickets) {
        hogs.push(Hog::start());
        let ticket = Ticket {
            currency: BASE,
            amount: u64::from(*amount),
        };
        let funded = scheduler.set_tickets(node, &[ticket]);
        let given = funded.and_then(|()| scheduler.give(node, hogs[hogs.len() - 1].0.id()));
        given.unwrap_or_else(|error| panic!("{error}"));
    }
    sleep(SETTLE);
    let look = || -> Vec<u64> {
        let account = |node| scheduler.account(node).expect("it is there").received_ns;
        (1..).zip(&tickets).map(|(node, _)| account(node)).collect()
    };
    let before = look();
    sleep(TIME);
    let received: Vec<f64> = look()
        .iter()
        .zip(&before)
        .map(|(n, b)| (n - b) as f64)
        .collect();
    let due = due(&tickets, cpus, received.iter().sum());
    let mut most: f64 = 0.0;
    for ((tickets, received), due) in tickets.iter().zip(&received).zip(due) {
        let off = (received / due - 1.0) * 100.0;
        eprintln!(
            "{tickets:>6} tickets: {:.3} s of {:.3}, {off:+.2} %",
            received / 1e9,
            due / 1e9
        );
        most = most.max(off.abs());
    }
    println!("{most}");
}

/// What is due of so much CPU time to each, one task with these tickets.
fn due(tickets: &[u32], cpus: u32, all_ns: f64) -> Vec<f64> {
    let demand = |weight: &u32| Demand {
        weight: *weight,
        cpus: 1,
    };
    let total: u32 = tickets.iter().sum();
    let mut readjustment = Readjustment::new(total.into(), cpus);
    let mut densest: Vec<u32> = tickets.to_vec();
    densest.sort_unstable_by(|a, b| b.cmp(a));
    let cut = densest.iter().map_while(|weight| {
        let demand = demand(weight);
        readjustment.cut(demand).then_some(*weight)
    });
    let least_cut = cut.last();
    let feasible = |weight: &u32| match least_cut {
        Some(least) if *weight >= least => readjustment.weight(demand(weight)),
        _ => *weight,
    };
    let feasible: Vec<f64> = tickets
        .iter()
        .map(|weight| f64::from(feasible(weight)))
        .collect();
    let sum: f64 = feasible.iter().sum();
    feasible
        .iter()
        .map(|weight| weight / sum * all_ns)
        .collect()
}

/// A program that computes until this is dropped.
struct Hog(Child);

impl Hog {
    fn start() -> Self {
        let program = std::env::current_exe().expect("it runs");
        let hog = Command::new(program).arg("--hog").spawn();
        Self(hog.expect("it can be started"))
    }
}

impl Drop for Hog {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
