//! The user engine on real programs: how exact shares are, and what they cost.
//!
//! * *ratios*: two programs that only compute, each integral ratio from 1:1 to
//!   10:1 (1995, Figure 14), and 50:1; the worst is reported;
//! * *windows*: 3:1 over windows of two seconds (1995, Figure 15);
//! * *own cost*: CPU time of this process and the guardian while 100 programs
//!   are managed at a quantum of 20 ms;
//! * *work lost*: what programs get done under the engine, against what the
//!   same programs get done when it lets go of them, in turns;
//! * *block to run*: from a winner's falling asleep until another program runs.
//!
//! Shares are those of the CPU time that the programs got together, so other
//! load on the machine does not matter to them; it does to the costs, of which
//! the median over intervals is taken. Runs last for whole cycles of the
//! tickets, at whose ends stride scheduling owes nobody anything; a run cut off
//! elsewhere may show a quantum more or less.
//!
//! Runs are short, so that the programs of the smaller shares get a few quanta
//! only, and a quantum is allowed beside each target; with `--full` they last as
//! long as the paper's (30 seconds), and it is not.

#[allow(unsafe_code, reason = "support reads CPU clocks")]
#[path = "../tests/support/mod.rs"]
mod support;

use std::path::Path;
use std::thread::sleep;
use std::time::{Duration, Instant};

use prorata_report::figures::{self, Figure, Quantity};
use prorata_user::Mechanism;
use support::{MS, Program, World};

const QUANTUM_NS: u64 = 20 * MS;

fn main() {
    prorata_user::guardian_entry();
    support::helper::helper_entry();
    // Programs that compute must not keep us from starting others; they have
    // the ordinary nice value.
    let _ = rustix::process::setpriority_process(None, -20);
    let arguments: Vec<String> = std::env::args().collect();
    let is_asked_for = |name: &str| arguments.iter().any(|argument| argument == name);
    let bench = Bench {
        full: is_asked_for("--full"),
    };
    let chosen: Vec<&str> = PARTS
        .iter()
        .map(|(name, _)| *name)
        .filter(|name| is_asked_for(name))
        .collect();
    let mut reached = Vec::new();
    for mechanism in mechanisms() {
        for (name, part) in PARTS {
            if chosen.is_empty() || chosen.contains(&name) {
                for figure in part(&bench, mechanism) {
                    println!("{}: {:.4} {}", figure.name, figure.measured, figure.unit);
                    reached.push(figure);
                }
            }
        }
    }
    for line in figures::table(&[("user".to_owned(), reached.clone())]).lines(None) {
        println!("{line}");
    }
    // A bench runs in its package's directory, beside which the target
    // directory need not be; cargo makes the latter's `tmp` and says where.
    let target = Path::new(env!("CARGO_TARGET_TMPDIR"))
        .parent()
        .expect("it is below the target directory");
    figures::write(&target.join("bench/user.json"), &reached).expect("figures can be written");
}

type Part = fn(&Bench, Mechanism) -> Vec<Figure>;

const PARTS: [(&str, Part); 5] = [
    ("ratios", Bench::ratios),
    ("windows", Bench::windows),
    ("own-cost", Bench::own_cost),
    ("work-lost", Bench::work_lost),
    ("block-to-run", Bench::block_to_run),
];

/// Both where programs can be brought back from `SCHED_IDLE`.
fn mechanisms() -> Vec<Mechanism> {
    if rustix::process::geteuid().is_root() {
        vec![Mechanism::Idle, Mechanism::Stop]
    } else {
        vec![Mechanism::Stop]
    }
}

struct Bench {
    full: bool,
}

impl Bench {
    fn seconds(&self, short: u64, full: u64) -> Duration {
        Duration::from_secs(if self.full { full } else { short })
    }

    fn ratios(&self, mechanism: Mechanism) -> Vec<Figure> {
        let worst = (1..=10)
            .map(|ratio| self.ratio_error(mechanism, ratio))
            .max_by(f64::total_cmp);
        let worst = worst.expect("there are ten");
        let time = self.seconds(4, 30);
        let allowance = 100.0 * QUANTUM_NS as f64 / (time.as_nanos() as f64 / 11.0);
        let integral = self.figure(
            format!("{}: 1:1 to 10:1, worst ratio", name(mechanism)),
            (worst, "% off"),
            (1.0, allowance),
            Some("1 %"),
            Some("ALPS below 5 %"),
        );
        let error = self.ratio_error(mechanism, 50);
        let allowance = 100.0 * QUANTUM_NS as f64 / (time.as_nanos() as f64 / 51.0);
        let steep = self.figure(
            format!("{}: 50:1", name(mechanism)),
            (error, "% off"),
            (2.0, allowance),
            Some("49.93 to 50.44"),
            None,
        );
        vec![integral, steep]
    }

