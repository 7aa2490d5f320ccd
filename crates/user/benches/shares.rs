//! What real programs receive under the user engine, beside the papers and the
//! best published scheduler that works from user space, ALPS (below 5 %).
//!
//! Ratios are of CPU time, so that other load on the machine does not count.
//! Ten seconds a measurement; `--full` takes the papers' thirty.

#[path = "../tests/support/mod.rs"]
mod support;

use std::time::{Duration, Instant};

use prorata_report::figures::{self, Figure, Quantity};
use support::{Program, World, shared_cpu};

const QUANTUM_NS: u64 = 20_000_000;
const CROWD: usize = 100;

/// Programs on one CPU and the engine that shares it out.
struct Race {
    programs: Vec<Program>,
    world: World,
}

impl Race {
    /// Starts them and lets them find their pace.
    fn start(tickets: &[u32]) -> Race {
        let world = World::new(None, QUANTUM_NS);
        let programs = world.hogs(tickets);
        std::thread::sleep(Duration::from_secs(1));
        Race { programs, world }
    }

    fn received_ns(&self) -> Vec<u64> {
        self.programs.iter().map(Program::cpu_ns).collect()
    }

    /// CPU time that each program receives during `time`.
    fn run(&self, time: Duration) -> Vec<f64> {
        let before = self.received_ns();
        std::thread::sleep(time);
        self.received_since(&before)
    }

    /// CPU time that each program receives from the end of a turn of the last
    /// one to the end of another, some `time` later.
    fn run_whole_waits(&self, time: Duration) -> Vec<f64> {
        self.wait_for_turn_of_last();
        let before = self.received_ns();
        std::thread::sleep(time);
        self.wait_for_turn_of_last();
        self.received_since(&before)
    }

    fn received_since(&self, before: &[u64]) -> Vec<f64> {
        let after = self.received_ns();
        let received = after.iter().zip(before);
        received.map(|(a, b)| (a - b) as f64).collect()
    }

    fn wait_for_turn_of_last(&self) {
        let received_ns = || self.programs.last().expect("there is one").cpu_ns();
        let begin_ns = received_ns();
        let mut now_ns = begin_ns;
        loop {
            std::thread::sleep(Duration::from_millis(5));
            let before_ns = std::mem::replace(&mut now_ns, received_ns());
            let is_over = now_ns - before_ns < QUANTUM_NS / 20;
            if is_over && now_ns - begin_ns > QUANTUM_NS / 2 {
                break;
            }
        }
    }
}

/// How far a ratio is off, in per cent.
fn error_percent(received: &[f64], specified: f64) -> f64 {
    (received[0] / received[1] / specified - 1.0).abs() * 100.0
}

fn figure(
    name: String,
    paper: Option<&str>,
    peer: Option<&str>,
    measured: f64,
    limit: f64,
) -> Figure {
    let words = |text: &str| Quantity::Words(text.to_owned());
    let figure = Figure {
        name,
        paper: paper.map(words),
        peer: peer.map(words),
        measured,
        unit: "%".to_owned(),
        target: Some(Quantity::Words(format!("below {limit} %"))),
        ok: measured < limit,
    };
    println!("{}: {measured:.3} % (below {limit} %)", figure.name);
    figure
}

fn ratios(time: Duration) -> Vec<Figure> {
    let one_to_ten = (1..=10).map(|ratio| (ratio, 1.0));
    one_to_ten
        .chain([(50, 2.0)])
        .map(|(ratio, limit)| {
            let race = Race::start(&[ratio, 1]);
            // Where a turn more or less in the whole time is above the limit,
            // a ratio can be exact over whole waits only.
            let turns = time.as_nanos() as f64 / QUANTUM_NS as f64 / f64::from(ratio + 1);
            let (received, over) = if 100.0 / turns > limit {
                (race.run_whole_waits(time), "whole waits in ")
            } else {
                (race.run(time), "")
            };
            let error = error_percent(&received, f64::from(ratio));
            let name = format!("error of {ratio}:1 over {over}{} s", time.as_secs());
            figure(
                name,
                Some("within 1 % (1995, Figure 14)"),
                Some("ALPS: below 5 %"),
                error,
                limit,
            )
        })
        .collect()
}

fn windows(time: Duration) -> Figure {
    let race = Race::start(&[3, 1]);
    let window = Duration::from_secs(2);
    let worst = (0..time.as_secs() / window.as_secs())
        .map(|_| error_percent(&race.run_whole_waits(window), 3.0))
        .fold(0.0, f64::max);
    // A turn more or less would be 4 %.
    let name = "largest error of 3:1 over windows of whole waits in 2 s".to_owned();
    figure(name, Some("plotted (1995, Figure 15)"), None, worst, 3.0)
}

fn own_cost(time: Duration) -> Figure {
    let race = Race::start(&[1; CROWD]);
    let before = race.world.engine().status();
    std::thread::sleep(time);
    let after = race.world.engine().status();
    let used = (after.own_cpu_ns - before.own_cpu_ns) as f64;
    let cost = used / (after.uptime_ns - before.uptime_ns) as f64 * 100.0;
    let name = format!("CPU time of the engine itself, {CROWD} processes");
    figure(name, None, None, cost, 1.0)
}

/// CPU time that eight programs receive on one CPU, under the engine and under
/// the plain kernel in turns. Other load falls on both alike.
fn work_lost(time: Duration) -> Figure {
    let slice = time / 5;
    let mut lost: Vec<f64> = (0..5)
        .map(|_| {
            let race = Race::start(&[1; 8]);
            let begin = Instant::now();
            let ours = race.run(slice).iter().sum::<f64>() / begin.elapsed().as_nanos() as f64;
            let Race { programs, world } = race;
            drop(world);
            let used = || programs.iter().map(Program::cpu_ns).sum::<u64>() as f64;
            let (begin, before) = (Instant::now(), used());
            std::thread::sleep(slice);
            let plain = (used() - before) / begin.elapsed().as_nanos() as f64;
            (1.0 - ours / plain) * 100.0
        })
        .collect();
    lost.sort_by(f64::total_cmp);
    let name = format!(
        "CPU time lost against the plain kernel on CPU {}",
        shared_cpu()
    );
    figure(name, Some("below 0.2 % (1995, 6.1)"), None, lost[2], 1.0)
}

fn main() {
    prorata_user::guardian_entry();
    support::helper::helper_entry();
    let full = std::env::args().any(|argument| argument == "--full");
    let time = Duration::from_secs(if full { 30 } else { 10 });
    let mut reached = ratios(time);
    reached.push(windows(time));
    reached.push(own_cost(time));
    reached.push(work_lost(time));
    figures::keep(env!("CARGO_TARGET_TMPDIR"), "user", &reached);
}
