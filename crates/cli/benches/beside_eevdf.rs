//! Shares of control groups by `cpu.weight`, under Linux's own scheduler and under
//! ours, in the same kind of micro-VM: pairs from 1:1 to 50:1, and groups nested
//! three deep with unequal weights and numbers of processes. The micro-VM's clock
//! counts instructions, so a busy host makes no difference.
//!
//! With `--measure` the bench measures on this host, with `--measure-stride` under
//! our scheduler.

mod machine;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode};
use std::thread::sleep;
use std::time::{Duration, Instant};

use prorata_kernel::scheduler::{Mechanisms, Options, Policy, Queues, Scope};
use prorata_report::figures::{self, Figure};
use prorata_report::table::{Side, Table};

/// The current series.
const KERNEL: &str = "7";
/// Nanoseconds per instruction. At this value a second takes a fraction of one.
const ICOUNT: &str = "--icount=16";
/// Time of the measurement, and time for all processes to start.
const TIME: Duration = Duration::from_secs(30);
const SETTLE: Duration = Duration::from_secs(1);
/// About the length of a turn under EEVDF.
const QUANTUM_NS: u64 = 4_000_000;

const ROOT: &str = "/sys/fs/cgroup";
const RATIOS: [u32; 11] = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 50];
/// The nested groups: top `a` of weight 300 with `a/1` of 100 (with `x` of 200 and
/// `y` of 100) and `a/2` of 200, and top `b` of 100. Each has its path, weight,
/// processes and, for a leaf, its share.
const NESTED: [(&str, u32, u32, f64); 6] = [
    ("a", 300, 0, 0.0),
    ("a/1", 100, 0, 0.0),
    ("a/1/x", 200, 1, 1.0 / 6.0),
    ("a/1/y", 100, 3, 1.0 / 12.0),
    ("a/2", 200, 1, 1.0 / 2.0),
    ("b", 100, 2, 1.0 / 4.0),
];

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.first().map(String::as_str) {
        Some("--measure") => measure(),
        Some("--measure-stride") => {
            let options = Options {
                policy: Policy::Stride,
                quantum_ns: QUANTUM_NS,
                scope: Scope::All,
                queues: Queues::One,
                hybrid: Mechanisms::NONE,
            };
            machine::under(&options, |_| measure());
        }
        // The micro-VM would stop at each instruction of `spin_loop`.
        Some("--hog") => loop {
            std::hint::black_box(0);
        },
        _ => return compare(),
    }
    ExitCode::SUCCESS
}

/// The measured quantities, and their largest errors in per cent.
fn names() -> Vec<(String, f64)> {
    let ratios = RATIOS.map(|ratio| {
        let most = if ratio <= 10 { 1.0 } else { 2.0 };
        (format!("{ratio}:1"), most)
    });
    let nested = NESTED.iter().filter(|group| group.2 > 0);
    let nested = nested.map(|(path, .., share)| (format!("{path}, due {share:.4}"), 2.0));
    ratios.into_iter().chain(nested).collect()
}

/// Measures in two micro-VMs and compares the results.
fn compare() -> ExitCode {
    let runs = (in_machine("--measure"), in_machine("--measure-stride"));
    let (Some(eevdf), Some(stride)) = runs else {
        eprintln!("no kernel for a micro-VM: run `prorata vm fetch`");
        return ExitCode::FAILURE;
    };
    let mut table = Table::new(&[
        ("WEIGHTS", Side::Left),
        ("EEVDF", Side::Right),
        ("OFF BY", Side::Right),
        ("PRORATA", Side::Right),
        ("OFF BY", Side::Right),
    ]);
    let mut all = Vec::new();
    for (((name, most), eevdf), stride) in names().into_iter().zip(eevdf).zip(stride) {
        let percent = |error: f64| format!("{error:.2} %");
        table.row(vec![
            name.clone(),
            format!("{:.4}", eevdf.0),
            percent(eevdf.1),
            format!("{:.4}", stride.0),
            percent(stride.1),
        ]);
        let name = format!("control groups, {name}, off by");
        let figure = Figure::at_most(name, stride.1, "%", most);
        all.push(figure.beside(format!("EEVDF: {}", percent(eevdf.1))));
    }
    for line in table.lines(None) {
        println!("{line}");
    }
    figures::keep(env!("CARGO_TARGET_TMPDIR"), "beside_eevdf", &all);
    ExitCode::SUCCESS
}