    /// By how many percent the ratio of two programs' CPU time is off, over
    /// whole cycles.
    fn ratio_error(&self, mechanism: Mechanism, ratio: u32) -> f64 {
        let world = World::new(Some(mechanism), QUANTUM_NS);
        let programs = [Program::hog(), Program::hog()];
        world.enter("more", ratio, &programs[0]);
        world.enter("less", 1, &programs[1]);
        let cycle = Duration::from_nanos(QUANTUM_NS) * (ratio + 1);
        let cycles = self.seconds(4, 30).as_nanos().div_ceil(cycle.as_nanos());
        sleep(cycle * 2);
        let used_ns = used_during(cycle * cycles as u32, &programs);
        let measured = used_ns[0] as f64 / used_ns[1] as f64;
        println!("  {} {ratio}:1 measured {measured:.3}:1", name(mechanism));
        100.0 * (measured / f64::from(ratio) - 1.0).abs()
    }

    fn windows(&self, mechanism: Mechanism) -> Vec<Figure> {
        let world = World::new(Some(mechanism), QUANTUM_NS);
        let programs = [Program::hog(), Program::hog()];
        world.enter("three", 3, &programs[0]);
        world.enter("one", 1, &programs[1]);
        sleep(Duration::from_secs(1));
        let window = Duration::from_secs(2);
        let count = if self.full { 30 } else { 5 };
        let errors: Vec<f64> = (0..count)
            .map(|_| {
                let used_ns = used_during(window, &programs);
                100.0 * (used_ns[0] as f64 / used_ns[1] as f64 / 3.0 - 1.0).abs()
            })
            .collect();
        println!("  {} windows off by {errors:.2?} %", name(mechanism));
        let mean = errors.iter().sum::<f64>() / errors.len() as f64;
        let worst = errors
            .into_iter()
            .max_by(f64::total_cmp)
            .expect("there are some");
        let figure = |what, measured| {
            let name = format!("{}: 3:1 over 2 s, {what} window", name(mechanism));
            self.figure(
                name,
                (measured, "% off"),
                (3.0, 0.0),
                Some("figure only"),
                None,
            )
        };
        vec![figure("mean", mean), figure("worst", worst)]
    }

    fn own_cost(&self, mechanism: Mechanism) -> Vec<Figure> {
        let programs: Vec<Program> = (0..100).map(|_| Program::hog()).collect();
        let world = World::new(Some(mechanism), QUANTUM_NS);
        for (index, program) in programs.iter().enumerate() {
            world.enter(&format!("program {index}"), 1 + index as u32 % 10, program);
        }
        sleep(Duration::from_secs(2));
        let interval = self.seconds(1, 3);
        let costs: Vec<f64> = (0..9)
            .map(|_| {
                let before = world.engine().status();
                sleep(interval);
                let after = world.engine().status();
                let own_ns = (after.own_cpu_ns - before.own_cpu_ns) as f64;
                100.0 * own_ns / (after.uptime_ns - before.uptime_ns) as f64
            })
            .collect();
        println!("  {} own cost {costs:.3?} % of a CPU", name(mechanism));
        let name = format!("{}: own cost, 100 programs, 20 ms", name(mechanism));
        vec![self.figure(name, (median(costs), "% of a CPU"), (1.0, 0.0), None, None)]
    }

