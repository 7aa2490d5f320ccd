//! How soon tasks that sleep run beside tasks that compute, under Linux's own scheduler and
//! under ours, in the same kind of micro-VM, whose clock counts instructions. Ours schedules
//! clients alone or, WHOLE, all of the machine. Each
//! load runs beside four hogs, on one CPU and on two: in one group with them, and in a group of
//! its own with as many tickets. The share of the CPUs that the load received stands beside, as
//! a scheduler could buy latency by theft.
//!
//! With `--measure SCHEDULER` the bench measures on this host.

#[path = "../machine/mod.rs"]
mod machine;
mod place;
mod work;

use std::io::{Read as _, Write as _};
use std::process::ExitCode;
use std::thread::sleep;
use std::time::Duration;

use prorata_kernel::scheduler::{Mechanisms, Options, Policy, Queues, Scheduler, Scope};
use prorata_report::figures::{self, Figure, Quantity};
use prorata_report::table::{Side, Table};

use place::{Groups, Program};

/// The current series.
const KERNEL: &str = "7";
/// Nanoseconds per instruction. At this value a second takes about one.
const ICOUNT: &str = "--icount=8";
const CPUS: [u32; 2] = [1, 2];
/// Time until the kernel has finished booting.
const BOOT: Duration = Duration::from_secs(20);
/// Time for all programs to start.
const SETTLE: Duration = Duration::from_secs(1);
const HOGS: usize = 4;
/// The default of `prorata start`.
const QUANTUM_NS: u64 = 20_000_000;

/// A measured quantity of a load. The share follows the last one.
struct What {
    name: &'static str,
    unit: &'static str,
    /// Whether a larger number is better.
    is_rate: bool,
}

const fn rate(name: &'static str, unit: &'static str) -> What {
    What {
        name,
        unit,
        is_rate: true,
    }
}

const fn latency(name: &'static str) -> What {
    What {
        name,
        unit: "us",
        is_rate: false,
    }
}

/// The loads, by the argument that starts each, and what each prints.
const LOADS: [(&str, &[What]); 4] = [
    ("--ping-pong", &[rate("ping-pong", "round trips/s")]),
    (
        "--requests",
        &[
            rate("requests", "requests/s"),
            latency("requests, p50"),
            latency("requests, p99"),
        ],
    ),
    ("--nappers", &[rate("two nappers", "CPUs")]),
    (
        "--wakes",
        &[
            latency("wake-up, p50"),
            latency("wake-up, p99"),
            latency("wake-up, p99.9"),
        ],
    ),
];

/// Whether the load shares a group with the hogs.
const TOGETHER: [(bool, &str); 2] = [(true, "one group"), (false, "groups of their own")];

/// What schedules: EEVDF without options.
const UNDER: [(&str, Option<Options>); 4] = [
    ("EEVDF", None),
    ("STRIDE", Some(STRIDE)),
    ("HYBRID", Some(HYBRID)),
    (
        "WHOLE",
        Some(Options {
            scope: Scope::All,
            ..HYBRID
        }),
    ),
];

/// Without the mechanisms of 1999.
const STRIDE: Options = Options {
    policy: Policy::Stride,
    quantum_ns: QUANTUM_NS,
    scope: Scope::Given,
    queues: Queues::Cpu,
    hybrid: Mechanisms::NONE,
};

const HYBRID: Options = Options {
    hybrid: Mechanisms::ALL,
    ..STRIDE
};

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.first().map(String::as_str) {
        Some("--measure") => measure(arguments.get(1)),
        Some("--hog") => work::hog(),
        Some(load) if LOADS.iter().any(|(role, _)| *role == load) => work::perform(load),
        _ => return compare(),
    }
    ExitCode::SUCCESS
}

/// The numbers of one load in one place: what it prints, and its share of the CPUs.
type Found = Vec<f64>;

