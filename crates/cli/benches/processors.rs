//! Shares on one to eight CPUs, under Linux's own scheduler and under ours, in micro-VMs whose
//! clocks count instructions. Programs have weights of 100, 200, 300 and 400, two for each
//! CPU but four at least; on several CPUs one more is entitled to more than a CPU. The bench
//! measures first steady shares, then shares just after the weights of every fourth program
//! have grown fivefold. It compares each program with its entitlement under feasible weights,
//! from the core's readjustment.
//!
//! With `--measure` the bench measures on this host, with `--measure-stride` under our
//! scheduler.

mod machine;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode};
use std::thread::{available_parallelism, sleep};
use std::time::Duration;

use prorata_core::feasible::{Demand, feasible_weights};
use prorata_kernel::scheduler::{
    BASE, Mechanisms, Options, Policy, Queues, Scheduler, Scope, Ticket,
};
use prorata_report::figures::{self, Figure};
use prorata_report::table::{Side, Table};

/// The current series.
const KERNEL: &str = "7";
/// Nanoseconds per instruction. At this value a second takes a fraction of one.
const ICOUNT: &str = "--icount=16";
const MOST_CPUS: u32 = 8;
/// Time until the kernel has finished booting. (Loading a scheduler takes as long.)
const BOOT: Duration = Duration::from_secs(20);
/// Time of the measurement, time for all programs to start, and time after a change.
const TIME: Duration = Duration::from_secs(10);
const SETTLE: Duration = Duration::from_secs(2);
const AFTER_CHANGE: Duration = Duration::from_secs(1);
/// A tick, the shortest length of a turn.
const QUANTUM_NS: u64 = 4_000_000;
/// The largest `cpu.weight`, far more than a CPU's worth.
const RICH: u32 = 10_000;
/// One program in this many changes its weight, and the factor of the change.
const CHANGED: usize = 4;
const GROWTH: u32 = 5;
/// The largest error of a program in per cent.
const TARGET: f64 = 2.0;

const ROOT: &str = "/sys/fs/cgroup";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.first().map(String::as_str) {
        Some("--measure") => {
            sleep(BOOT);
            measure(None);
        }
        Some("--measure-stride") => {
            let options = Options {
                policy: Policy::Stride,
                quantum_ns: QUANTUM_NS,
                scope: Scope::Given,
                queues: Queues::Cpu,
                hybrid: Mechanisms::NONE,
            };
            machine::under(&options, |scheduler| measure(Some(scheduler)));
        }
        Some("--hog") => compute(),
        _ => return compare(),
    }
    ExitCode::SUCCESS
}

/// Computes for ever, with pauses. A micro-VM that counts instructions executes one CPU at a
/// time, until that CPU pauses or a timer is due, while the clocks of all CPUs advance. Without
/// pauses some CPUs would stand still for a tenth of a second and count it as used time.
fn compute() -> ! {
    const BETWEEN_PAUSES: u32 = 2_000;
    loop {
        for _ in 0..BETWEEN_PAUSES {
            std::hint::black_box(0);
        }
        std::hint::spin_loop();
    }
}

/// The results in per cent.
#[derive(Clone, Copy)]
struct Errors {
    /// The largest error of a program, relative to its entitlement.
    most: f64,
    /// CPU time that went to programs without a right to it.
    misplaced: f64,
    /// The same just after the change.
    after_change: f64,
}

/// Measures in micro-VMs of each size and compares the results.
fn compare() -> ExitCode {
    let mut table = Table::new(&[
        ("CPUS", Side::Right),
        ("EEVDF: OFF BY", Side::Right),
        ("MISPLACED", Side::Right),
        ("AFTER CHANGE", Side::Right),
        ("PRORATA: OFF BY", Side::Right),
        ("MISPLACED", Side::Right),
        ("AFTER CHANGE", Side::Right),
    ]);
    let mut all = Vec::new();
    for cpus in 1..=MOST_CPUS {
        let runs = ["--measure", "--measure-stride"].map(|measure| in_machine(cpus, measure));
        let [Some(eevdf), Some(stride)] = runs else {
            eprintln!("no kernel for a micro-VM: run `prorata vm fetch`");
            return ExitCode::FAILURE;
        };
        let percent = |error: f64| format!("{error:.2} %");
        let columns =
            |errors: Errors| [errors.most, errors.misplaced, errors.after_change].map(percent);
        let row = [cpus.to_string()].into_iter();
        table.row(row.chain(columns(eevdf)).chain(columns(stride)).collect());
        let name = format!("shares on {cpus} CPUs, off by at most");
        let figure = Figure::at_most(name, stride.most, "%", TARGET);
        all.push(figure.beside(format!("EEVDF: {}", percent(eevdf.most))));
    }
    for line in table.lines(None) {
        println!("{line}");
    }
    figures::keep(env!("CARGO_TARGET_TMPDIR"), "processors", &all);
    ExitCode::SUCCESS
}

