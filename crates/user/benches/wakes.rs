//! How late a client wakes beside hogs, and what the others lose by that: the user engine with each
//! mechanism, beside plain Linux.
//!
//! One CPU. The waking client computes for 0.2 ms every 2 ms and is due a fifth of the CPU, twice as
//! much. Hogs are clients of a process each. Pairs of runs, plain Linux and the engine, take turns; figures are medians of five pairs. New
//! clients are not early, so wakes of the first three seconds do not count.
//!
//! `cargo bench -p prorata-user --bench wakes -- 2` takes two pairs.

#[path = "../tests/support/mod.rs"]
mod support;

use std::time::Instant;

use prorata_core::hybrid::Mechanisms;
use prorata_report::figures::{self, Figure};
use prorata_user::Mechanism;
use support::{Program, World, control_groups};

const QUANTUM_NS: u64 = 20_000_000;
const PAIRS: usize = 5;
const FIRST_WAKES: &str = "1500";
const WAKES: &str = "2500";
const PERIOD_US: &str = "2000";
const WORK_US: &str = "200";
/// The waking client is due a fifth of the CPU.
const TICKETS_OF_ALL_HOGS: u32 = 400;
const TICKETS: u32 = 100;
/// What may be lost of the work, in percent.
const MOST_LOST: f64 = 1.0;

/// What decides.
#[derive(Clone, Copy, Debug)]
struct Setting {
    mechanism: Option<Mechanism>,
    hybrid: Mechanisms,
}

const PLAIN: Setting = Setting {
    mechanism: None,
    hybrid: Mechanisms::NONE,
};

impl Setting {
    fn name(self) -> String {
        match (self.mechanism, self.hybrid.judges_wakes()) {
            (None, _) => "plain Linux".to_owned(),
            (Some(mechanism), true) => format!("{mechanism:?}"),
            (Some(mechanism), false) => format!("{mechanism:?} without hybrid scheduling"),
        }
    }
}

/// What a run shows.
#[derive(Clone, Copy, Debug)]
struct Run {
    p50_ms: f64,
    p99_ms: f64,
    /// CPU time of all programs, as a part of the time that passed.
    work: f64,
}

fn run(setting: Setting, hogs: u32) -> Run {
    let world = setting.mechanism.map(|mechanism| {
        let world = World::new(Some(mechanism), QUANTUM_NS);
        world.lock().set_mechanisms_beside(setting.hybrid);
        world
    });
    let programs: Vec<Program> = (0..hogs).map(|_| Program::hog()).collect();
    let mut waking = Program::start(&["wakes", FIRST_WAKES, WAKES, PERIOD_US, WORK_US]);
    if let Some(world) = &world {
        for (number, hog) in programs.iter().enumerate() {
            let name = format!("hog{number}");
            world.enter(&name, TICKETS_OF_ALL_HOGS / hogs, hog);
        }
        world.enter("waking", TICKETS, &waking);
    }
    let used_ns = |waking: &Program| {
        let hogs: u64 = programs.iter().map(Program::cpu_ns).sum();
        hogs + waking.cpu_ns()
    };
    let (begin, before_ns) = (Instant::now(), used_ns(&waking));
    let line = waking.hear();
    let work = (used_ns(&waking) - before_ns) as f64 / begin.elapsed().as_nanos() as f64;
    let ms = |us: &str| us.parse::<f64>().expect("a number") / 1e3;
    let (p50, p99) = line.split_once(' ').expect("two numbers");
    Run {
        p50_ms: ms(p50),
        p99_ms: ms(p99),
        work,
    }
}

fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn measure(setting: Setting, hogs: u32, pairs: usize) -> [Figure; 2] {
    let pairs: Vec<(Run, Run)> = (0..pairs)
        .map(|_| (run(PLAIN, hogs), run(setting, hogs)))
        .collect();
    let plain = |of: fn(&Run) -> f64| median(pairs.iter().map(|(plain, _)| of(plain)));
    let ours = |of: fn(&Run) -> f64| median(pairs.iter().map(|(_, ours)| of(ours)));
    let lost = median(
        pairs
            .iter()
            .map(|(plain, ours)| (1.0 - ours.work / plain.work) * 100.0),
    );
    let plain_p99 = plain(|run| run.p99_ms);
    let p99 = ours(|run| run.p99_ms);
    let name = format!("beside {hogs} hogs, {}", setting.name());
    println!(
        "{name}: p50 {:.3} ms, p99 {p99:.3} ms (plain Linux {:.3}, {plain_p99:.3}); {lost:.2} % of the work lost",
        ours(|run| run.p50_ms),
        plain(|run| run.p50_ms),
    );
    [
        Figure::at_most(format!("wake-up p99 {name}"), p99, "ms", plain_p99)
            .beside(format!("plain Linux {plain_p99:.3}")),
        Figure::at_most(format!("work lost {name}"), lost, "%", MOST_LOST),
    ]
}

fn main() {
    prorata_user::guardian_entry();
    support::helper::helper_entry();
    let pairs = std::env::args().find_map(|word| word.parse().ok());
    let pairs = pairs.unwrap_or(PAIRS).max(1);
    let mut mechanisms = vec![Mechanism::Stop];
    if rustix::process::geteuid().is_root() {
        mechanisms.insert(0, Mechanism::Idle);
    }
    let groups = control_groups::can_be_had();
    mechanisms.extend(groups.map(|_| Mechanism::GroupFreeze));
    let mut reached = Vec::new();
    for hogs in [1, 8] {
        for mechanism in &mechanisms {
            for hybrid in [Mechanisms::NONE, Mechanisms::ALL] {
                let setting = Setting {
                    mechanism: Some(*mechanism),
                    hybrid,
                };
                let figures = measure(setting, hogs, pairs);
                // Without the mechanisms the figures only show what these are worth.
                reached.extend(figures.into_iter().filter(|_| hybrid.judges_wakes()));
            }
        }
    }
    figures::keep(env!("CARGO_TARGET_TMPDIR"), "wakes", &reached);
}