/// Measures in a micro-VM for each number of CPUs, and compares the results.
fn compare() -> ExitCode {
    let mut all = Vec::new();
    for cpus in CPUS {
        let runs = UNDER.iter().map(|(name, _)| in_machine(cpus, name));
        let Some(found) = runs.collect::<Option<Vec<_>>>() else {
            eprintln!("no kernel for a micro-VM: run `prorata vm fetch`");
            return ExitCode::FAILURE;
        };
        println!("{cpus} CPUs, {HOGS} hogs:");
        let heads = UNDER.iter().flat_map(|(name, _)| [*name, "SHARE"]);
        let heads = heads.map(|head| (head, Side::Right));
        let heads: Vec<_> = [("LOAD", Side::Left)].into_iter().chain(heads).collect();
        let mut table = Table::new(&heads);
        for (place, (_, together)) in TOGETHER.iter().enumerate() {
            for (load, (_, whats)) in LOADS.iter().enumerate() {
                let of = |under: &Vec<Vec<Found>>| under[place][load].clone();
                let by_under: Vec<Found> = found.iter().map(of).collect();
                for (index, what) in whats.iter().enumerate() {
                    let name = format!("{}, {together}", what.name);
                    let cells = by_under.iter().flat_map(|found| {
                        let share = found.last().copied().unwrap_or_default();
                        [format!("{:.3}", found[index]), format!("{share:.3}")]
                    });
                    table.row(
                        [format!("{name}, {}", what.unit)]
                            .into_iter()
                            .chain(cells)
                            .collect(),
                    );
                    let [peer, .., ours] = &by_under[..] else {
                        unreachable!("EEVDF and ours are there");
                    };
                    all.push(figure(
                        format!("{name}, {cpus} CPUs"),
                        what,
                        ours[index],
                        peer[index],
                    ));
                }
            }
        }
        for line in table.lines(None) {
            println!("{line}");
        }
    }
    figures::keep(env!("CARGO_TARGET_TMPDIR"), "responsiveness", &all);
    ExitCode::SUCCESS
}

/// Ours is to be no worse than the peer's by more than a tenth, and, of latencies, by 0.1 ms.
fn figure(name: String, what: &What, ours: f64, peer: f64) -> Figure {
    let figure = match what.is_rate {
        true => Figure::at_least(name, ours, what.unit, peer * 0.9),
        false => Figure::at_most(name, ours, what.unit, peer * 1.1 + 100.0),
    };
    Figure {
        peer: Some(Quantity::Words(format!("EEVDF: {peer:.3}"))),
        ..figure
    }
}

/// By place and load.
fn in_machine(cpus: u32, scheduler: &str) -> Option<Vec<Vec<Found>>> {
    let cpus = cpus.to_string();
    let options = [ICOUNT, "--kernel", KERNEL, "--cpus", &cpus];
    let text = machine::said_in(&options, &["--measure", scheduler])?;
    let mut numbers = text.split_whitespace().map(|number| number.parse().ok());
    let mut load =
        |whats: &[What]| -> Option<Found> { (0..=whats.len()).map(|_| numbers.next()?).collect() };
    let mut place = || LOADS.iter().map(|(_, whats)| load(whats)).collect();
    TOGETHER.iter().map(|_| place()).collect()
}

/// Measures and prints inside the micro-VM.
fn measure(scheduler: Option<&String>) {
    let named = UNDER
        .iter()
        .find(|(name, _)| Some(*name) == scheduler.map(String::as_str));
    let (_, options) = named.expect("it is one of those compared");
    match options {
        None => {
            sleep(BOOT);
            measure_under(None);
        }
        Some(options) => machine::under(options, |scheduler| {
            measure_under((options.scope == Scope::Given).then_some(scheduler));
        }),
    }
}

fn measure_under(scheduler: Option<&Scheduler>) {
    for (together, name) in TOGETHER {
        let groups = Groups::new(scheduler, together);
        let hogs: Vec<Program> = (0..HOGS).map(|_| Program::start("--hog")).collect();
        for hog in &hogs {
            groups.put_hog(hog);
        }
        sleep(SETTLE);
        for (load, _) in LOADS {
            let mut program = Program::start(load);
            groups.put_load(&program);
            program.input().write_all(b".").expect("it listens");
            let mut said = String::new();
            program
                .output()
                .read_to_string(&mut said)
                .expect("it answers");
            eprintln!("{name} {load} {said}");
            println!("{said}");
        }
    }
}