    fn work_lost(&self, mechanism: Mechanism) -> Vec<Figure> {
        let directory = tempfile::tempdir().expect("a directory");
        let paths: Vec<_> = (0..8)
            .map(|i| directory.path().join(i.to_string()))
            .collect();
        let programs: Vec<Program> = paths
            .iter()
            .map(|path| Program::start(&["count", path.to_str().expect("plain text")]))
            .collect();
        let world = World::new(Some(mechanism), QUANTUM_NS);
        let clients: Vec<_> = (0..8)
            .map(|i| world.client(&format!("program {i}"), 1 + i))
            .collect();
        let work = || -> u64 { paths.iter().map(|path| read_count(path)).sum() };
        let interval = self.seconds(1, 3);
        let rate = || {
            sleep(Duration::from_millis(200));
            let (start, before) = (Instant::now(), work());
            sleep(interval);
            (work() - before) as f64 / start.elapsed().as_secs_f64()
        };
        let mut lost = Vec::new();
        let mut free_before = rate();
        for _ in 0..if self.full { 15 } else { 7 } {
            for (client, program) in clients.iter().zip(&programs) {
                world
                    .engine()
                    .manage(*client, program.id())
                    .expect("it can be managed");
            }
            let managed = rate();
            clients
                .iter()
                .for_each(|client| world.engine().release(*client));
            let free_after = rate();
            lost.push(100.0 * (1.0 - managed / ((free_before + free_after) / 2.0)));
            free_before = free_after;
        }
        println!("  {} work lost {lost:.2?} %", name(mechanism));
        let name = format!("{}: work lost, 8 programs", name(mechanism));
        vec![self.figure(
            name,
            (median(lost), "%"),
            (1.0, 0.0),
            Some("below 0.2 %"),
            Some("plain kernel"),
        )]
    }

    fn block_to_run(&self, mechanism: Mechanism) -> Vec<Figure> {
        let directory = tempfile::tempdir().expect("a directory");
        let path = |name: &str| {
            directory
                .path()
                .join(name)
                .to_str()
                .expect("plain text")
                .to_owned()
        };
        let (sleeps, runs) = (path("sleeps"), path("runs"));
        let sleeper = Program::start(&["noted-bursts", "5000", "30000", &sleeps]);
        let other = Program::start(&["pauses", &runs]);
        let world = World::new(Some(mechanism), QUANTUM_NS);
        world.enter("sleeper", 99, &sleeper);
        world.enter("other", 1, &other);
        sleep(self.seconds(4, 30));
        let runs = read_notes(&runs);
        // When the other was held down by then, and so ran after a pause.
        let delays: Vec<f64> = read_notes(&sleeps)
            .into_iter()
            .skip(10)
            .filter_map(|slept| {
                let ran = runs.iter().find(|&&ran| ran >= slept)?;
                Some((ran - slept) as f64 / MS as f64).filter(|&delay| delay < 30.0)
            })
            .collect();
        println!("  {} block to run, {} times", name(mechanism), delays.len());
        let name = format!("{}: block to run of another, median", name(mechanism));
        vec![self.figure(name, (median(delays), "ms"), (1.0, 0.0), None, None)]
    }

    /// A figure whose target is an upper bound, in short runs with an
    /// allowance.
    fn figure(
        &self,
        name: String,
        (measured, unit): (f64, &str),
        (target, allowance): (f64, f64),
        paper: Option<&str>,
        peer: Option<&str>,
    ) -> Figure {
        let words = |text: &str| Quantity::Words(text.to_owned());
        let allowance = if self.full { 0.0 } else { allowance };
        let target = target + allowance;
        Figure {
            name,
            paper: paper.map(words),
            peer: peer.map(words),
            measured,
            unit: unit.to_owned(),
            target: Some(Quantity::Words(format!("below {target:.1}"))),
            ok: measured < target,
        }
    }
}

fn name(mechanism: Mechanism) -> &'static str {
    match mechanism {
        Mechanism::Idle => "idle",
        Mechanism::Stop => "stop",
    }
}

/// What each of the programs uses during `time`.
fn used_during(time: Duration, programs: &[Program]) -> Vec<u64> {
    let before: Vec<u64> = programs.iter().map(Program::cpu_ns).collect();
    sleep(time);
    programs
        .iter()
        .zip(before)
        .map(|(program, before)| program.cpu_ns() - before)
        .collect()
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}

fn read_notes(path: &str) -> Vec<u64> {
    let bytes = std::fs::read(path).expect("its program wrote it");
    let (notes, _) = bytes.as_chunks();
    notes.iter().map(|note| u64::from_le_bytes(*note)).collect()
}

/// The number that a program last wrote, zero before the first.
fn read_count(path: &Path) -> u64 {
    let bytes = std::fs::read(path).unwrap_or_default();
    bytes.try_into().map_or(0, u64::from_le_bytes)
}