/// Measures and prints inside a micro-VM with this number of CPUs.
fn in_machine(cpus: u32, measure: &str) -> Option<Errors> {
    let cpus = cpus.to_string();
    let text = machine::said_in(&[ICOUNT, "--kernel", KERNEL, "--cpus", &cpus], &[measure])?;
    let mut figures = text.split_whitespace().map(|figure| figure.parse().ok());
    Some(Errors {
        most: figures.next()??,
        misplaced: figures.next()??,
        after_change: figures.next()??,
    })
}

fn measure(scheduler: Option<&Scheduler>) {
    let cpus = available_parallelism().map_or(1, |cpus| cpus.get() as u32);
    let poor = 2 * cpus.max(2);
    let weights = (0..poor).map(|number| 100 * (number % 4 + 1));
    let mut weights: Vec<u32> = weights.chain((cpus > 1).then_some(RICH)).collect();
    let hogs: Vec<Hog> = (1..)
        .zip(&weights)
        .map(|(number, weight)| Hog::start(scheduler, number, *weight))
        .collect();
    sleep(SETTLE);
    let steady = used_ns(&hogs, TIME);
    let all_ns: f64 = steady.iter().sum();
    let due_ns = due(&weights, cpus, all_ns);
    let off = steady.iter().zip(&due_ns).map(|(used, due)| {
        let off = (used / due - 1.0) * 100.0;
        eprintln!("{:.3} s of {:.3}, {off:+.2} %", used / 1e9, due / 1e9);
        off.abs()
    });
    let most = off.fold(0.0, f64::max);
    let hogs_of_poor = weights.iter_mut().zip(&hogs).take(poor as usize);
    for (weight, hog) in hogs_of_poor.step_by(CHANGED) {
        *weight *= GROWTH;
        hog.weigh(scheduler, *weight);
    }
    let after = used_ns(&hogs, AFTER_CHANGE);
    let due_after_ns = due(&weights, cpus, after.iter().sum());
    let steady = misplaced(&steady, &due_ns);
    println!("{most} {steady} {}", misplaced(&after, &due_after_ns));
}

/// CPU time used by each program in a given time.
fn used_ns(hogs: &[Hog], time: Duration) -> Vec<f64> {
    let look = || -> Vec<f64> { hogs.iter().map(Hog::used_ns).collect() };
    let before = look();
    sleep(time);
    look()
        .iter()
        .zip(before)
        .map(|(now, before)| now - before)
        .collect()
}

/// The misplaced part of all CPU time in per cent.
fn misplaced(used: &[f64], due: &[f64]) -> f64 {
    let beyond = used
        .iter()
        .zip(due)
        .map(|(used, due)| (used - due).max(0.0));
    100.0 * beyond.sum::<f64>() / used.iter().sum::<f64>()
}

/// The entitlement to a given CPU time of each task with this weight.
fn due(weights: &[u32], cpus: u32, all_ns: f64) -> Vec<f64> {
    let demand = |&weight: &u32| Demand { weight, cpus: 1 };
    let feasible = feasible_weights(&weights.iter().map(demand).collect::<Vec<_>>(), cpus);
    let sum: u32 = feasible.iter().sum();
    feasible
        .iter()
        .map(|&weight| f64::from(weight) / f64::from(sum) * all_ns)
        .collect()
}

/// A program that computes until this is dropped.
struct Hog {
    program: Child,
    /// The node of a client of ours.
    number: u32,
    /// The control group under Linux's own scheduler.
    group: PathBuf,
}

impl Hog {
    /// Starts a program with this weight, under our scheduler if given.
    fn start(scheduler: Option<&Scheduler>, number: u32, weight: u32) -> Self {
        let program = std::env::current_exe().expect("it runs");
        let hog = Command::new(program).arg("--hog").spawn();
        let hog = Self {
            program: hog.expect("it can be started"),
            number,
            group: Path::new(ROOT).join(format!("hog-{number}")),
        };
        let pid = hog.program.id();
        if let Some(scheduler) = scheduler {
            hog.weigh(Some(scheduler), weight);
            scheduler.give(number, pid).expect("it is there");
            return hog;
        }
        write(&Path::new(ROOT).join("cgroup.subtree_control"), "+cpu");
        fs::create_dir(&hog.group).expect("it is new");
        hog.weigh(None, weight);
        write(&hog.group.join("cgroup.procs"), &pid.to_string());
        hog
    }

    fn weigh(&self, scheduler: Option<&Scheduler>, weight: u32) {
        let Some(scheduler) = scheduler else {
            return write(&self.group.join("cpu.weight"), &weight.to_string());
        };
        let ticket = Ticket {
            currency: BASE,
            amount: weight.into(),
        };
        let funded = scheduler.set_tickets(self.number, &[ticket]);
        funded.unwrap_or_else(|error| panic!("{error}"));
    }

    fn used_ns(&self) -> f64 {
        let text = fs::read_to_string(format!("/proc/{}/schedstat", self.program.id()));
        let text = text.expect("it runs");
        let used = text.split_whitespace().next();
        used.and_then(|used| used.parse().ok()).expect("it is said")
    }
}

fn write(path: &Path, text: &str) {
    fs::write(path, text).expect("it is ours");
}

impl Drop for Hog {
    fn drop(&mut self) {
        let _ = self.program.kill();
        let _ = self.program.wait();
    }
}
