//! How soon tasks that sleep run beside tasks that compute, and what those get done, under Linux's
//! own scheduler, under ours and under others', in the same kind of micro-VM, whose clock counts
//! instructions. Ours schedules clients alone or, WHOLE, all of the machine. The share of the CPUs
//! that the load received stands beside, as a scheduler could buy latency by theft.
//!
//! Arguments: names of experiments, if not all. With `--measure EXPERIMENT SCHEDULER PEERS` the
//! bench measures on this host.

mod experiment;
#[path = "../machine/mod.rs"]
mod machine;
mod place;
mod under;
mod work;

use std::io::{Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::thread::sleep;
use std::time::Duration;

use prorata_report::figures::{self, Figure};
use prorata_report::table::{Side, Table};

use experiment::{Experiment, Run, Target, What};
use place::{Groups, Program};

/// The current series.
const KERNEL: &str = "7";
/// Time for all programs to start.
const SETTLE: Duration = Duration::from_secs(1);

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.first().map(String::as_str) {
        Some("--measure") => measure(&arguments[1..]),
        Some(role) if role.starts_with("--") && role != "--bench" => work::perform(role),
        _ => return compare_all(&arguments),
    }
    ExitCode::SUCCESS
}

/// The numbers of one run: what its load prints, and the load's share of the CPUs.
type Found = Vec<f64>;

fn compare_all(arguments: &[String]) -> ExitCode {
    let peers = under::peers();
    if peers.is_none() {
        println!("scx_bpfland and scx_lavd cannot be installed here: no comparison with them");
    }
    // `cargo bench` passes `--bench` on.
    let names: Vec<&String> = arguments.iter().filter(|name| *name != "--bench").collect();
    let is_chosen = |name: &str| names.is_empty() || names.iter().any(|chosen| *chosen == name);
    let mut all = Vec::new();
    for experiment in experiment::ALL.iter().filter(|one| is_chosen(one.name)) {
        for cpus in experiment.cpus {
            let Some(figures) = compare(experiment, *cpus, peers.as_ref()) else {
                eprintln!("no kernel for a micro-VM: run `prorata vm fetch`");
                return ExitCode::FAILURE;
            };
            all.extend(figures);
        }
    }
    figures::keep(env!("CARGO_TARGET_TMPDIR"), "responsiveness", &all);
    ExitCode::SUCCESS
}

/// Measures in a micro-VM under each scheduler, and compares the results. None without a kernel.
fn compare(experiment: &Experiment, cpus: u32, peers: Option<&PathBuf>) -> Option<Vec<Figure>> {
    let mut by_under: Vec<(&str, Vec<Found>)> = Vec::new();
    for name in experiment.under {
        let is_peer = under::is_peer(name);
        if is_peer && peers.is_none() {
            continue;
        }
        match in_machine(experiment, cpus, name, peers) {
            Some(found) => by_under.push((name, found)),
            None if is_peer => println!("{name} does not run on {cpus} CPUs: left out"),
            None => return None,
        }
    }
    println!("{}, {cpus} CPUs:", experiment.name);
    let heads = by_under.iter().flat_map(|(name, _)| [*name, "SHARE"]);
    let heads = heads.map(|head| (head, Side::Right));
    let heads: Vec<_> = [("LOAD", Side::Left)].into_iter().chain(heads).collect();
    let mut table = Table::new(&heads);
    let mut all = Vec::new();
    for (row, run) in (experiment.runs)().iter().enumerate() {
        for (index, what) in run.whats.iter().enumerate() {
            let name = format!("{}, {}", run.name, what.name);
            let cells = by_under.iter().flat_map(|(_, found)| {
                let share = found[row].last().copied().unwrap_or_default();
                [format!("{:.3}", found[row][index]), format!("{share:.3}")]
            });
            let first = format!("{name}, {}", what.unit);
            table.row([first].into_iter().chain(cells).collect());
            let of = |under: &str| {
                let found = by_under.iter().find(|(name, _)| *name == under);
                found.expect("it is never left out").1[row][index]
            };
            let name = format!("{name}, {cpus} CPUs");
            all.push(figure(name, what, of("WHOLE"), of("EEVDF")));
        }
    }
    for line in table.lines(None) {
        println!("{line}");
    }
    Some(all)
}

fn figure(name: String, what: &What, ours: f64, peer: f64) -> Figure {
    let figure = match what.target {
        Target::AtLeast(part) => Figure::at_least(name, ours, what.unit, peer * part),
        Target::Near => Figure::at_most(name, ours, what.unit, peer * 1.1 + 100.0),
        Target::Within(most) => Figure::at_most(name, ours, what.unit, peer.min(most)),
    };
    figure.beside(format!("EEVDF: {peer:.3}"))
}

/// By run.
fn in_machine(
    experiment: &Experiment,
    cpus: u32,
    under: &str,
    peers: Option<&PathBuf>,
) -> Option<Vec<Found>> {
    let cpus = cpus.to_string();
    let options = [
        experiment.icount,
        "--kernel",
        KERNEL,
        "--memory",
        "2048",
        "--cpus",
        &cpus,
    ];
    let peers = peers.map_or(Path::new(""), PathBuf::as_path).to_str()?;
    let text = machine::said_in(&options, &["--measure", experiment.name, under, peers])?;
    let mut numbers = text.split_whitespace().map(|number| number.parse().ok());
    let mut found =
        |run: &Run| -> Option<Found> { (0..=run.whats.len()).map(|_| numbers.next()?).collect() };
    (experiment.runs)().iter().map(&mut found).collect()
}

/// Measures and prints inside the micro-VM.
fn measure(arguments: &[String]) {
    let [name, under, peers] = arguments else {
        panic!("an experiment, a scheduler and the peers' directory are needed");
    };
    let experiment = experiment::ALL.iter().find(|one| one.name == name);
    let runs = (experiment.expect("it is known").runs)();
    under::measure(under, Path::new(peers), |scheduler| {
        for run in &runs {
            let groups = Groups::new(scheduler, run.tickets);
            let (role, count) = run.rivals;
            let rivals: Vec<Program> = (0..count).map(|_| Program::start(role)).collect();
            for rival in &rivals {
                groups.put_rival(rival);
            }
            let mut program = Program::start(run.load);
            groups.put_load(&program);
            sleep(SETTLE);
            program.input().write_all(b".").expect("it listens");
            let mut said = String::new();
            program
                .output()
                .read_to_string(&mut said)
                .expect("it answers");
            eprintln!("{under}, {}: {}", run.name, said.trim());
            println!("{said}");
        }
    });
}