/// Measures inside the micro-VM. Prints for each name the result and its error in
/// per cent.
fn in_machine(measure: &str) -> Option<Vec<(f64, f64)>> {
    let text = machine::said_in(&[ICOUNT, "--kernel", KERNEL], &[measure])?;
    let figures = text.lines().map(|line| {
        let (measured, error) = line.split_once(' ')?;
        Some((measured.parse().ok()?, error.parse().ok()?))
    });
    let figures: Option<Vec<_>> = figures.collect();
    figures.filter(|figures| figures.len() == names().len())
}

fn measure() {
    for ratio in RATIOS {
        let groups = [
            Group::new("pair-more", 100 * ratio, 1),
            Group::new("pair-less", 100, 1),
        ];
        let [more, less] = used(&groups.each_ref())[..] else {
            unreachable!("there are two");
        };
        let (measured, due) = (more / less, f64::from(ratio));
        println!("{measured} {}", (measured / due - 1.0).abs() * 100.0);
    }
    let groups = NESTED.map(|(path, weight, processes, _)| Group::new(path, weight, processes));
    let leaves = groups.iter().zip(NESTED).filter(|(_, group)| group.2 > 0);
    let (leaves, shares): (Vec<&Group>, Vec<f64>) = leaves.map(|(g, (.., s))| (g, s)).unzip();
    let used = used(&leaves);
    let all: f64 = used.iter().sum();
    for (used, due) in used.iter().zip(shares) {
        let share = used / all;
        println!("{share} {}", (share / due - 1.0).abs() * 100.0);
    }
    // Children go before their parents.
    groups.into_iter().rev().for_each(drop);
}

/// CPU time used by each group during the measurement.
fn used(groups: &[&Group]) -> Vec<f64> {
    sleep(SETTLE);
    let look = || groups.iter().map(|group| group.used_us());
    let (before, begin): (Vec<f64>, _) = (look().collect(), Instant::now());
    sleep(TIME.saturating_sub(begin.elapsed()));
    look()
        .zip(before)
        .map(|(now, before)| now - before)
        .collect()
}

/// A control group with computing processes; drop ends both.
struct Group {
    path: PathBuf,
    hogs: Vec<Child>,
}

impl Group {
    fn new(path: &str, weight: u32, processes: u32) -> Self {
        let path = Path::new(ROOT).join(path);
        let parent = path.parent().expect("it is below the root");
        let write = |path: PathBuf, text: &str| fs::write(path, text).expect("it is ours");
        write(parent.join("cgroup.subtree_control"), "+cpu");
        fs::create_dir(&path).expect("it is new");
        write(path.join("cpu.weight"), &weight.to_string());
        let hogs = (0..processes).map(|_| {
            let program = std::env::current_exe().expect("it runs");
            let hog = Command::new(program).arg("--hog").spawn();
            let hog = hog.expect("it can be started");
            write(path.join("cgroup.procs"), &hog.id().to_string());
            hog
        });
        let hogs = hogs.collect();
        Self { path, hogs }
    }

    fn used_us(&self) -> f64 {
        let text = fs::read_to_string(self.path.join("cpu.stat")).expect("it is there");
        let used = text.lines().find_map(|l| l.strip_prefix("usage_usec "));
        used.and_then(|used| used.parse().ok()).expect("it is said")
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        for hog in &mut self.hogs {
            let _ = hog.kill();
            let _ = hog.wait();
        }
        // The kernel refuses to remove a group before its last process is gone.
        while fs::remove_dir(&self.path).is_err() {
            sleep(Duration::from_millis(5));
        }
    }
}
